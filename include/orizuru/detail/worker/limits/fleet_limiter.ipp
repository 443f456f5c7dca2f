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

ORIZURU_INLINE void FleetLimiter::ask(int wanted, Jobs jobs) noexcept {
    const std::lock_guard lock(m_mutex);
    m_wanted = wanted;
    m_jobs = jobs;
    m_ask_at = TimePoint();
    m_empty = false;
    m_answer = Answer::awaited;
    m_counts->wake().signal();
}

ORIZURU_INLINE void FleetLimiter::await(TimePoint until) {
    Lock lock(m_mutex);
    m_awaited = true;
    wait_until(m_changed, lock, until, [this] { return m_answer != Answer::awaited; });
    m_awaited = false;
}

ORIZURU_INLINE bool FleetLimiter::found_empty() noexcept {
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_empty, false);
}

ORIZURU_INLINE void FleetLimiter::put_back(std::shared_ptr<Task> task) {
    {
        const std::lock_guard lock(m_mutex);
        m_back.push_back(std::move(task));
    }
    m_counts->wake().signal();
}

ORIZURU_INLINE void FleetLimiter::begin_watch() noexcept {
    const std::lock_guard lock(m_mutex);
    m_watch_by = TimePoint::max();
}

ORIZURU_INLINE void FleetLimiter::withdraw() noexcept {
    {
        const std::lock_guard lock(m_mutex);
        m_answer = Answer::here;
        m_empty = false;
    }
    m_counts->drop_all();
    m_counts->touch();
}

ORIZURU_INLINE void FleetLimiter::request_end() noexcept {
    if (!m_process.forked()) { // else another thread may have left the lock taken
        const std::lock_guard lock(m_mutex);
        m_ending = true;
        m_counts->wake().signal();
    }
}

ORIZURU_INLINE void FleetLimiter::end(TimePoint until) noexcept {
    request_end();
    if (!m_process.forked()) {
        Lock lock(m_mutex);
        wait_until(m_changed, lock, until, [this] { return m_ended; });
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
            requeue();
            step();
            wait(next_time());
        } catch (...) {
            tell_thrown([this](std::string_view what) { fail(what); });
        }
    }
    requeue();
    say_last();
    const std::lock_guard lock(m_mutex);
    m_ended = true;
    m_changed.notify_all();
}

/// Asks and tells Redis what there is to ask and to tell.
ORIZURU_INLINE void FleetLimiter::step() {
    const TimePoint now = Clock::now();
    m_counts->drop_void(now);
    if (now < m_not_before) {
        return;
    }
    const std::optional<int> unused = m_counts->take_unused();
    bool unwatched = false;
    AdmissionRequest request;
    {
        const std::lock_guard lock(m_mutex);
        // A slot or permit that goes back may be the one that it waits for.
        const bool may_do = unused && (m_full || *unused > 0);
        if (m_answer != Answer::here && (now >= m_ask_at || may_do)) {
            request.wanted = m_wanted;
            request.jobs = m_jobs;
        }
        unwatched = now >= m_watch_by;
        m_watch_by = unwatched ? TimePoint::max() : m_watch_by;
    }
    if (request.wanted == 0 && !unused && !unwatched && now < m_renew_at) {
        return;
    }
    request.holding = m_counts->holding();
    request.unused = unused.value_or(0);
    const Admission answer = tell(request, now);
    if (request.wanted > 0) {
        hear(answer, now);
    }
}

ORIZURU_INLINE Admission FleetLimiter::tell(const AdmissionRequest& request, TimePoint now) {
    AdmissionRequest said = request;
    said.renews = now >= m_renew_at || m_counts->lease_over();
    if (said.holding > 0 && m_counts->lease_over()) {
        m_counts->lapse(now);
    }
    const LeaseClock::time_point sent = LeaseClock::now();
    const Admission answer = m_admissions.ask(said);
    const std::chrono::milliseconds lease = m_queue.options().lease;
    if (said.renews) {
        m_counts->set_lease(sent + lease);
        m_renew_at = now + lease / 3;
    }
    if (!m_has_slots || said.holding + answer.count == 0) {
        m_counts->set_lease(LeaseClock::time_point()); // what comes next renews it
        m_renew_at = TimePoint::max();
    }
    return answer;
}

ORIZURU_INLINE void FleetLimiter::hear(const Admission& answer, TimePoint asked) {
    using Kind = Admission::Kind;
    const std::lock_guard lock(m_mutex);
    m_full = answer.kind == Kind::full;
    if (answer.count > 0) {
        m_counts->grant(answer.count, asked);
    }
    if (m_answer == Answer::here) {
        return; // nobody wants it any more
    }
    if (answer.kind == Kind::granted || answer.kind == Kind::empty) {
        m_empty = answer.kind == Kind::empty;
        m_watch_by = m_empty && m_has_slots ? Clock::now() + watch_patience : TimePoint::max();
        m_answer = Answer::here;
    } else {
        m_jobs = Jobs::to_fetch;
        m_answer = Answer::refused;
        m_ask_at = asked + answer.wait;
        if (m_full) {
            const auto wait = std::min<std::chrono::milliseconds>(answer.wait, longest_wait / 2);
            m_ask_at = asked + wait + std::chrono::milliseconds(m_random.up_to(wait.count()));
        }
    }
    m_changed.notify_all();
    if (!m_awaited) {
        m_news->signal();
    }
}

ORIZURU_INLINE void FleetLimiter::fail(std::string_view why) noexcept {
    m_waiting = BegunCommand();
    m_freed.reset();
    m_not_before = Clock::now() + failure_pause;
    m_counts->touch();
    {
        const std::lock_guard lock(m_mutex);
        if (m_ending) {
            return;
        }
        if (m_answer == Answer::awaited) {
            m_jobs = Jobs::to_fetch;
            m_answer = Answer::refused;
            m_changed.notify_all();
            m_news->signal();
        }
    }
    m_queue.tell({.kind = WorkerEventKind::fetch_failed, .detail = why, .retry_in = failure_pause});
}

ORIZURU_INLINE void FleetLimiter::requeue() noexcept {
    while (true) {
        std::vector<std::shared_ptr<Task>> tasks;
        {
            const std::lock_guard lock(m_mutex);
            tasks.swap(m_back);
        }
        if (tasks.empty()) {
            return;
        }
        // Each goes to the queue's front, so the newest goes first.
        std::for_each(tasks.rbegin(), tasks.rend(), [](const auto& task) { task->requeue({}); });
    }
}

ORIZURU_INLINE TimePoint FleetLimiter::next_time() noexcept {
    const TimePoint now = Clock::now();
    if (m_not_before > now) {
        return m_not_before;
    }
    const TimePoint next = std::min(m_renew_at, m_counts->drop_void(now));
    const std::lock_guard lock(m_mutex);
    return std::min({next, m_watch_by, m_answer != Answer::here ? m_ask_at : TimePoint::max()});
}

ORIZURU_INLINE void FleetLimiter::wait(TimePoint until) {
    const bool waits = m_full && m_answer == Answer::refused && m_not_before <= Clock::now();
    if (m_waiting.begun() || waits) {
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
