// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Waits for a message in `next`, and asks Redis for one meanwhile.

namespace orizuru::detail {

// Each round of the loop does one thing and then checks everything again. Meanwhile there may be a
// stop, a lost lease or a guard that settles elsewhere.
inline bool Fetcher::wait_for_message(Lock& lock, const std::stop_token& token,
                                      TimePoint deadline) {
    const std::stop_callback wake_up(token, [this] { m_wake.signal(); });
    const auto interrupted = [&] { return stopped() || token.stop_requested(); };
    const Mirror& mirror = m_lane.mirror();
    const bool had_some = mirror.has_ready();
    std::uint64_t fetches = mirror.fetches();
    bool looked = false; // asked without waiting and found nothing
    TimePoint last_chance = TimePoint::max();
    while (true) {
        m_wake.clear();
        m_lane.take_acks();
        m_lane.tell_events(lock);
        if (interrupted()) {
            const TimePoint until = Clock::now() + stop_patience;
            if (stopped()) {
                put_back_run();
            }
            if (m_waiter.stop(lock, until) && stopped()) {
                leave(lock, until);
            }
            if (!had_some && mirror.has_ready() && m_run.empty() && !stopped()) {
                // It came during this call: do not leave it waiting for the next one.
                take_run();
                return true;
            }
            return false;
        }
        if (mirror.has_ready()) {
            take_run();
            return true;
        }
        m_lane.throw_refusal();
        deadline = std::min(deadline, m_lane.limit());
        const bool late = Clock::now() >= deadline;
        if (late) {
            // A message on its way may still arrive: wait a little longer.
            last_chance = std::min(last_chance, Clock::now() + timeout_patience);
        }
        const TimePoint until = late ? last_chance : deadline;
        const bool fetched = std::exchange(fetches, mirror.fetches()) != mirror.fetches();
        // A fetch sent ahead cannot carry the acks of the batch before: if any are left, ask again.
        looked = looked || (fetched && !mirror.has_acks());
        bool in_time = true;
        if (!m_lane.running()) {
            in_time = !late && m_lane.drive(lock, until, &m_wake, [&] {
                return interrupted() || m_lane.has_refusal() || m_lane.running();
            });
        } else if (wants_suspect()) {
            in_time = try_suspect(lock, until, interrupted);
            if (mirror.blocked() && !late && !interrupted()) { // it ends by itself only
                m_waiter.read(lock, until);
                in_time = true;
            }
        } else if (mirror.fetching()) {
            fetch_behind();
            in_time = m_lane.drive(lock, until, &m_wake, [&] {
                return interrupted() || !mirror.fetching() || !m_lane.running();
            });
        } else if (mirror.looking()) {
            m_waiter.read(lock, until);
            in_time = Clock::now() < until;
        } else if (mirror.blocked() && late) {
            in_time = m_waiter.stop(lock, until, interrupted);
            looked = true;
        } else if (mirror.blocked()) {
            m_waiter.read(lock, until);
            looked = looked && !m_waiter.refused_for_memory();
        } else if (!looked &&
                   (late || m_most > 1 || mirror.has_acks() || m_waiter.refused_for_memory())) {
            if (by_waiter() && !mirror.has_acks()) {
                m_waiter.look(lock, until);
                in_time = Clock::now() < until;
            } else {
                in_time = m_lane.drive(lock, until, &m_wake, [&] {
                    return interrupted() || m_lane.ready() || m_lane.has_refusal() ||
                           !m_lane.running();
                });
                if (m_lane.ready() && !interrupted()) {
                    send_fetch();
                }
            }
        } else if (!late) {
            m_waiter.start(lock, until);
        } else {
            in_time = false;
        }
        if (late && !in_time && !mirror.has_ready()) {
            m_looked = looked;
            return false; // the next call gets the outstanding reply
        }
    }
}

} // namespace orizuru::detail
