// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills and pauses processes that serve two queues with limits, while writes are refused now and
// then. No more handlers of the one than it has slots run at any time, but for those whose leases
// are over. No span has more begins of the other's jobs than its rate says: a job begins at most 50
// ms behind its permit, so that is asked of spans shorter by that. No job is missing.
//
// With failovers, the new primary may lack the last slots that the old one has given, and gives
// them once more: what begins from when the replica surely had everything to the end of the old
// primary is not counted, and all together are at most twice as many as there are slots. What else
// the replica lacked changes nothing: a slot whose renewal is lost is renewed again before it
// lapses, no span of the rate reaches over a failover, and pushes are confirmed by replicas.
//
// usage: limit_storm [--size KILLS] [--seed N] [--failovers N]

#include "crash/support/fault_program.hpp"
#include "crash/support/worker_storm.hpp"
#include "support/elapsed.hpp"
#include "support/fault_run.hpp"
#include "support/redis_client.hpp"

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
const std::string bounded_queue = "{s}bounded";
const std::string rated_queue = "{s}rated";

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

class Storm {
  public:
    explicit Storm(const FaultOptions& options)
        : m_fails_over(options.number("failovers") > 0),
          m_storm(
              options, {bounded_queue, rated_queue},
              [this](const std::string& uri, const std::string& diary) { return live(uri, diary); },
              1s) {}

    int run() {
        m_storm.rage([this] {
            supply(bounded_queue, m_fails_over ? 50 : 300);
            supply(rated_queue, 50);
            if (++m_supplies % 3 == 0) {
                m_storm.pause_one(900ms);
            }
        });
        if (!holds_within(300s, [this] { return done() == m_pushed; })) {
            m_storm.report().violation(std::to_string(done()) + " jobs are done, of " +
                                       std::to_string(m_pushed));
        }
        judge_slots();
        judge_rate();
        return m_storm.report().finish(m_storm.kinds({"pauses", "runs"}));
    }

  private:
    int live(const std::string& uri, const std::string& diary) {
        Worker worker(uri, WorkerStorm::options(4));
        const orizuru::QueueOptions options{
            .retry = {.max_attempts = 1000, .backoff = orizuru::backoff::fixed(20ms)},
            .lease = m_fails_over ? 10'000ms : 500ms, // to outlast a failover
            .max_recoveries = 1000};
        const auto done = [](const JobContext<Raw>& job) {
            return std::vector<std::string>{"SADD", "done", job.queue() + job->payload.bytes};
        };
        worker
            .handle<Raw>(
                bounded_queue,
                [&](JobContext<Raw>& job) {
                    static thread_local std::minstd_rand random(static_cast<unsigned>(::getpid()));
                    const bool is_long = m_fails_over && random() % 8 == 0;
                    work(job, m_bounded,
                         std::chrono::milliseconds(1 + random() % (is_long ? 9000 : 30)));
                    WorkerStorm::write(diary, done(job));
                },
                options)
            .limit(bounded_queue, {.concurrency = slots});
        worker
            .handle<Raw>(
                rated_queue,
                [&](JobContext<Raw>& job) {
                    Runs::Run& run = m_rated.begin();
                    run.begun = std::chrono::floor<std::chrono::microseconds>(
                                    job.since().time_since_epoch())
                                    .count();
                    RedisClient(diary).command(done(job));
                },
                options)
            .limit(rated_queue, {.rate = rate});
        return worker.run();
    }
    void supply(const std::string& queue, int count) {
        if (m_storm.redis().llen(queue) >= count) {
            return;
        }
        JobProducer<Raw> producer(m_storm.uri(), queue,
                                  {.replicas = {.count = m_storm.replicas(), .within = 5s}});
        std::vector<Raw> payloads;
        for (int i = 0; i < count; ++i) {
            payloads.push_back({std::to_string(m_pushed++)});
        }
        producer.push_all(payloads);
    }
    std::int64_t done() {
        m_storm.renew();
        return m_storm.diary().command({"SCARD", "done"}).integer;
    }
    /// Returns whether its slot may be. It has begun within a second of that: an election takes
    /// two.
    [[nodiscard]] bool may_be_given_twice(const Runs::Run& run) const {
        const std::chrono::steady_clock::time_point begun{std::chrono::microseconds(run.begun)};
        return std::ranges::any_of(m_storm.gaps(), [&](const Gap& gap) {
            return gap.begin <= begun && begun <= gap.killed + 1s;
        });
    }
    /// Counts those that run at the same time, with valid leases.
    void judge_slots() {
        struct Change {
            std::int64_t time;
            int all;   // an end comes before a begin
            int known; ///< to each primary
            auto operator<=>(const Change&) const = default;
        };
        std::vector<Change> changes;
        for (const Runs::Run& run : m_bounded.all()) {
            if (run.valid > run.begun) {
                const int known = may_be_given_twice(run) ? 0 : 1;
                changes.push_back({run.begun, 1, known});
                changes.push_back({run.valid, -1, -known});
            }
        }
        std::ranges::sort(changes);
        int running = 0;
        int known = 0;
        int most = 0;
        for (const Change& change : changes) {
            running += change.all;
            known += change.known;
            most = std::max(most, running);
            if (change.all > 0 && (known > slots || running > 2 * slots)) {
                m_storm.report().violation(
                    std::to_string(running) + " handlers at " + std::to_string(change.time) + ", " +
                    std::to_string(known) + " of them with slots that no failover gives twice");
            } else if (change.all > 0 && running > slots) {
                m_storm.report().came("handlers whose slots a failover has given twice");
            }
        }
        if (most < slots) {
            m_storm.report().violation("never were all slots taken");
        }
        m_storm.report().came("runs", m_bounded.all().size());
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
                m_storm.report().violation(std::to_string(rate.most + 1) + " jobs began in " +
                                           std::to_string(took) + " us");
            }
        }
        m_storm.report().came("runs", begun.size());
    }

    const bool m_fails_over;
    Runs m_bounded;
    Runs m_rated;
    std::int64_t m_pushed = 0;
    int m_supplies = 0;
    WorkerStorm m_storm; // last: its processes use the above
};

int run(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments,
                                   {{"size", "8"}, {"seed", "1"}, {"failovers", "0"}});
        return Storm(options).run();
    });
}

const FaultProgram program("limit_storm", &run);

} // namespace limit_storm_test
