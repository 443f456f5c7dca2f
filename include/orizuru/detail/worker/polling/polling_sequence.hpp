// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The sequence in which a free thread polls the queues, as QueueOrder says. In strict order, the
// shards of a queue take turns.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace orizuru::detail {

class PollingSequence {
  public:
    explicit PollingSequence(QueueOrder order) : m_order(order) {}

    void add(int weight) {
        m_indices.push_back(m_indices.size());
        m_weights.push_back(m_order == QueueOrder::weighted ? weight : 1);
        m_draws.emplace_back();
    }
    /// These are the shards of one queue.
    void join(std::ptrdiff_t first, std::ptrdiff_t count) { m_sharded.emplace_back(first, count); }

    /// Returns the queues' indices, the first to be polled first. Valid until the next call.
    const std::vector<std::size_t>& next() {
        if (m_order != QueueOrder::strict && m_indices.size() > 1) {
            draw();
        } else {
            for (const auto& [first, count] : m_sharded) {
                const auto begin = m_indices.begin() + first;
                std::rotate(begin, begin + 1, begin + count);
            }
        }
        return m_indices;
    }

  private:
    // Each queue draws an exponential time with its weight as the rate; the smallest time goes
    // first. A queue with three times the weight of another precedes it in three of four draws
    // (Efraimidis and Spirakis: Weighted random sampling with a reservoir, 2006).
    void draw() {
        for (std::size_t i = 0; i < m_draws.size(); ++i) {
            m_draws[i] = std::exponential_distribution<double>(m_weights[i])(m_random);
        }
        std::ranges::sort(m_indices, {}, [this](std::size_t i) { return m_draws[i]; });
    }

    QueueOrder m_order;
    std::vector<std::size_t> m_indices;
    std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> m_sharded; ///< first, count
    std::vector<double> m_weights;
    std::vector<double> m_draws;
    std::minstd_rand m_random{narrow<std::minstd_rand::result_type>(entropy())};
};

} // namespace orizuru::detail
