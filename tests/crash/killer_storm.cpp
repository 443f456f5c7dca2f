// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A storm of jobs that kill the worker that runs them, one after the other, among many that do not,
// over 3 workers with 4 and 7 threads and 10 coroutines at a time; Redis takes no writes at times.
// A killer comes when nobody is suspected any more. Then all is calm, and everything must be
// finished: the killers are buried after four deaths each and nobody else is, and no job has begun
// twice unless its worker died.
//
// usage: killer_storm [--seed N] [--size DEATHS] [--outages LEAST]

#include "crash/support/coroutine_work.hpp"
#include "crash/support/fault_program.hpp"
#include "crash/support/process.hpp"
#include "crash/support/work.hpp"
#include "crash/support/write_outages.hpp"
#include "fuzz/simulation/chance.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace killer_storm_test {

using namespace orizuru::test;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::string_view killed = "worker killed by a job";
constexpr std::string_view again = "job begun again after the death of its worker";
constexpr int deaths_of_a_killer = 4;

bool kills(const std::string& job) { return job.starts_with("killer"); }

/// Runs in the child.
int do_killed_work(const Work& work) {
    orizuru::WorkerOptions options{.name = work.role,
                                   .concurrency = 4 + 3 * static_cast<int>(work.index % 3),
                                   .recheck = 50ms,
                                   .collect_interval = storm_pass,
                                   .on_event = {}};
    orizuru::Worker worker(work.uri, options);
    const auto handle = [&](const std::string& job) {
        RedisClient notes(work.database); // on a server that is never away
        notes.command({"RPUSH", "runs " + job, std::to_string(work.serial)});
        std::this_thread::sleep_for(milliseconds(5 + std::hash<std::string>{}(job) % 60));
        if (kills(job)) {
            ::raise(SIGKILL);
        }
        notes.command({"SADD", "done", job});
    };
    orizuru::QueueOptions queue{.lease = storm_lease};
#if defined(ASIO_HAS_CO_AWAIT)
    const Strands strands(10);
    if (work.index == 2) {
        queue.concurrency = 10;
        const auto handle_job = [&](orizuru::JobContext<std::string>& job) {
            handle(job->payload);
        };
        worker.handle<std::string>(work.queue, after(1ms, strands, handle_job), queue);
    } else {
        worker.handle<std::string>(work.queue, handle, queue);
    }
#else
    worker.handle<std::string>(work.queue, handle, queue);
#endif
    while (true) {
        try {
            return worker.run();
        } catch (const orizuru::Error&) { // an outage as it starts: its supervisor tries again
            std::this_thread::sleep_for(50ms);
        }
    }
}

class KillerCrowd {
  public:
    KillerCrowd(FaultReport& report, std::uint64_t seed) : m_report(report), m_chance(seed) {
        for (std::size_t i = 0; i < 3; ++i) {
            m_workers.emplace_back(Work{.role = "worker",
                                        .index = i,
                                        .queue = m_keys.source(),
                                        .journal = m_folder.path() + "/worker" + std::to_string(i),
                                        .database = m_notes_server.uri()},
                                   m_folder.path() + "/worker" + std::to_string(i) + ".log");
        }
    }

    /// How many workers were killed by jobs.
    [[nodiscard]] std::uint64_t deaths() const noexcept { return m_dead.size(); }
    [[nodiscard]] std::uint64_t outages() const noexcept { return m_outages.count(); }

    /// Starts what has ended, keeps jobs in the queue, and sends the next killer when it may come.
    void pass(std::uint64_t size) {
        look_around();
        m_outages.look();
        m_outages.begin_at_times(m_chance, deaths(), size);
        if (!m_outages.goes_on()) {
            push();
        }
        std::this_thread::sleep_for(20ms);
    }
    /// Lets the workers finish the rest, and returns the violations, in words.
    std::vector<std::string> finish();

  private:
    void look_around() {
        for (Process& worker : m_workers) {
            const bool began = worker.work().serial != 0;
            if (const auto words = worker.end()) {
                m_wrong.push_back(*words);
            }
            if (worker.lives()) {
                continue;
            }
            if (began) {
                m_dead.insert(worker.work().serial);
                m_report.came(killed);
            }
            ++m_serial;
            worker.start(m_serial, m_serial, m_server.uri());
        }
    }
    void push() {
        try {
            while (m_redis.llen(m_keys.source()) < 40) {
                push("innocent " + std::to_string(++m_innocent));
            }
            if (nobody_suspected()) {
                push("killer " + std::to_string(++m_killers));
            }
        } catch (const orizuru::Error&) { // NOLINT(bugprone-empty-catch)
            // An outage began.
        }
    }
    void push(const std::string& job) {
        m_pushed.insert(job);
        m_producer.push(job);
    }
    /// All killers are buried, and each that was blamed beside one has been acked.
    bool nobody_suspected() {
        return m_redis.llen(m_keys.dead()) == m_killers &&
               m_redis.command({"HLEN", m_keys.recoveries()}).integer == 0;
    }
    bool is_empty() {
        std::int64_t held = 0;
        for (const std::string& key : m_redis.keys(m_keys.processing("*"))) {
            held += m_redis.type(key) == "list" ? m_redis.llen(key) - 1 : 0;
        }
        return held == 0 && m_redis.llen(m_keys.source()) == 0 &&
               m_redis.llen(m_keys.suspects()) == 0;
    }
    void judge(const std::string& job);
    void judge_dead();

    FaultReport& m_report;
    Chance m_chance;
    TempDir m_folder;
    RedisServer m_server;
    RedisServer m_notes_server;
    RedisClient m_redis{m_server.uri()};
    RedisClient m_notes{m_notes_server.uri()};
    WriteOutages m_outages{m_server, m_report};
    orizuru::Keys m_keys{"storm"};
    orizuru::JobProducer<std::string> m_producer{m_server.uri(), m_keys.source()};
    std::vector<Process> m_workers;
    std::uint64_t m_serial = 0;
    std::set<std::uint64_t> m_dead; ///< serials
    std::int64_t m_innocent = 0;
    std::int64_t m_killers = 0;
    std::set<std::string> m_pushed; ///< some perhaps in vain
    std::vector<std::string> m_wrong;
};

inline std::vector<std::string> KillerCrowd::finish() {
    if (m_outages.goes_on()) {
        m_outages.end();
    }
    if (!eventually([this] {
            look_around();
            return is_empty() && nobody_suspected();
        })) {
        m_wrong.emplace_back("not everything was finished");
    }
    for (Process& worker : m_workers) {
        worker.ask_to_end();
    }
    for (Process& worker : m_workers) {
        if (!eventually([&] { return worker.end() || !worker.lives(); })) {
            m_wrong.emplace_back("a worker does not stop:" + worker.threads());
        }
    }
    judge_dead();
    for (const std::string& job : m_pushed) {
        judge(job);
    }
    return std::move(m_wrong);
}

inline void KillerCrowd::judge_dead() {
    std::set<std::string> buried;
    for (const auto& entry : orizuru::DeadList(m_server.uri(), m_keys.source()).list(0, 1000)) {
        orizuru::Scratch scratch;
        const auto job =
            orizuru::Codec<orizuru::Job<std::string>>::decode(entry.payload, scratch).payload;
        if (!kills(job) || !buried.insert(job).second) {
            m_wrong.push_back(job + " was buried: " + entry.reason);
        }
    }
}

inline void KillerCrowd::judge(const std::string& job) {
    const std::vector<std::string> runs = m_notes.lrange("runs " + job);
    const bool done = m_notes.command({"SISMEMBER", "done", job}).integer == 1;
    if (runs.empty()) {
        m_wrong.push_back("LOST " + job);
    }
    if (kills(job) ? runs.size() != deaths_of_a_killer
                   : runs.size() > deaths_of_a_killer || !done) {
        m_wrong.push_back(job + " has begun " + std::to_string(runs.size()) + " times" +
                          (done ? "" : " and was not done"));
    }
    for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
        if (!m_dead.contains(std::stoull(runs[i]))) {
            m_wrong.push_back("DUP " + job + " has begun again, and worker " + runs[i] + " lived");
        }
    }
    m_report.came(again, !kills(job) && runs.size() > 1 ? 1 : 0);
}

const FaultProgram program("killer_storm", [](int count, char** arguments) {
    return main_of_processes(count, arguments, do_killed_work, [&] {
        const FaultOptions options(count, arguments,
                                   {{"seed", "1"}, {"size", "24"}, {"outages", "0"}});
        FaultReport report(options);
        KillerCrowd crowd(report, options.number("seed"));
        std::vector<std::string_view> kinds{killed};
        kinds.insert(kinds.end(), WriteOutages::kinds.begin(), WriteOutages::kinds.end());
        while (crowd.deaths() < options.number("size") ||
               crowd.outages() < options.number("outages") || !report.have_come(kinds)) {
            crowd.pass(options.number("size"));
        }
        for (const std::string& wrong : crowd.finish()) {
            report.violation(wrong);
        }
        kinds.push_back(again);
        return report.finish(kinds);
    });
});

} // namespace killer_storm_test
