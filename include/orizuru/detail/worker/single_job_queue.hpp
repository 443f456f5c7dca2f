// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A worker's queue whose jobs are handled one by one, each by the handler of its kind.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/detail/worker/async/in_flight.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/job_task.hpp>
#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/unhandled_jobs.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class SingleJobQueue final : public FetchingQueue {
  public:
    struct Kind {
        JobTaskMaker make;
        KindHandler handler;
    };

    [[gnu::cold]] SingleJobQueue(std::shared_ptr<WorkerShared> shared, Keys keys)
        : FetchingQueue(std::move(shared), std::move(keys), {}) {}

    // Before open().

    /// Once; returns whether this was the first time.
    [[gnu::cold]] bool choose(QueueOptions options) {
        if (std::exchange(m_chosen, true)) {
            return false;
        }
        if (options.guarantee == Guarantee::at_most_once) {
            options.ack = AckMode::immediate; // the ack is in Redis before the handler runs
        }
        set_options(std::move(options));
        return true;
    }
    /// An empty name: for the jobs without a kind. Returns whether there was none of this name.
    [[gnu::cold]] bool add(std::string name, JobHandling handling, KindOptions options) {
        using End = JobHandling::End;
        if (handling.end != End::by_return && in_flight() == nullptr) {
            set_in_flight(std::make_shared<InFlight>(*this));
        }
        m_blocks = m_blocks || handling.end == End::by_return;
        m_needs_threads = m_needs_threads || handling.end != End::later_by_a_loop;
        if (handling.loop_delay) {
            m_loop_delays.push_back(std::move(handling.loop_delay));
        }
        Kind kind{handling.make, {std::move(handling.call), std::move(options)}};
        return m_kinds.try_emplace(std::move(name), std::move(kind)).second;
    }
    /// Its jobs must have keys.
    void keep_order(int burst) noexcept { set_keyed(burst); }
    [[nodiscard]] bool has_handler() const noexcept { return !m_kinds.empty(); }
    void add_retry_queues(std::set<std::string>& queues) const override {
        FetchingQueue::add_retry_queues(queues);
        for (const auto& [name, kind] : m_kinds) {
            if (const auto& retry = kind.handler.options.retry) {
                queues.insert(retry->retry_queue);
            }
        }
    }
    [[nodiscard]] const KindOptions& options_of(std::string_view kind) const noexcept override {
        const auto found = m_kinds.find(kind);
        return found == m_kinds.end() ? FetchingQueue::options_of(kind)
                                      : found->second.handler.options;
    }
    [[nodiscard]] bool has_time_limit() const noexcept override {
        return FetchingQueue::has_time_limit() ||
               std::ranges::any_of(m_kinds, [](const auto& kind) {
                   return kind.second.handler.options.time_limit.has_value();
               });
    }

    [[nodiscard]] bool needs_threads() const noexcept override { return m_needs_threads; }
    [[nodiscard]] bool has_loops() const noexcept override { return !m_loop_delays.empty(); }
    [[nodiscard]] Clock::duration loop_delay() override {
        Clock::duration longest{};
        for (const auto& delay : m_loop_delays) {
            longest = std::max(longest, delay());
        }
        return longest;
    }

    std::shared_ptr<Task> take(const std::stop_token& token, Awaited* awaited) override {
        std::shared_ptr<Task> task;
        if (full()) {
            return task;
        }
        next(token, awaited, task, [&](const std::string& payload) -> GuardCore& {
            auto& memory = scratch().as<JobScratch>();
            memory.decoding = JobScratch::Part::envelope; // a shortage counts against the message
            const std::string_view name = envelope_kind(payload, memory.zone);
            memory.decoding = JobScratch::Part::nothing;
            const auto kind = m_kinds.find(name);
            if (kind == m_kinds.end()) {
                return make_unhandled<UndecodedJob>(task, payload, scratch(), why_unknown(name));
            }
            auto job = kind->second.make(*this, payload, scratch(), kind->second.handler);
            job->weigh(payload.size());
            GuardCore& guard = guard_of(job->job());
            task = std::move(job);
            return guard;
        });
        return task;
    }

  private:
    /// A job that ends later needs a thread only for its begin.
    [[nodiscard]] std::int64_t jobs_for(int threads) const noexcept override {
        return m_blocks ? FetchingQueue::jobs_for(threads) : places();
    }
    [[gnu::cold]] [[nodiscard]] std::string why_unknown(std::string_view name) const {
        std::string why = name.empty() ? "no handler of jobs without a kind"
                                       : joined({"no handler of the kind '", name, "'"});
        why += "; handled here:";
        for (const auto& [known, kind] : m_kinds) {
            why += known.empty() ? " jobs without a kind," : joined({" '", known, "',"});
        }
        why.pop_back();
        return why;
    }

    bool m_chosen = false;
    bool m_blocks = false;        ///< one of the handlers does not end its jobs later
    bool m_needs_threads = false; ///< one of the handlers does more than to post
    std::vector<std::function<Clock::duration()>> m_loop_delays; ///< the posting handlers'
    std::map<std::string, Kind, std::less<>> m_kinds;            // which tasks refer to
};

} // namespace orizuru::detail
