// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Counts the jobs of one queue in this process.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/reports/count_fields.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace orizuru::detail {

/// Any thread.
class QueueCounts {
  public:
    void add(Outcome outcome) noexcept { add(static_cast<std::size_t>(outcome), 1); }
    /// Adds the run of a handler.
    void add_run(JobTime enqueued_at, TimePoint begun, TimePoint ended) noexcept {
        using std::chrono::microseconds;
        const auto wall = std::chrono::floor<microseconds>(begun.time_since_epoch()) +
                          microseconds(m_wall_ahead.load(std::memory_order_relaxed));
        add_duration(runs_at, 1, std::chrono::floor<microseconds>(ended - begun));
        add_duration(waits_at, 1000, wall - enqueued_at.time_since_epoch());
    }
    [[nodiscard]] CountRow row() const noexcept {
        CountRow row;
        std::ranges::transform(m_row, row.begin(), [](const auto& count) {
            return count.load(std::memory_order_relaxed);
        });
        return row;
    }
    /// Call it now and then: the host's clock may be set. A run only adds a difference to the time
    /// that it has, since a clock costs as much as all that is counted of it.
    void read_clocks() noexcept { m_wall_ahead.store(ahead(), std::memory_order_relaxed); }

  private:
    static std::int64_t ahead() noexcept {
        using std::chrono::microseconds;
        return std::chrono::floor<microseconds>(
                   std::chrono::system_clock::now().time_since_epoch() -
                   Clock::now().time_since_epoch())
            .count();
    }
    void add(std::size_t position, std::uint64_t count) noexcept {
        m_row[position].fetch_add(count, std::memory_order_relaxed);
    }
    void add_duration(std::size_t first, std::uint64_t unit,
                      std::chrono::microseconds time) noexcept {
        const auto us =
            static_cast<std::uint64_t>(std::max(time, std::chrono::microseconds(0)).count());
        add(first, us / unit);
        add(first + 1 + bucket(us), 1);
    }
    /// The exponent of the power of 4 that is the least number of milliseconds not below it.
    static std::size_t bucket(std::uint64_t us) noexcept {
        const std::uint64_t above = us == 0 ? 0 : (us - 1) / 1000; // whole ms that are exceeded
        const auto exponent = (static_cast<std::size_t>(std::bit_width(above)) + 1) / 2;
        return std::min(exponent, Durations::buckets - 1);
    }

    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<CountRow>> m_row{};
    std::atomic<std::int64_t> m_wall_ahead{ahead()}; ///< of the steady clock, in microseconds
};

} // namespace orizuru::detail
