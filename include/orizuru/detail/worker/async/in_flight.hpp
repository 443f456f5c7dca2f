// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The jobs of a queue that are in flight: a handler has begun them and returned, and JobDone ends
// them. Two threads settle those that have ended: one acks successes, which waits for Redis once
// for all that ended meanwhile; the other one does what takes a step of its own for each job, many
// of them at a time.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/worker/async/ended_jobs.hpp>
#include <orizuru/detail/worker/async/job_in_flight.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/task_source.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Any thread.
class InFlight {
  public:
    using Pace = JobInFlight::Pace;
    static constexpr std::array paces{Pace::at_once, Pace::by_redis};

    explicit InFlight(ServedQueue& queue)
        : m_queue(queue), m_sources{Source(*this, Pace::at_once), Source(*this, Pace::by_redis)} {}
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;
    ~InFlight() = default;

    void open() noexcept {
        const Lock lock(m_mutex);
        m_stage = Stage::open;
    }
    /// Keeps the task until its end; `task` is or has the job. Returns false once it is closed.
    bool add(JobInFlight& job, std::shared_ptr<Task> task) noexcept;
    /// The job is to be settled. Once. Returns false if close() has given it up.
    bool end(JobInFlight& job, Pace pace) noexcept;
    /// Gives ended jobs of a pace to a thread that settles them. Lives as long as this.
    [[nodiscard]] TaskSource& source(Pace pace) noexcept { return m_sources[index(pace)]; }

    /// No handler begins any more: the sources come to their end behind the last job.
    void finish() noexcept {
        const Lock lock(m_mutex);
        m_stage = std::max(m_stage, Stage::finishing);
        notify_all();
    }
    /// Accepts no more, ends the sources, and gives up what is left, until then. Adds it to
    /// `messages`.
    void close(TimePoint until, Fifo<GuardCore::GivenUp>& messages) noexcept;

    /// Returns those that have not ended, the oldest first.
    [[nodiscard]] std::vector<std::shared_ptr<Task>> running() {
        const Lock lock(m_mutex);
        std::vector<std::shared_ptr<Task>> tasks;
        tasks.reserve(m_running.count);
        for (const JobInFlight& job : m_running.jobs) {
            tasks.push_back(job.m_task);
        }
        return tasks;
    }

  private:
    using Lock = std::unique_lock<std::mutex>;

    class Source final : public TaskSource {
      public:
        Source(InFlight& jobs, Pace pace) : m_jobs(jobs), m_pace(pace) {}

        [[nodiscard]] const ForkMark& process() const noexcept override {
            return m_jobs.m_queue.shared().process;
        }
        std::shared_ptr<Task> next(Turn& turn) override {
            turn.now = TimePoint();
            return m_jobs.next(m_pace);
        }
        [[nodiscard]] std::shared_ptr<Task>
        next_at_hand(const Turn& /*turn*/) const noexcept override {
            return nullptr; // what was settled is freed before the next wait
        }

      private:
        InFlight& m_jobs;
        const Pace m_pace;
    };
    enum class Stage : std::uint8_t { open, finishing, closed };

    struct Jobs {
        LinkedList<JobInFlight> jobs;
        std::size_t count = 0;

        [[nodiscard]] bool empty() const noexcept { return count == 0; }
        void add(JobInFlight& job) noexcept {
            jobs.push_back(job);
            ++count;
        }
        void erase(JobInFlight& job) noexcept {
            jobs.erase(job);
            --count;
        }
        [[nodiscard]] JobInFlight& first() noexcept { return *jobs.begin(); }
        std::shared_ptr<Task> take(JobInFlight& job) noexcept {
            erase(job);
            return std::move(job.m_task);
        }
    };
    struct Ended : Jobs {
        std::condition_variable news;
    };

    // A flush of more would keep their places from others for long.
    static constexpr std::size_t most_together = largest_batch;
    // For acks in another order than the list's, Redis looks through all of it, once for those that
    // come together. Measured with Redis 7.0, 10,000 jobs in flight and 17,500 a second: 34 us of
    // its CPU a job if each flush takes what there is, 10 us if it waits for one in 128 or 4 ms.
    static constexpr std::size_t looked_through_for_one = 128;
    static constexpr std::chrono::milliseconds longest_gathering{4};

    [[nodiscard]] static constexpr std::size_t index(Pace pace) noexcept {
        return static_cast<std::size_t>(pace);
    }
    std::shared_ptr<Task> next(Pace pace);
    std::shared_ptr<Task> take(Pace pace);
    [[nodiscard]] bool over() const noexcept {
        return m_stage == Stage::closed || (m_stage == Stage::finishing && m_running.empty());
    }
    /// So many have ended that it pays to settle them now.
    [[nodiscard]] bool enough(Pace pace) const noexcept {
        const std::size_t ended = m_ended[index(pace)].count;
        return pace == Pace::by_redis ? ended > 0
                                      : ended * looked_through_for_one > m_running.count;
    }
    void notify_all() noexcept {
        for (Ended& ended : m_ended) {
            ended.news.notify_all();
        }
    }

    ServedQueue& m_queue;
    std::array<Source, paces.size()> m_sources;

    std::mutex m_mutex; ///< guards what follows
    Stage m_stage = Stage::closed;
    Jobs m_running;
    std::array<Ended, paces.size()> m_ended; ///< and not yet taken, by pace
};

inline bool InFlight::add(JobInFlight& job, std::shared_ptr<Task> task) noexcept {
    const Lock lock(m_mutex);
    if (m_stage == Stage::closed) {
        return false;
    }
    job.m_task = std::move(task);
    m_running.add(job);
    return true;
}

inline bool InFlight::end(JobInFlight& job, Pace pace) noexcept {
    const Lock lock(m_mutex);
    if (!job.m_task) {
        return false;
    }
    m_running.erase(job);
    Ended& ended = m_ended[index(pace)];
    ended.add(job);
    if (ended.count == 1 || enough(pace)) {
        ended.news.notify_one();
    }
    if (over()) {
        notify_all();
    }
    return true;
}

/// Waits until jobs have ended; null when there will be no more.
inline std::shared_ptr<Task> InFlight::next(Pace pace) {
    Ended& ended = m_ended[index(pace)];
    Lock lock(m_mutex);
    ended.news.wait(lock, [&] { return !ended.empty() || over(); });
    ended.news.wait_for(lock, longest_gathering, [&] { return enough(pace) || over(); });
    if (m_stage == Stage::closed || ended.empty()) {
        return nullptr;
    }
    return take(pace);
}

/// Takes some of these together; without memory for that, the first alone: its ack then goes with
/// the next ones.
inline std::shared_ptr<Task> InFlight::take(Pace pace) {
    Jobs& ended = m_ended[index(pace)];
    std::shared_ptr<EndedJobs> together;
    try {
        together = std::make_shared<EndedJobs>(m_queue, pace);
        while (!ended.empty() && together->size() < most_together) {
            together->make_room();
            JobInFlight& job = ended.first();
            together->add(job, ended.take(job));
        }
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
        // Those that are left come next.
    }
    return together && together->size() > 0 ? together : ended.take(ended.first());
}

inline void InFlight::close(TimePoint until, Fifo<GuardCore::GivenUp>& messages) noexcept {
    Lock lock(m_mutex);
    m_stage = Stage::closed;
    notify_all();
    std::vector<std::pair<std::shared_ptr<Task>, JobInFlight*>> begun;
    for (Jobs* const list :
         {&m_running, static_cast<Jobs*>(&m_ended[0]), static_cast<Jobs*>(&m_ended[1])}) {
        while (!list->empty()) {
            JobInFlight& job = list->first();
            const std::shared_ptr<Task> task = list->take(job);
            const Unlocked open(lock);
            const std::optional<GuardCore::GivenUp> given = job.give_up(until);
            if (!given) {
                continue;
            }
            const bool ends_later = given->session == nullptr;
            try {
                if (ends_later) {
                    begun.emplace_back(task, &job);
                } else {
                    messages.push_back(*given);
                }
            } catch (const std::bad_alloc&) {
                ends_later ? job.finish_requeue() : GuardCore::put_back(*given);
            }
        }
    }
    const Unlocked open(lock);
    for (const auto& [task, job] : begun) {
        job->finish_requeue();
    }
}

} // namespace orizuru::detail
