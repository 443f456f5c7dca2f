// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of metrics.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace orizuru {

namespace detail {

/// Anyone who can push chooses names of queues.
[[nodiscard]] inline std::string label_value(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\n') {
            out += "\\n";
        } else {
            out += c == '"' || c == '\\' ? "\\" : "";
            out += c;
        }
    }
    return out;
}

/// One gauge, with the lines of all queues.
class Gauge {
  public:
    Gauge(std::string& out, std::string_view name, std::string_view help)
        : m_out(out), m_name(name) {
        out += joined({"# HELP ", name, " ", help, "\n# TYPE ", name, " gauge\n"});
    }
    void line(const std::string& queue, std::string_view more, std::string_view value) {
        m_out += joined({m_name, "{queue=\"", label_value(queue), "\"", more, "} ", value, "\n"});
    }

  private:
    std::string& m_out;
    std::string_view m_name;
};

/// The time from `since` to Redis' now in seconds, not negative; nothing when one is not known.
[[nodiscard]] inline std::optional<std::string> seconds_since(std::optional<JobTime> since,
                                                              const QueueState& queue) {
    if (!since || !queue.now) {
        return std::nullopt;
    }
    const std::int64_t ms = *since < *queue.now ? (*queue.now - *since).count() : 0;
    const std::string_view zeros = ms % 1000 < 10 ? "00" : ms % 1000 < 100 ? "0" : "";
    return joined({Digits(ms / 1000), ".", zeros, Digits(ms % 1000)});
}

} // namespace detail

ORIZURU_INLINE std::string prometheus(std::span<const QueueState> queues) {
    std::string out;
    detail::Gauge messages(out, "orizuru_queue_messages", "How many messages are where.");
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
    detail::Gauge oldest(out, "orizuru_queue_oldest_seconds",
                         "How long the job that is served next has waited.");
    for (const QueueState& queue : queues) {
        const auto since = queue.waiting == 0 ? queue.now : queue.oldest;
        if (const auto age = detail::seconds_since(since, queue)) {
            oldest.line(queue.queue, "", *age);
        }
    }
    detail::Gauge overdue(out, "orizuru_queue_overdue_seconds",
                          "How long the first scheduled message is past its time.");
    for (const QueueState& queue : queues) {
        const auto since = queue.scheduled == 0 ? queue.now : queue.next_due;
        if (const auto age = detail::seconds_since(since, queue)) {
            overdue.line(queue.queue, "", *age);
        }
    }
    detail::Gauge consumers(out, "orizuru_queue_consumers", "How many consumers are registered.");
    for (const QueueState& queue : queues) {
        consumers.line(queue.queue, "", detail::Digits(queue.consumers));
    }
    detail::Gauge paused(out, "orizuru_queue_paused", "Whether workers must not take from it.");
    for (const QueueState& queue : queues) {
        paused.line(queue.queue, "", queue.paused ? "1" : "0");
    }
    return out;
}

} // namespace orizuru
