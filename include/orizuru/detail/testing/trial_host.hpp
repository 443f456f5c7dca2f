// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The worker of a job on trial, which has no queue: it writes down what the job asks of it.

#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/jobs/progress_scripts.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/progress.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_done.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Thread-safe.
class TrialHost final : public JobHost {
  public:
    explicit TrialHost(std::string queue) : m_queue(std::move(queue)) {}

    [[nodiscard]] const std::string& queue() const noexcept override { return m_queue; }
    [[nodiscard]] std::stop_token stop_token() const noexcept override {
        return m_stop.get_token();
    }
    [[nodiscard]] JobTime now() const noexcept override { return job_time(); }
    [[nodiscard]] std::chrono::steady_clock::time_point take_time() noexcept override {
        return std::chrono::steady_clock::now();
    }
    bool progress(std::string_view job_id, double fraction, std::string_view note) override {
        check_id(job_id);
        check_progress(fraction, note);
        const std::lock_guard lock(m_mutex);
        m_progress.push_back({.fraction = fraction, .note = std::string(note), .when = job_time()});
        return true;
    }
    void progress(std::string_view job_id, double fraction, std::string_view note,
                  std::function<void(bool)> told) override {
        told(progress(job_id, fraction, note));
    }
    bool extend_unique(const JobHead& job, std::chrono::milliseconds) override {
        return !job.unique_id.empty();
    }

    void request_stop() { m_stop.request_stop(); }
    [[nodiscard]] std::vector<JobProgress> progress() const {
        const std::lock_guard lock(m_mutex);
        return m_progress;
    }

  private:
    const std::string m_queue;
    std::stop_source m_stop;
    mutable std::mutex m_mutex; ///< guards what follows
    std::vector<JobProgress> m_progress;
};

/// Opens runs and their ends to a trial.
class TrialAccess {
  public:
    /// Nobody but the trial settles it, so its lease is never lost.
    static void begin(JobRun& run, const std::string& payload) {
        DeliveryPtr message = DeliveryPtr::make();
        message->payload = payload;
        run.m_core->guard_settled(std::move(message));
        run.m_stage = JobRun::Stage::begun;
        run.m_settler = JobRun::SettledBy::worker;
    }
    [[nodiscard]] static JobDone done(std::shared_ptr<UnendedRun> run) noexcept {
        return JobDone(std::move(run));
    }
};

} // namespace orizuru::detail
