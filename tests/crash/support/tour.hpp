// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Chooses which of very many points to try, when there is no time for all: an even sample of each
// part.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace orizuru::test {

/// Goes through several parts of numbered points, each point once. The parts take turns, and of
/// each part every beginning of the tour is an even sample: it goes by steps of the golden ratio.
class Tour {
  public:
    struct Stop {
        std::size_t part;
        std::uint64_t number;
    };

    Tour(std::vector<std::uint64_t> sizes, std::uint64_t seed)
        : m_sizes(std::move(sizes)), m_seed(seed) {}

    /// How many points there are in all.
    [[nodiscard]] std::uint64_t size() const {
        return std::accumulate(m_sizes.begin(), m_sizes.end(), std::uint64_t{0});
    }

    /// Empty at the end. Any thread.
    std::optional<Stop> next() {
        while (true) {
            const std::uint64_t turn = m_turn++;
            const std::size_t part = turn % m_sizes.size();
            const std::uint64_t index = turn / m_sizes.size();
            if (index < m_sizes[part]) {
                return Stop{part, spread(index, m_sizes[part])};
            }
            if (index >= *std::ranges::max_element(m_sizes)) {
                return std::nullopt;
            }
        }
    }

  private:
    [[nodiscard]] std::uint64_t spread(std::uint64_t index, std::uint64_t size) const {
        auto step = static_cast<std::uint64_t>(0.618034 * static_cast<double>(size)) + 1;
        while (std::gcd(step, size) != 1) {
            ++step;
        }
        return (m_seed + index * step) % size;
    }

    std::vector<std::uint64_t> m_sizes;
    std::uint64_t m_seed;
    std::atomic<std::uint64_t> m_turn = 0;
};

/// Does the work in this many threads, and throws the exception of one of them.
template <class Work>
void in_threads(std::uint64_t count, Work work) {
    std::vector<std::future<void>> threads;
    for (std::uint64_t i = 0; i < count; ++i) {
        threads.push_back(std::async(std::launch::async, work));
    }
    for (std::future<void>& thread : threads) {
        thread.get();
    }
}

} // namespace orizuru::test
