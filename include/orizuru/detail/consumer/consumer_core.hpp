// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Implements the part of Consumer that does not depend on the message type.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/timeout.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stop_token>
#include <string>

namespace orizuru::detail {

struct Awaited;
class Heartbeat;
class Session;
class Wake;

/// Throws std::invalid_argument for invalid options.
[[gnu::cold]] void validate(const ConsumerOptions& options);

/// Blocks, throws and allows threads as Consumer documents.
class ConsumerCore {
  public:
    [[gnu::cold]] ConsumerCore(const Endpoint& endpoint, std::string&& queue,
                               ConsumerOptions&& options);
    /// On a link that it shares, for a thread that polls the link's queues: `news` is signalled
    /// when `poll` may find more than `awaited` says. `share`: in the trials of all its queues.
    [[gnu::cold]] ORIZURU_INLINE ConsumerCore(std::shared_ptr<Heartbeat> heartbeat,
                                              const Keys& keys, ConsumerOptions&& options,
                                              std::shared_ptr<const Wake> news, TrialShare share);
    ConsumerCore(const ConsumerCore&) = delete;
    ConsumerCore& operator=(const ConsumerCore&) = delete;
    ~ConsumerCore();

    /// The part of a consumer that guards keep, while it lives and behind its end.
    class Remainder {
      public:
        explicit Remainder(std::weak_ptr<Session> session) noexcept
            : m_session(std::move(session)) {}

        [[nodiscard]] bool gone() const noexcept { return m_session.expired(); }
        /// As Consumer::flush; nothing to do when it is gone.
        [[nodiscard]] std::size_t flush() const;
        /// No wait for Redis ends later. Call it again behind the consumer's end.
        void end_by(TimePoint time) const noexcept;

      private:
        std::weak_ptr<Session> m_session;
    };
    [[nodiscard]] Remainder remainder() const noexcept { return Remainder(m_session); }

    /// Decodes a message and returns the core of its guard, which gets the message at once: nothing
    /// can throw in between. Throws what the Codec throws.
    using Decode = FunctionRef<GuardCore&(const std::string& payload)>;
    /// Called when there was no memory for that. Returns the core of a guard that stands in; or
    /// null, which counts against the message; or throws, which does not.
    using StandIn =
        FunctionRef<GuardCore*(const std::string& payload, const std::bad_alloc& shortage)>;

    /// Returns whether there was a message; false at the timeout or when stopped. What cannot be
    /// decoded goes to the dead list, with a DecodeError. Without memory to decode a message,
    /// throws std::bad_alloc; the message comes first again. The third time in a row, it counts as
    /// one that cannot be decoded.
    bool next(const std::stop_token& token, Timeout& timeout, Decode decode);
    /// Does the same in steps, see Fetcher::poll; without `awaited`, asks Redis once.
    ORIZURU_INLINE bool poll(const std::stop_token& token, Awaited* awaited, Decode decode,
                             StandIn stand_in);

    /// True when a message that poll() asked for may still come, or has come meanwhile: Redis was
    /// late. Call it on the thread of `poll`.
    [[nodiscard]] ORIZURU_INLINE bool expects_message();

    /// A collector of this process has put messages apart.
    [[gnu::cold]] void mark_suspects();
    /// From now on a fetch takes at most `most` messages, 1 to `prefetch`, and none is sent ahead:
    /// for capacity that varies. Call it on the thread of `next`. Throws std::invalid_argument.
    void limit(int most);
    /// Returns how many messages `next` hands out without asking Redis: the rest of a batch
    /// (prefetch over 1), and a message that there was no memory to decode. Call it on the thread
    /// of `next`.
    [[nodiscard]] std::size_t in_hand() const noexcept;
    void stop() noexcept;
    [[nodiscard]] bool stopped() const noexcept;
    void end_by(TimePoint time) noexcept;
    std::size_t flush();
    std::uint64_t size();
    [[nodiscard]] std::string id() const;
    [[nodiscard]] bool connected() const;
    [[nodiscard]] const Keys& keys() const noexcept;
    [[nodiscard]] const ConsumerOptions& options() const noexcept;

  private:
    static constexpr int most_shortages = 3;

    template <class Fetch>
    bool take(Fetch fetch, const std::stop_token& token, Timeout& timeout, Decode decode,
              StandIn stand_in);
    GuardCore* guard_of(const DeliveryPtr& delivery, Decode decode, StandIn stand_in,
                        std::string& reason);
    [[gnu::cold]] void bury(const DeliveryPtr& delivery, const std::string& reason,
                            const std::stop_token& token, TimePoint deadline);

    std::shared_ptr<Session> m_session;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/consumer/consumer_core.ipp>
#endif
