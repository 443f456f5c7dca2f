// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of fleet_limiter.hpp.

#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace orizuru::detail {

ORIZURU_INLINE FleetLimiter::FleetLimiter(FetchingQueue& queue, const Endpoint& endpoint,
                                          std::shared_ptr<const Wake> news, const FleetLimit& limit)
    : m_queue(queue),
      m_news(std::move(news)),
      m_has_slots(limit.concurrency.has_value()),
      m_counts(std::make_shared<PermitCounts>(limit.rate.has_value(), m_has_slots)),
      m_admissions(m_cutoff.guard(endpoint), queue.keys(), queue.shared().options.name,
                   queue.options().lease, limit) {
    m_thread.start([this] { run(); });
}

ORIZURU_INLINE void FleetLimiter::ask(int wanted) noexcept {
    const std::lock_guard lock(m_mutex);
    if (!std::exchange(m_empty, false)) {
        m_wanted = wanted;
        m_ask_at = TimePoint();
        m_asking = true;
        m_counts->wake().signal();
    }
}

ORIZURU_INLINE void FleetLimiter::ask_for(std::shared_ptr<Task> task) {
    const std::lock_guard lock(m_mutex);
    m_left.reserve(m_left.size() + 1); // it may have to go back where nothing can fail
    m_brought = std::move(task);
    m_wanted = 1;
    m_ask_at = TimePoint();
    m_asking = true;
    m_counts->wake().signal();
}

ORIZURU_INLINE std::shared_ptr<Task> FleetLimiter::take_permitted() noexcept {
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_permitted, nullptr);
}

ORIZURU_INLINE void FleetLimiter::leave(std::shared_ptr<Task> task) {
    {
        const std::lock_guard lock(m_mutex);
        if (task) {
            m_left.reserve(m_left.size() + 2); // also for one that was brought before
            m_left.push_back(std::move(task));
        }
    }
    m_counts->touch();
}

ORIZURU_INLINE void FleetLimiter::withdraw() noexcept {
    {
        const std::lock_guard lock(m_mutex);
        leave_brought();
        if (m_permitted) {
            m_left.push_back(std::exchange(m_permitted, nullptr));
        }
        m_asking = false;
        m_empty = false;
    }
    m_counts->drop_all();
    m_counts->touch();
}

ORIZURU_INLINE void FleetLimiter::end(TimePoint until) noexcept {
    if (!m_process.forked()) { // else another thread may have left the lock taken
        Lock lock(m_mutex);
        m_ending = true;
        m_counts->wake().signal();
        wait_until(m_end, lock, until, [this] { return m_ended; });
        m_cutoff.signal();
    }
    m_thread.end();
}

ORIZURU_INLINE void FleetLimiter::run() noexcept {
    const auto ending = [this] {
        const std::lock_guard lock(m_mutex);
        return m_ending;
    };
    while (!ending()) {
        m_counts->wake().clear(); // before all is looked at
        try {
            requeue_left();
            step();
            requeue_left();
            wait(next_time());
        } catch (...) {
            tell_thrown([this](std::string_view what) { fail(what); });
        }
    }
    requeue_left();
    say_last();
    const std::lock_guard lock(m_mutex);
    m_ended = true;
    m_end.notify_all();
}

/// Asks and tells Redis what there is to ask and to tell.
ORIZURU_INLINE void FleetLimiter::step() {
    const TimePoint now = Clock::now();
    m_counts->drop_void(now);
    if (now < m_not_before) {
        return;
    }
    const std::optional<PermitCounts::Change> change = m_counts->take_change();
    AdmissionRequest request;
    {
        const std::lock_guard lock(m_mutex);
        // What goes back may be what it waits for.
        const bool may_do = change && (m_full || change->unused > 0);
        if (m_asking && (now >= m_ask_at || may_do)) {
            request.wanted = m_brought ? 1 : m_wanted;
            request.jobs = m_brought ? "hold" : "fetch";
        }
    }
    if (request.wanted == 0 && !change && now < m_renew_at) {
        return;
    }
    request.holding = m_counts->holding();
    request.unused = change ? change->unused : 0;
    const LeaseClock::time_point sent = LeaseClock::now();
    const Admission answer = m_admissions.ask(request);
    m_counts->set_lease(sent + m_queue.options().lease);
    m_renew_at = m_has_slots && request.holding + answer.count > 0
                     ? now + m_queue.options().lease / 3
                     : TimePoint::max();
    if (request.wanted > 0) {
        hear(answer, now);
    }
}

ORIZURU_INLINE void FleetLimiter::hear(const Admission& answer, TimePoint asked) {
    const std::lock_guard lock(m_mutex);
    m_full = answer.kind == Admission::Kind::full;
    if (answer.count > 0) {
        m_counts->grant(answer.count, asked);
        if (m_brought) {
            m_counts->fetched(1);
            m_brought->keep(m_counts->permit());
            m_permitted = std::exchange(m_brought, nullptr);
        }
    }
    if (answer.kind == Admission::Kind::granted || answer.kind == Admission::Kind::empty) {
        m_empty = answer.kind == Admission::Kind::empty;
        m_asking = false;
        m_news->signal();
        return;
    }
    leave_brought();
    m_ask_at = asked + answer.wait;
    if (m_full) {
        const auto wait = std::min<std::chrono::milliseconds>(answer.wait, longest_wait / 2);
        m_ask_at = asked + wait + std::chrono::milliseconds(m_random.up_to(wait.count()));
    }
}

/// Under the lock.
ORIZURU_INLINE void FleetLimiter::leave_brought() {
    if (m_brought) {
        m_left.push_back(std::exchange(m_brought, nullptr));
    }
}

ORIZURU_INLINE void FleetLimiter::fail(std::string_view why) noexcept {
    m_waiting = BegunCommand();
    m_freed.reset();
    m_not_before = Clock::now() + failure_pause;
    m_counts->touch();
    {
        const std::lock_guard lock(m_mutex);
        leave_brought();
        if (m_ending) {
            return;
        }
    }
    m_queue.tell({.kind = WorkerEventKind::fetch_failed, .detail = why, .retry_in = failure_pause});
}

ORIZURU_INLINE void FleetLimiter::requeue_left() noexcept {
    Lock lock(m_mutex);
    while (!m_left.empty()) {
        const std::shared_ptr<Task> task = std::move(m_left.back());
        m_left.pop_back();
        lock.unlock();
        task->requeue({});
        lock.lock();
    }
}

ORIZURU_INLINE TimePoint FleetLimiter::next_time() noexcept {
    const TimePoint now = Clock::now();
    if (m_not_before > now) {
        return m_not_before;
    }
    const TimePoint next = std::min(m_renew_at, m_counts->drop_void(now));
    const std::lock_guard lock(m_mutex);
    return m_asking ? std::min(next, m_ask_at) : next;
}

ORIZURU_INLINE void FleetLimiter::wait(TimePoint until) {
    if (m_waiting.begun() || (m_full && m_asking && m_not_before <= Clock::now())) {
        await_slot(until);
    } else {
        wait_ready(-1, 0, &m_counts->wake(), until);
    }
}

/// Goes on in Redis while other things are done, also when no slot is wanted any more: an element
/// that comes then is put back by the next call.
ORIZURU_INLINE void FleetLimiter::await_slot(TimePoint until) {
    if (!m_waiting.begun()) {
        if (!m_freed) {
            m_freed = m_admissions.connect();
        }
        std::string bytes;
        append_command(bytes, "BLPOP", m_admissions.keys().slots_freed(), longest_wait.count());
        m_waiting.begin(*m_freed, "BLPOP", bytes);
    }
    if (m_waiting.finish(*m_freed, until, m_counts->wake())) {
        const std::lock_guard lock(m_mutex);
        m_ask_at = TimePoint();
        m_counts->touch();
    }
}

ORIZURU_INLINE void FleetLimiter::say_last() noexcept {
    m_waiting = BegunCommand();
    m_freed.reset();
    if (!m_has_slots) {
        return;
    }
    try {
        static_cast<void>(m_admissions.ask({.holding = m_counts->holding()}));
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // They lapse with the lease.
    }
}

} // namespace orizuru::detail
