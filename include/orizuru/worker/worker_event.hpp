// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The events that a Worker passes to WorkerOptions::on_event.

#include <orizuru/detail/base/line_writer.hpp>
#include <orizuru/event.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru {

/// Kinds of events of a Worker.
enum class WorkerEventKind {
    started,   ///< all queues are open, and jobs run
    quieted,   ///< it fetches nothing more; jobs that run go on
    stopping,  ///< `run` ends: it fetches nothing more, and handlers are told to end
    succeeded, ///< a job was handled and acked; the ack may still be on its way if it is deferred,
               ///< or one of a batch or of jobs in flight (JobDone). It comes for each job, on the
               ///< thread that handled it, or one that settles what was in flight
    failed,    ///< a handler failed; the job is retried after `retry_in`. Without `retry_in`, the
               ///< handler had settled the job, and the worker does not retry it
    died,      ///< a job is on the dead list; payload: its bytes; detail: the reason
    discarded, ///< a job failed for the last time and is gone; payload: its bytes, unless its
               ///< handler has moved its guard away; detail: the reason
    expired,   ///< a job had expired when it was taken; it is gone
    lost,      ///< the lease was lost while a job ran: another worker gets the job, too
    cancelled_too_late, ///< a job that was to be cancelled has ended by itself, as other events
                        ///< tell; or it is one of a batch, which goes on. detail: the reason
    requeued,  ///< a job is back in the queue: it did not end within stop_timeout, or its handler
               ///< threw while the worker shut down, or JobDone::requeue was called
    unsettled, ///< a settlement failed; it is repeated
    progress_failed, ///< the progress of a job could not be written; the job goes on
    fetch_failed,    ///< a queue cannot be read; the worker tries again
    upkeep_failed,   ///< a scheduler, a collector or a check of the queues failed; it is repeated
    loop_blocked,   ///< an executor has run nothing for a second that was posted to it: a coroutine
                    ///< blocks it, or no thread runs it. Its jobs wait, and cost no lease
    loop_unblocked, ///< it runs again
    report,  ///< the answer to SIGTTIN; detail: a line for each busy thread and job in flight
    consumer ///< an event of the queue's consumer or collector: `event`
};

/// An event. Its views are valid only during the call of `on_event`.
///
/// `on_event` is called on any thread, with no lock held; its exceptions are swallowed. While it
/// runs on the thread that looks after the queues, no scheduled job moves and no pause is seen. It
/// may block, and what it blocks is jobs and the end of `run`: give a log without room to another
/// thread, or drop its lines, as write_to_stderr does.
struct WorkerEvent {
    WorkerEventKind kind;          ///< says which of the following are set
    std::string_view queue = {};   ///< its name; empty if it is about the whole worker
    std::string_view job_id = {};  ///< empty if it is about no single job that could be decoded
    std::string_view detail = {};  ///< text for people; empty if there is no more to say
    std::string_view payload = {}; ///< bytes of the message, for `died` and `discarded` alone
    /// Time until the job is retried or the failed step is repeated; empty if no such time is set.
    std::optional<std::chrono::milliseconds> retry_in = {};
    const Event* event = nullptr; ///< for `consumer` alone; valid as the views are
};

/// The enumerator's name, for log lines.
[[nodiscard]] constexpr std::string_view to_string(WorkerEventKind kind) noexcept {
    switch (kind) {
    case WorkerEventKind::started:
        return "started";
    case WorkerEventKind::quieted:
        return "quieted";
    case WorkerEventKind::stopping:
        return "stopping";
    case WorkerEventKind::succeeded:
        return "succeeded";
    case WorkerEventKind::failed:
        return "failed";
    case WorkerEventKind::died:
        return "died";
    case WorkerEventKind::discarded:
        return "discarded";
    case WorkerEventKind::expired:
        return "expired";
    case WorkerEventKind::lost:
        return "lost";
    case WorkerEventKind::cancelled_too_late:
        return "cancelled_too_late";
    case WorkerEventKind::requeued:
        return "requeued";
    case WorkerEventKind::unsettled:
        return "unsettled";
    case WorkerEventKind::progress_failed:
        return "progress_failed";
    case WorkerEventKind::fetch_failed:
        return "fetch_failed";
    case WorkerEventKind::upkeep_failed:
        return "upkeep_failed";
    case WorkerEventKind::loop_blocked:
        return "loop_blocked";
    case WorkerEventKind::loop_unblocked:
        return "loop_unblocked";
    case WorkerEventKind::report:
        return "report";
    case WorkerEventKind::consumer:
        return "consumer";
    }
    return "unknown";
}

/// Writes the time (UTC) and a line to stderr (descriptor 2), but none for a success. The default
/// of WorkerOptions::on_event. When stderr has no room at once, because nobody reads the pipe
/// behind it, the line is dropped; the next line that has room comes after one that says how many
/// were.
inline void write_to_stderr(const WorkerEvent& event) {
    if (event.kind == WorkerEventKind::succeeded) {
        return;
    }
    std::string line = "orizuru: " + std::string(to_string(event.kind));
    const auto add = [&line](std::string_view name, std::string_view value) {
        if (!value.empty()) {
            line.append(" ").append(name).append(value);
        }
    };
    if (event.event != nullptr) {
        add("", to_string(event.event->kind));
        add("", event.event->detail);
    }
    add("queue=", event.queue);
    add("job=", event.job_id);
    if (event.retry_in) {
        line += " retry_in=" + std::to_string(event.retry_in->count()) + "ms";
    }
    add("", event.detail);
    detail::write_stderr_line(line);
}

} // namespace orizuru
