// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The time from before a push to the handler, at a steady rate. A message's id is its time stamp.

#pragma once

#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace orizuru::benchmark {

/// Pushed first and not counted, because connections and scripts are new to both sides.
inline constexpr std::size_t warm_up = 10;

/// CLOCK_MONOTONIC, the same in all processes.
[[nodiscard]] inline std::uint64_t now() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
}

template <class Push>
void push_steadily(std::size_t per_second, std::size_t count, Push push) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) {
        std::this_thread::sleep_until(begin +
                                      i * std::chrono::nanoseconds(1'000'000'000) / per_second);
        push(numbered(now()));
    }
}

class Latencies {
  public:
    void add(std::uint64_t stamp) { m_nanoseconds.push_back(now() - stamp); }
    [[nodiscard]] std::size_t size() const noexcept { return m_nanoseconds.size(); }

    /// In microseconds, without those of the warm-up.
    [[nodiscard]] Figures figures() const {
        std::vector<std::uint64_t> sorted(m_nanoseconds.begin() + warm_up, m_nanoseconds.end());
        std::sort(sorted.begin(), sorted.end());
        const auto percentile = [&](std::size_t percent) {
            const std::size_t rank = (sorted.size() * percent + 99) / 100;
            return static_cast<double>(sorted[rank - 1]) / 1000;
        };
        return {{"p50", percentile(50)}, {"p99", percentile(99)}, {"max", percentile(100)}};
    }

  private:
    std::vector<std::uint64_t> m_nanoseconds;
};

} // namespace orizuru::benchmark
