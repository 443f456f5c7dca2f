// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Implements the part of Consumer that does not depend on the message type.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/timeout.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/event.hpp>
#include <orizuru/keys.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace orizuru::detail {

class Heartbeat;
class Session;
class Wake;

/// Connects a link, and makes its heartbeat. Throws as Consumer's constructor does.
[[nodiscard]] [[gnu::cold]] std::shared_ptr<Heartbeat> connect_link(Endpoint endpoint,
                                                                    TimePoint deadline);

/// Throws std::invalid_argument for invalid options.
[[gnu::cold]] void check(const ConsumerOptions& options);

/// Blocks, throws and allows threads as Consumer documents.
class ConsumerCore {
  public:
    [[gnu::cold]] ConsumerCore(Endpoint endpoint, std::string queue, ConsumerOptions options);
    /// On a link that it shares.
    [[gnu::cold]] ConsumerCore(std::shared_ptr<Heartbeat> link, std::string queue,
                               ConsumerOptions options);
    ConsumerCore(const ConsumerCore&) = delete;
    ConsumerCore& operator=(const ConsumerCore&) = delete;
    ~ConsumerCore();

    /// Hands out the next message; returns null at the timeout or when stopped. Pass the message to
    /// `guard`, `bury` or `postpone`.
    DeliveryPtr next(const std::stop_token& token, Timeout& timeout);
    /// The same in steps: see Fetcher::poll.
    DeliveryPtr poll(const std::stop_token& token, Awaited& awaited);
    /// See Session::watch.
    void watch(std::shared_ptr<const Wake> news);
    void guard(DeliveryPtr&& delivery, GuardCore& guard) noexcept {
        guard.guard(*m_session, std::move(delivery));
    }
    /// See Session::bury.
    std::optional<bool> bury(const DeliveryPtr& message, const std::string& reason,
                             const std::stop_token& token, TimePoint deadline);
    void postpone(DeliveryPtr message) noexcept;
    void tell(EventKind kind, std::string_view detail, std::string_view payload);

    void limit(int most);
    [[nodiscard]] std::size_t in_hand() const noexcept;
    void stop() noexcept;
    [[nodiscard]] bool stopped() const noexcept;
    void end_by(TimePoint time) noexcept;
    std::size_t flush();
    std::uint64_t size();
    [[nodiscard]] std::string id() const;
    [[nodiscard]] const Keys& keys() const noexcept;
    [[nodiscard]] const ConsumerOptions& options() const noexcept;

  private:
    std::shared_ptr<Session> m_session;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/consumer/consumer_core.ipp>
#endif
