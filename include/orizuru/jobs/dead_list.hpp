// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The dead list as a tool: what died, when and why; back to the queue with it, or away with it.
//
// On it are messages that were buried, that could not be decoded, and that killed whoever handled
// them. Its entries are written by consumers and collectors: msgpack [1, payload, reason,
// milliseconds since 1970], the newest leftmost. What somebody else put there and is no such entry
// is shown, and stays until it is purged or is one too many.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

/// One element of a dead list.
struct DeadEntry {
    std::string payload;
    std::string reason;
    /// When it died, by Redis' clock.
    std::chrono::sys_time<std::chrono::milliseconds> time{};
    /// As it lies in Redis.
    std::string bytes;
    /// False for what somebody else put there: then it has nothing but bytes.
    bool readable = true;
};

/// How much of a dead list is kept.
struct DeadLimits {
    /// 0 = any number.
    std::int64_t most = 10'000;
    /// 0 = for ever.
    std::chrono::milliseconds oldest = std::chrono::hours(24 * 180);
};

namespace detail {

inline void check(const DeadLimits& limits) {
    if (limits.most < 0 || limits.oldest.count() < 0) {
        throw std::invalid_argument("the limits of a dead list must not be negative");
    }
}

} // namespace detail

/// What a redrive of many has done.
struct Redriven {
    std::uint64_t redriven = 0;
    std::uint64_t unreadable = 0; ///< elements that are no entries: they have stayed

    friend bool operator==(const Redriven&, const Redriven&) = default;
};

/// The dead list of one queue: one connection, used by one thread at a time.
///
/// Any number of them may work on a list at once: each step is one script, so that an entry goes
/// once, whoever takes it, and a crash leaves it where it was or where it goes. All of it works
/// when Redis' memory is full. Each script blocks at most command_timeout. All throw
/// ConnectionError, ReplyError (it names the key) and ProtocolError; the steps before stay done.
class DeadList {
  public:
    /// Connects. Throws as Producer's constructor does.
    DeadList(Endpoint endpoint, std::string queue)
        : m_keys(std::move(queue)), m_dead(m_keys.dead()), m_connection(std::move(endpoint)) {}

    /// How many elements it has. Redis: LLEN, O(1).
    std::uint64_t size();

    /// Up to `count` elements, the newest first, from the one that `first` newer ones precede.
    /// Redis: LRANGE in a script, O(first + count). Throws std::invalid_argument for a negative
    /// number.
    std::vector<DeadEntry> list(std::int64_t first, std::int64_t count);

    /// Puts an entry's payload back on the queue, behind all that waits there, as a push would;
    /// false when the entry has gone. Of equal entries one goes.
    /// Redis: LREM, O(n) of the list, and LPUSH in one script.
    /// Throws std::invalid_argument, and does nothing, when it is not readable.
    bool redrive(const DeadEntry& entry);

    /// The same for up to `limit` entries, the oldest first. What dies meanwhile stays.
    /// Redis: a script for each 100, which are one atomic step; O(1) for each entry, or O(n) of the
    /// unreadable elements that are older.
    Redriven redrive_all(std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

    /// Removes all there is, unreadable or not; returns how many.
    /// Redis: UNLINK in a script, O(1).
    std::uint64_t purge();

    /// Removes the entries that are at least so old by Redis' clock; returns how many. The oldest
    /// are looked at first, up to one that is younger.
    /// Redis: as redrive_all. Throws std::invalid_argument for a negative time.
    std::uint64_t purge(std::chrono::milliseconds age);

    /// Removes what is over the limits: the oldest elements beyond `most`, readable or not, and
    /// entries as purge(oldest) does; returns how many.
    /// Redis: LTRIM in a script, O(1000), for each 1000 beyond `most`; then as purge(oldest).
    /// Throws std::invalid_argument for a negative limit.
    std::uint64_t trim(const DeadLimits& limits = {});

  private:
    static constexpr std::int64_t batch = 100;
    static constexpr std::int64_t cut = 1000;

    DeadEntry entry_of(Reply& reply);
    std::uint64_t count_of(const Reply& reply, std::string_view name);
    template <class Step>
    Redriven take(std::uint64_t limit, Step step);

    Keys m_keys;
    std::string m_dead;
    Connection m_connection;
};

inline std::uint64_t DeadList::count_of(const Reply& reply, std::string_view name) {
    if (!detail::is_count(reply)) {
        m_connection.refuse(name);
    }
    return static_cast<std::uint64_t>(reply.integer);
}

inline std::uint64_t DeadList::size() {
    return count_of(m_connection.command(m_dead, "LLEN", m_dead), "LLEN");
}

inline std::vector<DeadEntry> DeadList::list(std::int64_t first, std::int64_t count) {
    if (first < 0 || count < 0) {
        throw std::invalid_argument("a dead list has no negative positions");
    }
    if (count == 0) {
        return {};
    }
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    const std::int64_t last = count > end - first ? end : first + count - 1;
    Reply reply =
        m_connection.command(m_dead, "EVAL", detail::list_dead_script(), 1, m_dead, first, last);
    m_connection.require(reply, Reply::Type::array, "EVAL");
    std::vector<DeadEntry> entries;
    entries.reserve(reply.elements.size());
    for (Reply& element : reply.elements) {
        entries.push_back(entry_of(element));
    }
    return entries;
}

/// From its bytes and, in Lua's way of counting, where its payload and its reason lie.
inline DeadEntry DeadList::entry_of(Reply& reply) {
    std::vector<Reply>& parts = reply.elements;
    if ((parts.size() != 1 && parts.size() != 6) || !parts[0].is(Reply::Type::string)) {
        m_connection.refuse("EVAL");
    }
    DeadEntry entry;
    entry.bytes = std::move(parts[0].text);
    entry.readable = parts.size() == 6;
    if (!entry.readable) {
        return entry;
    }
    const auto text = [&](const Reply& first, const Reply& last) {
        if (!detail::is_count(first, 1) || !detail::is_count(last, first.integer - 1) ||
            static_cast<std::uint64_t>(last.integer) > entry.bytes.size()) {
            m_connection.refuse("EVAL");
        }
        return entry.bytes.substr(static_cast<std::size_t>(first.integer) - 1,
                                  static_cast<std::size_t>(last.integer - first.integer) + 1);
    };
    entry.payload = text(parts[1], parts[2]);
    entry.reason = text(parts[3], parts[4]);
    entry.time += std::chrono::milliseconds(count_of(parts[5], "EVAL"));
    return entry;
}

inline bool DeadList::redrive(const DeadEntry& entry) {
    const Reply reply = m_connection.command(m_dead, "EVAL", detail::redrive_script(), 2, m_dead,
                                             m_keys.source(), entry.bytes);
    if (!detail::is_count(reply, -1) || reply.integer > 1) {
        m_connection.refuse("EVAL");
    }
    if (reply.integer < 0) {
        throw std::invalid_argument("what has no payload cannot be redriven");
    }
    return reply.integer == 1;
}

inline Redriven DeadList::redrive_all(std::uint64_t limit) {
    return take(limit, [this](std::uint64_t most, std::uint64_t passed) {
        return m_connection.command(m_dead, "EVAL", detail::take_dead_script(), 2, m_dead,
                                    m_keys.source(), most, passed);
    });
}

/// Steps until `limit` are taken, or all that were there at the start were looked at.
template <class Step>
Redriven DeadList::take(std::uint64_t limit, Step step) {
    Redriven total;
    // Bounded, or what dies again at once would keep it from ever ending.
    for (std::uint64_t unseen = size(); unseen > 0 && total.redriven < limit;) {
        const auto most = std::min<std::uint64_t>({unseen, limit - total.redriven, batch});
        const Reply reply = step(most, total.unreadable);
        m_connection.require(reply, Reply::Type::array, "EVAL");
        if (reply.elements.size() != 2) {
            m_connection.refuse("EVAL");
        }
        const std::uint64_t taken = count_of(reply.elements[0], "EVAL");
        const std::uint64_t passed = count_of(reply.elements[1], "EVAL");
        total.redriven += taken;
        total.unreadable += passed;
        if (taken + passed != most) {
            return total;
        }
        unseen -= most;
    }
    return total;
}

inline std::uint64_t DeadList::purge() {
    return count_of(m_connection.command(m_dead, "EVAL", detail::purge_dead_script(), 1, m_dead),
                    "EVAL");
}

inline std::uint64_t DeadList::purge(std::chrono::milliseconds age) {
    if (age.count() < 0) {
        throw std::invalid_argument("no entry of a dead list is of a negative age");
    }
    const auto step = [&](std::uint64_t most, std::uint64_t passed) {
        return m_connection.command(m_dead, "EVAL", detail::take_dead_script(), 1, m_dead, most,
                                    passed, age.count());
    };
    return take(std::numeric_limits<std::uint64_t>::max(), step).redriven;
}

inline std::uint64_t DeadList::trim(const DeadLimits& limits) {
    detail::check(limits);
    std::uint64_t removed = 0;
    for (bool over = limits.most > 0; over;) {
        const std::uint64_t gone =
            count_of(m_connection.command(m_dead, "EVAL", detail::cut_dead_script(), 1, m_dead,
                                          limits.most, cut),
                     "EVAL");
        removed += gone;
        over = gone == cut;
    }
    return limits.oldest.count() > 0 ? removed + purge(limits.oldest) : removed;
}

} // namespace orizuru
