// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a Worker has to tell: handed to WorkerOptions::on_event.

#include <orizuru/event.hpp>

#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru {

enum class WorkerEventKind {
    failed,     ///< a handler failed; the job is tried again after `retry_in`, or, when there is
                ///< none, not by the worker: the handler had settled it before
    died,       ///< a job is on the dead list; payload: its bytes; detail: why
    discarded,  ///< a job failed for the last time and is gone; detail: why
    expired,    ///< a job was taken too late for anybody; it is gone
    lost,       ///< the lease was lost while a job ran: another worker gets it, too
    given_back, ///< a job did not end within stop_timeout: it is back in the queue
    unsettled,  ///< what is to become of a job could not be written; it is tried again
    progress_failed, ///< how far a job has come could not be written; it goes on
    fetch_failed,    ///< a queue cannot be read; it is tried again
    upkeep_failed,   ///< the scheduler, the collector or what watches the queues; tried again
    report,          ///< SIGTTIN; detail: a line for each thread
    consumer         ///< what the queue's consumer or collector has told: `event`
};

/// One thing that happened. The views are valid during the call of `on_event` only.
///
/// `on_event` is called on any thread, with no lock held; what it throws is swallowed.
struct WorkerEvent {
    WorkerEventKind kind;
    std::string_view queue = {};
    std::string_view job_id = {};
    std::string_view detail = {};
    std::string_view payload = {};
    std::optional<std::chrono::milliseconds> retry_in = {};
    const Event* event = nullptr;
};

/// The enumerator's name, for log lines.
[[nodiscard]] constexpr std::string_view to_string(WorkerEventKind kind) noexcept {
    switch (kind) {
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
    case WorkerEventKind::given_back:
        return "given_back";
    case WorkerEventKind::unsettled:
        return "unsettled";
    case WorkerEventKind::progress_failed:
        return "progress_failed";
    case WorkerEventKind::fetch_failed:
        return "fetch_failed";
    case WorkerEventKind::upkeep_failed:
        return "upkeep_failed";
    case WorkerEventKind::report:
        return "report";
    case WorkerEventKind::consumer:
        return "consumer";
    }
    return "unknown";
}

/// A line on stderr, which is what a Worker does with its events unless told otherwise.
inline void write_to_stderr(const WorkerEvent& event) {
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
    std::cerr << line + '\n';
}

} // namespace orizuru
