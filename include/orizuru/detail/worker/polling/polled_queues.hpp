// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds the most urgent task among the queues of a worker, and waits for all of them at once.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/fetched_tasks.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/polling/polled_queue.hpp>
#include <orizuru/detail/worker/polling/polling_sequence.hpp>
#include <orizuru/detail/worker/polling/queue_gate.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Waits until one of `fds` is ready, or until then, and sets their `revents`. A signal to the
/// process may end it early; where the kernel has no memory for it, it ends after 10 ms.
inline void poll_until(std::span<pollfd> fds, TimePoint until) noexcept {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(std::max(until, TimePoint()) - Clock::now());
    const auto time = std::clamp(left, std::chrono::milliseconds(0),
                                 std::chrono::milliseconds(std::chrono::hours(1)));
    if (::poll(fds.data(), fds.size(), static_cast<int>(time.count())) < 0) {
        if (errno != EINTR) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        for (pollfd& fd : fds) {
            fd.revents = 0;
        }
    }
}

/// One thread at a time calls the first six functions, any thread the last two.
class PolledQueues {
  public:
    /// A task, or a few of a fetch that returned several.
    struct Found {
        std::shared_ptr<Task> task;
        std::shared_ptr<FetchedTasks> several;

        explicit operator bool() const noexcept { return task || several; }
    };

    /// The queues are open and outlive this. They signal `news`.
    PolledQueues(const FetchingQueues& queues, const WorkerShared& shared,
                 std::shared_ptr<const Wake> news)
        : m_sequence(shared.options.order), m_news(std::move(news)) {
        for (const auto& queue : queues) {
            m_sequence.add(queue->options().weight);
            m_queues.emplace_back(*queue, shared.options);
        }
        for (const auto& [first, count] : shared.sharded) {
            m_sequence.join(first, count);
        }
        m_polled.reserve(m_queues.size() + 1);
    }

    /// Looks into all queues once, those that are paused or closed excepted; what was fetched with
    /// the tasks before comes first. Where it finds nothing, all queues wait from then on; before
    /// that only while several threads are `free`.
    Found find(const std::stop_token& token, const std::atomic<int>& free);
    /// Waits until `find` may find something, or `news` is signalled.
    void await();
    [[nodiscard]] bool any_waiting() const {
        return std::ranges::any_of(m_queues, [](const PolledQueue& queue) {
            return queue.waiting() || queue.late() || queue.gate().holds_back();
        });
    }
    /// True when something was fetched and not taken.
    [[nodiscard]] bool any_in_hand() const {
        return std::ranges::any_of(
            m_queues, [](const PolledQueue& queue) { return queue.gate().in_hand() > 0; });
    }
    /// Ends all waits while no thread is `free`, and returns what they bring.
    std::vector<std::shared_ptr<Task>> end_waiting(const std::stop_token& token,
                                                   const std::atomic<int>& free);
    /// Requeues all tasks that were fetched and not taken.
    void requeue() noexcept {
        std::ranges::for_each(m_queues, [](PolledQueue& queue) { queue.gate().requeue(); });
    }

    // Any thread. Signal `news` afterwards.

    [[nodiscard]] QueueGate& gate(const std::string& name) {
        return std::ranges::find(m_queues, name,
                                 [](const PolledQueue& queue) { return queue.gate().queue(); })
            ->gate();
    }
    /// From now on nothing is fetched.
    void quiet() noexcept { m_quiet = true; }

  private:
    // The others come in the next round: a thread may be free by then.
    static constexpr std::size_t most_late = 16;

    void poll(TimePoint until);
    Found found(PolledQueue& queue, std::shared_ptr<Task> task);

    PollingSequence m_sequence;
    std::deque<PolledQueue> m_queues; // which cannot be moved
    std::shared_ptr<const Wake> m_news;
    std::atomic<bool> m_quiet{false};
    PolledQueue* m_in_hand = nullptr; ///< has more of the fetch that was found last
    std::size_t m_left = 0;           ///< number of its jobs
    std::vector<pollfd> m_polled;     ///< `news`, then the queues that wait
};

inline PolledQueues::Found PolledQueues::find(const std::stop_token& token,
                                              const std::atomic<int>& free) {
    PolledQueue* const in_hand = std::exchange(m_in_hand, nullptr);
    if (in_hand != nullptr && !m_quiet && !in_hand->gate().paused()) {
        if (std::shared_ptr<Task> task = in_hand->look(token, free)) {
            return found(*in_hand, std::move(task));
        }
    }
    m_left = 0;
    if (any_waiting()) {
        poll(TimePoint::min()); // the most urgent one that has something goes first
    }
    for (const std::size_t index : m_sequence.next()) {
        PolledQueue& queue = m_queues[index];
        if (token.stop_requested()) {
            return {};
        }
        if (m_quiet || queue.gate().paused()) {
            queue.disconnect();
            continue;
        }
        std::shared_ptr<Task> task = queue.look(token, free);
        if (!task && free > 1) {
            task = queue.wait(token, free);
        }
        if (task) {
            return found(queue, std::move(task));
        }
    }
    for (PolledQueue& queue : m_queues) {
        if (token.stop_requested() || m_quiet) {
            break;
        }
        if (std::shared_ptr<Task> task = queue.wait(token, free)) {
            return found(queue, std::move(task));
        }
    }
    return {};
}

/// Shares a few tasks of a fetch that returned several. The thread that found them takes none yet:
/// it may be put to sleep when it calls another thread, and acks cost the least when the oldest
/// message is acked first.
inline PolledQueues::Found PolledQueues::found(PolledQueue& queue, std::shared_ptr<Task> task) {
    std::shared_ptr<FetchedTasks> several = queue.gate().take_fetched(task);
    const std::size_t left = queue.gate().in_hand();
    const bool refilled =
        m_left > 0 && left >= m_left; // by a fetch behind: other queues come first
    m_left = several && !refilled ? left : 0;
    m_in_hand = m_left > 0 ? &queue : nullptr;
    return {std::move(task), std::move(several)};
}

inline void PolledQueues::await() {
    TimePoint until = TimePoint::max();
    for (const PolledQueue& queue : m_queues) {
        if (queue.waiting()) {
            until = std::min(until, queue.is_due() ? TimePoint::min() : queue.awaited().until);
        } else if (!m_quiet) {
            until = std::min(until, queue.gate().opens_at());
        }
    }
    poll(until);
}

/// Marks those that have got what they wait for; waits for one until then.
inline void PolledQueues::poll(TimePoint until) {
    const auto has_fd = [](const PolledQueue& queue) {
        return queue.waiting() && queue.awaited().fd >= 0;
    };
    m_polled.assign(1, {m_news->fd(), POLLIN, 0});
    for (const PolledQueue& queue : m_queues) {
        if (has_fd(queue)) {
            m_polled.push_back({queue.awaited().fd, queue.awaited().events, 0}); // reserved
        }
    }
    poll_until(m_polled, until);
    const bool news = m_polled.front().revents != 0;
    if (news) {
        m_news->found_signalled();
        m_news->clear(); // before the queues are looked at, and never without
    }
    const TimePoint now = Clock::now();
    auto polled = m_polled.begin();
    for (PolledQueue& queue : m_queues) {
        const bool ready = has_fd(queue) && (++polled)->revents != 0;
        if (ready || news || queue.awaited().until <= now) {
            queue.due();
        }
    }
}

inline std::vector<std::shared_ptr<Task>> PolledQueues::end_waiting(const std::stop_token& token,
                                                                    const std::atomic<int>& free) {
    std::vector<std::shared_ptr<Task>> brought;
    std::size_t left = most_late;
    brought.reserve(m_queues.size() + left);
    for (PolledQueue& queue : m_queues) {
        if (free > 0 || token.stop_requested()) {
            break;
        }
        if (auto task = queue.gate().give_up_held_back()) {
            brought.push_back(std::move(task));
        } else if (auto other = queue.end_waiting(token)) {
            brought.push_back(std::move(other));
        }
        for (; left > 0 && free == 0 && !token.stop_requested(); --left) {
            auto late = queue.take_late(token);
            if (!late) {
                break;
            }
            brought.push_back(std::move(late));
        }
    }
    return brought;
}

} // namespace orizuru::detail
