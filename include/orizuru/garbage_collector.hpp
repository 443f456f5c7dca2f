// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Brings messages back: those of consumers that died, and those that were rejected. Any number of
// collectors may run at once, on any host; every step is atomic and can be repeated.
//
// Also bounds the harm of a message that kills whoever handles it: the messages that are blamed for
// a consumer's death are counted, and buried when they have been blamed once too often.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/entropy.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/collector/fleet_turn.hpp>
#include <orizuru/detail/collector/grace.hpp>
#include <orizuru/detail/collector/orphans.hpp>
#include <orizuru/detail/collector/registry.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/redis/reply_class.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/run_script.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

struct GarbageCollectorOptions {
    /// How often a message may be blamed for a consumer's death; once more and it goes to the dead
    /// list. Counts are forgotten when none was added for 72 h.
    int max_recoveries = 3;
    /// The most rejected messages that one step returns, 1 to 1000.
    int batch = 1000;
    /// No consumer is taken for dead before consumers have had this long to be heard, so that
    /// neither a restart nor a failover looks like everyone's death: Redis itself must be up for so
    /// long, and so must the collector's connection if that is not its first, if Redis has been a
    /// replica (it forgets that in an hour without replicas of its own), or if INFO is refused.
    std::chrono::milliseconds grace = std::chrono::seconds(10);
    /// The most entries of the dead list when this collector buries; 0 = unbounded.
    std::int64_t dead_limit = 0;
    /// Told of buried messages, of an eviction policy that may lose messages, and of a SCAN that is
    /// refused.
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
    /// Redis: INFO, SMEMBERS, an MGET for 1000 registered consumers, a script per dead one
    ///     (O(messages it held), and the bytes of those that are blamed), LLEN, a script per
    ///     `batch` rejected messages; in the first pass and every 10 minutes a SCAN. A user without
    ///     the right to INFO, MGET or SCAN collects all the same: without a word on evictions, with
    ///     a script per consumer, without the search for lists that nobody is registered for.
    /// Atomic: each consumer's whole list is moved and fenced in one step; so is each batch.
    /// Blocks: at most command_timeout per command.
    /// Throws: ConnectionError, ReplyError (WRONGTYPE names the key), ProtocolError; what was
    ///     moved stays moved, the next pass goes on.
    Collected collect();

    /// Makes passes until a stop is requested, together with all collectors of the queue that run:
    /// every `interval` (1 minute if that is less) one of them makes a pass for all, every 10
    /// minutes with a SCAN; the others ask Redis with a script, O(1). One that may not ask makes
    /// its own passes. Waits out outages of Redis. Throws ReplyError for what only a person can
    /// mend, std::invalid_argument for an interval that is not positive, std::system_error when the
    /// process can have no more descriptors.
    void run(std::stop_token token, std::chrono::milliseconds interval);

  private:
    /// For whom the search for orphans is made.
    enum class Sweeps { own, shared };

    Collected pass(Sweeps sweeps);
    void take_part(std::chrono::milliseconds interval);
    std::chrono::milliseconds until_next_turn(std::chrono::milliseconds interval);
    bool may_reap();
    void reap(const std::string& id, Collected& collected);
    bool search_due(Sweeps sweeps);
    std::set<std::string> search();
    void refill(Collected& collected);

    Keys m_keys;
    GarbageCollectorOptions m_options;
    Connection m_connection;
    detail::EventQueue m_events;
    detail::Grace m_grace{m_options.grace};
    detail::Orphans m_orphans;
    bool m_warned = false;
    bool m_search_refused = false;
    std::minstd_rand m_random{static_cast<std::minstd_rand::result_type>(detail::entropy())};
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

inline Collected GarbageCollector::collect() { return pass(Sweeps::own); }

inline Collected GarbageCollector::pass(Sweeps sweeps) {
    // On another connection the grace begins anew.
    const Connection::Pin pin(m_connection);
    Collected collected;
    if (may_reap()) {
        const std::vector<std::string> registered =
            detail::registered_consumers(m_connection, m_keys);
        for (const std::string& id : detail::unheard_consumers(m_connection, m_keys, registered)) {
            reap(id, collected);
        }
        const std::set<std::string> lists = search_due(sweeps) ? search() : m_orphans.suspects();
        for (const std::string& id : m_orphans.seen_again(lists, registered)) {
            reap(id, collected);
            m_orphans.forget(id);
        }
    }
    refill(collected);
    return collected;
}

inline bool GarbageCollector::may_reap() {
    const bool over = m_grace.over(m_connection);
    const std::string& policy = m_grace.evicting_policy();
    if (!policy.empty() && !std::exchange(m_warned, true)) {
        m_events.tell({EventKind::not_noeviction, m_keys.source(), "", policy, ""});
    }
    return over;
}

inline void GarbageCollector::reap(const std::string& id, Collected& collected) {
    const Reply reply = detail::run_script(
        m_connection, m_keys.source(), detail::cached_reap(), 6, m_keys.heartbeat(id),
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
        m_connection.refuse("EVALSHA");
    }
    collected.consumers += 1;
    collected.reclaimed += static_cast<std::uint64_t>(parts[0].integer);
    collected.buried += static_cast<std::uint64_t>(parts[1].integer);
    for (auto buried = parts.begin() + 2; buried != parts.end(); ++buried) {
        m_events.tell({EventKind::buried, m_keys.source(), id,
                       "its consumers died more than max_recoveries times", buried->text});
    }
}

inline bool GarbageCollector::search_due(Sweeps sweeps) {
    constexpr auto interval = detail::Orphans::interval;
    return m_orphans.search_due() &&
           (sweeps == Sweeps::own ||
            detail::FleetTurn{m_keys.swept(), interval, "SCAN"}.take(m_connection, interval));
}

/// Of all lists, or of none when SCAN is refused.
inline std::set<std::string> GarbageCollector::search() {
    try {
        return m_orphans.search(m_connection, m_keys);
    } catch (const ReplyError& error) {
        if (error.code() != "NOPERM") {
            throw;
        }
        m_orphans.postpone_search();
        if (!std::exchange(m_search_refused, true)) {
            m_events.tell({EventKind::sweep_refused, m_keys.source(), "", error.what(), ""});
        }
        return {};
    }
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
        const Reply moved = detail::run_script(m_connection, unack, detail::cached_refill(), 2,
                                               unack, m_keys.source(), step);
        if (!detail::is_count(moved) || moved.integer > step) {
            m_connection.refuse("EVALSHA");
        }
        if (moved.integer == 0) {
            return;
        }
        collected.unacked += static_cast<std::uint64_t>(moved.integer);
        left -= moved.integer;
    }
}

inline void GarbageCollector::take_part(std::chrono::milliseconds interval) {
    const Connection::Pin pin(m_connection);
    if (!m_grace.was_over(m_connection) && !may_reap()) {
        // The turn is for those who may reap.
        Collected collected;
        refill(collected);
        return;
    }
    // Nobody else knows of the suspects.
    const detail::FleetTurn turn{m_keys.collected(), std::chrono::minutes(1)};
    if (turn.take(m_connection, interval - interval / 10) || !m_orphans.suspects().empty()) {
        pass(Sweeps::shared);
    }
}

/// A little earlier than the interval, so that processes that Redis has held up together do not ask
/// together for ever; later than the turn, which one that is alone has each time.
inline std::chrono::milliseconds
GarbageCollector::until_next_turn(std::chrono::milliseconds interval) {
    using Count = std::chrono::milliseconds::rep;
    return interval - std::chrono::milliseconds(
                          std::uniform_int_distribution<Count>(0, interval.count() / 20)(m_random));
}

inline void GarbageCollector::run(std::stop_token token, std::chrono::milliseconds interval) {
    if (interval <= std::chrono::milliseconds(0)) {
        throw std::invalid_argument("the collector's interval must be positive");
    }
    detail::JitteredPauses backoff;
    while (!token.stop_requested()) {
        std::chrono::milliseconds pause = until_next_turn(interval);
        try {
            take_part(interval);
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
