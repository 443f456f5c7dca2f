// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of dead_list.hpp.

#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/own_lock.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace orizuru {

ORIZURU_INLINE void detail::validate(const DeadLimits& limits) {
    if (limits.most < 0 || limits.oldest.count() < 0) {
        throw std::invalid_argument("the limits of a dead list must not be negative");
    }
}

ORIZURU_INLINE DeadList::DeadList(Endpoint endpoint, std::string queue)
    : m_keys(std::move(queue)),
      m_dead(m_keys.dead()),
      m_connection(
          std::make_shared<Connection>(detail::Route::to_key(std::move(endpoint), m_dead))) {}

ORIZURU_INLINE DeadList::DeadList(std::shared_ptr<Connection> connection, std::string queue)
    : m_keys(std::move(queue)),
      m_dead(m_keys.dead()),
      m_connection(detail::given(std::move(connection))) {}

ORIZURU_INLINE std::uint64_t DeadList::count_of(const Reply& reply, std::string_view name) {
    if (!detail::is_count(reply)) {
        detail::refuse(*m_connection, name);
    }
    return static_cast<std::uint64_t>(reply.integer);
}

ORIZURU_INLINE std::uint64_t DeadList::size() {
    return count_of(m_connection->command(m_dead, "LLEN", m_dead), "LLEN");
}

ORIZURU_INLINE std::vector<DeadEntry> DeadList::list(std::int64_t first, std::int64_t count) {
    if (first < 0 || count < 0) {
        throw std::invalid_argument("a dead list has no negative positions");
    }
    if (count == 0) {
        return {};
    }
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    const std::int64_t last = count > end - first ? end : first + count - 1;
    Reply reply =
        m_connection->command(m_dead, "EVAL_RO", detail::list_dead_script, 1, m_dead, first, last);
    detail::require_type(*m_connection, reply, Reply::Type::array, "EVAL_RO");
    std::vector<DeadEntry> entries;
    entries.reserve(reply.elements.size());
    for (Reply& element : reply.elements) {
        entries.push_back(detail::dead_entry_of(*m_connection, element));
    }
    return entries;
}

/// `reply` has the entry's bytes, then where its payload and its reason lie, counted from 1 as in
/// Lua.
ORIZURU_INLINE DeadEntry detail::dead_entry_of(Connection& connection, Reply& reply) {
    std::vector<Reply>& parts = reply.elements;
    if ((parts.size() != 1 && parts.size() != 6) || !parts[0].is(Reply::Type::string)) {
        refuse(connection, "EVAL");
    }
    DeadEntry entry;
    entry.bytes = std::move(parts[0].text);
    entry.readable = parts.size() == 6;
    if (!entry.readable) {
        return entry;
    }
    const auto text = [&](const Reply& first, const Reply& last) {
        if (!is_count(first, 1) || !is_count(last, first.integer - 1) ||
            static_cast<std::uint64_t>(last.integer) > entry.bytes.size()) {
            refuse(connection, "EVAL");
        }
        return entry.bytes.substr(static_cast<std::size_t>(first.integer) - 1,
                                  static_cast<std::size_t>(last.integer - first.integer) + 1);
    };
    entry.payload = text(parts[1], parts[2]);
    entry.reason = text(parts[3], parts[4]);
    if (!is_count(parts[5])) {
        refuse(connection, "EVAL");
    }
    entry.time += std::chrono::milliseconds(parts[5].integer);
    return entry;
}

ORIZURU_INLINE bool DeadList::redrive(const DeadEntry& entry) {
    const Reply reply = m_connection->command(m_dead, "EVAL", detail::redrive_script, 2, m_dead,
                                              m_keys.source(), entry.bytes);
    if (!detail::is_count(reply, -1) || reply.integer > 1) {
        detail::refuse(*m_connection, "EVAL");
    }
    if (reply.integer < 0) {
        throw std::invalid_argument("what has no payload cannot be redriven");
    }
    return reply.integer == 1;
}

ORIZURU_INLINE bool DeadList::remove(const DeadEntry& entry) {
    return detail::remove_message(*m_connection, detail::remove_dead_script, m_dead, entry.bytes,
                                  entry.payload, m_keys);
}

ORIZURU_INLINE Redriven DeadList::redrive_all(std::uint64_t limit) {
    return take(limit, [this](std::uint64_t most, std::uint64_t passed) {
        return m_connection->command(m_dead, "EVAL", detail::take_dead_script, 2, m_dead,
                                     m_keys.source(), most, passed);
    });
}

/// Steps until `limit` are taken, or all that were there at the start were looked at.
ORIZURU_INLINE Redriven
DeadList::take(std::uint64_t limit,
               const std::function<Reply(std::uint64_t most, std::uint64_t passed)>& step) {
    Redriven total;
    // Bounded, or what dies again at once would keep it from ever ending.
    for (std::uint64_t unseen = size(); unseen > 0 && total.redriven < limit;) {
        const auto most = std::min<std::uint64_t>({unseen, limit - total.redriven, batch});
        const Reply reply = step(most, total.unreadable);
        detail::require_type(*m_connection, reply, Reply::Type::array, "EVAL");
        if (reply.elements.size() != 3) {
            detail::refuse(*m_connection, "EVAL");
        }
        const std::uint64_t taken = count_of(reply.elements[0], "EVAL");
        const std::uint64_t passed = count_of(reply.elements[1], "EVAL");
        total.redriven += taken;
        total.unreadable += passed;
        if (count_of(reply.elements[2], "EVAL") == 0 || taken + passed == 0) {
            return total;
        }
        unseen -= std::min(unseen, taken + passed);
    }
    return total;
}

ORIZURU_INLINE DeadList::Cut DeadList::cut_to(std::int64_t most, std::uint64_t at_once) {
    const Reply reply =
        m_connection->command(m_dead, "EVAL", detail::cut_dead_script, 1, m_dead, most, at_once);
    detail::require_type(*m_connection, reply, Reply::Type::array, "EVAL");
    if (reply.elements.size() != 2) {
        detail::refuse(*m_connection, "EVAL");
    }
    return {count_of(reply.elements[0], "EVAL"), count_of(reply.elements[1], "EVAL")};
}

ORIZURU_INLINE std::uint64_t DeadList::purge() {
    std::uint64_t removed = 0;
    // Bounded, or what dies meanwhile would keep it from ever ending.
    for (std::uint64_t unseen = size(); unseen > 0;) {
        const Cut cut = cut_to(0, std::min(unseen, most_at_once));
        removed += cut.gone;
        unseen = cut.over == 0 ? 0 : unseen - std::min(unseen, cut.gone);
    }
    return removed;
}

ORIZURU_INLINE std::uint64_t DeadList::purge(std::chrono::milliseconds age) {
    if (age.count() < 0) {
        throw std::invalid_argument("no entry of a dead list is of a negative age");
    }
    const auto step = [&](std::uint64_t most, std::uint64_t passed) {
        return m_connection->command(m_dead, "EVAL", detail::take_dead_script, 1, m_dead, most,
                                     passed, age.count());
    };
    return take(std::numeric_limits<std::uint64_t>::max(), step).redriven;
}

ORIZURU_INLINE std::uint64_t DeadList::trim(const DeadLimits& limits) {
    detail::validate(limits);
    std::uint64_t removed = 0;
    for (bool over = limits.most > 0; over;) {
        const Cut cut = cut_to(limits.most, most_at_once);
        removed += cut.gone;
        over = cut.over > 0;
    }
    return limits.oldest.count() > 0 ? removed + purge(limits.oldest) : removed;
}

} // namespace orizuru
