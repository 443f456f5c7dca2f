// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of metrics.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/metric_lines.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace orizuru {

namespace detail {

/// The time from `since` to Redis' now in seconds, not negative; nothing when one is not known.
[[nodiscard]] inline std::optional<std::string> seconds_since(std::optional<JobTime> since,
                                                              const QueueState& queue) {
    if (!since || !queue.now) {
        return std::nullopt;
    }
    return seconds_between(*since, *queue.now);
}

} // namespace detail

ORIZURU_INLINE std::string prometheus(std::span<const QueueState> queues) {
    std::string out;
    detail::MetricLines messages(out, "orizuru_queue_messages", "gauge",
                                 "How many messages are where.");
    for (const QueueState& queue : queues) {
        const auto place = [&](std::string_view state, std::uint64_t count) {
            messages.line(queue.queue, detail::joined({",state=\"", state, "\""}),
                          detail::Digits(count));
        };
        place("waiting", queue.waiting);
        place("held", queue.held);
        place("scheduled", queue.scheduled);
        place("rejected", queue.rejected);
        place("dead", queue.dead);
    }
    detail::MetricLines oldest(out, "orizuru_queue_oldest_seconds", "gauge",
                               "How long the job that is served next has waited.");
    for (const QueueState& queue : queues) {
        const auto since = queue.waiting == 0 ? queue.now : queue.oldest;
        if (const auto age = detail::seconds_since(since, queue)) {
            oldest.line(queue.queue, "", *age);
        }
    }
    detail::MetricLines overdue(out, "orizuru_queue_overdue_seconds", "gauge",
                                "How long the first scheduled message is past its time.");
    for (const QueueState& queue : queues) {
        const auto since = queue.scheduled == 0 ? queue.now : queue.next_due;
        if (const auto age = detail::seconds_since(since, queue)) {
            overdue.line(queue.queue, "", *age);
        }
    }
    detail::MetricLines consumers(out, "orizuru_queue_consumers", "gauge",
                                  "How many consumers are registered.");
    for (const QueueState& queue : queues) {
        consumers.line(queue.queue, "", detail::Digits(queue.consumers));
    }
    detail::MetricLines paused(out, "orizuru_queue_paused", "gauge",
                               "Whether workers must not take from it.");
    for (const QueueState& queue : queues) {
        paused.line(queue.queue, "", queue.paused ? "1" : "0");
    }
    return out;
}

} // namespace orizuru
