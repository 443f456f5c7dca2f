// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A run's worker, as the run sees it, and what the worker keeps of the run's job.

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace orizuru::detail {

struct JobHead;

/// The questions and requests of a job to its worker.
class JobHost {
  public:
    JobHost() = default;
    JobHost(const JobHost&) = delete;
    JobHost& operator=(const JobHost&) = delete;
    virtual ~JobHost() = default;

    [[nodiscard]] virtual const std::string& queue() const noexcept = 0;
    [[nodiscard]] virtual std::stop_token stop_token() const noexcept = 0;
    /// By Redis' clock, as far as it is known.
    [[nodiscard]] virtual JobTime now() const noexcept = 0;
    /// Returns when the job that is made now was taken: later than the one before it.
    [[nodiscard]] virtual std::chrono::steady_clock::time_point take_time() noexcept = 0;
    /// False when more of the queue's handlers may run elsewhere than its limit allows, besides one
    /// whose job was taken then.
    [[nodiscard]] virtual bool
    holds_limit(std::chrono::steady_clock::time_point /*taken_at*/) const noexcept {
        return true;
    }
    virtual bool progress(std::string_view job_id, double fraction, std::string_view note) = 0;
    /// Does the same without a wait: `told` hears the result, on a thread of the worker.
    virtual void progress(std::string_view job_id, double fraction, std::string_view note,
                          std::function<void(bool)> told) = 0;
    virtual bool extend_unique(const JobHead& job, std::chrono::milliseconds ttl) = 0;
};

/// Fields of a job that a worker keeps whatever happens to its guard: a handler may move that away,
/// and the job with it.
struct JobHead {
    std::string id;
    int attempt = 0;
    JobTime enqueued_at;
    std::optional<JobTime> expires_at;
    std::string unique_id;
    std::string unique_queue;
    JobTime first_enqueued_at;
    std::string kind;
    JobAttributes attributes;
    std::string key;
    std::string ticket;
    std::string group;
};

template <class T>
[[nodiscard]] JobHead head_of(const Job<T>& job) {
    return {job.id,
            job.attempt,
            job.enqueued_at,
            job.expires_at,
            job.unique_id,
            job.unique_queue,
            job.first_enqueued_at,
            job.kind,
            job.attributes,
            job.key,
            job.ticket,
            job.group};
}

} // namespace orizuru::detail
