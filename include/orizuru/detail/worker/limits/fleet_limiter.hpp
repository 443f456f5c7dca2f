// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps the handlers of a queue to a limit of all processes: a thread asks Redis for permits, so
// that the one which polls the queues waits for none, says when handlers have ended, and renews the
// slots. Without a free slot it waits until Redis says that there is one.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/begun_command.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/limits/admissions.hpp>
#include <orizuru/detail/worker/limits/permit_counts.hpp>
#include <orizuru/detail/worker/limits/queue_limit.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/limits/fleet_limit.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class FleetLimiter final : public QueueLimit {
  public:
    /// The queue outlives this.
    FleetLimiter(FetchingQueue& queue, const Endpoint& endpoint, std::shared_ptr<const Wake> news,
                 const FleetLimit& limit);
    FleetLimiter(const FleetLimiter&) = delete;
    FleetLimiter& operator=(const FleetLimiter&) = delete;
    ~FleetLimiter() override { FleetLimiter::end(TimePoint()); }

    [[nodiscard]] Answer answer() const noexcept override { return m_answer; }
    [[nodiscard]] bool holds(TimePoint taken_at) const noexcept override {
        return m_counts->holds(taken_at);
    }
    // The macro here keeps files that only include this from emitting the class.
    ORIZURU_INLINE void ask(int wanted, Jobs jobs) noexcept override;
    ORIZURU_INLINE void await(TimePoint until) override;
    [[nodiscard]] ORIZURU_INLINE bool found_empty() noexcept override;
    [[nodiscard]] int granted() noexcept override { return m_counts->granted(); }
    void fetched(int tasks) noexcept override { m_counts->fetched(tasks); }
    [[nodiscard]] bool permit(Task& task) override {
        auto permit = m_counts->permit();
        const bool any = permit != nullptr;
        task.keep(std::move(permit));
        return any;
    }
    ORIZURU_INLINE void put_back(std::shared_ptr<Task> task) override;
    ORIZURU_INLINE void begin_watch() noexcept override;
    void end_watch() noexcept override { m_counts->touch(); }
    ORIZURU_INLINE void withdraw() noexcept override;
    ORIZURU_INLINE void request_end() noexcept override;
    ORIZURU_INLINE void end(TimePoint until) noexcept override;

  private:
    using Lock = std::unique_lock<std::mutex>;

    // For a wake that a process has died with.
    static constexpr std::chrono::seconds longest_wait{30};
    static constexpr std::chrono::milliseconds failure_pause{1000};
    // For a thread that was told that there is nothing to fetch, to begin to wait for it.
    static constexpr std::chrono::milliseconds watch_patience{50};

    void run() noexcept;
    void step();
    [[nodiscard]] Admission tell(const AdmissionRequest& request, TimePoint now);
    void hear(const Admission& answer, TimePoint asked);
    void fail(std::string_view why) noexcept;
    void requeue() noexcept;
    [[nodiscard]] TimePoint next_time() noexcept;
    void wait(TimePoint until);
    void await_slot(TimePoint until);
    void say_last() noexcept;

    const ForkMark m_process;
    FetchingQueue& m_queue;
    const std::shared_ptr<const Wake> m_news;
    const bool m_has_slots;
    const std::shared_ptr<PermitCounts> m_counts;
    Cutoff m_cutoff;

    // For the thread.
    Admissions m_admissions;
    std::unique_ptr<Connection> m_freed; ///< waits for a free slot
    BegunCommand m_waiting;
    bool m_full = false; ///< the last answer
    TimePoint m_renew_at = TimePoint::max();
    TimePoint m_not_before{}; ///< after a failure
    Random m_random;

    std::atomic<Answer> m_answer{Answer::here}; ///< changes under the lock
    std::mutex m_mutex;                         ///< guards what follows
    std::condition_variable m_changed;          ///< the answer, or m_ended
    bool m_awaited = false;                     ///< a thread waits for the answer
    int m_wanted = 0;
    Jobs m_jobs = Jobs::to_fetch;
    TimePoint m_ask_at{};
    bool m_empty = false; ///< the last answer, until it was told
    TimePoint m_watch_by = TimePoint::max();
    std::vector<std::shared_ptr<Task>> m_back; ///< to be requeued
    bool m_ending = false;
    bool m_ended = false;
    OwnThread m_thread; // last: it uses all of the above
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/worker/limits/fleet_limiter.ipp>
#endif
