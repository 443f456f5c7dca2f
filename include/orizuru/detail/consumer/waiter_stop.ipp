// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Ends a wait in Redis before a message comes.

namespace orizuru::detail {

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
            lock, deadline, &m_wake, [&] { return !mirror.blocked() || interrupted(); }, "CLIENT",
            "UNBLOCK", m_connection_id, "ERROR");
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
