// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Redis' time, known on this host. Redis is asked in each connection, and again after a minute;
// from then on the clock of leases tells how much time has passed: it goes on while the host
// sleeps, and no correction of the host's wrong clock moves it.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace orizuru::detail {

/// The time of a Redis as a value: how far it is ahead of this host's time since boot.
class ServerTime {
  public:
    using Time = std::chrono::sys_time<std::chrono::microseconds>;
    using Microseconds = std::chrono::microseconds;

    /// Tells the host's own time.
    ServerTime() = default;
    /// Redis' time was `time` when the host had run for `since_boot`.
    ServerTime(Time time, Microseconds since_boot) noexcept
        : m_ahead((time.time_since_epoch() - since_boot).count()) {}

    [[nodiscard]] Time now() const noexcept {
        return m_ahead == unknown
                   ? std::chrono::floor<Microseconds>(std::chrono::system_clock::now())
                   : Time(since_boot() + Microseconds(m_ahead));
    }

    static Microseconds since_boot() noexcept {
        return std::chrono::duration_cast<Microseconds>(LeaseClock::now().time_since_epoch());
    }

  private:
    static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

    std::int64_t m_ahead = unknown; ///< in microseconds
};

/// For one thread at a time.
class ServerClock {
  public:
    using Time = ServerTime::Time;

    /// The host's time before read(), and when Redis refuses to say its own.
    [[nodiscard]] ServerTime time() const noexcept { return m_time; }
    [[nodiscard]] Time now() const noexcept { return m_time.now(); }

    /// Asks Redis for its time, unless this connection was asked in the last minute; error messages
    /// name `about`. Blocks as Connection::command. Throws ConnectionError, which is never in
    /// doubt, and ProtocolError. What keeps Redis from answering now is for the next command to
    /// tell.
    template <class Line> // a Connection or a KeptStream
    void read(Line& connection, std::string_view about) {
        const auto asked = ServerTime::since_boot();
        if (m_read_in == connected_at(connection) && asked - m_read_at < validity) {
            return;
        }
        std::optional<Time> time;
        try {
            time = time_in(connection.command(about, "TIME"));
        } catch (const ConnectionError& error) {
            throw ConnectionError(error.what());
        } catch (const ReplyError& error) {
            if (error.code() != "NOPERM" && error.code() != "ERR") {
                return;
            }
        }
        const auto answered = ServerTime::since_boot();
        m_time = time ? ServerTime(*time, (asked + answered) / 2) : ServerTime();
        m_read_in = connected_at(connection);
        m_read_at = answered;
    }

  private:
    static std::optional<Time> time_in(const Reply& reply) {
        if (!is_strings(reply) || reply.elements.size() != 2) {
            return std::nullopt;
        }
        const auto seconds = whole_number(reply.elements[0].text);
        const auto microseconds = whole_number(reply.elements[1].text);
        constexpr std::uint64_t latest = 253'402'300'799; // the end of the year 9999
        if (!seconds || !microseconds || *seconds > latest || *microseconds > 999'999) {
            return std::nullopt;
        }
        return Time(std::chrono::seconds(*seconds) + std::chrono::microseconds(*microseconds));
    }

    // A virtual machine that was paused has missed that time, and a clock may run fast.
    static constexpr std::chrono::minutes validity{1};

    ServerTime m_time;
    std::optional<TimePoint> m_read_in; ///< the connection
    ServerTime::Microseconds m_read_at{};
};

} // namespace orizuru::detail
