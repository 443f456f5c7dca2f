// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills and pauses processes that serve two queues with limits, while writes are refused now and
// then. No more handlers of the one than it has slots run at any time, but for those whose leases
// are over. No span has more begins of the other's jobs than its rate says: a job begins at most 50
// ms behind its permit, so that is asked of spans shorter by that. No job is missing.
//
// usage: limit_storm [--size KILLS] [--seed N]

#include "crash/support/fault_program.hpp"
#include "support/elapsed.hpp"
#include "support/fault_run.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/limit.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace limit_storm_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::JobContext;
using orizuru::JobProducer;
using orizuru::Rate;
using orizuru::Raw;
using orizuru::Worker;

constexpr Rate rate{.most = 25, .per = 500ms};
constexpr auto lateness = 50ms;
constexpr int slots = 5;

std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// The runs of all processes, in memory that they share.
class Runs {
  public:
    struct Run {
        std::atomic<std::int64_t> begun;
        std::atomic<std::int64_t> valid; ///< the last time at which its lease was
    };

    Runs()
        : m_shared(static_cast<Shared*>(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                               MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
    Runs(const Runs&) = delete;
    Runs& operator=(const Runs&) = delete;
    ~Runs() { ::munmap(m_shared, sizeof(Shared)); }

    [[nodiscard]] Run& begin() { return m_shared->runs.at(m_shared->count++); }
    [[nodiscard]] std::span<const Run> all() const {
        return std::span(m_shared->runs).first(m_shared->count);
    }

  private:
    struct Shared {
        std::atomic<std::size_t> count;
        std::array<Run, 1'000'000> runs;
    };
    Shared* m_shared;
};

/// Works for a while, as long as the lease is valid.
void work(const orizuru::JobRun& job, Runs& all, std::chrono::milliseconds time) {
    Runs::Run& run = all.begin();
    run.begun = now();
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        const std::int64_t at = now();
        if (!job.lease_valid()) {
            return;
        }
        run.valid = at;
        std::this_thread::sleep_for(1ms);
    }
}

int live(const std::string& uri, Runs& bounded, Runs& rated) {
    Worker worker(uri, {.concurrency = 4,
                        .recheck = 50ms,
                        .scheduler = orizuru::SchedulerOptions{.poll = 100ms},
                        .collect_interval = 50ms,
                        .on_event = [](const auto&) {}});
    const orizuru::QueueOptions options{
        .retry = {.max_attempts = 1000, .backoff = orizuru::backoff::fixed(20ms)},
        .lease = 500ms,
        .max_recoveries = 1000};
    const auto done = [&uri](const JobContext<Raw>& job) {
        RedisClient(uri).command({"SADD", "done", job.queue() + job->payload.bytes});
    };
    worker
        .handle<Raw>(
            "bounded",
            [&](JobContext<Raw>& job) {
                static thread_local std::minstd_rand random(static_cast<unsigned>(::getpid()));
                work(job, bounded, std::chrono::milliseconds(1 + random() % 30));
                done(job);
            },
            options)
        .limit("bounded", {.concurrency = slots});
    worker
        .handle<Raw>(
            "rated",
            [&](JobContext<Raw>& job) {
                Runs::Run& run = rated.begin();
                run.begun =
                    std::chrono::floor<std::chrono::microseconds>(job.since().time_since_epoch())
                        .count();
                done(job);
            },
            options)
        .limit("rated", {.rate = rate});
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
            end(process, SIGKILL);
        }
    }

    int run() {
        const std::uint64_t kills = m_options.number("size");
        push("bounded", 100 * kills);
        push("rated", 8 * kills);
        for (pid_t& process : m_processes) {
            process = begin();
        }
        for (std::uint64_t kill = 0; kill < kills; ++kill) {
            std::this_thread::sleep_for(std::chrono::milliseconds(m_random() % 400)); // the storm's
            pid_t& process = m_processes.at(m_random() % m_processes.size());
            if (kill % 3 == 1) {
                ::kill(process, SIGSTOP);
                std::this_thread::sleep_for(std::chrono::milliseconds(m_random() % 900));
                ::kill(process, SIGCONT);
                m_report.came("pauses");
            }
            if (kill % 4 == 2) {
                refuse_writes();
            }
            end(process, SIGKILL);
            m_report.came("kills");
            process = begin();
        }
        const auto wanted = static_cast<std::int64_t>(108 * kills);
        if (!holds_within(120s + kills * 1s, [&] { return done() == wanted; })) {
            m_report.violation(std::to_string(done()) + " jobs are done, of " +
                               std::to_string(wanted));
        }
        for (pid_t& process : m_processes) {
            end(std::exchange(process, 0), SIGTERM);
        }
        judge_slots();
        judge_rate();
        return m_report.finish({"kills", "pauses", "write outages", "runs"});
    }

  private:
    void push(const std::string& queue, std::uint64_t count) {
        JobProducer<Raw> producer(m_server.uri(), queue);
        for (std::uint64_t i = 0; i < count; ++i) {
            producer.push({std::to_string(i)});
        }
    }
    pid_t begin() {
        const pid_t child = ::fork();
        if (child == 0) {
            try {
                ::_exit(live(m_server.uri(), m_bounded, m_rated));
            } catch (...) {
                ::_exit(99);
            }
        }
        return child;
    }
    static void end(pid_t process, int signal) {
        if (process > 0) {
            ::kill(process, signal);
            int status = 0;
            ::waitpid(process, &status, 0);
        }
    }
    void refuse_writes() {
        m_redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
        std::this_thread::sleep_for(std::chrono::milliseconds(100 + m_random() % 900));
        m_redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        m_report.came("write outages");
    }
    std::int64_t done() { return m_redis.command({"SCARD", "done"}).integer; }
    /// Counts those that run at the same time, with valid leases.
    void judge_slots() {
        std::vector<std::pair<std::int64_t, int>> changes; // an end comes before a begin
        for (const Runs::Run& run : m_bounded.all()) {
            if (run.valid > run.begun) {
                changes.emplace_back(run.begun, 1);
                changes.emplace_back(run.valid, -1);
            }
        }
        std::ranges::sort(changes);
        int running = 0;
        int most = 0;
        for (const auto& [time, change] : changes) {
            running += change;
            most = std::max(most, running);
            if (change > 0 && running > slots) {
                m_report.violation(std::to_string(running) + " handlers at " +
                                   std::to_string(time));
            }
        }
        if (most < slots) {
            m_report.violation("never were all slots taken");
        }
        m_report.came("runs", m_bounded.all().size());
    }
    void judge_rate() {
        std::vector<std::int64_t> begun;
        for (const Runs::Run& run : m_rated.all()) {
            begun.push_back(run.begun);
        }
        std::ranges::sort(begun);
        constexpr std::int64_t span = std::chrono::microseconds(rate.per - lateness).count();
        for (std::size_t i = rate.most; i < begun.size(); ++i) {
            if (const auto took = begun[i] - begun[i - rate.most]; took <= span) {
                m_report.violation(std::to_string(rate.most + 1) + " jobs began in " +
                                   std::to_string(took) + " us");
            }
        }
        m_report.came("runs", begun.size());
    }

    const FaultOptions& m_options;
    FaultReport m_report;
    std::mt19937 m_random;
    RedisServer m_server;
    RedisClient m_redis{m_server.uri()};
    Runs m_bounded;
    Runs m_rated;
    std::array<pid_t, 3> m_processes{};
};

int run(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments, {{"size", "8"}, {"seed", "1"}});
        return Storm(options).run();
    });
}

const FaultProgram program("limit_storm", &run);

} // namespace limit_storm_test
