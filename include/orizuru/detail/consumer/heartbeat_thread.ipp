// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The heartbeat's thread: starts and ends it, beats, and does the work that no caller waits for.

namespace orizuru::detail {

inline void Heartbeat::join(std::shared_ptr<const void> owner, Lane& lane,
                            const ConsumerOptions& options) {
    const std::lock_guard joining(m_joining);
    const auto member = std::make_shared<Member>(std::move(owner), lane, options, m_wake);
    if (!m_thread) {
        m_stop = std::stop_source();
        m_stop_wake.clear();
    }
    {
        const Link::Lock lock(m_link->mutex());
        m_members.push_back(member);
        m_joined = true;
    }
    if (m_thread) {
        m_wake.signal();
        return;
    }
    try {
        m_thread = std::make_unique<std::thread>(
            [own = shared_from_this(), token = m_stop.get_token()]() mutable {
                own->run(token);
                own.reset(); // before the thread counts as ended
            });
    } catch (...) {
        const Link::Lock lock(m_link->mutex());
        m_members.clear();
        throw;
    }
}

inline void Heartbeat::leave(const Lane& lane) noexcept {
    std::shared_ptr<Member> member; // destroyed without a lock: its on_beat may end other members
    const auto end_callback = at_exit([&] { member->callback.reset(); });
    const std::lock_guard joining(m_joining);
    {
        const Link::Lock lock(m_link->mutex());
        const auto found = std::ranges::find(
            m_members, &lane, [](const auto& each) -> const Lane* { return &each->lane; });
        member = std::move(*found);
        m_members.erase(found);
        member->left = true;
        member->attendance.reset();
        if (!m_members.empty()) {
            return;
        }
    }
    m_stop.request_stop();
    m_stop_wake.signal();
    m_wake.signal();
    if (m_thread->get_id() == std::this_thread::get_id()) {
        m_thread->detach();
    } else {
        m_thread->join();
    }
    m_thread.reset();
}

inline void Heartbeat::run(const std::stop_token& token) {
    m_thread_id = std::this_thread::get_id();
    JitteredPauses pauses;
    while (!token.stop_requested()) {
        try {
            const Members members = this->members();
            beat(members);
            serve(members, token);
            pauses.reset();
        } catch (const std::exception&) {
            // Out of memory, say. Consumers whose beats end would lose their messages.
            wait_ready(-1, 0, &m_stop_wake, Clock::now() + pauses.next());
        }
    }
}

inline Heartbeat::Members Heartbeat::members() {
    const Link::Lock lock(m_link->mutex());
    m_joined = false;
    return m_members;
}

/// Sends all beats that are due in one write.
inline void Heartbeat::beat(const Members& members) {
    std::string commands;
    const std::vector<Asked> asked = compose(members, commands);
    if (asked.empty()) {
        return;
    }
    const TimePoint now = Clock::now();
    TimePoint until = now + m_link->endpoint().command_timeout();
    for (const Asked& each : asked) {
        // By then its lease is over, and the next attempt is due anyway.
        until = std::min(until, now + each.member.options.lease * 2 / 3);
    }
    auto next = asked.begin();
    try {
        if (!m_stream) {
            m_stream = std::make_unique<Stream>(m_link->endpoint(), until, &m_stop_wake);
        }
        m_stream->append([&](std::string& out) { out += commands; });
        while (next != asked.end()) {
            const Reply reply = m_stream->await_reply(until, &m_stop_wake);
            take(*next, now, reply);
            ++next;
        }
    } catch (const std::exception&) {
        // It does not matter which of them ran: a beat can be repeated at any time.
        m_stream.reset();
        std::for_each(next, asked.end(), repeat);
    }
}

inline std::vector<Heartbeat::Asked> Heartbeat::compose(const Members& members,
                                                        std::string& commands) {
    std::vector<Asked> asked;
    const TimePoint now = Clock::now();
    // Those that are nearly due come along, so that their times meet.
    const auto is_due = [now](const Member& member) {
        return member.due - member.options.lease / 12 <= now;
    };
    const Link::Lock lock(m_link->mutex());
    if (std::ranges::none_of(members, [now](const auto& each) { return each->due <= now; })) {
        return asked;
    }
    for (const auto& member : members) {
        if (member->left || !is_due(*member)) {
            continue;
        }
        const Lane& lane = member->lane;
        if (lane.running()) {
            const std::string& id = lane.mirror().identity().id;
            asked.push_back({*member, id});
            append_command(commands, "EVAL", beat_script(), 3, lane.keys().heartbeat(id),
                           lane.keys().processing(id), lane.keys().consumers(), id,
                           member->options.lease.count());
        }
    }
    for (const auto& member : members) { // once nothing can throw any more
        if (is_due(*member)) {
            member->due = now + member->options.lease / 3;
            member->beaten = true;
        }
    }
    return asked;
}

/// `when`: the beat was sent. Throws when the connection is of no use.
inline void Heartbeat::take(const Asked& asked, TimePoint when, const Reply& reply) {
    if (!reply.is(Reply::Type::integer)) {
        if (!reply.is(Reply::Type::error) || remedy_for(reply) == Remedy::reconnect) {
            throw ProtocolError("a beat was not answered by a number");
        }
        repeat(asked);
        return;
    }
    asked.member.backoff.reset();
    Lane& lane = asked.member.lane;
    {
        const Link::Lock lock(m_link->mutex());
        if (lane.mirror().identity().id != asked.id || !lane.running()) {
            return; // the answer is for an earlier incarnation
        }
        if (reply.integer != 1) {
            if (!lane.mirror().leaving()) {
                lane.begin_recovery(reply.integer == 0
                                        ? "a collector has taken the consumer for dead"
                                        : "Redis has lost the consumer's list");
            }
            return;
        }
        lane.confirm_lease(when);
        if (asked.member.callback && !asked.member.left) {
            asked.member.callback->call();
        }
    }
}

/// Works until the next beat is due, or a member joins. A lane that cannot go on holds up no other.
inline void Heartbeat::serve(const Members& members, const std::stop_token& token) {
    TimePoint due = TimePoint::max();
    for (const auto& member : members) {
        due = std::min(due, member->due);
    }
    Link::Lock lock(m_link->mutex());
    while (!token.stop_requested()) {
        m_wake.clear();
        const TimePoint now = Clock::now();
        if (token.stop_requested() || m_joined || now >= due) {
            return;
        }
        if (tell(members, lock)) {
            continue;
        }
        m_link->drop_closed();
        TimePoint until = due;
        bool busy = false;
        for (const auto& member : members) {
            if (attend(*member, now)) {
                busy = true;
                until = member->lane.hold_bound(until, now);
            }
        }
        if (busy) {
            m_link->await_change(lock, until, &m_wake, now);
        } else {
            unlocked(lock, [&] { wait_ready(-1, 0, &m_wake, until); });
        }
    }
}

/// Returns whether the lock was released to deliver events.
inline bool Heartbeat::tell(const Members& members, Link::Lock& lock) {
    bool told = false;
    for (const auto& member : members) {
        told = (!member->left && member->lane.deliver(lock)) || told;
    }
    return told;
}

/// Sends what is due for the lane; returns whether more is to be done.
inline bool Heartbeat::attend(Member& member, TimePoint now) {
    Lane& lane = member.lane;
    if (member.left) {
        return false;
    }
    const bool beaten = std::exchange(member.beaten, false);
    if (lane.take_attention() || beaten) {
        if (!member.attendance) {
            member.attendance.emplace(lane);
        }
        lane.retry_refused();
    }
    if (!member.attendance) {
        return false;
    }
    lane.take_acks();
    lane.wake_poller();
    if (lane.at_rest() || now >= lane.limit()) {
        member.attendance.reset();
        return false;
    }
    lane.advance();
    return true;
}

} // namespace orizuru::detail
