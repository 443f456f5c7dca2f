// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Brings messages back: those of consumers that died, and those that were rejected. Any number of
// collectors may run at once, on any host; every step is atomic and can be repeated.
//
// Also bounds the harm of a message that kills whoever handles it: the messages that are blamed for
// a consumer's death are counted, and buried when they have been blamed once too often.

#include <orizuru/connection.hpp>
#include <orizuru/detail/collector_scripts.hpp>
#include <orizuru/detail/event_queue.hpp>
#include <orizuru/detail/identity.hpp>
#include <orizuru/detail/jittered_pauses.hpp>
#include <orizuru/detail/reply_class.hpp>
#include <orizuru/detail/reply_shape.hpp>
#include <orizuru/detail/scripts.hpp>
#include <orizuru/detail/server_info.hpp>
#include <orizuru/detail/sleep.hpp>
#include <orizuru/detail/wake.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

struct GarbageCollectorOptions {
    /// How often a message may be blamed for a consumer's death; once more and it goes to the dead
    /// list. Counts are forgotten when none was added for 72 h.
    int max_recoveries = 3;
    /// The most rejected messages that one step returns, 1 to 1000.
    int batch = 1000;
    /// No consumer is taken for dead while Redis itself is up for less, so that a restart does not
    /// look like everyone's death.
    std::chrono::milliseconds grace = std::chrono::seconds(10);
    /// The most entries of the dead list when this collector buries; 0 = unbounded.
    std::int64_t dead_limit = 0;
    /// Told of buried messages and of an eviction policy that may lose messages.
    std::function<void(const Event&)> on_event = {};
    /// How many of the messages that a consumer held are blamed for its death, the oldest first; 1
    /// or more. One that handles n at once needs n, for any of them may have been the killer. One
    /// that lies beside a killer each time is buried with it; equal messages cannot be told apart,
    /// a death counts once for them. Collectors of one queue should agree: they count together.
    std::int64_t blamed = 1;
};

/// What one pass moved.
struct Collected {
    std::uint64_t unacked = 0;   ///< rejected messages returned to the source's far end
    std::uint64_t reclaimed = 0; ///< messages of dead consumers returned to its serving end
    std::uint64_t buried = 0;    ///< messages sent to the dead list
    std::uint64_t consumers = 0; ///< consumers found dead

    friend bool operator==(const Collected&, const Collected&) = default;
};

/// A collector for one queue: one connection, used by one thread at a time.
class GarbageCollector {
  public:
    /// Connects. Throws as Producer's constructor does.
    GarbageCollector(Endpoint endpoint, std::string queue, GarbageCollectorOptions options = {});

    /// One pass. First the consumers, then the unack list as long as it was at the start.
    /// Redis: INFO, SMEMBERS, a script per registered consumer (O(messages it held), and the
    ///     bytes of those that are blamed), a script per `batch` rejected messages; in the first
    ///     pass and every 10 minutes a SCAN.
    /// Atomic: each consumer's whole list is moved and fenced in one step; so is each batch.
    /// Blocks: at most command_timeout per command.
    /// Throws: ConnectionError, ReplyError (WRONGTYPE names the key), ProtocolError; what was
    ///     moved stays moved, the next pass goes on.
    Collected collect();

    /// Passes, `interval` apart, until a stop is requested. Waits out outages of Redis. Throws
    /// ReplyError for what only a person can mend, std::invalid_argument for an interval that is
    /// not positive, std::system_error when the process can have no more descriptors.
    void run(std::stop_token token, std::chrono::milliseconds interval);

  private:
    static constexpr std::chrono::minutes sweep_interval{10};

    bool may_reap();
    void reap(const std::string& id, Collected& collected);
    void sweep(const std::set<std::string>& registered, Collected& collected);
    std::set<std::string> unregistered_lists();
    void refill(Collected& collected);

    Keys m_keys;
    GarbageCollectorOptions m_options;
    Connection m_connection;
    detail::EventQueue m_events;
    std::set<std::string> m_suspects; ///< ids of lists without a registered owner at the last look
    detail::TimePoint m_next_sweep{};
    bool m_warned = false;
};

inline GarbageCollector::GarbageCollector(Endpoint endpoint, std::string queue,
                                          GarbageCollectorOptions options)
    : m_keys(queue),
      m_options(std::move(options)),
      m_connection(std::move(endpoint)),
      m_events(std::move(queue), m_options.on_event) {
    if (m_options.batch < 1 || m_options.batch > detail::largest_batch) {
        throw std::invalid_argument("batch must be 1 to 1000");
    }
    if (m_options.blamed < 1) {
        throw std::invalid_argument("blamed must be 1 or more");
    }
    if (m_options.max_recoveries < 0 || m_options.dead_limit < 0 || m_options.grace.count() < 0) {
        throw std::invalid_argument("max_recoveries, dead_limit and grace must not be negative");
    }
}

inline Collected GarbageCollector::collect() {
    Collected collected;
    if (may_reap()) {
        const std::string consumers = m_keys.consumers();
        const Reply members = m_connection.command(consumers, "SMEMBERS", consumers);
        if (!detail::is_strings(members)) {
            m_connection.refuse("SMEMBERS");
        }
        std::set<std::string> registered;
        for (const Reply& member : members.elements) {
            registered.insert(member.text);
            reap(member.text, collected);
        }
        sweep(registered, collected);
    }
    refill(collected);
    return collected;
}

inline bool GarbageCollector::may_reap() {
    const Reply info = m_connection.command("", "INFO", "server", "memory");
    m_connection.require(info, Reply::Type::string, "INFO");
    const std::string_view policy = detail::evicting_policy(info.text);
    if (!policy.empty() && !std::exchange(m_warned, true)) {
        m_events.tell({EventKind::not_noeviction, m_keys.source(), "", policy, ""});
    }
    return detail::uptime(info.text) >= m_options.grace;
}

inline void GarbageCollector::reap(const std::string& id, Collected& collected) {
    const Reply reply = m_connection.command(
        m_keys.source(), "EVAL", detail::reap_script(), 6, m_keys.heartbeat(id),
        m_keys.processing(id), m_keys.source(), m_keys.consumers(), m_keys.recoveries(),
        m_keys.dead(), id, detail::fence_time.count(), m_options.max_recoveries,
        detail::recovery_memory.count(), m_options.dead_limit, m_options.blamed);
    const std::vector<Reply>& parts = reply.elements;
    if (parts.size() == 1 && parts[0].is(Reply::Type::integer) && parts[0].integer < 0) {
        return; // alive, or another collector was here before
    }
    if (parts.size() < 2 || !detail::is_count(parts[0]) || !detail::is_count(parts[1]) ||
        std::cmp_not_equal(parts[1].integer, parts.size() - 2) ||
        !std::all_of(parts.begin() + 2, parts.end(),
                     [](const Reply& part) { return part.is(Reply::Type::string); })) {
        m_connection.refuse("EVAL");
    }
    collected.consumers += 1;
    collected.reclaimed += static_cast<std::uint64_t>(parts[0].integer);
    collected.buried += static_cast<std::uint64_t>(parts[1].integer);
    for (auto buried = parts.begin() + 2; buried != parts.end(); ++buried) {
        m_events.tell({EventKind::buried, m_keys.source(), id,
                       "its consumers died more than max_recoveries times", buried->text});
    }
}

// A list whose owner is neither registered nor alive can only come from a Redis that forgot the
// registration: rare, but nobody else would ever find it. Seen at two passes, it is an orphan.
inline void GarbageCollector::sweep(const std::set<std::string>& registered, Collected& collected) {
    std::set<std::string> found;
    if (detail::Clock::now() >= m_next_sweep) {
        found = unregistered_lists();
        m_next_sweep = detail::Clock::now() + sweep_interval;
    } else {
        found = m_suspects;
    }
    std::erase_if(found, [&](const std::string& id) { return registered.contains(id); });
    std::set<std::string> again;
    std::ranges::set_intersection(found, m_suspects, std::inserter(again, again.end()));
    m_suspects = std::move(found);
    for (const std::string& id : again) {
        reap(id, collected);
        m_suspects.erase(id);
    }
}

inline std::set<std::string> GarbageCollector::unregistered_lists() {
    const std::string prefix = m_keys.processing("");
    std::string pattern;
    for (const char c : prefix) {
        pattern += std::string_view("*?[]\\^-").find(c) == std::string_view::npos ? "" : "\\";
        pattern += c;
    }
    pattern += '*';
    std::set<std::string> ids;
    std::string cursor = "0";
    do {
        const Reply page = m_connection.command(pattern, "SCAN", cursor, "MATCH", pattern, "COUNT",
                                                1000, "TYPE", "list");
        if (page.elements.size() != 2 || !page.elements[0].is(Reply::Type::string) ||
            !detail::is_strings(page.elements[1])) {
            m_connection.refuse("SCAN");
        }
        cursor = page.elements[0].text;
        // A page may be empty and the scan not at its end.
        for (const Reply& key : page.elements[1].elements) {
            // A queue named "processing:{Q}" has lists of other kinds under the same prefix, and so
            // has "{t}Q:processing" beside "{t}Q": their ends do not look like ids.
            if (key.text.starts_with(prefix) && detail::is_id(key.text.substr(prefix.size()))) {
                ids.insert(key.text.substr(prefix.size()));
            }
        }
    } while (cursor != "0");
    return ids;
}

inline void GarbageCollector::refill(Collected& collected) {
    const std::string unack = m_keys.unack();
    const Reply length = m_connection.command(unack, "LLEN", unack);
    if (!detail::is_count(length)) {
        m_connection.refuse("LLEN");
    }
    // Bounded, or a handler that rejects at once would keep a pass from ever ending.
    std::int64_t left = length.integer;
    while (left > 0) {
        const auto step = std::min<std::int64_t>(left, m_options.batch);
        const Reply moved = m_connection.command(unack, "EVAL", detail::refill_script(), 2, unack,
                                                 m_keys.source(), step);
        if (!detail::is_count(moved) || moved.integer > step) {
            m_connection.refuse("EVAL");
        }
        if (moved.integer == 0) {
            return;
        }
        collected.unacked += static_cast<std::uint64_t>(moved.integer);
        left -= moved.integer;
    }
}

inline void GarbageCollector::run(std::stop_token token, std::chrono::milliseconds interval) {
    if (interval <= std::chrono::milliseconds(0)) {
        throw std::invalid_argument("the collector's interval must be positive");
    }
    detail::JitteredPauses backoff;
    while (!token.stop_requested()) {
        std::chrono::milliseconds pause = interval;
        try {
            collect();
            backoff.reset();
        } catch (const ConnectionError&) {
            pause = backoff.next();
        } catch (const ProtocolError&) {
            pause = backoff.next();
        } catch (const ReplyError& error) {
            const auto meaning = detail::classify(error);
            if (meaning != detail::ReplyClass::passing &&
                meaning != detail::ReplyClass::elsewhere) {
                throw;
            }
            pause = backoff.next();
        }
        detail::sleep_until(detail::deadline_in(pause), token);
    }
}

} // namespace orizuru
