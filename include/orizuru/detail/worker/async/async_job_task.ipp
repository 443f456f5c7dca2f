// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of async_job_task.hpp.

#include <orizuru/detail/base/forked_child.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/worker/async/in_flight.hpp>
#include <orizuru/detail/worker/handling.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <span>
#include <string_view>

namespace orizuru::detail {

ORIZURU_INLINE Task::Ran AsyncJobTask::run(TimePoint ended) noexcept {
    try {
        if (m_begun) {
            settle_alone();
        } else if (begin(ended)) {
            m_begun = true;
            if (begin_run()) {
                return {}; // from now on it is for the thread that settles it
            }
        }
    } catch (...) {
        tell_thrown([this](std::string_view what) {
            settling().reports().tell(WorkerEventKind::unsettled, what);
        });
    }
    return {retry_at().has_value()};
}

ORIZURU_INLINE void AsyncJobTask::try_again() noexcept { settle_alone(); }

/// Where there was no memory for EndedJobs. An ack goes with the next ones then.
ORIZURU_INLINE void AsyncJobTask::settle_alone() noexcept {
    begin_settling();
    finish_settling();
    if (m_pace == Pace::by_redis && !retry_at()) {
        make_way();
    }
}

ORIZURU_INLINE void AsyncJobTask::begin_settling() noexcept {
    if (retry_at()) {
        settling().try_again();
    } else {
        settle();
    }
}

/// Returns false when the worker shuts down, and the job was requeued instead.
ORIZURU_INLINE bool AsyncJobTask::begin_run() {
    WorkerShared& shared = m_queue->shared();
    const std::shared_ptr<AsyncJobTask> self = shared_from_this(); // JobDone may let go of it
    JobDone done(self);
    begin_handling();
    m_observed.emplace(shared, std::span(&m_run, 1));
    if (!m_queue->in_flight()->add(*this, self)) {
        Handling undone;
        undone.interrupted = true;
        m_observed->end(undone);
        end_handling();
        settling().end(undone);
        return false;
    }
    try {
        m_call.emplace(shared, std::span(&m_run, 1), m_queue->time_limit(m_handler.options));
        const EndOfForks end(shared.process);
        m_handler.call(*m_run, std::move(done));
    } catch (...) {
        m_thrown.error = std::current_exception();
        note_time(m_thrown);
        m_open_parts = 0; // JobDone has no effect
        end_run(m_thrown);
        return true;
    }
    part_ends();
    return true;
}

ORIZURU_INLINE void AsyncJobTask::end(std::exception_ptr error) noexcept {
    end_part({std::move(error)});
}

ORIZURU_INLINE void AsyncJobTask::leave_undone() noexcept { end_part({{}, true}); }

ORIZURU_INLINE void AsyncJobTask::end_part(End end) noexcept {
    m_done = std::move(end);
    note_time(m_done);
    part_ends();
}

/// Ends the run when both the handler has returned and JobDone was called.
ORIZURU_INLINE void AsyncJobTask::part_ends() noexcept {
    if (m_open_parts.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        end_run(m_done);
    }
}

ORIZURU_INLINE void AsyncJobTask::end_run(const End& end) noexcept {
    end_handling();
    m_failed = end.error || job().failure() || exceeded(end);
    m_pace =
        !m_failed && !end.undone && settling().succeeds_at_once() ? Pace::at_once : Pace::by_redis;
    if (!m_queue->in_flight()->end(*this, m_pace)) {
        // A stop requeues the job, or has done so. Only now does nobody use its context any more.
        Handling undone;
        undone.interrupted = true;
        m_observed->end(undone);
    }
}

ORIZURU_INLINE void AsyncJobTask::settle() {
    const End& end = m_thrown.error ? m_thrown : m_done;
    const bool undone = end.undone && !exceeded(end);
    if (m_call) {
        m_call->end(end.at);
    }
    Handling handling = end.error ? HandlerCall::failed(*m_run, end.error) : Handling();
    handling.interrupted = (handling.interrupted && end.in_a_stop) || undone;
    if (undone) {
        handling.thrown = "left undone"; // for a job that was acked before
    }
    handling.ended = end.at;
    m_observed->end(handling);
    settling().end(handling);
}

} // namespace orizuru::detail
