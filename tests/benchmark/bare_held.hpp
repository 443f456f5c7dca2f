// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Acks held messages, also in other orders than they came, by hiredis alone.

#pragma once

#include "benchmark/bare_consumer.hpp"
#include "benchmark/held.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/detail/mirror/removal.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace orizuru::benchmark {

/// The positions of the held messages in the processing list, and the messages to ack.
class BareMirror {
  public:
    explicit BareMirror(BareList& list) : m_list(list) {}

    /// Gives the message a number, counted from 0.
    std::uint64_t add(std::size_t size) {
        m_entries.push_back({m_next, size, false});
        return m_next++;
    }
    void ack(std::uint64_t number) {
        const auto found = std::lower_bound(
            m_entries.begin(), m_entries.end(), number,
            [](const Entry& entry, std::uint64_t wanted) { return entry.number < wanted; });
        found->acked = true;
        ++m_acks;
    }
    /// Sends the acks and asks for up to `fetch` messages.
    void settle(std::size_t fetch) {
        const std::size_t held = m_entries.size();
        m_removal.clear();
        while (!m_entries.empty() && m_entries.front().acked) {
            m_entries.pop_front();
            m_removal.remove();
            --m_acks;
        }
        const bool others = m_acks > 0;
        for (auto entry = m_entries.begin(); m_acks > 0; ++entry) {
            if (entry->acked) {
                m_removal.remove();
                --m_acks;
            } else {
                m_removal.keep(entry->size);
            }
        }
        if (others) {
            std::erase_if(m_entries, [](const Entry& entry) { return entry.acked; });
        }
        m_others.clear();
        m_removal.arguments(
            [this](auto number) { m_others.push_back(static_cast<std::int64_t>(number)); });
        m_list.settle(held, m_removal.oldest(), fetch, m_others);
    }

  private:
    struct Entry {
        std::uint64_t number;
        std::size_t size;
        bool acked;
    };

    BareList& m_list;
    std::deque<Entry> m_entries;
    detail::Removal m_removal;
    std::vector<std::int64_t> m_others;
    std::uint64_t m_next = 0;
    std::size_t m_acks = 0;
};

/// Keeps `held` messages and acks one for each that comes.
inline void bare_held(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Filled filled = fill(redis, options.number("count"), 0);
    const auto batch = static_cast<std::size_t>(options.number("batch"));
    BareList list(options.socket());
    BareMirror mirror(list);
    Held<std::uint64_t> held(options.number("held"), options.word("pick"));
    const auto ack = [&](std::uint64_t number) { mirror.ack(number); };
    Total total;
    meter.start();
    while (total.messages < filled.sizes.messages) {
        mirror.settle(batch);
        const Reply reply = list.fetched();
        for (std::size_t i = 0; i < reply->elements; ++i) {
            total.add(reply->element[i]->len);
            held.add(mirror.add(reply->element[i]->len), ack);
        }
    }
    held.clear(ack);
    mirror.settle(0);
    list.fetched();
    meter.stop();
    expect(total, filled.sizes);
    meter.print(total.messages);
}

/// Takes messages in groups and acks each group's one by one, each ack awaited. With timed=acks
/// only the acks are measured.
inline void bare_groups(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const auto batch = static_cast<std::size_t>(options.number("batch"));
    const auto group = static_cast<std::size_t>(options.number("group"));
    const bool acks_only = options.word("timed") == "acks";
    BareList list(options.socket());
    BareMirror mirror(list);
    GroupOrder order(group, options.word("order"));
    Total total;
    Total wanted;
    for (std::int64_t round = 0; round < options.number("rounds"); ++round) {
        const Filled filled = fill(redis, group, options.number("size"));
        wanted.messages += filled.sizes.messages;
        wanted.sum += filled.sizes.sum;
        if (!acks_only) {
            meter.start();
        }
        const std::uint64_t first = total.messages;
        while (total.messages < wanted.messages) {
            if (batch == 1) {
                if (const Reply message = list.wait()) {
                    mirror.add(message->len);
                    total.add(message->len);
                }
                continue;
            }
            mirror.settle(batch);
            const Reply reply = list.fetched();
            for (std::size_t i = 0; i < reply->elements; ++i) {
                mirror.add(reply->element[i]->len);
                total.add(reply->element[i]->len);
            }
        }
        if (acks_only) {
            meter.start();
        }
        for (const std::size_t place : order.next()) {
            mirror.ack(first + place);
            mirror.settle(0);
            list.fetched();
        }
        meter.stop();
    }
    expect(total, wanted);
    meter.print(total.messages);
}

} // namespace orizuru::benchmark
