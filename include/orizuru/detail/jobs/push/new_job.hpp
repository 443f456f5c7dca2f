// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Makes the jobs of JobProducer, KeyedJobProducer and JobGroup.

#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/detail/redis/server_clock.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

/// Returns the options of a producer. Throws std::invalid_argument for a kind that cannot be.
template <class Options>
[[nodiscard]] Options with_checked_kind(Options options) {
    check_kind(options.kind);
    return options;
}

[[nodiscard]] inline JobTime job_time_by(const ServerClock& clock) {
    return std::chrono::floor<std::chrono::milliseconds>(clock.now());
}

/// Returns a job in its first try, as the options of one job say; it is due at `due`, or now.
template <class T, class Options>
[[nodiscard]] Job<T> new_job(T payload, const std::string& kind, const Options& options,
                             JobTime now, std::optional<JobTime> due = {}) {
    Job<T> job = make_job(std::move(payload));
    job.kind = kind;
    job.attributes = options.attributes;
    job.max_attempts = options.max_attempts;
    job.first_enqueued_at = now;
    job.enqueued_at = due.value_or(now);
    if (options.expires_after) {
        job.expires_at = later(job.enqueued_at, *options.expires_after);
    }
    return job;
}

} // namespace orizuru::detail
