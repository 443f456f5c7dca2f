// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Waits for a message in `next`, and asks Redis for one meanwhile.

namespace orizuru::detail {

/// Waits until the first message of the run can be handed out.
inline bool Fetcher::await_run(const std::stop_token& token, Timeout& timeout) {
    while (true) {
        const bool interrupted = stopped() || token.stop_requested();
        if (m_run.empty() || interrupted || m_run_recoveries != m_lane.held().recoveries()) {
            const bool some = m_lane.locked([&](Lock& lock) {
                drop_lost_of_run();
                return (!m_run.empty() && !interrupted) ||
                       wait_for_message(lock, token, timeout.deadline());
            });
            if (!some) {
                return false;
            }
        }
        const Delivery& first = *m_run.front();
        if (!first.postponed() || Clock::now() >= first.not_before) {
            return true;
        }
        if (Clock::now() >= timeout.deadline()) {
            return false;
        }
        // The lease may be lost during the pause: check again.
        pause(token, std::min(first.not_before, timeout.deadline()));
    }
}

inline bool Fetcher::wait_for_message(Lock& lock, const std::stop_token& token,
                                      TimePoint deadline) {
    const std::stop_callback wake_up(token, [this] { m_wake.signal(); });
    m_token = &token;
    const Mirror& mirror = m_lane.mirror();
    const bool had_some = mirror.has_ready();
    TimePoint last_chance = TimePoint::max();
    m_looked = false;
    m_fetches = mirror.fetches();
    while (true) {
        StepInputs now = begin_step(lock);
        TimePoint until = std::min(deadline, m_lane.limit());
        if (!now.ready && Clock::now() >= until) {
            now.time = StepInputs::Time::up;
            // A message on its way may still arrive: wait a little longer.
            until = last_chance = std::min(last_chance, Clock::now() + timeout_patience);
        }
        switch (const Step next = step(now)) {
        case Step::stop:
            end_wait(lock);
            if (had_some || !mirror.has_ready() || !m_run.empty() || stopped()) {
                return false;
            }
            // It came during this call: do not leave it waiting for the next one.
            [[fallthrough]];
        case Step::hand_out:
            take_run();
            return true;
        case Step::block:
            if (Awaited awaited; !m_waiter.start(lock, until, awaited)) {
                const Unlocked open(lock);
                wait_ready(awaited.fd, awaited.events, &m_wake, std::min(until, awaited.until));
            }
            break;
        default:
            if (!carry_out(next, lock, until) && now.time == StepInputs::Time::up &&
                !mirror.has_ready()) {
                return false; // the next call gets the outstanding reply
            }
        }
    }
}

/// Ends the wait in Redis because of a stop; one for good also requeues and leaves.
inline void Fetcher::end_wait(Lock& lock) {
    const TimePoint until = Clock::now() + stop_patience;
    if (stopped()) {
        put_back_run();
    }
    if (m_waiter.stop(lock, until, [this] { return is_cut_off(); }) && stopped()) {
        leave(lock, until);
    }
}

/// Tells noted events, takes over acks, and gathers all but the time for step(): `next` and `poll`
/// add that. Each step does one thing, after which everything is checked again: meanwhile there may
/// be a stop, a lost lease or a guard that settles elsewhere.
[[gnu::always_inline]] inline StepInputs Fetcher::begin_step(Lock& lock) {
    using Asked = StepInputs::Asked;
    m_wake.clear();
    m_lane.held().take_acks();
    m_lane.tell_news(lock);
    const Mirror& mirror = m_lane.mirror();
    // A fetch sent ahead cannot carry the acks of the batch before: if any are left, ask again.
    const bool fetched = std::exchange(m_fetches, mirror.fetches()) != mirror.fetches();
    m_looked = m_looked || (fetched && !mirror.has_acks());
    StepInputs now;
    now.interrupted = interrupted();
    now.ready = mirror.has_ready();
    if (now.ready) {
        return now; // nothing of the rest matters then
    }
    now.refused = m_lane.refusal().kept();
    now.running = m_lane.mirror().running();
    now.suspects = m_lane.suspects_wait() && !std::exchange(m_asked_in_vain, false);
    now.asked = mirror.fetching()  ? Asked::fetch
                : mirror.looking() ? Asked::look
                : mirror.blocked() ? Asked::block
                                   : Asked::nothing;
    now.looked = m_looked;
    now.in_batches = m_most > 1;
    now.acks = mirror.has_acks();
    now.short_of_memory = m_waiter.refused_for_memory();
    now.by_waiter = by_waiter();
    now.marker_due = m_waiter.marker_due();
    return now;
}

/// Carries out a step that may wait for Redis. Returns false at the deadline, and true when it is
/// done or another one comes first.
inline bool Fetcher::carry_out(Step step, Lock& lock, TimePoint deadline) {
    const Mirror& mirror = m_lane.mirror();
    switch (step) {
    case Step::refuse:
        m_lane.refusal().rethrow();
        return true;
    case Step::recover:
        return m_lane.drive(lock, deadline, &m_wake, [&] {
            return interrupted() || m_lane.refusal().kept() || m_lane.mirror().running();
        });
    case Step::ask_suspect:
        return ask_suspect(lock, deadline);
    case Step::await_fetch:
        fetch_behind();
        return drive_lane(lock, deadline, [&] { return !mirror.fetching(); });
    case Step::await_waiter:
        m_waiter.read(lock, deadline);
        m_looked = m_looked && !m_waiter.refused_for_memory();
        return Clock::now() < deadline;
    case Step::end_block:
        m_looked = true;
        return m_waiter.stop(lock, deadline, [this] { return interrupted(); });
    case Step::look:
        m_waiter.look();
        return true;
    case Step::fetch: {
        const bool in_time = drive_lane(lock, deadline, [this] { return m_lane.ready(); });
        if (m_lane.ready() && !interrupted()) {
            send_fetch();
        }
        return in_time;
    }
    default:
        return false; // nothing is left to do, or the caller does it
    }
}

/// Asks for one, once no wait in Redis is outstanding: the two could bring messages in either
/// order. If that cannot be in time, another step comes next, such as to read what the wait brings.
inline bool Fetcher::ask_suspect(Lock& lock, TimePoint deadline) {
    const bool in_time = m_waiter.stop(lock, deadline, [this] { return interrupted(); }) &&
                         drive_lane(lock, deadline, [this] { return m_lane.ready(); });
    m_asked_in_vain = !in_time;
    // The wait may have brought a message, which must not keep a suspect waiting.
    const Mirror& mirror = m_lane.mirror();
    if (in_time && m_lane.ready() && !mirror.has_ready() && !interrupted() &&
        m_lane.suspects_wait() && !mirror.fetching()) {
        m_lane.try_suspect(m_share);
    }
    return in_time;
}

/// Where this thread may not connect, leaves that to the heartbeat.
inline bool Fetcher::await_connection(Lock& lock, TimePoint deadline) {
    deadline = std::min(deadline, m_lane.limit());
    while (is_cut_off()) {
        m_lane.attendance().await_link(); // signals m_wake at once, and again when it is connected
        m_wake.clear();
        if (Clock::now() >= deadline) {
            return false;
        }
        const Unlocked open(lock);
        wait_ready(-1, 0, &m_wake, deadline);
    }
    return true;
}

inline void Fetcher::take_run() {
    Mirror& mirror = m_lane.mirror();
    m_lane.held().hand_out(m_run, static_cast<std::size_t>(m_most));
    // Finding acks that are given without the lock takes a search of the held messages. Where there
    // are many, the lock is cheaper.
    const bool few = std::cmp_less_equal(mirror.messages().size(), 2 * m_most);
    if (few && m_options.ack == AckMode::deferred) {
        for (const DeliveryPtr& message : m_run) {
            if (!message->trial) { // whose count the ack ends
                mirror.open_ack(*message);
            }
        }
    }
    m_run_recoveries = m_lane.held().recoveries();
    m_looked = false;
    if (m_shares_link) {
        std::size_t bytes = 0;
        for (const DeliveryPtr& message : m_run) {
            bytes += message->payload.size();
        }
        // Rises at once and falls by halves: one small message says little about the next.
        const std::size_t average = bytes / m_run.size();
        m_average = std::max(average, (m_average + average) / 2);
    }
    // Asks for the next batch with this one's first message, so that at most two are held.
    if (!mirror.has_ready() && !mirror.fetching()) {
        fetch_more();
    }
}

} // namespace orizuru::detail
