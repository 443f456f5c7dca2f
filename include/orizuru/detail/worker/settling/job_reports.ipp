// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of job_reports.hpp.

#include <string>

namespace orizuru::detail {

ORIZURU_INLINE void
JobReports::tell(WorkerEventKind kind, std::string_view detail,
                 std::optional<std::chrono::milliseconds> retry_in) const noexcept {
    m_queue.tell(WorkerEvent{.kind = kind,
                             .job_id = m_run.run().id(),
                             .detail = detail,
                             .payload = {},
                             .retry_in = retry_in});
}

ORIZURU_INLINE void JobReports::succeeded() const noexcept {
    m_queue.counts().add(Outcome::succeeded);
    tell(WorkerEventKind::succeeded);
}

ORIZURU_INLINE void JobReports::expired() const noexcept {
    m_queue.counts().add(Outcome::expired);
    tell(WorkerEventKind::expired);
}

ORIZURU_INLINE void JobReports::requeued() const noexcept {
    m_queue.counts().add(Outcome::requeued);
    tell(WorkerEventKind::requeued);
}

ORIZURU_INLINE void JobReports::discarded(std::string_view reason) const {
    const std::string_view bytes = payload();
    m_queue.counts().add(Outcome::discarded);
    m_queue.tell(WorkerEvent{.kind = WorkerEventKind::discarded,
                             .job_id = m_run.run().id(),
                             .detail = reason,
                             .payload = bytes});
}

ORIZURU_INLINE void JobReports::died(std::string_view reason) const {
    m_queue.tell_died(m_run.run().id(), reason, payload());
}

ORIZURU_INLINE void JobReports::buried() const {
    std::string reason;
    {
        const auto guard = m_run.guard();
        if (guard->buried() == nullptr) {
            return;
        }
        reason = *guard->buried();
    }
    died(reason);
}

ORIZURU_INLINE void JobReports::lost() const {
    int before = 0;
    {
        const auto guard = m_run.guard();
        before = guard->moved_from() || guard->burst() == nullptr ? 0 : guard->burst()->done;
    }
    tell(WorkerEventKind::lost,
         before > 0 ? "and those of its burst before it: " + std::to_string(before) : "");
}

ORIZURU_INLINE void JobReports::cancelled_too_late() const {
    tell(WorkerEventKind::cancelled_too_late, m_run.run().cancelled().value_or(""));
    m_queue.cancellations().end(m_run.run().id());
}

/// Empty if the handler has moved the guard away.
ORIZURU_INLINE std::string_view JobReports::payload() const {
    const auto guard = m_run.guard();
    return guard->moved_from() ? std::string_view() : guard->payload();
}

} // namespace orizuru::detail
