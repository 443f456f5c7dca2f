// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Checks a Worker's options, before it connects to anything.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/consumer/consumer_core.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/scheduler_options.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

namespace orizuru::detail {

inline void validate(const WorkerOptions& options) {
    using std::chrono::milliseconds;
    check_count("concurrency", options.concurrency, 10'000);
    check_time("stop_timeout", options.stop_timeout, milliseconds(0));
    check_time("recheck", options.recheck, milliseconds(10));
    validate(consumer_options(options, {}));
    if (options.scheduler) {
        validate(*options.scheduler);
    }
    if (options.collect_interval && *options.collect_interval < milliseconds(1)) {
        throw std::invalid_argument("collect_interval must be 1 ms or more");
    }
}

inline void validate(const RetryPolicy& policy) {
    if (policy.max_attempts < 1) {
        throw std::invalid_argument("max_attempts must be 1 or more");
    }
    if (!policy.backoff) {
        throw std::invalid_argument("a retry policy needs a backoff");
    }
    if (!policy.retry_queue.empty()) {
        static_cast<void>(Keys(policy.retry_queue));
    }
}

inline void check_limits(std::optional<std::chrono::milliseconds> time_limit,
                         std::optional<std::chrono::milliseconds> expires_after) {
    using std::chrono::milliseconds;
    check_time("time_limit", time_limit.value_or(milliseconds(1)), milliseconds(1));
    if (expires_after.value_or(milliseconds(1)) < milliseconds(1)) {
        throw std::invalid_argument("expires_after must be 1 ms or more");
    }
}

inline void validate(const KindOptions& options) {
    if (options.retry) {
        validate(*options.retry);
    }
    check_limits(options.time_limit, options.expires_after);
}

inline void validate(const QueueOptions& options) {
    validate(consumer_options({}, options));
    validate(options.retry);
    check_limits(options.time_limit, options.expires_after);
    check_count("concurrency", options.concurrency.value_or(1), 10'000);
    if (options.max_bytes_in_flight < 1) {
        throw std::invalid_argument("max_bytes_in_flight must be 1 byte or more");
    }
    validate(options.dead);
    check_count("weight", options.weight, 1'000'000);
    if (options.max_recoveries < 0) {
        throw std::invalid_argument("max_recoveries must not be negative");
    }
}

/// Does the same; the exception names the queue, or whatever they are of.
template <class Options>
void validate(const Options& options, const std::string& whose) {
    try {
        validate(options);
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(whose + ": " + error.what());
    }
}

} // namespace orizuru::detail
