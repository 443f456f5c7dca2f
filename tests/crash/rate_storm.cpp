// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills processes that serve a queue with a rate, while writes are refused now and then. Each run
// of a job is written down with the time at which it began, at most 50 ms behind its grant: so no
// span that is shorter by that than the rate's has more of them than the rate says. None is
// missing.
//
// usage: rate_storm [--size KILLS] [--seed N]

#include "crash/support/fault_program.hpp"
#include "support/elapsed.hpp"
#include "support/fault_run.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace rate_storm_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::JobContext;
using orizuru::JobProducer;
using orizuru::Rate;
using orizuru::Raw;
using orizuru::Worker;

constexpr Rate rate{.most = 25, .per = 500ms};
constexpr auto lateness = 50ms;

int live(const std::string& uri) {
    Worker worker(uri, {.concurrency = 4,
                        .recheck = 50ms,
                        .scheduler = orizuru::SchedulerOptions{.poll = 100ms},
                        .collect_interval = 50ms,
                        .on_event = [](const auto&) {}});
    worker.handle<Raw>(
        "q",
        [&uri, random = std::minstd_rand(static_cast<unsigned>(::getpid()))](
            JobContext<Raw>& job) mutable {
            const auto since =
                std::chrono::floor<std::chrono::microseconds>(job.since().time_since_epoch());
            RedisClient(uri).command(
                {"RPUSH", "runs", job->payload.bytes + " " + std::to_string(since.count())});
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30)); // its work
        },
        {.retry = {.max_attempts = 1000, .backoff = orizuru::backoff::fixed(20ms)},
         .lease = 500ms,
         .max_recoveries = 1000,
         .rate = rate});
    return worker.run();
}

class Storm {
  public:
    explicit Storm(const FaultOptions& options)
        : m_options(options), m_report(options), m_random(options.number("seed")) {}
    Storm(const Storm&) = delete;
    Storm& operator=(const Storm&) = delete;
    ~Storm() {
        for (const pid_t process : m_processes) {
            end(process);
        }
    }

    int run() {
        const std::uint64_t kills = m_options.number("size");
        const auto jobs = static_cast<int>(20 * kills);
        JobProducer<Raw> producer(m_server.uri(), "q");
        for (int i = 0; i < jobs; ++i) {
            producer.push({std::to_string(i)});
        }
        for (pid_t& process : m_processes) {
            process = begin();
        }
        for (std::uint64_t kill = 0; kill < kills; ++kill) {
            std::this_thread::sleep_for(std::chrono::milliseconds(m_random() % 400)); // the storm's
            pid_t& process = m_processes[m_random() % m_processes.size()];
            end(process);
            m_report.came("kills");
            process = begin();
            if (kill % 4 == 2) {
                refuse_writes();
            }
        }
        if (!holds_within(120s + jobs * 40ms, [&] { return done() == jobs; })) {
            m_report.violation(std::to_string(done()) + " jobs are done, of " +
                               std::to_string(jobs));
        }
        judge();
        return m_report.finish({"kills", "write outages", "runs"});
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
    static void end(pid_t process) {
        ::kill(process, SIGKILL);
        int status = 0;
        ::waitpid(process, &status, 0);
    }
    void refuse_writes() {
        m_redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
        std::this_thread::sleep_for(std::chrono::milliseconds(100 + m_random() % 500));
        m_redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        m_report.came("write outages");
    }
    int done() {
        std::set<std::string> jobs;
        for (const std::string& run : m_redis.lrange("runs")) {
            jobs.insert(run.substr(0, run.find(' ')));
        }
        return static_cast<int>(jobs.size());
    }
    void judge() {
        std::vector<std::int64_t> begun;
        for (const std::string& run : m_redis.lrange("runs")) {
            begun.push_back(std::stoll(run.substr(run.find(' '))));
        }
        std::ranges::sort(begun);
        m_report.came("runs", begun.size());
        constexpr std::int64_t span = std::chrono::microseconds(rate.per - lateness).count();
        for (std::size_t i = rate.most; i < begun.size(); ++i) {
            if (const auto took = begun[i] - begun[i - rate.most]; took <= span) {
                m_report.violation(std::to_string(rate.most + 1) + " jobs began in " +
                                   std::to_string(took) + " us");
            }
        }
    }

    const FaultOptions& m_options;
    FaultReport m_report;
    std::mt19937 m_random;
    RedisServer m_server;
    RedisClient m_redis{m_server.uri()};
    std::array<pid_t, 3> m_processes{};
};

int run(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments, {{"size", "8"}, {"seed", "1"}});
        return Storm(options).run();
    });
}

const FaultProgram program("rate_storm", &run);

} // namespace rate_storm_test
