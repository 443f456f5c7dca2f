// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Redis' time, known on this host. Redis is asked once in each connection; from then on
// CLOCK_BOOTTIME tells how much time has passed: it goes on while the host sleeps, and no
// correction of the host's wrong clock moves it. When Redis' own clock is set, that is seen in the
// next connection.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <string_view>

namespace orizuru::detail {

/// One thread at a time reads it; any thread may ask for the time meanwhile.
class ServerClock {
  public:
    using Time = std::chrono::sys_time<std::chrono::microseconds>;

    ServerClock() = default;
    ServerClock(const ServerClock& other) noexcept { *this = other; }
    ServerClock& operator=(const ServerClock& other) noexcept {
        m_ahead.store(other.m_ahead.load(std::memory_order_relaxed), std::memory_order_relaxed);
        m_read_in = other.m_read_in;
        return *this;
    }
    ~ServerClock() = default;

    /// The host's time before read(), and when Redis refuses to say its own.
    [[nodiscard]] Time now() const noexcept {
        using std::chrono::microseconds;
        const std::int64_t ahead = m_ahead.load(std::memory_order_relaxed);
        return ahead == unknown ? std::chrono::floor<microseconds>(std::chrono::system_clock::now())
                                : Time(since_boot() + microseconds(ahead));
    }

    /// Asks Redis for its time, unless this connection was asked before; error messages name
    /// `about`. Blocks as Connection::command. Throws ConnectionError, which is never in doubt, and
    /// ProtocolError. What keeps Redis from answering now is for the next command to tell.
    void read(Connection& connection, std::string_view about) {
        if (m_read_in == connection.connected_at()) {
            return;
        }
        std::chrono::microseconds asked{};
        std::optional<Time> time;
        try {
            asked = since_boot();
            time = time_in(connection.command(about, "TIME"));
        } catch (const ConnectionError& error) {
            throw ConnectionError(error.what());
        } catch (const ReplyError& error) {
            if (error.code() != "NOPERM" && error.code() != "ERR") {
                return;
            }
        }
        const auto answered = since_boot();
        m_ahead.store(time ? (time->time_since_epoch() - (asked + answered) / 2).count() : unknown,
                      std::memory_order_relaxed);
        m_read_in = connection.connected_at();
    }

  private:
    static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

    static std::chrono::microseconds since_boot() noexcept {
        timespec time{};
        ::clock_gettime(CLOCK_BOOTTIME, &time);
        return std::chrono::duration_cast<std::chrono::microseconds>(
            std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
    }
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

    std::atomic<std::int64_t> m_ahead{unknown}; ///< of the time since boot, in microseconds
    std::optional<TimePoint> m_read_in;         ///< the connection
};

} // namespace orizuru::detail
