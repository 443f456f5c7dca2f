// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Connects a waiter; ends a wait before a message comes.

namespace orizuru::detail {

inline bool Waiter::connect(Lock& lock, TimePoint deadline, Awaited& awaited) {
    if (Clock::now() < m_not_before) {
        awaited.until = m_not_before;
        return false;
    }
    try {
        if (!m_attempt.stream) {
            begin_attempt(lock, deadline);
        }
        Stream& stream = *m_attempt.stream;
        if (const Reply* const id = stream.greet() ? stream.next_reply() : nullptr) {
            use(std::exchange(m_attempt, {}), *id);
            return true;
        }
        if (Clock::now() < m_attempt.until) {
            awaited = {stream.fd(), std::min(m_attempt.until, stream.greeting_due()),
                       stream.greeting_events()};
            return false;
        }
        stream.fail_late();
    } catch (const Error&) {
        // Else the caller gave up: this says nothing about Redis.
        if (deadline == TimePoint::min() || Clock::now() < deadline) {
            on_failed_attempt();
        }
    }
    m_attempt = {};
    return true;
}

inline void Waiter::begin_attempt(Lock& lock, TimePoint deadline) {
    m_stream.reset();
    deadline = std::min(deadline, Clock::now() + m_lane.endpoint().connect_timeout());
    Attempt attempt{nullptr, m_lane.mirror().incarnation(), {}};
    {
        const Unlocked open(lock);
        attempt.stream = std::make_unique<Stream>(m_lane.endpoint(), deadline, &m_wake);
    }
    attempt.stream->append(ask_for_id);
    attempt.until = Clock::now() + Stream::patience(m_lane.endpoint());
    m_attempt = std::move(attempt);
}

/// `id`: the reply to CLIENT ID. Without the right to it, BLMOVE ends only at its own timeout.
inline void Waiter::use(Attempt attempt, const Reply& id) {
    if (m_broken_by && !m_lane.link().in_outage()) {
        m_lane.events().note_repair(
            joined({attempt.stream->address(), ", after ", Digits(milliseconds_since(m_broken_at)),
                    " ms; the last error was: ", *m_broken_by}));
    }
    m_broken_by.reset();
    m_lane.set_waiters_client({id.integer, attempt.stream->server()});
    m_connection_id = id.integer;
    m_stream = std::move(attempt.stream);
    m_incarnation = attempt.incarnation;
    m_unblocking.reset();
}

/// Called by the handler of the error. The link reports what is no refusal.
inline void Waiter::on_failed_attempt() {
    try {
        throw;
    } catch (const GivenUp&) {
        return; // says nothing about Redis
    } catch (const ReplyError& error) {
        if (remedy_for(error) == Remedy::give_up) {
            m_lane.keep_refusal(joined({error.code(), " ", error.what()}));
        }
    } catch (const Error&) { // NOLINT(bugprone-empty-catch)
    }
    pause();
}

inline bool Waiter::stop(Lock& lock, TimePoint deadline, FunctionRef<bool()> interrupted) {
    const Mirror& mirror = m_lane.mirror();
    while (mirror.blocked()) {
        deadline = std::min(deadline, m_lane.limit());
        m_wake.clear();
        if (interrupted()) {
            return false;
        }
        // Another server may have another client with this id.
        const bool elsewhere = m_stream && m_lane.link().elsewhere(m_stream->server());
        if (m_connection_id == 0 || elsewhere || Clock::now() >= deadline) {
            read(lock, Clock::now()); // takes a reply that has already arrived
            return !mirror.blocked();
        }
        if (mirror.looking()) {
            read(lock, deadline);
            continue;
        }
        if (m_unblocking.pending()) {
            read(lock, std::min(deadline, Clock::now() + transit));
            if (!mirror.blocked()) {
                return true;
            }
        }
        const auto reply = m_lane.query(
            lock, deadline,
            [this](std::string& out) {
                append_command(out, "CLIENT", "UNBLOCK", m_connection_id, "ERROR");
            },
            &m_wake, [&] { return !mirror.blocked() || interrupted(); });
        if (reply && reply->is(Reply::Type::error)) {
            if (remedy_for(*reply) == Remedy::give_up) {
                m_connection_id = 0;
            }
            return false;
        }
        if (mirror.blocked()) {
            // Redis may not have read the BLMOVE yet: UNBLOCK then found nothing to end.
            read(lock, std::min(deadline, Clock::now() + transit));
        }
    }
    return true;
}

} // namespace orizuru::detail
