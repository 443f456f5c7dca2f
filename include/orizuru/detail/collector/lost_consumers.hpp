// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds consumers that may be gone: those registered without a heartbeat; and lists whose owners
// are not registered, which exist only if Redis forgot the registration: rare, but nothing else
// would ever find them. A list seen in two passes is an orphan.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Returns the consumers' ids. Redis: SMEMBERS. Throws as Connection::command.
inline std::vector<std::string> registered_consumers(Connection& connection, const Keys& keys) {
    const std::string consumers = keys.consumers();
    Reply members = connection.command(consumers, "SMEMBERS", consumers);
    if (!is_strings(members)) {
        refuse(connection, "SMEMBERS");
    }
    std::vector<std::string> ids;
    ids.reserve(members.elements.size());
    for (Reply& member : members.elements) {
        ids.push_back(std::move(member.text));
    }
    return ids;
}

/// Returns their heartbeats; nil if there is none. All are nil for a user who may not run MGET.
inline std::vector<Reply> heartbeats(Connection& connection, const Keys& keys,
                                     std::span<const std::string> ids) {
    try {
        Reply beats = exchange(connection, keys.consumers(), "MGET", [&](std::string& out) {
            begin_command(out, 1 + ids.size());
            append_argument(out, "MGET");
            for (const std::string& id : ids) {
                append_argument(out, keys.heartbeat(id));
            }
        });
        if (beats.elements.size() != ids.size() ||
            !std::all_of(beats.elements.begin(), beats.elements.end(), [](const Reply& beat) {
                return beat.is(Reply::Type::string) || beat.is(Reply::Type::nil);
            })) {
            refuse(connection, "MGET");
        }
        return std::move(beats.elements);
    } catch (const ReplyError& error) {
        if (error.code() != "NOPERM") {
            throw;
        }
        return std::vector<Reply>(ids.size());
    }
}

/// Returns the ids without a heartbeat. REAP checks again, in the step that takes the list.
/// Redis: an MGET for each 1000. Throws as Connection::command.
inline std::vector<std::string> unheard_consumers(Connection& connection, const Keys& keys,
                                                  const std::vector<std::string>& ids) {
    constexpr std::size_t at_once = 1000;
    std::vector<std::string> unheard;
    for (std::size_t at = 0; at < ids.size(); at += at_once) {
        const std::span some(ids.data() + at, std::min(at_once, ids.size() - at));
        const std::vector<Reply> beats = heartbeats(connection, keys, some);
        for (std::size_t i = 0; i < some.size(); ++i) {
            if (beats[i].is(Reply::Type::nil)) {
                unheard.push_back(some[i]);
            }
        }
    }
    return unheard;
}

/// Calls `step` with some of the lists whose names begin with `prefix`, until all were found; with
/// some twice, if others are added or removed meanwhile. Redis: SCAN to its end, O(keys of the
/// database). Throws as Connection::command.
template <class Step>
void scan_lists(Connection& connection, std::string_view prefix, const Step& step) {
    std::string pattern;
    for (const char c : prefix) {
        pattern += std::string_view("*?[]\\^-").find(c) == std::string_view::npos ? "" : "\\";
        pattern += c;
    }
    pattern += '*';
    std::string cursor = "0";
    do {
        const Reply page = connection.command(pattern, "SCAN", cursor, "MATCH", pattern, "COUNT",
                                              1000, "TYPE", "list");
        if (page.elements.size() != 2 || !page.elements[0].is(Reply::Type::string) ||
            !is_strings(page.elements[1])) {
            refuse(connection, "SCAN");
        }
        cursor = page.elements[0].text;
        std::vector<std::string> lists;
        for (const Reply& key : page.elements[1].elements) {
            if (key.text.starts_with(prefix)) {
                lists.push_back(key.text);
            }
        }
        if (!lists.empty()) { // a page may be empty before the end of the scan
            step(lists);
        }
    } while (cursor != "0");
}

class Orphans {
  public:
    /// Time between searches of all keys.
    static constexpr std::chrono::minutes interval{10};

    [[nodiscard]] bool search_due() const { return Clock::now() >= m_next_search; }
    /// Returns the owners' ids of all lists, registered or not. The next search is due `interval`
    /// later. Redis: SCAN to its end, O(keys of the database). Throws as Connection::command.
    std::set<std::string> search(Connection& connection, const Keys& keys) {
        const std::string prefix = keys.processing("");
        std::set<std::string> ids;
        scan_lists(connection, prefix, [&](const std::vector<std::string>& lists) {
            // Other queues' lists can have this prefix: those of "processing:{Q}", and those of
            // "{t}Q:processing" beside "{t}Q". Their ends do not look like ids.
            for (const std::string& list : lists) {
                if (is_id(list.substr(prefix.size()))) {
                    ids.insert(list.substr(prefix.size()));
                }
            }
        });
        postpone_search();
        return ids;
    }
    void postpone_search(std::chrono::milliseconds time = interval) {
        m_next_search = Clock::now() + time;
    }

    /// Ids of lists that were seen once.
    [[nodiscard]] const std::set<std::string>& seen_once() const noexcept { return m_seen_once; }
    /// Returns those of `lists` that were seen once and whose owners are still not registered. From
    /// now on all unregistered owners in `lists` count as seen once; forget() removes one.
    std::vector<std::string> seen_again(std::set<std::string> lists,
                                        const std::vector<std::string>& registered) {
        for (const std::string& id : registered) {
            lists.erase(id);
        }
        std::vector<std::string> again;
        std::set_intersection(lists.begin(), lists.end(), m_seen_once.begin(), m_seen_once.end(),
                              std::back_inserter(again));
        m_seen_once = std::move(lists);
        return again;
    }
    void forget(const std::string& id) { m_seen_once.erase(id); }

  private:
    TimePoint m_next_search{};
    std::set<std::string> m_seen_once;
};

} // namespace orizuru::detail
