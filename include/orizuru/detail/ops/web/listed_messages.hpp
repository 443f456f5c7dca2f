// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Messages that a page shows, by short ids: a page that acts on one names the very bytes, however
// many these are, and the message is found only where it was seen.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace orizuru::detail::web {

/// A message and where it was seen.
struct ListedMessage {
    std::string queue;
    PlacedMessage message;
};

/// For several threads. What was not listed lately makes room for what is listed now.
class ListedMessages {
  public:
    using Handle = std::shared_ptr<const ListedMessage>;

    /// Keeps messages within these limits, and always the newest one.
    explicit ListedMessages(std::size_t most_bytes = std::size_t{64} << 20,
                            std::size_t most = 20'000)
        : m_most_bytes(most_bytes), m_most(most) {}

    /// The message with its id, which is the same each time that it is seen so at its place. Equal
    /// messages of a place have one id. No other process has the same, nor a later one.
    std::pair<std::string, Handle> keep(std::string queue, PlacedMessage message) {
        const std::size_t hash = std::hash<std::string>()(message.bytes);
        const std::lock_guard lock(m_mutex);
        const auto [begin, end] = m_by_hash.equal_range(hash);
        for (auto at = begin; at != end; ++at) {
            const ListedMessage& known = *at->second->handle;
            if (known.message.place == message.place && known.queue == queue &&
                known.message.consumer == message.consumer &&
                known.message.blamed == message.blamed && known.message.bytes == message.bytes) {
                m_entries.splice(m_entries.begin(), m_entries, at->second);
                return {at->second->id, at->second->handle};
            }
        }
        const std::size_t size = message.bytes.size() + message.payload.size() + queue.size();
        m_entries.push_front({joined({m_prefix, Digits(++m_last)}), hash, size,
                              std::make_shared<const ListedMessage>(
                                  ListedMessage{std::move(queue), std::move(message)})});
        m_by_id.emplace(m_entries.front().id, m_entries.begin());
        m_by_hash.emplace(hash, m_entries.begin());
        m_bytes += size;
        while (m_entries.size() > 1 && (m_bytes > m_most_bytes || m_entries.size() > m_most)) {
            forget_oldest();
        }
        return {m_entries.front().id, m_entries.front().handle};
    }

    /// Null when it has made room.
    [[nodiscard]] Handle find(const std::string& id) const {
        const std::lock_guard lock(m_mutex);
        const auto at = m_by_id.find(id);
        return at == m_by_id.end() ? nullptr : at->second->handle;
    }

  private:
    struct Entry {
        std::string id;
        std::size_t hash;
        std::size_t size;
        Handle handle;
    };
    using Entries = std::list<Entry>;

    void forget_oldest() {
        const auto oldest = std::prev(m_entries.end());
        m_by_id.erase(oldest->id);
        const auto [begin, end] = m_by_hash.equal_range(oldest->hash);
        for (auto at = begin; at != end; ++at) {
            if (at->second == oldest) {
                m_by_hash.erase(at);
                break;
            }
        }
        m_bytes -= oldest->size;
        m_entries.erase(oldest);
    }

    const std::size_t m_most_bytes;
    const std::size_t m_most;
    const std::string m_prefix = random_hex(16) + '-';
    mutable std::mutex m_mutex;
    std::uint64_t m_last = 0;
    std::size_t m_bytes = 0;
    Entries m_entries; // the one that was listed last comes first
    std::unordered_map<std::string, Entries::iterator> m_by_id;
    std::unordered_multimap<std::size_t, Entries::iterator> m_by_hash;
};

} // namespace orizuru::detail::web
