// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Recognizes a list that Redis cannot send: it closes the connection of a client for whom more
// waits than client-output-buffer-limit, each time that the list is adopted. A person has to help.
// The list is measured, to be told of, and adopted again more and more seldom. Meanwhile each
// measurement keeps the consumer alive: what it holds stays its own.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace orizuru::detail {

class CutAdoptions {
  public:
    enum class Next : std::uint8_t { adopt, measure, wait };

    /// The connection ended behind the request to adopt, and no other was adopting on it.
    void cut() noexcept {
        ++m_in_a_row;
        m_told = false;
    }
    /// The list was adopted, or is gone.
    void ended() noexcept { m_in_a_row = 0; }
    /// The next attempt need not wait: it goes to another server, or is the last.
    void end_pause() noexcept { m_adopt_at = TimePoint(); }

    /// Returns what a lane that recovers does now.
    [[nodiscard]] Next next(TimePoint now) const noexcept {
        if (m_in_a_row < most) {
            return Next::adopt;
        }
        if (!m_told) {
            return Next::measure;
        }
        return now >= m_adopt_at ? Next::adopt : now >= m_measure_at ? Next::measure : Next::wait;
    }
    /// Returns when next() changes by itself if that is before `until`, else `until`.
    [[nodiscard]] TimePoint bound(TimePoint until, TimePoint now) const noexcept {
        return next(now) == Next::wait ? std::min({until, m_adopt_at, m_measure_at}) : until;
    }
    /// Takes the reply to a measurement, which has prolonged the lease. Returns what to tell, once
    /// for each cut; nothing if the list is not to blame.
    [[nodiscard]] std::optional<std::string> measured(const Reply& reply, TimePoint now,
                                                      std::chrono::milliseconds lease) {
        const auto& counts = reply.elements;
        const auto counted = [](const Reply& count) { return is_count(count); };
        if (!reply.is(Reply::Type::array) || counts.size() != 3 ||
            !std::ranges::all_of(counts, counted) || counts[1].integer < least_limit) {
            m_in_a_row = 0;
            return std::nullopt;
        }
        m_measure_at = now + lease / 3;
        if (m_told) {
            return std::nullopt;
        }
        m_told = true;
        m_adopt_at = now + pause();
        const Digits messages(counts[0].integer);
        const Digits bytes(counts[1].integer);
        const Digits largest(counts[2].integer);
        const std::string size =
            counts[0].integer == 1
                ? joined({"1 message of ", bytes, " bytes"})
                : joined({messages, " messages of ", bytes, " bytes, the largest of ", largest});
        return joined({"ERR the connection ends each time that Redis sends ", size,
                       ": see client-output-buffer-limit"});
    }

  private:
    // Chance does not end a connection that often just then.
    static constexpr int most = 3;
    // Redis collects 16 KiB before it counts.
    static constexpr std::int64_t least_limit = std::int64_t{16} * 1024;

    /// 1 s, twice as long each time, 64 s at most.
    [[nodiscard]] std::chrono::seconds pause() const noexcept {
        return std::chrono::seconds(std::int64_t{1} << std::clamp(m_in_a_row - most, 0, 6));
    }

    int m_in_a_row = 0;
    bool m_told = false; ///< the last cut was told of
    TimePoint m_adopt_at{};
    TimePoint m_measure_at{};
};

} // namespace orizuru::detail
