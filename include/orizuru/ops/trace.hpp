// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Carries a trace from the push of a job to its handler, as W3C Trace Context has it
// (https://www.w3.org/TR/trace-context/): in two attributes of the job, by a middleware where it is
// pushed and a middleware or an observer where it is handled. Spans are your tracer's.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_observer.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

/// A W3C trace context.
struct TraceContext {
    /// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01; empty: there is no trace.
    std::string traceparent = {};
    std::string tracestate = {}; ///< empty: none; without a traceparent it has no effect
};

/// True if it is a traceparent of version 00: the ids of trace and span are lower-case hexadecimal
/// digits, and neither has only zeros.
[[nodiscard]] bool is_traceparent(std::string_view text) noexcept;
/// True if it can be a tracestate: at most 512 printable ASCII characters.
[[nodiscard]] bool is_tracestate(std::string_view text) noexcept;

/// Gives each job the trace that `current` returns, as its attributes `traceparent` and
/// `tracestate`. For JobProducerOptions::middleware.
///
/// The push throws std::invalid_argument when that is no trace context, and what `current` throws:
/// nothing was sent then.
template <class T>
[[nodiscard]] PushMiddleware<T> push_trace(std::function<TraceContext()> current);

/// Calls `around` for each run of a job with the trace that the job has, for a span that begins
/// there; it must call `next`. For WorkerOptions::handle_middleware.
///
/// Anyone who can push chooses attributes: without a valid traceparent the context is empty, and
/// without a valid tracestate its tracestate is. A retry has the trace of the first push.
[[nodiscard]] HandleMiddleware handle_trace(
    std::function<void(JobRun& job, const TraceContext& trace, const std::function<void()>& next)>
        around);
/// Calls `begin` with the same as each run begins, and what it returns when the run has ended: for
/// a span that no stack frame holds, so that it also serves jobs in flight (JobDone). For
/// WorkerOptions::observers.
[[nodiscard]] JobObserver observe_trace(
    std::function<std::function<void(const JobEnd&)>(JobRun& job, const TraceContext& trace)>
        begin);

namespace detail {

[[noreturn]] void refuse_empty_trace_function();
/// Throws std::invalid_argument when it cannot be.
void set_trace(JobAttributes& attributes, TraceContext trace);

} // namespace detail

template <class T>
PushMiddleware<T> push_trace(std::function<TraceContext()> current) {
    if (!current) {
        detail::refuse_empty_trace_function();
    }
    return [current = std::move(current)](Job<T>& job, const std::function<void()>& push) {
        detail::set_trace(job.attributes, current());
        push();
    };
}

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/trace.ipp>
#endif
