// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reports to Redis how the jobs of a queue have ended in this worker. Each report has the counts
// since its start, and names those that Redis has already, so that nothing is added twice: not when
// an answer is lost, nor when Redis has forgotten the worker in between.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/detail/worker/reports/queue_counts.hpp>
#include <orizuru/detail/worker/reports/reported_jobs.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>
#include <orizuru/worker/job_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

// KEYS worker, counts, counts of the day; ARGV the day since 1970 that is meant, after how many ms
// the worker's key expires (0: it goes at once) and the day's, how many jobs run, how many threads
// there are, when the worker began, the jobs that run (reported_jobs.hpp), '1' if these are handled
// in batches, else '0', and "field base count " for each field: `base` is how much of
// the count has been added, unless the worker's key says so. Returns 1; 0 when that key was not
// there; or the day that it is, if it is not the one that is meant: then nothing has changed. The
// worker's key is written first: if the rest failed, it would be lost, and not added twice. Only
// outcomes, which have no colon in their names, are counted by day. O(fields)
inline constexpr auto report_text = adding_script(R"lua(
local worker, counts, of_day = unpack(KEYS)
local refused = refusal({{worker, 'hash'}, {counts, 'hash'}, {of_day, 'hash'}}, {{'TIME'},
    {'EXISTS', worker}, {'HMGET', worker, 'x'}, {'HSET', worker, 'x', 'x'},
    {'PEXPIRE', worker, '1'}, {'HINCRBY', counts, 'x', '1'}, {'HINCRBY', of_day, 'x', '1'},
    {'PEXPIRE', of_day, '1'}})
if refused then return refused end
local day = math.floor(redis.call('TIME')[1] / 86400)
if day ~= tonumber(ARGV[1]) then return day end
local known = redis.call('EXISTS', worker)
local says = {'running', ARGV[4], 'threads', ARGV[5], 'started', ARGV[6], 'jobs', ARGV[7],
    'batches', ARGV[8]}
local fields, bases, totals = {}, {}, {}
for field, base, total in string.gmatch(ARGV[9], '(%S+) (%d+) (%d+)') do
    fields[#fields + 1], bases[#bases + 1], totals[#totals + 1] = field, base, total
end
local last = fields[1] and redis.call('HMGET', worker, unpack(fields)) or {}
local more, dated = {}, false
for i, field in ipairs(fields) do
    local new = totals[i] - (last[i] or bases[i])
    if new >= 0 then says[#says + 1], says[#says + 2] = field, totals[i] end
    if new > 0 then more[field] = string.format('%.0f', new) end
end
redis.call('HSET', worker, unpack(says))
redis.call('PEXPIRE', worker, ARGV[2])
for field, count in pairs(more) do
    redis.call('HINCRBY', counts, field, count)
    if not string.find(field, ':') then
        redis.call('HINCRBY', of_day, field, count)
        dated = true
    end
end
if dated then redis.call('PEXPIRE', of_day, ARGV[3]) end
return known
)lua");
inline constinit const CachedScript report_script(report_text);

/// For one thread at a time. The queue outlives this.
class QueueReport {
  public:
    /// Time between two reports: a crash loses the counts of that time.
    static constexpr std::chrono::milliseconds interval{5000};

    /// `running` outlives this.
    QueueReport(ServedQueue& queue, const RunningTasks& running,
                std::shared_ptr<Connection> connection)
        : m_queue(queue),
          m_tasks(running),
          m_connection(std::move(connection)),
          m_started(queue.now()),
          m_known(queue.counts().row()) {}

    /// Reports what has changed; else, every second time, only that the worker is alive, by
    /// PEXPIRE: a fifth of a report's cost. Throws as Connection does.
    void step(TimePoint now = Clock::now()) {
        m_queue.counts().read_clocks(m_queue.now());
        const std::string id = m_queue.consumer_id();
        if (m_in_doubt) {
            send(expiry);
        } else if (!id.empty() && id != m_id) {
            m_id = id;
            m_all = true;
        }
        if (look() || m_all) {
            send(expiry);
        } else if (!id.empty() && now - m_heard > interval * 3 / 2) {
            keep_alive();
        }
    }
    /// Reports what has changed, and that the worker has gone.
    void leave() {
        if (m_in_doubt) {
            send(expiry);
        }
        if (look() || m_heard != TimePoint()) {
            send({});
        }
    }

  private:
    // One report may fail between two that arrive.
    static constexpr std::chrono::milliseconds expiry{15'000};
    static constexpr std::chrono::days days_kept{90};

    using Run = std::pair<TimePoint, std::string>; ///< since when, and the job's id

    /// Returns whether something has changed. Not while a report is in doubt, which is repeated
    /// as it was: Redis has all of it or nothing.
    bool look() {
        if (m_id.empty()) {
            m_id = m_queue.consumer_id();
        }
        m_counts = m_queue.counts().row();
        const int running = std::exchange(m_running, m_queue.running());
        const std::vector<Run> runs = std::exchange(m_runs, look_at_runs());
        return !m_id.empty() && (m_counts != m_known || m_running != running || m_runs != runs);
    }
    /// Those that run for the longest.
    [[nodiscard]] std::vector<Run> look_at_runs() const {
        std::vector<Run> runs;
        if (m_running == 0) {
            return runs;
        }
        for (const auto& task : m_tasks(m_queue)) {
            task->each_job([&](const JobRun& job) { runs.emplace_back(job.since(), job.id()); });
        }
        const std::size_t count = std::min(runs.size(), most_reported_jobs);
        std::ranges::partial_sort(runs, runs.begin() + static_cast<std::ptrdiff_t>(count));
        runs.resize(count);
        return runs;
    }
    void keep_alive() {
        const std::string key = m_queue.keys().worker(m_id);
        if (is_count(m_connection->command(key, "PEXPIRE", key, expiry.count()), 1)) {
            m_heard = Clock::now();
        } else {
            m_all = true;
            send(expiry);
        }
    }
    void send(std::chrono::milliseconds expires);
    Reply run(std::chrono::milliseconds expires);

    ServedQueue& m_queue;
    const RunningTasks& m_tasks;
    std::shared_ptr<Connection> m_connection;
    JobTime m_started;
    std::string m_id;    ///< the consumer's
    CountRow m_known;    ///< the counts in Redis, without a report in doubt
    CountRow m_counts{}; ///< the counts to report
    int m_running = 0;
    std::vector<Run> m_runs;
    bool m_in_doubt = false; ///< the answer to the last report was lost
    bool m_all = false;      ///< Redis does not know this worker: report all that is not 0
    TimePoint m_heard{};     ///< last time that Redis heard of it, if it did
    std::chrono::sys_days m_day = std::chrono::floor<std::chrono::days>(job_time()); ///< Redis'
};

inline void QueueReport::send(std::chrono::milliseconds expires) {
    try {
        Reply reply = run(expires);
        if (is_count(reply, 2)) {
            m_day = std::chrono::sys_days(std::chrono::days(reply.integer));
            reply = run(expires);
        }
        if (!is_count(reply)) {
            refuse(*m_connection, "EVALSHA");
        }
        if (reply.integer < 2) {
            m_all = reply.integer == 0 && !m_all;
            m_in_doubt = false;
            m_heard = Clock::now();
            m_known = m_counts;
        }
    } catch (const ConnectionError& error) {
        m_in_doubt = m_in_doubt || error.in_doubt();
        throw;
    } catch (const ProtocolError&) {
        m_in_doubt = true;
        throw;
    }
}

/// Where Redis does not know the worker, it adds nothing of a report that it may have seen.
inline Reply QueueReport::run(std::chrono::milliseconds expires) {
    const Keys& keys = m_queue.keys();
    const CountRow& base = m_in_doubt ? m_counts : m_known;
    std::string fields;
    for (std::size_t i = 0; i < m_counts.size(); ++i) {
        if (m_all ? m_counts[i] > 0 : m_counts[i] != m_known[i]) {
            fields += joined({count_field(i), " ", Digits(base[i]), " ", Digits(m_counts[i]), " "});
        }
    }
    std::string runs;
    for (const auto& [since, id] : m_runs) {
        const auto ago = std::chrono::floor<std::chrono::milliseconds>(Clock::now() - since);
        runs += reported_text({.id = id, .since = m_queue.now() - ago});
    }
    return run_script(*m_connection, keys.counts(), report_script, 3, keys.worker(m_id),
                      keys.counts(), keys.counts(date_text(m_day)),
                      m_day.time_since_epoch().count(), expires.count(),
                      std::chrono::milliseconds(days_kept).count(), m_running,
                      m_queue.shared().options.concurrency, m_started.time_since_epoch().count(),
                      runs, m_queue.in_batches() ? 1 : 0, fields);
}

} // namespace orizuru::detail
