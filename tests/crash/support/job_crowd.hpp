// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Workers, producers of jobs and collectors of two queues or more, each a process, to which
// anything may happen at any moment; workers are asked to stop, too.

#pragma once

#include "crash/support/crowd.hpp"
#include "crash/support/job_collecting.hpp"
#include "crash/support/job_journal.hpp"
#include "crash/support/job_pushing.hpp"
#include "crash/support/job_verdict.hpp"
#include "crash/support/job_work.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"

#include <orizuru/keys.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

/// Runs in the child. Returns its exit status.
inline int do_job_work(const Work& work) {
    if (work.role == "producer") {
        JobProducerWork(work).run();
    }
    if (work.role == "collector") {
        collect_jobs(work);
    }
    JobWork(work).run();
    return EXIT_FAILURE;
}

class JobCrowd final : public Crowd {
  public:
    /// The kind of event that the end of the storm brings about.
    static constexpr std::string_view given_back = "job given back by a worker that stopped";

    JobCrowd(RedisServer& server, FaultReport& report, std::uint64_t seed, std::size_t queues)
        : Crowd(server, report, seed) {
        for (const std::string& queue : job_queues("storm", queues)) {
            m_queues.emplace_back(queue);
        }
        add_all("worker", workers, 0);
        add_all("producer", 2, 120);
        add_all("collector", 2, 0);
    }

    /// Stops a worker by SIGTERM.
    void stop_one();
    /// Not while a worker stops, or nothing could be requeued; nor do writes fail then.
    void pause_redis() {
        if (m_stopping.empty()) {
            Crowd::pause_redis();
        }
    }
    void refuse_writes_at_times(std::uint64_t faults, std::uint64_t least) {
        if (m_stopping.empty()) {
            Crowd::refuse_writes_at_times(faults, least);
        }
    }
    [[nodiscard]] std::size_t pushes() const { return written("producer") / sizeof(JobRecord) / 2; }

    /// True if all these kinds of events have come so far, those that the journals tell included.
    [[nodiscard]] bool has_seen(std::vector<std::string_view> kinds);
    /// Lets the workers finish the rest, and returns the violations, in words.
    std::vector<std::string> finish();

  private:
    static constexpr std::size_t workers = 4;
    static constexpr std::size_t backlog = 400; ///< of all queues: about ten seconds of work

    void add_all(const std::string& role, std::size_t count, std::size_t rate) {
        for (std::size_t i = 0; i < count; ++i) {
            add({.role = role,
                 .index = i,
                 .rate = rate,
                 .queue = "storm",
                 .queues = m_queues.size()});
        }
    }
    void was_killed(const Member& member) override {
        // A worker that was about to stop may have requeued its jobs.
        if (m_stopping.erase(member.work().serial) == 0) {
            m_killed.insert(member.work().serial);
        }
    }
    void has_ended(const Member& member) override;
    void is_paused(const Member& member) override {
        if (m_stopping.contains(member.work().serial)) {
            m_late.insert(member.work().serial);
        }
    }
    void kill_last(const std::string& role) {
        while (members().back().work().role == role) {
            kill(members().back());
            members().pop_back();
        }
    }
    bool has_left(const Keys& keys, const std::string& name);
    void await_empty();
    bool is_empty(const Keys& keys);
    /// Those registered at the queue whose process does not run.
    std::vector<std::string> dead_members(const Keys& keys);
    void stop_all();
    JobVerdict verdict();
    void stop_in_the_middle();
    std::size_t judge_given_back(const Keys& keys, const std::set<std::uint64_t>& started);
    std::map<std::string, std::int64_t> recoveries(const Keys& keys);

    RedisClient m_redis{server().uri()};
    std::vector<Keys> m_queues;
    std::map<std::uint64_t, Stopwatch> m_stopping; ///< serials, and since when
    std::set<std::uint64_t> m_late; ///< paused for longer than a stop may take, perhaps
    std::set<std::uint64_t> m_killed;
    std::uint64_t m_late_serial = 900'000'000; ///< of the producer that stop_in_the_middle() is
};

/// Stops a worker that has begun a job: before that, SIGTERM simply ends the process.
inline void JobCrowd::stop_one() {
    if (!redis_takes_writes()) {
        return;
    }
    const Member& member = pick([](const Member& any) { return any.work().role == "worker"; });
    const auto records = JobJournal::read(member.work().journal);
    const bool works = !records.empty() && records.back().serial == member.work().serial;
    if (works && m_stopping.try_emplace(member.work().serial).second) {
        member.process.ask_to_end();
    }
}

/// A worker lets time pass after an outage before it asks again, 5 s at most, and on a busy machine
/// it gets little done: what it cannot do in its time for a stop then is left to collectors.
inline void JobCrowd::has_ended(const Member& member) {
    constexpr std::chrono::seconds longest_pause(5);
    constexpr std::chrono::milliseconds least_time_for_a_stop(700);
    report().came("worker stopped by SIGTERM");
    const auto stopped = m_stopping.find(member.work().serial);
    if (stopped != m_stopping.end()) {
        const Elapsed took = stopped->second.elapsed();
        m_stopping.erase(stopped);
        const bool outage = !outages().past().empty() && outages().free_for() < longest_pause;
        if (took >= least_time_for_a_stop && (outage || took.on_a_busy_machine())) {
            report().came(outage ? "stop after an outage that took its whole time"
                                 : "stop on a busy machine that took its whole time");
            return;
        }
    }
    for (const Keys& keys : m_queues) {
        if (!m_late.contains(member.work().serial) && !has_left(keys, member.work().name())) {
            wrong().push_back(member.work().name() + " stopped and did not leave " + keys.source());
        }
    }
}

/// Whether such a consumer has left by itself: its fence says so. One whose list was reaped while
/// it was paused has nothing to leave.
inline bool JobCrowd::has_left(const Keys& keys, const std::string& name) {
    bool reaped = false;
    bool lists = false;
    for (const std::string& key : m_redis.keys(keys.processing(name + ":*"))) {
        const Answer fence = m_redis.try_command({"GET", key});
        if (fence.kind == Answer::Kind::text && fence.text.starts_with("released")) {
            return true;
        }
        reaped = reaped || fence.kind == Answer::Kind::text;
        lists = lists || fence.kind == Answer::Kind::error;
    }
    return reaped && !lists;
}

inline std::vector<std::string> JobCrowd::finish() {
    look_around();
    free_redis();
    kill_last("collector"); // nobody needs them
    tell_hung([](const Member& member, std::uintmax_t written) {
        return JobJournal::size(member.work().journal) > written;
    });
    kill_last("producer");
    await_empty();
    // A busy machine may let a worker hear of its end when its jobs have ended by themselves.
    for (int tries = 0; tries < 10 && !report().have_come({given_back}); ++tries) {
        stop_in_the_middle();
        std::ranges::for_each(members(), [this](Member& member) { start(member); });
        await_empty();
    }
    stop_all();
    judge_lives(m_redis, outages());

    JobVerdict verdict = this->verdict();
    for (const auto& [kind, times] : verdict.came()) {
        report().came(kind, times);
    }
    std::ranges::copy(verdict.judge(), std::back_inserter(wrong()));
    return std::move(wrong());
}

inline JobVerdict JobCrowd::verdict() {
    JobVerdict verdict(folder(), m_killed);
    for (const Keys& keys : m_queues) {
        verdict.add_recoveries(recoveries(keys));
        verdict.add_dead(m_redis.lrange(keys.dead()));
    }
    return verdict;
}

inline bool JobCrowd::has_seen(std::vector<std::string_view> kinds) {
    std::erase_if(kinds, [this](std::string_view kind) { return report().have_come({kind}); });
    if (kinds.empty() || !redis_answers()) {
        return kinds.empty();
    }
    const auto came = verdict().came();
    return std::ranges::all_of(kinds, [&](std::string_view kind) {
        const auto found = came.find(std::string(kind));
        return found != came.end() && found->second > 0;
    });
}

/// In one step: a job that failed meanwhile would be in a place that was searched already.
inline bool JobCrowd::is_empty(const Keys& keys) {
    constexpr const char* left = R"lua(
local left = redis.call('LLEN', KEYS[1]) + redis.call('LLEN', KEYS[2]) +
    redis.call('ZCARD', KEYS[3]) + redis.call('LLEN', KEYS[4])
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
    if redis.call('TYPE', key).ok == 'list' then
        left = left + redis.call('LLEN', key) - 1 -- the header
    end
end
return left
)lua";
    return m_redis
               .command({"EVAL", left, "4", keys.source(), keys.unack(), keys.scheduled(),
                         keys.suspects(), keys.processing("*")})
               .integer == 0;
}

inline std::vector<std::string> JobCrowd::dead_members(const Keys& keys) {
    std::vector<std::string> dead;
    for (const Answer& id : m_redis.command({"SMEMBERS", keys.consumers()}).elements) {
        const bool lives = std::ranges::any_of(members(), [&](const Member& member) {
            return member.process.lives() && id.text.starts_with(member.work().name() + ':');
        });
        if (!lives) {
            dead.push_back(id.text);
        }
    }
    return dead;
}

inline void JobCrowd::await_empty() {
    const bool empty = eventually([&] {
        look_around();
        return std::ranges::all_of(m_queues, [this](const Keys& keys) {
            return is_empty(keys) && dead_members(keys).empty();
        });
    });
    if (empty) {
        return;
    }
    wrong().emplace_back("not everything was finished, or the dead were not collected");
    for (const Keys& keys : m_queues) {
        for (const std::string& id : dead_members(keys)) {
            wrong().push_back(id + " is dead and registered at " + keys.source());
        }
    }
}

/// Each ends by itself and leaves the registry.
inline void JobCrowd::stop_all() {
    for (const Member& member : members()) {
        m_stopping.try_emplace(member.work().serial);
        member.process.ask_to_end();
    }
    for (Member& member : members()) {
        if (!eventually([&] { return member.process.end() || !member.process.lives(); })) {
            wrong().push_back(member.work().name() + " does not stop:" + member.process.threads());
            kill(member);
            continue;
        }
        has_ended(member);
    }
    for (const Keys& keys : m_queues) {
        for (const std::string& id : dead_members(keys)) {
            wrong().push_back(id + " is registered at " + keys.source() + ", and no worker runs");
        }
    }
}

/// Stops all workers in the middle of a backlog of jobs that take longer than a stop waits.
inline void JobCrowd::stop_in_the_middle() {
    const Work work{.role = "late",
                    .serial = m_late_serial++,
                    .uri = server().uri(),
                    .journal = folder() + "/late.journal"};
    for (std::size_t i = 0; i < m_queues.size(); ++i) {
        JobPushing jobs(work, m_queues[i].source(), work.first_message() + i * 1'000'000);
        for (std::size_t count = 0; count < backlog / m_queues.size(); ++count) {
            jobs.push({.milliseconds = 250});
        }
    }
    const auto counted = [this] {
        std::vector<std::map<std::string, std::int64_t>> counts;
        for (const Keys& keys : m_queues) {
            counts.push_back(recoveries(keys));
        }
        return counts;
    };
    const auto before = written("worker");
    if (!eventually([&] {
            return written("worker") >= before + workers * job_threads * sizeof(JobRecord);
        })) {
        wrong().emplace_back("not every thread of the workers has a job");
    }
    const auto crashes = counted();
    stop_all();
    if (counted() != crashes) {
        wrong().emplace_back("a stop counted as a crash");
    }
    std::set<std::uint64_t> started;
    for (const Member& member : members()) {
        for (const JobRecord& record : JobJournal::read(member.work().journal)) {
            started.insert(record.body);
        }
    }
    std::size_t count = 0;
    for (const Keys& keys : m_queues) {
        count += judge_given_back(keys, started);
    }
    report().came(given_back, count);
}

/// Requeued jobs come first when a worker serves the queue again.
inline std::size_t JobCrowd::judge_given_back(const Keys& keys,
                                              const std::set<std::uint64_t>& started) {
    constexpr std::size_t most_in_hand = workers * (jobs_in_flight + 2 * job_prefetch);
    const std::vector<std::string> waiting = m_redis.lrange(keys.source());
    std::size_t count = m_redis.llen(keys.suspects()); // for them, that is where they come first
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        if (started.contains(body_of(waiting[i]))) {
            ++count;
            if (waiting.size() - i > most_in_hand) {
                wrong().push_back("given back behind those that waited in " + keys.source());
                break;
            }
        }
    }
    return count;
}

/// How often workers died while they held a job, by its id; not those that were acked as suspects.
inline std::map<std::string, std::int64_t> JobCrowd::recoveries(const Keys& keys) {
    std::map<std::string, std::int64_t> counts;
    const Answer fields = m_redis.command({"HGETALL", keys.recoveries()});
    for (std::size_t i = 0; i + 1 < fields.elements.size(); i += 2) {
        const std::string& field = fields.elements[i].text;
        if (constexpr std::string_view of_job = "job "; field.starts_with(of_job)) {
            counts[field.substr(of_job.size())] = std::stoll(fields.elements[i + 1].text);
        }
    }
    return counts;
}

} // namespace orizuru::test
