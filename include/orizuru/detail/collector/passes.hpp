// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The passes of a garbage collector, alone and as one of a fleet.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/collector/awaited_consumers.hpp>
#include <orizuru/detail/collector/collector_checks.hpp>
#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/collector/eviction_policy.hpp>
#include <orizuru/detail/collector/fleet_turn.hpp>
#include <orizuru/detail/collector/last_refusal.hpp>
#include <orizuru/detail/collector/lost_consumers.hpp>
#include <orizuru/detail/collector/reaping.hpp>
#include <orizuru/detail/collector/suspects_apart.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/run_until_stopped.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector_options.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// The passes of one collector. The connection outlives it.
class Passes {
  public:
    Passes(Keys keys, Connection& connection, GarbageCollectorOptions options);

    Collected collect() {
        m_interval.reset();
        const Collected collected = collect_once();
        if (m_met_consumers || collected.unacked > 0) {
            leave_mark();
        }
        return collected;
    }
    /// Does what `run` repeats; returns when to do it again. Throws as `run`, and for outages.
    TimePoint step(std::chrono::milliseconds interval) {
        m_interval = std::min(interval, PassTurns::longest_interval);
        try {
            const bool pass_due = std::exchange(m_pass_due, true); // if this throws
            if (pass_due || Clock::now() >= m_turns.next()) {
                take_part(*m_interval);
            } else {
                Collected collected;
                ask_again(collected);
            }
            m_pass_due = false;
            return std::min(m_turns.next(), m_awaited.next());
        } catch (const ReplyError& error) {
            note(error);
            if (!is_for_now(error)) {
                leave_turns();
            }
            throw;
        } catch (const ConnectionError&) {
            m_refusal.came();
            throw;
        }
    }
    void run(const std::stop_token& token, std::chrono::milliseconds interval) {
        check_interval(interval);
        m_pass_due = true;
        run_until_stopped(token, [&] { return step(interval); });
    }

  private:
    /// The longest time that a single collect() waits for consumers whose absence may soon count.
    static constexpr std::chrono::seconds longest_stay{15};

    /// Scope of the search for orphans: this collector or the fleet.
    enum class Sweeps { own, shared };

    Collected collect_once() {
        try {
            return pass_and_wait();
        } catch (const ReplyError& error) {
            if (!is_redirected(error.what())) {
                throw;
            }
        }
        return pass_and_wait(); // on the node that has the queue now
    }
    Collected pass_and_wait() {
        Collected collected = pass(Sweeps::own);
        const TimePoint end = Clock::now() + longest_stay;
        while (m_awaited.next() < end) {
            std::this_thread::sleep_until(m_awaited.next());
            ask_again(collected);
        }
        return collected;
    }
    /// For consumers, which look for the key of the turns. It is too short-lived to delay one.
    /// Refusals and lost connections concern nobody: the pass is done.
    void leave_mark() {
        constexpr std::chrono::milliseconds day = PassTurns::longest_interval;
        try {
            const Reply set = m_connection.command(m_keys.source(), "SET", m_keys.collected(), "",
                                                   "NX", "PX", day.count());
            if (!set.is(Reply::Type::nil)) {
                require_type(m_connection, set, Reply::Type::status, "SET");
                return;
            }
            const Reply longer = m_connection.command(m_keys.source(), "PEXPIRE",
                                                      m_keys.collected(), day.count(), "GT");
            require_type(m_connection, longer, Reply::Type::integer, "PEXPIRE");
        } catch (const ReplyError& error) {
            note(error);
        } catch (const ConnectionError&) {
            m_refusal.came();
        }
    }
    void note_connection() {
        ensure_connected(m_connection);
        m_refusal.connected(connected_at(m_connection));
    }
    /// Only what Redis refuses for now tells of an outage.
    void note(const ReplyError& error) {
        if (is_for_now(error)) {
            m_refusal.came();
        }
    }
    Collected pass(Sweeps sweeps) {
        Collected collected;
        m_awaited.clear();
        const std::vector<std::string> registered = registered_consumers(m_connection, m_keys);
        m_met_consumers = !registered.empty();
        const std::vector<std::string> unheard =
            unheard_consumers(m_connection, m_keys, registered);
        m_takers.heard(registered, unheard);
        if (m_met_consumers) {
            visit(unheard.size());
        }
        for (const std::string& id : unheard) {
            reap(id, collected);
        }
        const std::set<std::string> lists = claim_search(sweeps) ? search() : m_orphans.seen_once();
        for (const std::string& id : m_orphans.seen_again(lists, registered)) {
            if (reap(id, collected)) {
                m_orphans.forget(id);
            }
        }
        tell_policy();
        refill(collected);
        if (m_takers.some_heard()) { // else they wait for those that come
            return_suspects(m_connection, m_keys);
        }
        return collected;
    }
    void take_part(std::chrono::milliseconds interval) {
        m_turns.give_back(m_connection); // one taken on a connection that was lost
        // Only this collector knows which lists it has seen once.
        if (!m_turns.take(m_connection, interval) && m_orphans.seen_once().empty()) {
            return;
        }
        pass(Sweeps::shared);
        m_turns.done();
        leave_mark(); // a turn that Redis refuses leaves none
    }
    void ask_again(Collected& collected) {
        for (const std::string& id : m_awaited.take_due()) {
            if (reap(id, collected)) {
                m_orphans.forget(id);
            }
        }
    }
    /// A user without the rights to it only makes recovery slower.
    void visit(std::size_t unheard) {
        if (m_options.grace.count() == 0) {
            return;
        }
        try {
            const Reply went_on =
                run_script(m_connection, m_keys.source(), visit_script, 2, m_keys.writes(),
                           m_keys.heartbeat(""), mark_gap.count(), unheard);
            if (!is_count(went_on)) {
                refuse(m_connection, "EVALSHA");
            }
            m_refusal.ended();
        } catch (const ReplyError& error) {
            if (is_for_now(error) || is_redirected(error.what())) {
                throw;
            }
        }
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
    void tell_policy() {
        if (const std::string policy = m_policy.news(m_connection); !policy.empty()) {
            m_events.tell({EventKind::not_noeviction, m_keys.source(), "", policy, ""});
        }
    }
    /// Returns false if the consumer's absence does not count yet.
    bool reap(const std::string& id, Collected& collected) {
        const Absence absence = look_at(id);
        switch (absence.verdict) {
        case Absence::Verdict::not_dead:
            return true;
        case Absence::Verdict::not_yet:
            // A single collect() leaves long waits to the next one.
            if (m_interval || (absence.gap != mark_gap && absence.wait <= longest_stay)) {
                m_awaited.add(id, absence.wait, absence.gap);
            }
            return false;
        case Absence::Verdict::reaped:
            break;
        }
        collected.consumers += 1;
        collected.reclaimed += absence.requeued;
        collected.buried += absence.buried.size();
        collected.suspects += absence.apart.size();
        for (const Absence::Suspect& suspect : absence.apart) {
            m_events.tell({EventKind::suspected, m_keys.source(), id,
                           joined({"held by ", Digits(suspect.recoveries),
                                   " consumers that died; it is tried apart from others"}),
                           suspect.payload});
        }
        for (const std::string& payload : absence.buried) {
            m_events.tell({EventKind::buried, m_keys.source(), id,
                           "its consumers died more than max_recoveries times", payload});
        }
        return true;
    }
    Absence look_at(const std::string& id) {
        note_connection();
        const std::chrono::milliseconds zero{};
        const CollectorState state{
            .allowance = m_interval ? std::max(zero, m_options.grace - *m_interval) : zero,
            .stays = m_interval.has_value(),
            .since_refusal = m_refusal.age(),
            .takers = m_takers.found(m_connection, m_keys)};
        Absence absence = detail::reap(m_connection, m_keys, m_options, state, id);
        m_refusal.ended();
        return absence;
    }
    /// Takes the fleet's turn at the search, if it is due. Returns false when another collector has
    /// it.
    bool claim_search(Sweeps sweeps) {
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
            refuse(m_connection, "LLEN");
        }
        // Bounded: otherwise a handler that rejects at once could keep a pass from ending.
        std::int64_t left = length.integer;
        while (left > 0) {
            const auto step = std::min<std::int64_t>(left, m_options.batch);
            const Reply moved =
                run_script(m_connection, unack, refill_script, 2, unack, m_keys.source(), step);
            if (!is_count(moved) || moved.integer > step) {
                refuse(m_connection, "EVALSHA");
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
    LastRefusal m_refusal{connected_at(m_connection), m_connection.endpoint().command_timeout()};
    EventQueue m_events;
    std::optional<std::chrono::milliseconds> m_interval; ///< none: a single collect()
    EvictionPolicy m_policy;
    AwaitedConsumers m_awaited;
    SuspectTakers m_takers;
    Orphans m_orphans;
    bool m_search_refused = false;
    bool m_pass_due = false; ///< the last one failed, or `run` has just begun
    PassTurns m_turns{m_keys.collected()};
};

inline Passes::Passes(Keys keys, Connection& connection, GarbageCollectorOptions options)
    : m_keys(std::move(keys)),
      m_options(std::move(options)),
      m_connection(connection),
      m_events(m_keys.source(), m_options.on_event) {
    validate(m_options);
}

} // namespace orizuru::detail
