// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills processes that handle jobs with keys, while some jobs fail, some die, and writes are
// refused now and then. Each run of a job is written down before it is acked: of each key they must
// come in the order of the pushes, the same one again only behind a kill or a failure, and none is
// missing.
//
// usage: keyed_storm [--size KILLS] [--seed N] [--keys N] [--jobs N]

#include "crash/support/fault_program.hpp"
#include "support/elapsed.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/worker.hpp>

#include <sys/wait.h>
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
using orizuru::JobContext;
using orizuru::KeyedJobProducer;
using orizuru::Raw;
using orizuru::Worker;

constexpr int processes = 4;

/// "7" is the eighth job of its key; "7!" always kills its process, "7x" is never done.
int number_of(const std::string& payload) { return std::stoi(payload); }

int live(const std::string& uri) {
    Worker worker(uri, {.concurrency = 2,
                        .recheck = 50ms,
                        .scheduler = orizuru::SchedulerOptions{.poll = 100ms},
                        .collect_interval = 50ms,
                        .on_event = [](const auto&) {}});
    worker.handle_keyed<Raw>(
        "q",
        [&uri, random = std::minstd_rand(static_cast<unsigned>(::getpid()))](
            JobContext<Raw>& job) mutable {
            const std::string& payload = job->payload.bytes;
            RedisClient(uri).command({"RPUSH", "runs:" + job.key(), payload});
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
         .lease = 500ms});
    return worker.run();
}

class Storm {
  public:
    explicit Storm(const FaultOptions& options)
        : m_options(options),
          m_report(options),
          m_random(options.number("seed")),
          m_keys(static_cast<int>(options.number("keys"))),
          m_jobs(static_cast<int>(options.number("jobs"))) {}
    Storm(const Storm&) = delete;
    Storm& operator=(const Storm&) = delete;
    ~Storm() {
        for (const pid_t process : m_processes) {
            end(process);
        }
    }

    int run() {
        push();
        for (int i = 0; i < processes; ++i) {
            m_processes.push_back(begin());
        }
        const std::uint64_t kills = m_options.number("size");
        for (std::uint64_t kill = 0; kill < kills; ++kill) {
            std::this_thread::sleep_for(std::chrono::milliseconds(m_random() % 150)); // the storm's
            judge_counts();
            pid_t& process = m_processes[m_random() % m_processes.size()];
            m_report.came("kills", end(process) ? 1 : 0);
            process = begin();
            if (kill % 10 == 5) {
                refuse_writes();
            }
        }
        if (!holds_within(120s, [this] { return drained(); })) {
            m_report.violation("not all is done: " + left());
        }
        judge();
        return m_report.finish({"kills", "write outages", "jobs that died", "jobs run again"});
    }

  private:
    pid_t begin() {
        const pid_t child = ::fork();
        if (child == 0) {
            try {
                ::_exit(live(m_server.uri()));
            } catch (...) {
                ::_exit(99);
            }
        }
        return child;
    }
    /// Returns whether it was still there.
    static bool end(pid_t process) {
        ::kill(process, SIGKILL);
        int status = 0;
        ::waitpid(process, &status, 0);
        return true;
    }
    void push() {
        KeyedJobProducer<Raw> producer(m_server.uri(), "q");
        for (int key = 0; key < m_keys; ++key) {
            std::vector<Raw> payloads;
            for (int i = 0; i < m_jobs; ++i) {
                // Two keys have killers at different places, each of which dies by max_recoveries.
                const bool kills = key < 2 && i == 5 + 3 * key;
                payloads.push_back({std::to_string(i) + (kills ? "!" : i % 20 == 13 ? "x" : "")});
            }
            producer.push_all(std::to_string(key), payloads);
        }
    }
    void refuse_writes() {
        m_redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
        std::this_thread::sleep_for(std::chrono::milliseconds(100 + m_random() % 500));
        m_redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        m_report.came("write outages");
    }
    bool drained() {
        for (pid_t& process : m_processes) { // killers end them
            int status = 0;
            if (::waitpid(process, &status, WNOHANG) == process) {
                process = begin();
            }
        }
        return m_redis.keys("orizuru:{q}:key:*").empty() && m_redis.llen("q") == 0;
    }
    std::string left() {
        return std::to_string(m_redis.keys("orizuru:{q}:key:*").size()) + " keys, " +
               std::to_string(m_redis.llen("q")) + " jobs in the queue";
    }
    /// Each key that has jobs is counted with those behind it. A sweep mends that, so it is looked
    /// at all the time.
    void judge_counts() {
        const std::string wrong = m_redis
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
            m_report.violation(wrong + " is counted wrongly");
        }
    }
    void judge() {
        std::uint64_t again = 0;
        for (int key = 0; key < m_keys; ++key) {
            const std::string name = std::to_string(key);
            int last = -1;
            for (const std::string& run : m_redis.lrange("runs:" + name)) {
                const int number = number_of(run);
                again += number == last ? 1 : 0;
                if (number != last && number != last + 1) {
                    m_report.violation("key " + name + ": " + std::to_string(last) + ", then " +
                                       run);
                }
                last = number;
            }
            if (last != m_jobs - 1) {
                m_report.violation("key " + name + " ends with " + std::to_string(last));
            }
        }
        m_report.came("jobs run again", again);
        const auto dead = m_redis.llen("orizuru:{q}:dead");
        m_report.came("jobs that died", static_cast<std::uint64_t>(dead));
        const int expected = m_keys * ((m_jobs + 6) / 20) + std::min(m_keys, 2);
        if (dead != expected) {
            m_report.violation(std::to_string(dead) + " jobs are dead, not " +
                               std::to_string(expected));
        }
        judge_counts();
    }

    const FaultOptions& m_options;
    FaultReport m_report;
    std::mt19937 m_random;
    const int m_keys;
    const int m_jobs;
    RedisServer m_server;
    RedisClient m_redis{m_server.uri()};
    std::vector<pid_t> m_processes;
};

int run(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments,
                                   {{"size", "40"}, {"seed", "1"}, {"keys", "20"}, {"jobs", "60"}});
        return Storm(options).run();
    });
}

const FaultProgram program("keyed_storm", &run);

} // namespace keyed_storm_test
