// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The order in which a consumer acks the messages that it holds; the same for both programs.

#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::benchmark {

/// Holds up to `most` items; when one more comes, gives up one: the oldest, the newest or any.
template <class Item>
class Held {
  public:
    Held(std::size_t most, const std::string& pick) : m_most(most), m_pick(pick_of(pick)) {}

    template <class Ack>
    void add(Item item, Ack ack) {
        if (m_items.size() < m_most) {
            m_items.push_back(std::move(item));
            return;
        }
        if (m_pick != Pick::newest) {
            std::swap(m_items[next_slot()], item);
        }
        ack(item);
    }
    template <class Ack>
    void clear(Ack ack) {
        for (Item& item : m_items) {
            ack(item);
        }
        m_items.clear();
    }

  private:
    enum class Pick { oldest, newest, random };

    static Pick pick_of(const std::string& name) {
        if (name == "oldest" || name == "newest" || name == "random") {
            return name == "oldest" ? Pick::oldest : name == "newest" ? Pick::newest : Pick::random;
        }
        throw std::invalid_argument("pick=" + name);
    }
    std::size_t next_slot() { return (m_pick == Pick::random ? m_random() : m_turn++) % m_most; }

    std::size_t m_most;
    Pick m_pick;
    std::vector<Item> m_items; ///< a ring with Pick::oldest
    std::size_t m_turn = 0;
    std::minstd_rand m_random;
};

/// The orders in which a group is acked.
class GroupOrder {
  public:
    GroupOrder(std::size_t size, const std::string& name)
        : m_order(size), m_random_order(name == "random") {
        std::iota(m_order.begin(), m_order.end(), std::size_t{0});
        if (name == "reverse") {
            std::reverse(m_order.begin(), m_order.end());
        } else if (name != "forward" && name != "random") {
            throw std::invalid_argument("order=" + name);
        }
    }

    /// The order for the next group.
    const std::vector<std::size_t>& next() {
        if (m_random_order) {
            std::shuffle(m_order.begin(), m_order.end(), m_random);
        }
        return m_order;
    }

  private:
    std::vector<std::size_t> m_order;
    bool m_random_order;
    std::minstd_rand m_random;
};

} // namespace orizuru::benchmark
