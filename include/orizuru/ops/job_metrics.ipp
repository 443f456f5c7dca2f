// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of job_metrics.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/metric_lines.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orizuru {

namespace detail {

/// 0.001024 for 1024 us.
[[nodiscard]] inline std::string seconds_text(std::chrono::microseconds time) {
    constexpr std::int64_t second = 1'000'000;
    const std::string part = std::to_string(second + time.count() % second).substr(1);
    return joined({Digits(time.count() / second), ".", part});
}

/// The buckets are cumulative: each has those of all before it.
inline void add_histogram(MetricLines& lines, std::string_view queue, const Durations& durations) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < Durations::buckets; ++i) {
        count += durations.counts[i];
        const std::string bound =
            i + 1 < Durations::buckets ? seconds_text(Durations::bound(i)) : "+Inf";
        lines.line(queue, joined({",le=\"", bound, "\""}), Digits(count), "_bucket");
    }
    lines.line(queue, "", seconds_text(durations.sum), "_sum");
    lines.line(queue, "", Digits(count), "_count");
}

} // namespace detail

ORIZURU_INLINE std::string prometheus(std::span<const QueueStatistics> queues) {
    std::string out;
    detail::MetricLines jobs(out, "orizuru_jobs_total", "counter", "How jobs have ended.");
    for (const QueueStatistics& queue : queues) {
        const auto ended = [&](std::string_view outcome, std::uint64_t count) {
            jobs.line(queue.queue, detail::joined({",outcome=\"", outcome, "\""}),
                      detail::Digits(count));
        };
        ended("succeeded", queue.outcomes.succeeded);
        ended("failed", queue.outcomes.failed);
        ended("died", queue.outcomes.died);
        ended("expired", queue.outcomes.expired);
        ended("settled", queue.outcomes.settled);
        ended("requeued", queue.outcomes.requeued);
        ended("discarded", queue.outcomes.discarded);
    }
    detail::MetricLines runs(out, "orizuru_job_duration_seconds", "histogram",
                             "How long handlers ran.");
    for (const QueueStatistics& queue : queues) {
        detail::add_histogram(runs, queue.queue, queue.runs);
    }
    detail::MetricLines waits(out, "orizuru_job_wait_seconds", "histogram",
                              "How long jobs had been due when their handlers began.");
    for (const QueueStatistics& queue : queues) {
        detail::add_histogram(waits, queue.queue, queue.waits);
    }
    return out;
}

} // namespace orizuru
