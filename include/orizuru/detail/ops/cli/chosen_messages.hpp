// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The messages of a place that --reason and --older choose.

#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/places.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace orizuru::detail::cli {

/// Returns when a message died, else when its job was enqueued first; nothing when that is unknown.
[[nodiscard]] inline std::optional<JobTime> begin_of(const PlacedMessage& message,
                                                     const std::optional<Job<Raw>>& job) {
    if (message.place == Place::dead) {
        return message.time;
    }
    return job ? std::optional(job->first_enqueued_at) : std::nullopt;
}

/// Returns a predicate: do the arguments choose this message?
[[nodiscard]] inline std::function<bool(const PlacedMessage&)> choice(CliCall& call) {
    const CliOptions& options = call.options();
    std::optional<JobTime> latest;
    if (options.older) {
        const std::optional<JobTime> now = call.inspector().state(options.queue).now;
        latest = now.value_or(job_time()) - *options.older;
    }
    return [&options, latest](const PlacedMessage& message) {
        const std::optional<Job<Raw>> job = message.job();
        const std::string& reason =
            message.place == Place::dead || !job ? message.reason : job->last_error;
        if (options.reason && reason.find(*options.reason) == std::string::npos) {
            return false;
        }
        const std::optional<JobTime> begin = begin_of(message, job);
        return !latest || (begin && *begin <= *latest);
    };
}

/// Calls `look` with the messages that the arguments choose, in peek's order, until it returns
/// false. Reads about a mebibyte at a time. While others change the place it may miss a message, or
/// come upon one twice.
inline void each_chosen(CliCall& call, const std::function<bool(PlacedMessage&)>& look) {
    const CliOptions& options = call.options();
    const auto chosen = choice(call);
    ChunkSize chunk(1000);
    std::vector<PlacedMessage> some;
    std::int64_t first = 0;
    std::uint64_t wanted = 0;
    do {
        wanted = chunk.next();
        some = call.inspector().peek(options.queue, options.where.value(), first,
                                     static_cast<std::int64_t>(wanted));
        std::uint64_t bytes = 0;
        for (PlacedMessage& message : some) {
            bytes += message.bytes.size();
            if (chosen(message) && !look(message)) {
                return;
            }
        }
        first += static_cast<std::int64_t>(some.size());
        chunk.learn(some.size(), bytes);
    } while (some.size() == wanted);
}

} // namespace orizuru::detail::cli
