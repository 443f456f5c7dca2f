// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Takes messages from a queue and delivers each at least once. Until it is settled, a message stays
// in Redis, in the source or in the consumer's processing list. It is redelivered when the consumer
// dies or goes unheard for its lease before an ack reaches Redis, and when Redis itself loses
// confirmed writes (a failover, a restart without appendfsync always).

#include <orizuru/codec.hpp>
#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/timeout.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/consumer_core.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/message_guard.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace orizuru {

namespace detail {
struct ConsumerAccess;
} // namespace detail

/// @cond
// For a T without a Codec that can decode it.
template <class T>
class Consumer : detail::NoCodec<T, detail::Coding::decode> {
    using detail::NoCodec<T, detail::Coding::decode>::NoCodec;
};
/// @endcond

/// Takes the messages of one queue, each in a guard that settles it. It has three connections, and
/// a thread that keeps the lease.
///
/// `next` and iteration belong to one thread. Any thread may settle guards or call stop(),
/// stopped(), size(), name(), connected() and flush(). The consumer waits out outages of Redis. It
/// replaces a connection that Redis closed while it was idle (name() says what that changes).
///
/// Rejected messages and those of dead consumers come back only where a collector of the queue
/// runs: a BackgroundCollector beside the consumer, or a GarbageCollector anywhere.
///
/// If decoding a message throws std::bad_alloc, `next` throws it too. The message keeps its
/// place, and the following call hands it out first. That call waits until 100 ms after the first
/// failure, or 1 s after the second; a stop or an earlier timeout ends the wait. The third failure
/// in a row sends the message to the dead list with a DecodeError: a Codec may ask for memory that
/// no machine has. This consumer keeps the count, in memory only.
template <MessageDecodable T>
class Consumer<T> {
  public:
    class Iterator;

    /// Connects and registers.
    /// Redis: one script, O(1), and INFO memory.
    /// Throws: std::invalid_argument for an invalid queue name or option; ConnectionError within
    ///     connect_timeout (name resolution excluded); ReplyError when Redis refuses the
    ///     credentials, or the user lacks a right that consuming needs; std::system_error when the
    ///     process has no descriptor or thread left.
    Consumer(const Endpoint& endpoint, std::string queue, ConsumerOptions options = {})
        : m_core(endpoint, std::move(queue), std::move(options)) {}

    Consumer(const Consumer&) = delete;
    Consumer& operator=(const Consumer&) = delete;

    /// Sends deferred acks and requeues messages that were fetched but not handed out. Waits at
    /// most command_timeout, or less after end_by, and for the end of a name resolution that runs.
    /// Guards live on; the last one unregisters the consumer.
    /// Redis: a script for each of these, CLIENT UNBLOCK, and the fence: a key that expires after
    ///     10 minutes, or after 7 days where a request may still come to Redis late, such as a
    ///     BLMOVE that a user without the right to CLIENT UNBLOCK could not end.
    ~Consumer() = default;

    /// Returns the next message and waits until there is one; nothing after a stop.
    /// Redis: BLMOVE, or one script that also sends the deferred acks and fetches up to `prefetch`
    ///     messages. When its time is up, CLIENT UNBLOCK and CLIENT ID end the BLMOVE; Redis counts
    ///     that as an error reply. Without the right to them it ends within 5 s.
    /// Throws: DecodeError when a message cannot be decoded or is over max_payload: it is on the
    ///     dead list. ReplyError when the source is no list, rights were taken away, messages are
    ///     larger than Redis' client-output-buffer-limit, or Redis refuses each fetch for a reason
    ///     that neither waiting nor a new connection fixes. std::bad_alloc when memory is short.
    ///     None of them loses a message, and you can call `next` again.
    [[nodiscard]] std::optional<MessageGuard<T>> next() {
        return next(std::stop_token(), detail::Timeout::never());
    }
    /// Does the same for at most `timeout`; 0 asks Redis once and does not wait for a message.
    [[nodiscard]] std::optional<MessageGuard<T>> next(std::chrono::milliseconds timeout) {
        return next(std::stop_token(), detail::Timeout(timeout));
    }
    /// Does the same; a stop requested through `token` ends only this call.
    [[nodiscard]] std::optional<MessageGuard<T>> next(std::stop_token token) {
        return next(token, detail::Timeout::never());
    }
    /// Does the same for at most `timeout`; a stop requested through `token` ends only this call.
    [[nodiscard]] std::optional<MessageGuard<T>> next(std::stop_token token,
                                                      std::chrono::milliseconds timeout) {
        return next(token, detail::Timeout(timeout));
    }

    /// Ends `next` for good, within 20 ms. Call it from any thread or from a signal handler. `next`
    /// or the destructor requeues messages that were fetched but not handed out. Nothing can end
    /// the resolution of a name: if `next` has begun one, `next` returns after it. Neither `next`
    /// nor the destructor begins another; where connections were lost, the heartbeat's thread
    /// connects.
    void stop() noexcept { m_core.stop(); }
    /// True once stop() was called; a `next` that it ends may still run.
    [[nodiscard]] bool stopped() const noexcept { return m_core.stopped(); }

    /// Lets nothing in this consumer wait for Redis beyond `deadline`: running calls of `next` and
    /// settlements end as if their own time were over, and the destructor does not wait longer
    /// either. Messages not given back by then are redelivered after the lease. Guards that outlive
    /// the consumer wait as usual. Thread-safe.
    void end_by(std::chrono::steady_clock::time_point deadline) noexcept {
        m_core.end_by(deadline);
    }

    /// Sends the deferred acks and waits for Redis, as long as a settlement would.
    /// Returns how many acks since the last flush came too late: those messages are redelivered.
    /// If it returns 0, none of the messages acked so far is redelivered.
    /// Throws ConnectionError if Redis is unreachable, ReplyError if it refuses; acks stay queued.
    std::size_t flush() { return m_core.flush(); }

    /// The length of the source list.
    /// Redis: LLEN, O(1); waits at most command_timeout, including a reconnect.
    /// Throws ConnectionError if it cannot connect in time or the connection breaks; ReplyError.
    std::uint64_t size() { return m_core.size(); }

    /// The id of the current incarnation, as in the registry. It changes when a lease is lost, when
    /// a connection breaks during a command, and when the connection that waits for messages
    /// closes: only the processing list then tells which messages Redis knows of. One script takes
    /// the list over. In the last case CLIENT LIST ID comes first: it says whether Redis still has
    /// that connection.
    [[nodiscard]] std::string name() const { return m_core.id(); }

    /// False during an outage, for a health probe. One begins when the connection for settlements
    /// breaks in use, or cannot be replaced after Redis closed it while it was idle; a new
    /// connection ends it. No command, O(1).
    [[nodiscard]] bool connected() const { return m_core.connected(); }

    /// for (auto& guard : consumer): runs until stopped. It reports an undecodable message to
    /// on_event and skips it. Each step rejects the previous guard unless it was settled. Any other
    /// exception of `next` leaves the loop; you can start it again.
    [[nodiscard]] Iterator begin() { return Iterator(*this); }
    /// The end that an iterator reaches after a stop.
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

    /// Iterates over messages as they come, once. The consumer must outlive it. For the thread that
    /// may call `next`.
    class Iterator {
      public:
        using iterator_concept = std::input_iterator_tag; ///< it goes over the messages once
        using difference_type = std::ptrdiff_t; ///< only for the concept: there are no distances
        using value_type = MessageGuard<T>;     ///< one message and its settlement

        /// Waits for the first message. Throws as operator++.
        explicit Iterator(Consumer& consumer) : m_consumer(&consumer) { advance(); }

        /// The guard of the current message. Settle it or move it out; the reference is valid until
        /// the next step. Not for an iterator at the end.
        [[nodiscard]] MessageGuard<T>& operator*() const noexcept { return *m_guard; }
        /// Destroys the current guard, which rejects an unsettled message, and waits for the next
        /// one. Throws what `next` throws, except DecodeError; the iterator is at the end then.
        Iterator& operator++() {
            m_guard.reset();
            advance();
            return *this;
        }
        /// Does the same.
        void operator++(int) { ++*this; }
        /// True when the iterator has no message: after a stop, or after a step that threw.
        friend bool operator==(const Iterator& iterator, std::default_sentinel_t) noexcept {
            return !iterator.m_guard;
        }

      private:
        void advance() {
            while (true) {
                try {
                    m_guard = m_consumer->next();
                    return;
                } catch (const DecodeError&) { // NOLINT(bugprone-empty-catch)
                    // `next` has called on_event; the message is on the dead list.
                }
            }
        }

        Consumer* m_consumer;
        mutable std::optional<MessageGuard<T>> m_guard;
    };

  private:
    friend struct detail::ConsumerAccess;

    using Guard = MessageGuard<T>;

    std::optional<Guard> next(const std::stop_token& token, detail::Timeout timeout) {
        std::optional<Guard> guard;
        m_core.next(token, timeout, [&](const std::string& payload) -> detail::GuardCore& {
            guard.emplace(typename Guard::Key(),
                          [&] { return detail::decode<T>(payload, m_scratch); });
            return guard->m_core;
        });
        return guard;
    }

    detail::ConsumerCore m_core;
    Scratch m_scratch;
};

namespace detail {

/// For what the tests ask of a consumer besides Consumer's own functions.
struct ConsumerAccess {
    template <class T>
    [[nodiscard]] static ConsumerCore& core(Consumer<T>& consumer) noexcept {
        return consumer.m_core;
    }
};

} // namespace detail

} // namespace orizuru
