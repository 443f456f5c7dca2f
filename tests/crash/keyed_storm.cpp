// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills processes that handle jobs with keys, most of them in bursts, while some jobs fail, some
// die, and writes are refused now and then. Each run of a job is written down before it is acked:
// of each key they must come in the order of the pushes, the same ones again only behind a kill or
// a failure, and at most a burst of them, and none is missing. With failovers, an order goes back
// farther only to a job whose ack its replica lacked.
//
// usage: keyed_storm [--size KILLS] [--seed N] [--keys N] [--jobs N] [--failovers N]

#include "crash/support/fault_program.hpp"
#include "crash/support/worker_storm.hpp"
#include "support/elapsed.hpp"
#include "support/fault_run.hpp"
#include "support/redis_client.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/worker.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace keyed_storm_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::KeyedJobProducer;
using orizuru::Raw;
using orizuru::Worker;

constexpr int jobs_at_once = 10;
constexpr int burst = 8;

using Clock = std::chrono::steady_clock;

/// "7" is the eighth job of its key; "7!" always kills its process, "7x" is never done.
int live(const std::string& uri, const std::string& diary) {
    Worker worker(uri, WorkerStorm::options(2));
    worker.handle_keyed<Raw>(
        "q",
        [&diary, random = std::minstd_rand(static_cast<unsigned>(::getpid()))](
            JobContext<Raw>& job) mutable {
            const std::string& payload = job->payload.bytes;
            const auto now = Clock::now().time_since_epoch().count(); // of all processes
            WorkerStorm::write(diary,
                               {"RPUSH", "runs:" + job.key(), payload + ' ' + std::to_string(now)});
            if (payload.ends_with('!')) {
                ::kill(::getpid(), SIGKILL);
            }
            if (payload.ends_with('x')) {
                throw orizuru::DoNotRetry("never");
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 3)); // its work
            if (random() % 10 == 0) {
                throw std::runtime_error("not now");
            }
        },
        {.retry = {.max_attempts = 1000, .backoff = orizuru::backoff::fixed(20ms)},
         .lease = 500ms,
         .dead = {.most = 1'000'000}},
        {.burst = ::getpid() % 4 == 0 ? 1 : burst});
    return worker.run();
}

class Storm {
  public:
    explicit Storm(const FaultOptions& options)
        : m_storm(options, {"q"}, live),
          m_keys(static_cast<int>(options.number("keys"))),
          m_least(static_cast<int>(options.number("jobs"))) {}

    int run() {
        push(m_least);
        m_storm.rage([this] {
            judge_counts();
            if (m_storm.redis().llen("q") < m_keys / 2) {
                push(jobs_at_once);
            }
        });
        if (!holds_within(120s, [this] { return drained(); })) {
            m_storm.report().violation("not all is done: " + left());
        }
        judge();
        return m_storm.report().finish(m_storm.kinds({"jobs that died", "jobs run again"}));
    }

  private:
    void push(int jobs) {
        KeyedJobProducer<Raw> producer(m_storm.uri(), "q",
                                       {.replicas = {.count = m_storm.replicas(), .within = 5s}});
        for (int key = 0; key < m_keys; ++key) {
            std::vector<Raw> payloads;
            for (int i = m_jobs; i < m_jobs + jobs; ++i) {
                // Two keys have killers at different places, each of which dies by max_recoveries.
                const bool kills = key < 2 && i == 5 + 3 * key;
                payloads.push_back({std::to_string(i) + (kills ? "!" : i % 20 == 13 ? "x" : "")});
            }
            producer.push_all(std::to_string(key), payloads);
        }
        m_jobs += jobs;
    }
    bool drained() {
        m_storm.renew(); // killers end them
        RedisClient redis = m_storm.redis();
        return redis.keys("orizuru:{q}:key:*").empty() && redis.llen("q") == 0;
    }
    std::string left() {
        RedisClient redis = m_storm.redis();
        return std::to_string(redis.keys("orizuru:{q}:key:*").size()) + " keys, " +
               std::to_string(redis.llen("q")) + " jobs in the queue";
    }
    /// Each key that has jobs is counted with those behind it. A sweep mends that, so it is looked
    /// at all the time.
    void judge_counts() {
        const std::string wrong = m_storm.redis()
                                      .command({"EVAL", R"lua(
local behind, prefix, sum = 'orizuru:{q}:keyed', 'orizuru:{q}:key:', 0
local lists = redis.call('KEYS', prefix .. '*')
for _, list in ipairs(lists) do
    local count, key = redis.call('LLEN', list) - 1, string.sub(list, #prefix + 1)
    if tonumber(redis.call('ZSCORE', behind, key) or -1) ~= count then return 'key ' .. key end
    sum = sum + count
end
if redis.call('ZCARD', behind) ~= #lists + 1 then return 'the number of keys' end
return -tonumber(redis.call('ZSCORE', behind, '')) == sum and '' or 'the sum'
)lua",
                                                "0"})
                                      .text;
        if (!wrong.empty()) {
            m_storm.report().violation(wrong + " is counted wrongly");
        }
    }
    /// Returns whether the acks of the job and of those of its burst may be lost.
    bool may_be_lost(const std::map<int, Clock::time_point>& runs, int number) {
        return std::any_of(runs.lower_bound(number), runs.upper_bound(number + burst),
                           [this](const auto& run) { return m_storm.may_be_lost(run.second); });
    }
    /// Checks one key's runs.
    void judge(const std::string& key) {
        std::map<int, Clock::time_point> runs; // the last of each
        int last = -1;
        for (const std::string& run : m_storm.diary().lrange("runs:" + key)) {
            const int number = std::stoi(run);
            const Clock::time_point time{
                Clock::duration(std::stoll(run.substr(run.find(' ') + 1)))};
            if (number == last) {
                m_storm.report().came("jobs run again");
            } else if (number < last && number > last - burst) {
                m_storm.report().came("bursts run again");
            } else if (number < last && may_be_lost(runs, number)) {
                m_storm.report().came("orders that a failover has set back");
            } else if (number != last + 1) {
                m_storm.report().violation("key " + key + ": " + std::to_string(last) + ", then " +
                                           run);
            }
            last = number;
            runs[number] = time;
            ++m_begun[key + ' ' + std::to_string(number)];
        }
        if (last != m_jobs - 1) {
            m_storm.report().violation("key " + key + " ends with " + std::to_string(last));
        }
    }
    /// Only jobs that are never done die, each once, and the killers; and who was running at four
    /// kills is taken for one.
    void judge_dead() {
        std::set<std::string> seen;
        int never_done = 0;
        orizuru::Scratch scratch;
        for (const auto& entry :
             orizuru::DeadList(m_storm.uri(), "q").list(0, std::int64_t{m_keys} * m_jobs)) {
            const auto job = orizuru::Codec<Job<Raw>>::decode(entry.payload, scratch);
            const std::string& payload = job.payload.bytes;
            const std::string name = "job " + payload + " of key " + job.key;
            if (!seen.insert(name).second) {
                m_storm.report().violation(name + " died twice: " + entry.reason);
            } else if (payload.find_first_of("x!") != std::string::npos) {
                m_storm.report().came("jobs that died");
                ++never_done;
            } else if (m_begun[job.key + ' ' + std::to_string(std::stoi(payload))] > 3) {
                m_storm.report().came("jobs that four kills have buried");
            } else {
                m_storm.report().violation(name + " died: " + entry.reason);
            }
        }
        if (never_done != m_keys * ((m_jobs + 6) / 20) + std::min(m_keys, 2)) {
            m_storm.report().violation("some jobs that are never done are not dead");
        }
    }
    void judge() {
        for (int key = 0; key < m_keys; ++key) {
            judge(std::to_string(key));
        }
        judge_dead();
        judge_counts();
    }

    WorkerStorm m_storm;
    const int m_keys;
    const int m_least;
    int m_jobs = 0;                     ///< of each key
    std::map<std::string, int> m_begun; ///< how often, by key and number
};

int run(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(
            count, arguments,
            {{"size", "40"}, {"seed", "1"}, {"keys", "20"}, {"jobs", "60"}, {"failovers", "0"}});
        return Storm(options).run();
    });
}

const FaultProgram program("keyed_storm", &run);

} // namespace keyed_storm_test
