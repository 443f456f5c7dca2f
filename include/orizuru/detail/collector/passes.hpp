// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The passes of a garbage collector, alone and as one of a fleet.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/collector/fleet_turn.hpp>
#include <orizuru/detail/collector/grace.hpp>
#include <orizuru/detail/collector/lost_consumers.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/run_script.hpp>
#include <orizuru/detail/redis/run_until_stopped.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector_options.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// The passes of one collector. The connection outlives it.
class Passes {
  public:
    Passes(Keys keys, Connection& connection, GarbageCollectorOptions options);

    Collected collect() {
        const Collected collected = collect_once();
        if (m_met_consumers || collected.unacked > 0) {
            leave_mark();
        }
        return collected;
    }
    /// What `run` repeats; returns when to do it again. Throws as `run`, and for outages.
    TimePoint step(std::chrono::milliseconds interval) {
        try {
            take_part(std::min(interval, PassTurns::longest_interval));
            return m_turns.next();
        } catch (const ReplyError& error) {
            if (!is_for_now(error)) {
                leave_turns();
            }
            throw;
        }
    }
    void run(const std::stop_token& token, std::chrono::milliseconds interval) {
        if (interval <= std::chrono::milliseconds(0)) {
            throw std::invalid_argument("the collector's interval must be positive");
        }
        run_until_stopped(token, [&] { return step(interval); });
    }

  private:
    /// Whether the search for orphans serves this collector or the fleet.
    enum class Sweeps { own, shared };

    Collected collect_once() {
        try {
            return pass(Sweeps::own);
        } catch (const ReplyError& error) {
            if (!is_redirected(error.what())) {
                throw;
            }
        }
        return pass(Sweeps::own); // on the node that has the queue now
    }
    /// For consumers, which look for the key of the turns. It is too short-lived to delay one.
    /// Refusals and lost connections concern nobody: the pass is done.
    void leave_mark() {
        constexpr std::chrono::milliseconds day = PassTurns::longest_interval;
        try {
            const Reply set = m_connection.command(m_keys.source(), "SET", m_keys.collected(), "",
                                                   "NX", "PX", day.count());
            if (!set.is(Reply::Type::nil)) {
                m_connection.require(set, Reply::Type::status, "SET");
                return;
            }
            const Reply longer = m_connection.command(m_keys.source(), "PEXPIRE",
                                                      m_keys.collected(), day.count(), "GT");
            m_connection.require(longer, Reply::Type::integer, "PEXPIRE");
        } catch (const ReplyError&) {      // NOLINT(bugprone-empty-catch)
        } catch (const ConnectionError&) { // NOLINT(bugprone-empty-catch)
        }
    }
    Collected pass(Sweeps sweeps) {
        // On another connection the grace begins anew.
        const Connection::Pin pin(m_connection);
        Collected collected;
        const std::vector<std::string> registered = registered_consumers(m_connection, m_keys);
        m_met_consumers = !registered.empty();
        const std::vector<std::string> unheard =
            unheard_consumers(m_connection, m_keys, registered);
        const bool idle =
            unheard.empty() && m_orphans.suspects().empty() && !m_orphans.search_due();
        if (!(idle && m_grace.asked_lately(m_connection)) && may_reap()) {
            for (const std::string& id : unheard) {
                reap(id, collected);
            }
            const std::set<std::string> lists =
                search_due(sweeps) ? search() : m_orphans.suspects();
            for (const std::string& id : m_orphans.seen_again(lists, registered)) {
                reap(id, collected);
                m_orphans.forget(id);
            }
        }
        refill(collected);
        return collected;
    }
    void take_part(std::chrono::milliseconds interval) {
        const Connection::Pin pin(m_connection);
        m_turns.give_back(m_connection); // one taken on a connection that was lost
        if (!m_grace.was_over(m_connection) && !may_reap()) {
            // The turn is for collectors that may reap.
            Collected collected;
            refill(collected);
            m_turns.put_off(m_options.grace, interval);
            return;
        }
        // Only this collector knows its suspects.
        if (!m_turns.take(m_connection, interval) && m_orphans.suspects().empty()) {
            return;
        }
        pass(Sweeps::shared);
        if (!m_grace.was_over(m_connection)) {
            m_turns.give_back(m_connection); // to collectors that may reap
            m_turns.put_off(m_options.grace, interval);
            return;
        }
        m_turns.done();
        leave_mark(); // a turn that Redis refuses leaves none
    }
    /// Leaves the turns to collectors that may be able to make the pass that this one cannot.
    void leave_turns() noexcept {
        m_turns.stand_back();
        try {
            m_turns.give_back(m_connection);
        } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
            // The next run gives it back, or it expires.
        }
    }
    bool may_reap() {
        const bool over = m_grace.over(m_connection);
        const std::string& policy = m_grace.evicting_policy();
        if (!policy.empty() && !std::exchange(m_warned, true)) {
            m_events.tell({EventKind::not_noeviction, m_keys.source(), "", policy, ""});
        }
        return over;
    }
    void reap(const std::string& id, Collected& collected) {
        const Reply reply = run_script(
            m_connection, m_keys.source(), reap_script, 6, m_keys.heartbeat(id),
            m_keys.processing(id), m_keys.source(), m_keys.consumers(), m_keys.recoveries(),
            m_keys.dead(), id, fence_time.count(), m_options.max_recoveries,
            recovery_memory.count(), m_options.dead_limit, m_options.blamed);
        const std::vector<Reply>& parts = reply.elements;
        if (parts.size() == 1 && parts[0].is(Reply::Type::integer) && parts[0].integer < 0) {
            return; // alive, or another collector has reaped it
        }
        if (parts.size() < 2 || !is_count(parts[0]) || !is_count(parts[1]) ||
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
    bool search_due(Sweeps sweeps) {
        constexpr auto interval = Orphans::interval;
        if (!m_orphans.search_due() || sweeps == Sweeps::own) {
            return m_orphans.search_due();
        }
        const FleetTurn turn{m_keys.swept(), interval, "SCAN"};
        const std::chrono::milliseconds left = turn.take(m_connection, interval);
        if (left.count() > 0) {
            m_orphans.postpone_search(left);
        }
        return left.count() == 0;
    }
    /// Searches all lists; finds none when SCAN is refused.
    std::set<std::string> search() {
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
    void refill(Collected& collected) {
        const std::string unack = m_keys.unack();
        const Reply length = m_connection.command(unack, "LLEN", unack);
        if (!is_count(length)) {
            m_connection.refuse("LLEN");
        }
        // Bounded: otherwise a handler that rejects at once could keep a pass from ending.
        std::int64_t left = length.integer;
        while (left > 0) {
            const auto step = std::min<std::int64_t>(left, m_options.batch);
            const Reply moved =
                run_script(m_connection, unack, refill_script, 2, unack, m_keys.source(), step);
            if (!is_count(moved) || moved.integer > step) {
                m_connection.refuse("EVALSHA");
            }
            if (moved.integer == 0) {
                return;
            }
            collected.unacked += static_cast<std::uint64_t>(moved.integer);
            left -= moved.integer;
        }
    }

    Keys m_keys;
    GarbageCollectorOptions m_options;
    bool m_met_consumers = false; ///< in the last pass
    Connection& m_connection;
    EventQueue m_events;
    Grace m_grace{m_options.grace};
    Orphans m_orphans;
    bool m_warned = false;
    bool m_search_refused = false;
    PassTurns m_turns{m_keys.collected()};
};

inline Passes::Passes(Keys keys, Connection& connection, GarbageCollectorOptions options)
    : m_keys(std::move(keys)),
      m_options(std::move(options)),
      m_connection(connection),
      m_events(m_keys.source(), m_options.on_event) {
    check_count("batch", m_options.batch, largest_batch);
    if (m_options.blamed < 1) {
        throw std::invalid_argument("blamed must be 1 or more");
    }
    if (m_options.max_recoveries < 0 || m_options.dead_limit < 0 || m_options.grace.count() < 0) {
        throw std::invalid_argument("max_recoveries, dead_limit and grace must not be negative");
    }
}

} // namespace orizuru::detail
