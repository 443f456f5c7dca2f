// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A rate that all processes together keep to, such as the calls to a paid API.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/limits/rate_spacing.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/limits/rate.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace orizuru {

/// Gives permits to all that use a limit of this name, on any host, by Redis' clock. No span of
/// `per` has more than `most` of them, wherever it begins. They are spaced evenly and not saved up,
/// except for the last twentieth of a `per`, 50 ms at most: who comes late by that does not delay
/// the others, and so many may come together. Where all are wanted, 95 to 100 % are given; fewer
/// where `per` is below 20 ms, as waits are whole milliseconds, or permits come more often than
/// each 0.4 ms, as they are whole microseconds apart. Any thread; calls on one object follow each
/// other, on one connection.
///
///     orizuru::RateLimit calls("redis://localhost", "bank", {.most = 100, .per = 1s});
///     worker.handle<Order>("orders", [&](const Order& order, orizuru::JobContext<Order>& job) {
///         if (const auto wait = calls.take(); wait > 0ms) {
///             orizuru::push_after(*job.guard(), wait); // it comes again, with its attempt
///             return;
///         }
///         charge(order);
///     });
class RateLimit {
  public:
    /// Connects. `name` is as the name of a queue, and may be one's. Those who use a limit give the
    /// same rate. Throws as Producer's constructor does, and std::invalid_argument for a rate that
    /// cannot be.
    RateLimit(Endpoint endpoint, std::string name, const Rate& rate);
    RateLimit(const RateLimit&) = delete;
    RateLimit& operator=(const RateLimit&) = delete;
    ~RateLimit() = default;

    /// Takes a permit and returns 0; or takes none, and returns when to ask again. Those who have
    /// to wait are told times that are spaced as the permits are, so that they do not come all at
    /// once; when all permits of a `per` have gone unused, these times are forgotten. A permit that
    /// was granted in a call whose answer is lost is gone.
    ///
    /// `key`: each has a rate of its own, such as a customer's; 0 to 512 bytes.
    ///
    /// Redis:  GET and SET in a script, O(1). The key expires once it is of no more use.
    /// Blocks: at most command_timeout, and while other threads are inside.
    /// Throws: ConnectionError, ReplyError (it names the key), ProtocolError; std::invalid_argument
    ///         for a longer key.
    [[nodiscard]] std::chrono::milliseconds take(std::string_view key = {});

  private:
    Keys m_keys;
    detail::RateSpacing m_spacing;
    std::mutex m_mutex; ///< guards the connection
    std::unique_ptr<Connection> m_connection;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/limits/rate_limit.ipp>
#endif
