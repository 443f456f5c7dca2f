// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads the numbers of all queues for all viewers, on a thread of its own.

#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/ops/dashboard_options.hpp>
#include <orizuru/ops/inspector.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail::web {

/// Result of one pass over all queues.
struct QueueSample {
    struct Row {
        QueueState state;
        std::string error; ///< why Redis refused this queue's numbers
    };
    std::uint64_t number = 0; ///< the pass's; 0 before the first
    std::chrono::steady_clock::time_point time{};
    std::vector<Row> rows;
    /// Why the last pass has not come to its end; then the rest is of the one before.
    std::string failure;
    /// Why Redis has refused the list of queues; then only those named in the options are here.
    std::string notice;
};

/// Totals of a queue since ever: jobs that workers have done, and attempts that have failed.
struct JobTotals {
    std::uint64_t done = 0;
    std::uint64_t failed = 0;
};
/// At equal distances, the newest last; none for a time without an answer.
using QueueHistory = std::deque<std::optional<JobTotals>>;

struct QueueHistories {
    std::chrono::milliseconds step;
    std::map<std::string, QueueHistory> queues;
};

class QueueSampler {
  public:
    using Clock = std::chrono::steady_clock;

    /// The most points of a sparkline: each goes from total to total.
    static constexpr std::size_t most_points = 120;
    /// Time for which somebody who has asked counts as one who looks.
    static constexpr std::chrono::seconds attention{10};
    /// The least time between two passes, of which the second is to show what a viewer has done.
    static constexpr std::chrono::milliseconds haste{250};

    QueueSampler(Endpoint endpoint, const DashboardOptions& options)
        : m_inspector(std::move(endpoint)),
          m_named(options.queues),
          m_refresh(options.refresh),
          m_history_step(options.history_step) {
        m_thread.start([this] { run(); });
    }
    QueueSampler(const QueueSampler&) = delete;
    QueueSampler& operator=(const QueueSampler&) = delete;
    ~QueueSampler() {
        {
            const std::lock_guard lock(m_mutex);
            m_stopped = true;
        }
        m_wake.notify_all();
        m_thread.end();
    }

    /// The latest, never null; does not wait. A new one follows while somebody asks.
    [[nodiscard]] std::shared_ptr<const QueueSample> latest() {
        const std::lock_guard lock(m_mutex);
        m_asked = Clock::now();
        m_wake.notify_all();
        return m_sample;
    }
    /// Has a new one taken soon. Returns its number or an earlier one's, which all begin after
    /// this.
    std::uint64_t renew() {
        const std::lock_guard lock(m_mutex);
        m_renewing = true;
        m_wake.notify_all();
        return m_passes + 1;
    }
    [[nodiscard]] QueueHistories history(std::span<const QueueSample::Row* const> rows) const {
        QueueHistories found{m_history_step, {}};
        const std::lock_guard lock(m_mutex);
        for (const QueueSample::Row* const row : rows) {
            if (const auto known = m_history.find(row->state.queue); known != m_history.end()) {
                found.queues.insert(*known);
            }
        }
        return found;
    }
    /// Returns how many jobs of these were done between the last two points; nothing while none of
    /// them has two.
    [[nodiscard]] std::optional<std::uint64_t>
    last_step(std::span<const QueueSample::Row* const> rows) const {
        std::optional<std::uint64_t> sum;
        const std::lock_guard lock(m_mutex);
        for (const QueueSample::Row* const row : rows) {
            const auto known = m_history.find(row->state.queue);
            if (known == m_history.end() || known->second.size() < 2) {
                continue;
            }
            const auto& now = known->second.back();
            const auto& before = known->second[known->second.size() - 2];
            if (now && before && now->done >= before->done) {
                sum = sum.value_or(0) + now->done - before->done;
            }
        }
        return sum;
    }

  private:
    using Lock = std::unique_lock<std::mutex>;

    void run() {
        Lock lock(m_mutex);
        while (!m_stopped) {
            const Clock::time_point due = next_pass();
            if (Clock::now() < due) {
                wait_until(m_wake, lock, due);
                continue;
            }
            m_begun = Clock::now();
            m_renewing = false;
            const std::uint64_t number = ++m_passes;
            lock.unlock();
            auto sample = std::make_shared<QueueSample>(pass());
            const bool points = m_begun >= m_next_point; // of this thread alone
            auto totals = points ? all_totals(*sample) : Totals();
            lock.lock();
            m_took = Clock::now() - m_begun;
            sample->number = number;
            sample->time = sample->failure.empty() ? m_begun : m_sample->time;
            if (!sample->failure.empty()) {
                sample->rows = m_sample->rows;
            }
            m_sample = std::move(sample);
            if (points) {
                m_next_point = m_begun + m_history_step;
                add_points(totals);
            }
        }
    }

    [[nodiscard]] bool stopped() const {
        const std::lock_guard lock(m_mutex);
        return m_stopped;
    }

    [[nodiscard]] Clock::time_point next_pass() const {
        if (m_passes == 0) {
            return {};
        }
        if (m_renewing) {
            return m_begun + haste;
        }
        const auto refresh = std::clamp<Clock::duration>(20 * m_took, m_refresh, 5 * m_refresh);
        const bool watched = m_asked + attention > m_begun;
        return watched ? std::min(m_begun + refresh, m_next_point) : m_next_point;
    }

    [[nodiscard]] QueueSample pass() {
        QueueSample sample;
        try {
            std::vector<std::string> names = m_named;
            try {
                std::ranges::move(m_inspector.queues(), std::back_inserter(names));
            } catch (const ReplyError& error) {
                if (error.code() != "NOPERM") {
                    throw;
                }
                sample.notice = error.what();
            }
            std::ranges::sort(names);
            names.erase(std::unique(names.begin(), names.end()), names.end());
            in_parts(names, [&](std::span<const std::string> some) {
                auto states =
                    m_inspector.states(some, [&](const std::string& name, const auto& why) {
                        sample.rows.push_back({{.queue = name}, why.what()});
                    });
                for (QueueState& state : states) {
                    sample.rows.push_back({std::move(state), {}});
                }
            });
            std::ranges::sort(sample.rows, {}, [](const auto& row) -> const std::string& {
                return row.state.queue;
            });
        } catch (const std::exception& error) {
            sample.failure = error.what();
        }
        return sample;
    }
    /// Calls `take` with some of the names after the others, until it has stopped.
    template <class Take>
    void in_parts(std::span<const std::string> names, const Take& take) const {
        constexpr std::size_t part = 100;
        for (; !names.empty() && !stopped(); names = names.subspan(std::min(part, names.size()))) {
            take(names.first(std::min(part, names.size())));
        }
    }

    using Totals = std::map<std::string, JobTotals>;

    /// Those that Redis tells.
    [[nodiscard]] Totals all_totals(const QueueSample& sample) {
        std::vector<std::string> names;
        for (const QueueSample::Row& row : sample.rows) {
            names.push_back(row.state.queue);
        }
        Totals totals;
        try {
            in_parts(names, [&](std::span<const std::string> some) {
                const auto skip = [](const auto&...) {}; // a key of somebody else's
                for (const QueueStatistics& counts : m_inspector.all_counts(some, skip)) {
                    const WorkerStatistics& jobs = counts.outcomes;
                    totals[counts.queue] = {jobs.succeeded + jobs.settled, jobs.failed};
                }
            });
        } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
            // Redis is away: the others are not known at this point.
        }
        return totals;
    }

    /// To the queues that there are now; the others are forgotten.
    void add_points(const Totals& totals) {
        std::map<std::string, QueueHistory> history;
        for (const QueueSample::Row& row : m_sample->rows) {
            const std::string& queue = row.state.queue;
            QueueHistory& points = history[queue];
            if (const auto known = m_history.find(queue); known != m_history.end()) {
                points = std::move(known->second);
            }
            const auto total = totals.find(queue);
            points.push_back(total != totals.end() ? std::optional(total->second) : std::nullopt);
            if (points.size() > most_points + 1) {
                points.pop_front();
            }
        }
        m_history = std::move(history);
    }

    Inspector m_inspector; // of the thread
    const std::vector<std::string> m_named;
    const std::chrono::milliseconds m_refresh;
    const std::chrono::milliseconds m_history_step;

    mutable std::mutex m_mutex;
    std::condition_variable m_wake;
    bool m_stopped = false;
    bool m_renewing = false;
    std::uint64_t m_passes = 0;
    Clock::time_point m_begun{};
    Clock::duration m_took{};
    Clock::time_point m_asked{};
    Clock::time_point m_next_point{};
    std::shared_ptr<const QueueSample> m_sample = std::make_shared<const QueueSample>();
    std::map<std::string, QueueHistory> m_history;
    OwnThread m_thread; // last: it uses all others
};

} // namespace orizuru::detail::web
