// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The heartbeat's thread: starts and ends it, beats, and does the work that no caller waits for.

#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>

#include <exception>

namespace orizuru::detail {

inline Heartbeat::Member::Member(std::shared_ptr<Heartbeat> heartbeat,
                                 std::shared_ptr<const void> owner, Lane& lane,
                                 const ConsumerOptions& options)
    : m_heartbeat(std::move(heartbeat)),
      m_owner(std::move(owner)),
      m_lane(lane),
      m_lease(options.lease),
      m_callback(options.on_beat),
      m_watch(lane.mutex(), lane.attendance(), m_heartbeat->m_wake),
      m_due(LeaseClock::now() + m_lease / 3),
      m_check_at(Clock::now() + between_collector_checks()) {
    m_heartbeat->join(*this);
}

inline Heartbeat::Member::~Member() {
    while (true) {
        std::shared_ptr<Heartbeat> heartbeat;
        {
            const Link::Lock lock(m_lane.mutex());
            heartbeat = m_heartbeat;
        }
        if (heartbeat->leave(*this)) {
            return;
        }
    }
}

inline void Heartbeat::Member::move(std::shared_ptr<Heartbeat> home) noexcept {
    m_asked = 0;
    m_check = 0;
    m_heartbeat->m_members.erase(*this);
    m_heartbeat = std::move(home);
    m_heartbeat->m_members.push_back(*this);
    m_watch.redirect(m_heartbeat->m_wake);
    m_lane.move(m_heartbeat->m_link);
}

inline void Heartbeat::join(Member& member) {
    const std::lock_guard joining(m_joining);
    if (!m_thread.started()) {
        start();
    }
    const Link::Lock lock(*m_link->mutex());
    m_members.push_back(member);
    m_wake.signal();
}

/// False when the member has moved meanwhile.
inline bool Heartbeat::leave(Member& member) noexcept {
    const std::lock_guard joining(m_joining);
    {
        const Link::Lock lock(*m_link->mutex());
        if (member.m_heartbeat.get() != this) {
            return false;
        }
        m_members.erase(member);
        if (!m_members.empty()) {
            return true;
        }
    }
    m_stop.request_stop();
    m_stop_wake.signal();
    m_wake.signal();
    m_thread.end();
    return true;
}

inline void Heartbeat::run(const std::stop_token& token) {
    m_thread_id = std::this_thread::get_id();
    JitteredPauses pauses;
    while (!token.stop_requested()) {
        try {
            Link::Lock lock(*m_link->mutex());
            beat(lock);
            serve(lock, token);
            pauses.reset();
            if (m_homes && !token.stop_requested() && retire()) {
                return;
            }
        } catch (const std::exception&) {
            // Out of memory, say. Consumers whose beats end would lose their messages.
            wait_ready(-1, 0, &m_stop_wake, Clock::now() + pauses.next());
        }
    }
}

/// Sends all beats that are due in one write.
inline void Heartbeat::beat(Link::Lock& lock) {
    const TimePoint now = Clock::now();
    if (now < next_beat()) {
        return;
    }
    const LeaseClock::time_point from = LeaseClock::now();
    std::string commands;
    TimePoint until = now + m_link->endpoint().command_timeout();
    const int asked = compose(commands, from, until);
    if (asked == 0) {
        return;
    }
    int answered = 0;
    // A beat sent on a connection that has ended would count as one that may still come.
    const bool elsewhere = m_stream && m_homes && m_link->elsewhere(m_stream->server());
    if (elsewhere || (m_stream && m_stream->closed_by_peer())) {
        m_stream.reset();
    }
    const Endpoint endpoint = m_homes && m_link->connected()
                                  ? Route::to_node(m_link->endpoint(), m_link->server())
                                  : (*m_members.begin()).m_lane.endpoint();
    try {
        const Unlocked open(lock);
        if (!m_stream) {
            m_stream = Stream::make(endpoint, until, &m_stop_wake);
        }
        m_stream->append([&](std::string& out) { out += commands; });
        while (answered < asked) {
            take(answered + 1, from, m_stream->await_reply(until, &m_stop_wake));
            ++answered;
        }
    } catch (const std::exception&) {
        // It does not matter which of them ran: a beat can be repeated at any time.
        const bool sent = m_stream != nullptr;
        m_stream.reset();
        for (Member& member : m_members) {
            if (member.m_asked > answered) {
                if (!sent) {
                    member.take_back_beat();
                }
                member.repeat();
            }
        }
    }
}

/// Returns how many beats there are, and brings `until` forward to when their replies are of no
/// more use.
inline int Heartbeat::compose(std::string& commands, LeaseClock::time_point from,
                              TimePoint& until) {
    const TimePoint now = Clock::now();
    // Those that are nearly due come along, so that their times meet.
    const auto is_due = [from](const Member& member) {
        return member.m_due - member.m_lease / 12 <= from;
    };
    int asked = 0;
    for (Member& member : m_members) {
        member.m_asked = 0;
        member.m_check = 0;
        // A beat behind the request to leave could come later than the end of its fence.
        if (is_due(member) && member.m_lane.mirror().running() &&
            !member.m_lane.mirror().leaving()) {
            member.append_beat(commands, ++asked);
            // Behind a silent host a collector must not be sooner than the next attempt.
            until = std::min(until, now + member.m_lease / 3);
        }
    }
    m_beats = asked;
    for (Member& member : m_members) {
        if (member.m_asked != 0 && member.m_check_at <= now) {
            member.append_collector_check(commands, ++asked);
        }
    }
    for (Member& member : m_members) { // once nothing can throw any more
        if (is_due(member)) {
            member.m_due = from + member.m_lease / 3;
            member.m_lane.attendance().request(); // its other work is due as well
        }
    }
    return asked;
}

/// Soon: collectors take a consumer for dead half a lease after Redis takes writes again.
inline void Heartbeat::Member::repeat() {
    m_due = LeaseClock::now() + m_backoff.next(attempts_apart(m_lease));
}

inline void Heartbeat::Member::append_beat(std::string& commands, int number) {
    m_asked_id = m_lane.mirror().identity().id;
    m_asked = number;
    const Keys& keys = m_lane.keys();
    const bool asks = m_lane.mirror().asks_for_suspects();
    append_command(commands, "EVAL", beat_script(), 4, keys.heartbeat(m_asked_id),
                   keys.processing(m_asked_id), keys.consumers(), keys.writes(), m_asked_id,
                   m_lease.count(), keys.suspects(), asks ? keys.suspects_asked() : std::string(),
                   std::max(m_lease, suspects_patience).count());
    m_lane.mirror().on_beat_sent();
}

/// It is answered, or was not sent after all: it cannot come late.
inline void Heartbeat::Member::take_back_beat() noexcept {
    if (m_lane.mirror().identity().id == m_asked_id) {
        m_lane.mirror().on_beat_answered();
    }
}

inline void Heartbeat::Member::append_collector_check(std::string& commands, int number) {
    m_check = number;
    m_check_at = Clock::now() + between_collector_checks();
    // A consumer has the right to TYPE: its beats need it.
    append_command(commands, "TYPE", m_lane.keys().collected());
}

/// A refusal tells nothing. The lane's events are delivered by `tell`.
inline void Heartbeat::Member::take_collector_check(const Reply& reply) {
    const bool none = reply.is(Reply::Type::status) && reply.text == "none";
    // The first time a collector may just have given its turn back.
    if (none && m_missed) {
        m_check_at = TimePoint::max();
        m_lane.events().note(
            EventKind::not_collected,
            "no collector has looked after it: rejected messages and those of dead "
            "consumers wait; run a GarbageCollector or a BackgroundCollector");
    }
    m_missed = none;
}

/// `when`: the beat was sent. Its member may have left. Throws when the connection is of no use.
inline void Heartbeat::take(int number, LeaseClock::time_point when, const Reply& reply) {
    if (number > m_beats) {
        const Link::Lock lock(*m_link->mutex());
        for (Member& member : m_members) {
            if (member.m_check == number) {
                member.take_collector_check(reply);
            }
        }
        return;
    }
    const bool refused = reply.is(Reply::Type::error) && (remedy_for(reply) != Remedy::reconnect ||
                                                          (m_homes && is_astray(reply.text)));
    if (!reply.is(Reply::Type::integer) && !refused) {
        throw ProtocolError("a beat was not answered by a number");
    }
    const Link::Lock lock(*m_link->mutex());
    for (Member& member : m_members) {
        if (member.m_asked == number) {
            member.take(when, reply, m_stream->server());
        }
    }
}

inline void Heartbeat::Member::take(LeaseClock::time_point when, const Reply& reply,
                                    const Node& server) {
    take_back_beat();
    if (!reply.is(Reply::Type::integer)) {
        const bool current =
            m_lane.mirror().identity().id == m_asked_id && !m_lane.link().elsewhere(server);
        if (current && m_lane.link().among_others() && is_astray(reply.text)) {
            m_lane.stray(reply.text, server);
        }
        repeat();
        return;
    }
    m_backoff.reset();
    if (m_lane.mirror().identity().id != m_asked_id || !m_lane.mirror().running()) {
        return; // the answer is for an earlier incarnation
    }
    if (reply.integer == 1 || reply.integer == 3) {
        m_lane.lease().confirm(when);
        m_callback.call();
        if (reply.integer == 3) {
            m_lane.mark_suspects();
        }
    } else if (!m_lane.mirror().leaving()) {
        m_lane.begin_recovery(reply.integer == 0 ? "a collector has taken the consumer for dead"
                                                 : "Redis has lost the consumer's list");
    }
}

/// Works until the next beat is due. A lane that cannot go on holds up no other.
inline void Heartbeat::serve(Link::Lock& lock, const std::stop_token& token) {
    while (!token.stop_requested()) {
        m_wake.clear();
        if (m_homes) {
            send_home();
        }
        const TimePoint now = Clock::now();
        TimePoint until = next_beat();
        if (token.stop_requested() || now >= until || (m_homes && m_members.empty())) {
            return;
        }
        for (Member& member : m_members) {
            if (const auto& awaits = member.m_lane.held().awaits()) {
                until = std::min(until, awaits->end_overdue());
            }
        }
        if (tell(lock)) {
            continue;
        }
        m_link->drop_closed();
        // While beats are answered there is no outage, and a thread that needs the link connects.
        // This one must not: resolving a name may take longer than the rest of a lease.
        bool busy = m_link->in_outage() || (!m_link->connected() && !m_stream);
        for (Member& member : m_members) {
            if (member.m_lane.attend(now)) {
                busy = true;
                until = member.m_lane.backoff_bound(until, now);
            }
        }
        if (busy) {
            m_link->await_change(lock, until, &m_wake, now);
        } else {
            const Unlocked open(lock);
            wait_ready(-1, 0, &m_wake, until);
        }
    }
}

/// Hands members to the heartbeats of the nodes that have their queues.
inline void Heartbeat::send_home() {
    const std::shared_ptr<Heartbeat> other = m_homes->in_place_of(*this);
    for (auto at = m_members.begin(); at != m_members.end();) {
        Member& member = *at;
        ++at;
        try {
            if (auto home =
                    member.m_lane.astray() ? m_homes->of_astray(member.m_lane, *this) : other) {
                member.move(std::move(home));
            }
        } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
            // Out of descriptors, say: the next round tries again. The others are served meanwhile.
        }
    }
}

/// Ends a thread whose members have all moved. Returns false if it has some, or if one joins.
inline bool Heartbeat::retire() {
    const std::unique_lock joining(m_joining, std::try_to_lock);
    if (!joining || !m_members.empty()) {
        return false;
    }
    m_thread.end();
    return true;
}

inline TimePoint Heartbeat::next_beat() {
    if (m_members.empty()) {
        return TimePoint::max();
    }
    LeaseClock::time_point next = LeaseClock::time_point::max();
    for (const Member& member : m_members) {
        next = std::min(next, member.m_due);
    }
    return Clock::now() + (next - LeaseClock::now());
}

/// Delivers the events of one lane, if there are any. The lock is then released meanwhile.
inline bool Heartbeat::tell(Link::Lock& lock) {
    for (Member& member : m_members) {
        if (member.m_lane.has_news()) {
            m_members.erase(member);
            m_members.push_back(member); // next time it is the last
            auto owner = member.m_owner; // a callback may end the consumer
            member.m_lane.deliver(lock);
            owner.reset(); // without the lock, which the session's destructor takes
            lock.lock();
            return true;
        }
    }
    return false;
}

} // namespace orizuru::detail
