// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The counts of a queue's jobs: as numbers in a row, with the names that they have in Redis, and as
// this process counts them.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// Their positions in the row. Behind them are the sum of the runs in microseconds and its buckets;
/// then the same of the waits, in milliseconds: in microseconds, 35 million jobs that wait for
/// three days are more than Redis can count.
enum class Outcome : std::size_t { succeeded, failed, died, expired, settled, requeued, discarded };

inline constexpr std::array<std::string_view, 7> outcome_names{
    "succeeded", "failed", "died", "expired", "settled", "requeued", "discarded"};
inline constexpr std::size_t runs_at = outcome_names.size();
inline constexpr std::size_t waits_at = runs_at + 1 + Durations::buckets;

/// Each only grows.
using CountRow = std::array<std::uint64_t, waits_at + 1 + Durations::buckets>;

/// The name of a field: an outcome has no colon in its name.
[[nodiscard]] inline std::string count_field(std::size_t position) {
    if (position < runs_at) {
        return std::string(outcome_names[position]);
    }
    const std::size_t first = position < waits_at ? runs_at : waits_at;
    const std::string_view what = first == runs_at ? "run:" : "wait:";
    return position == first ? joined({what, first == runs_at ? "us" : "ms"})
                             : joined({what, Digits(position - first - 1)});
}

/// As in the name of a day's counts: 2026-11-25.
[[nodiscard]] inline std::string date_text(std::chrono::sys_days day) {
    const std::chrono::year_month_day date(day);
    const auto two = [](unsigned number) {
        return joined({number < 10 ? "-0" : "-", Digits(number)});
    };
    return joined({Digits(static_cast<int>(date.year())), two(static_cast<unsigned>(date.month())),
                   two(static_cast<unsigned>(date.day()))});
}

[[nodiscard]] inline QueueStatistics statistics_of(std::string queue, const CountRow& row) {
    const auto durations = [&](std::size_t first, std::chrono::microseconds unit) {
        Durations found{.sum = unit * static_cast<std::int64_t>(row[first])};
        std::copy_n(row.begin() + static_cast<std::ptrdiff_t>(first) + 1, Durations::buckets,
                    found.counts.begin());
        return found;
    };
    return {std::move(queue),
            {row[0], row[1], row[2], row[3], row[4], row[5], row[6]},
            durations(runs_at, std::chrono::microseconds(1)),
            durations(waits_at, std::chrono::milliseconds(1))};
}

/// Any thread.
class QueueCounts {
  public:
    void add(Outcome outcome) noexcept { add(static_cast<std::size_t>(outcome), 1); }
    /// Adds the run of a handler.
    void add_run(JobTime enqueued_at, TimePoint begun, TimePoint ended) noexcept {
        using std::chrono::microseconds;
        const auto wall = std::chrono::floor<microseconds>(begun.time_since_epoch()) +
                          microseconds(m_wall_ahead.load(std::memory_order_relaxed));
        add_duration<1>(runs_at, std::chrono::floor<microseconds>(ended - begun));
        add_duration<1000>(waits_at, wall - enqueued_at.time_since_epoch());
    }
    [[nodiscard]] CountRow row() const noexcept {
        CountRow row;
        std::ranges::transform(m_row, row.begin(), [](const auto& count) {
            return count.load(std::memory_order_relaxed);
        });
        return row;
    }
    /// Call it now and then with the time: it may have been set. A run only adds a difference to
    /// the time that it has, since a clock costs as much as all that is counted of it.
    void read_clocks(JobTime now) noexcept {
        m_wall_ahead.store(ahead(now), std::memory_order_relaxed);
    }

  private:
    static std::int64_t ahead(JobTime now) noexcept {
        using std::chrono::microseconds;
        return std::chrono::floor<microseconds>(now.time_since_epoch() -
                                                Clock::now().time_since_epoch())
            .count();
    }
    void add(std::size_t position, std::uint64_t count) noexcept {
        m_row[position].fetch_add(count, std::memory_order_relaxed);
    }
    template <std::uint64_t Unit>
    void add_duration(std::size_t first, std::chrono::microseconds time) noexcept {
        const auto us =
            static_cast<std::uint64_t>(std::max(time, std::chrono::microseconds(0)).count());
        add(first, us / Unit);
        add(first + 1 + bucket(us), 1);
    }
    /// The exponent of the power of 4 that is the least number of milliseconds not below it.
    static std::size_t bucket(std::uint64_t us) noexcept {
        const std::uint64_t above = us == 0 ? 0 : (us - 1) / 1000; // whole ms that are exceeded
        const auto exponent = (narrow<std::size_t>(std::bit_width(above)) + 1) / 2;
        return std::min(exponent, Durations::buckets - 1);
    }

    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<CountRow>> m_row{};
    std::atomic<std::int64_t> m_wall_ahead{
        ahead(job_time())}; ///< ahead of the steady clock, in microseconds
};

} // namespace orizuru::detail
