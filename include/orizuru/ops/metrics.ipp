// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of metrics.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/metric_lines.hpp>
#include <orizuru/detail/ops/place_name.hpp>

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
        for (const Place place : detail::every_place) {
            if (place == Place::dead || !detail::is_at_rest(queue)) {
                messages.line(queue.queue,
                              detail::joined({",state=\"", detail::place_name(place), "\""}),
                              detail::Digits(detail::count_in(queue, place)));
            }
        }
        if (queue.keys + queue.behind > 0) {
            messages.line(queue.queue, ",state=\"behind\"", detail::Digits(queue.behind));
        }
    }
    const auto gauge = [&](std::string_view name, std::string_view help, const auto& value_of) {
        detail::MetricLines lines(out, name, "gauge", help);
        for (const QueueState& queue : queues) {
            if (const std::optional<std::string> value = value_of(queue);
                value && !detail::is_at_rest(queue)) {
                lines.line(queue.queue, "", *value);
            }
        }
    };
    const auto number = [](std::uint64_t value) {
        return std::optional<std::string>(std::to_string(value));
    };
    gauge("orizuru_queue_oldest_seconds", "How long the job that is served next has waited.",
          [](const QueueState& queue) {
              return detail::seconds_since(queue.waiting == 0 ? queue.now : queue.oldest, queue);
          });
    gauge("orizuru_queue_overdue_seconds", "How long the first scheduled message is past its time.",
          [](const QueueState& queue) {
              return detail::seconds_since(queue.scheduled == 0 ? queue.now : queue.next_due,
                                           queue);
          });
    gauge("orizuru_queue_consumers", "How many consumers are registered.",
          [&](const QueueState& queue) { return number(queue.consumers); });
    gauge("orizuru_queue_consumers_unheard", "How many of these are unheard for their lease.",
          [&](const QueueState& queue) { return number(queue.unheard); });
    gauge("orizuru_queue_paused", "Whether workers must not take from it.",
          [&](const QueueState& queue) { return number(queue.paused ? 1 : 0); });
    const auto if_any = [&](std::uint64_t any, std::uint64_t value) {
        return any > 0 ? number(value) : std::nullopt;
    };
    gauge("orizuru_queue_keys", "How many keys have jobs.",
          [&](const QueueState& queue) { return if_any(queue.keys, queue.keys); });
    gauge("orizuru_queue_slots", "How many of its handlers run within its limit.",
          [&](const QueueState& queue) { return if_any(queue.slots_taken, queue.slots_taken); });
    gauge("orizuru_queue_groups", "How many groups of jobs have not ended.",
          [&](const QueueState& queue) { return if_any(queue.groups, queue.groups); });
    gauge("orizuru_queue_group_members", "How many members of these have not ended.",
          [&](const QueueState& queue) {
              return queue.members ? if_any(queue.groups, *queue.members) : std::nullopt;
          });
    return out;
}

} // namespace orizuru
