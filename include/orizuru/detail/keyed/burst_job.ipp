// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of burst_job.hpp.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/keyed/order_scripts.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/detail/worker/job_queries.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>
#include <orizuru/worker/job_done.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE Task::Ran BurstJob::run(TimePoint ended) noexcept {
    try {
        for (BurstJob* job = this; job != nullptr && job->begin(ended); job = next_of(*job)) {
            JobRun* const run = &job->JobTask::job();
            const Handling handling = handle_in_middleware(
                m_queue.shared(), {&run, 1}, m_queue.time_limit(m_handler.options),
                [&] { m_handler.call(*run, JobDone()); });
            job->settling().end(handling);
            ended = job == this ? TimePoint() : handling.ended; // it asks Redis
        }
    } catch (...) {
        tell_thrown([this](std::string_view what) {
            current().settling().reports().tell(WorkerEventKind::unsettled, what);
        });
    }
    return {retry_at().has_value()};
}

ORIZURU_INLINE void BurstJob::cancel(std::string_view job_id, std::string_view reason) {
    BurstJob& now = current();
    now.JobTask::cancel(job_id, reason);
    if (&now != this && JobTask::job().id() == job_id) {
        settling().reports().tell(WorkerEventKind::cancelled_too_late, reason);
        m_queue.cancellations().end(job_id);
    }
}

ORIZURU_INLINE BurstJob* BurstJob::next_of(BurstJob& job) noexcept {
    if (!job.settling().succeeded()) {
        return nullptr;
    }
    BurstJob* next = nullptr;
    try {
        next = take_next(job);
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // A fault of the next one shows when that is the one that is out.
    }
    if (next == nullptr) {
        job.settling().try_again();
    }
    return next;
}

ORIZURU_INLINE BurstJob* BurstJob::take_next(BurstJob& job) {
    if (m_queue.stop_token().stop_requested() || !permitted() || (&job == this && !find_others())) {
        return nullptr;
    }
    if (m_jobs.size() == m_waiting.size()) {
        return nullptr;
    }
    const auto payload = std::string_view(m_waiting[m_jobs.size()]).substr(ticket_digits);
    if (std::cmp_greater(payload.size(), m_queue.options().max_payload) ||
        envelope_kind(payload, m_scratch.as<JobScratch>().zone) != job.JobTask::job().kind()) {
        return nullptr;
    }
    m_jobs.push_back(make(payload, m_scratch));
    auto& next = static_cast<BurstJob&>(*m_jobs.back());
    const std::string_view turn = next.settling().turn();
    if (turn.empty() || !m_waiting[m_jobs.size() - 1].starts_with(turn) ||
        next.JobTask::job().key() != JobTask::job().key()) {
        return nullptr; // somebody has changed the list
    }
    {
        const std::lock_guard lock(m_passing);
        if (m_ends || m_queue.stop_token().stop_requested() ||
            !job.settling().pass_on(next.settling(), payload)) {
            return nullptr;
        }
        m_current = &next;
    }
    job.settling().tell_passed_on();
    return &next;
}

ORIZURU_INLINE bool BurstJob::find_others() {
    if (!settling().may_lead()) {
        return false;
    }
    try {
        m_queue.shared().queries->in_turn(m_queue.keys(), lead_patience,
                                          [this](Connection& connection) { read(connection); });
    } catch (const Error& error) {
        m_queue.shared().events.tell_failed("beginning a burst", m_queue.queue(), error.what(),
                                            std::chrono::milliseconds(0));
    }
    if (!m_waiting.empty()) {
        settling().lead();
    }
    return !m_waiting.empty();
}

ORIZURU_INLINE void BurstJob::read(Connection& connection) {
    const std::string order = m_queue.keys().order(JobTask::job().key());
    Reply reply = run_script(connection, order, begin_burst_script, 2, order,
                             m_queue.keys().burst(JobTask::job().key()), settling().turn(),
                             m_queue.burst() - 1);
    if (!is_strings(reply)) {
        refuse(connection, "EVALSHA");
    }
    for (Reply& job : reply.elements) {
        m_waiting.push_back(std::move(job.text));
    }
}

} // namespace orizuru::detail
