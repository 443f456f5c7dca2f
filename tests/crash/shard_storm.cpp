// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A queue of 6 to 12 shards on a Cluster of three nodes that sync each write: workers are killed, a
// node is killed and started again, shards move to another node, and their number grows and
// shrinks, while producers push in turn, by key and in batches. Each confirmed job must be done,
// twice only where a killed worker had it.
//
// usage: shard_storm [--seed N] [--size FAULTS]

#include "crash/support/fault_program.hpp"
#include "crash/support/process.hpp"
#include "fuzz/simulation/chance.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"

#include <orizuru/detail/shards/shard_names.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/sharded.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_shards.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace shard_storm_test {

using namespace std::chrono_literals;
using namespace orizuru;
using namespace orizuru::test;

constexpr int concurrency = 4;
const std::string queue = "orders";

/// A worker's process: writes the number of each job that it has done, and its own, to the journal.
int do_work(const Work& work) {
    const Fd journal{::open(work.journal.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    const Endpoint endpoint(work.uri);
    const auto patiently = [](auto connect) {
        while (true) {
            try {
                return connect();
            } catch (const Error&) {
                std::this_thread::sleep_for(10ms); // a node is down
            }
        }
    };
    while (true) {
        Worker worker(endpoint, {.concurrency = concurrency,
                                 .collect_interval = 500ms,
                                 .on_event = [](const WorkerEvent&) {}});
        patiently([&] {
            worker.handle_shards<std::uint64_t>(
                queue,
                [&](std::uint64_t number) {
                    const std::string line =
                        std::to_string(number) + ' ' + std::to_string(work.serial) + '\n';
                    if (::write(journal.get(), line.data(), line.size()) < 0) {
                        std::abort();
                    }
                },
                {.lease = 5s, .prefetch = static_cast<int>(work.index % 2) * 9 + 1});
        });
        try {
            worker.run_and_exit();
            return EXIT_SUCCESS;
        } catch (const Error&) {
            std::this_thread::sleep_for(10ms); // not even begun: a node is down
        }
    }
}

/// What producers know of their jobs.
class Pushes {
  public:
    void confirmed(std::uint64_t first, std::uint64_t count) { note(m_confirmed, first, count); }
    void refused(std::uint64_t first, std::uint64_t count) { note(m_refused, first, count); }

    [[nodiscard]] std::size_t count() const {
        const std::lock_guard lock(m_mutex);
        return m_confirmed.size();
    }
    // Once no producer runs.
    [[nodiscard]] const std::set<std::uint64_t>& confirmed() const { return m_confirmed; }
    [[nodiscard]] const std::set<std::uint64_t>& refused() const { return m_refused; }

  private:
    void note(std::set<std::uint64_t>& numbers, std::uint64_t first, std::uint64_t count) {
        const std::lock_guard lock(m_mutex);
        for (std::uint64_t i = 0; i < count; ++i) {
            numbers.insert(first + i);
        }
    }

    mutable std::mutex m_mutex;
    std::set<std::uint64_t> m_confirmed;
    std::set<std::uint64_t> m_refused;
};

/// What producers are told.
struct Orders {
    std::atomic<bool> wait{false}; ///< the workers do not keep up, on a machine with a slow disk
    std::atomic<int> reloads{0};
};

void produce(const std::string& uri, std::uint64_t own, Pushes& pushes, const Orders& orders,
             std::stop_token stop) {
    ShardedProducer<Job<std::uint64_t>> producer(uri, queue);
    int reloads = 0;
    for (std::uint64_t next = own * Work::most_messages; !stop.stop_requested();) {
        if (const int wanted = orders.reloads.load(); wanted != reloads) {
            try {
                producer.reload();
                reloads = wanted;
            } catch (const Error&) { // NOLINT(bugprone-empty-catch)
                // A node is down; it pushes as before.
            }
        }
        const std::uint64_t count = own == 0 ? 50 : 1;
        std::vector<Job<std::uint64_t>> jobs;
        for (std::uint64_t i = 0; i < count; ++i) {
            jobs.push_back(make_job(next + i));
        }
        try {
            if (own == 0) {
                producer.push_all(jobs);
            } else if (own == 1) {
                producer.push(jobs[0]);
            } else {
                producer.push(std::to_string(next), jobs[0]);
            }
            pushes.confirmed(next, count);
        } catch (const Error& error) {
            const auto* const broken = dynamic_cast<const ConnectionError*>(&error);
            pushes.confirmed(next, error.pushed());
            if (broken == nullptr || !broken->in_doubt()) {
                pushes.refused(next + error.pushed(), count - error.pushed());
            }
        }
        next += count;
        std::this_thread::sleep_for(orders.wait ? 200ms : own == 0 ? 20ms : 1ms);
    }
}

class Storm {
  public:
    Storm(const FaultOptions& options, FaultReport& report)
        : m_report(report), m_chance(options.number("seed")) {
        create_shards(m_uri, queue, 12);
        for (std::size_t i = 0; i < 3; ++i) {
            m_workers.emplace_back(Work{.role = "worker", .index = i, .journal = m_journal},
                                   m_folder.path() + "/log");
            start(m_workers.back());
        }
        for (std::uint64_t own = 0; own < 3; ++own) {
            m_producers.emplace_back([this, own](std::stop_token stop) {
                produce(m_uri, own, m_pushes, m_orders, std::move(stop));
            });
        }
    }

    void fault() {
        std::this_thread::sleep_for(std::chrono::milliseconds(m_chance.between(20, 200)));
        hold_back();
        switch (m_chance.below(8)) {
        case 0:
            return kill_node();
        case 1:
        case 2:
            return change_shards();
        case 3:
        case 4:
            return move_shard();
        default:
            return kill_worker();
        }
    }

    void finish() {
        m_producers.clear();
        const bool done = eventually([&] { return waiting() == 0; }, 60s);
        if (!done) {
            m_report.violation("the shards do not drain: " + std::to_string(waiting()));
        }
        for (Process& worker : m_workers) {
            end(worker);
        }
        judge();
    }

  private:
    void start(Process& worker) { worker.start(++m_serial, 0, m_uri); }
    /// As a deployment does.
    void end(Process& worker) {
        worker.ask_to_end();
        const auto ended = [&] {
            if (const auto words = worker.end()) {
                m_report.violation(*words);
            }
            return !worker.lives();
        };
        if (!eventually(ended, 40s)) {
            m_report.violation("a worker does not end");
        }
    }

    void kill_worker() {
        Process& worker = m_chance.pick(m_workers);
        m_killed.insert(worker.work().serial);
        if (const auto words = worker.kill()) {
            m_report.violation(*words);
        }
        start(worker);
        m_report.came("workers killed");
    }

    void kill_node() {
        const std::size_t node = m_chance.below(m_cluster.size());
        m_cluster.node(node).kill();
        std::this_thread::sleep_for(std::chrono::milliseconds(m_chance.between(0, 500)));
        m_cluster.node(node).restart();
        Cluster::await([&] { return m_cluster.serves(); });
        m_report.came("nodes killed");
    }

    void move_shard() {
        std::vector<std::string> names = read();
        const std::string& name = m_chance.pick(names);
        // For up to a second after a move, the former node still serves those who wait there. With
        // a slot that comes back in that time, it would move a message to a list of its own.
        auto& moved = m_moved[name];
        std::this_thread::sleep_until(moved + 1100ms);
        m_cluster.migrate(name, (m_cluster.owner(name) + 1 + m_chance.below(2)) % 3);
        moved = std::chrono::steady_clock::now();
        m_report.came("shards moved");
    }

    /// As README says, with a moment between the steps.
    void change_shards() {
        const std::size_t before = m_shards;
        m_shards = std::vector<std::size_t>{6, 8, 12}[m_chance.below(3)];
        if (m_shards == before) {
            return;
        }
        add_shards(m_uri, queue, m_shards);
        for (Process& worker : m_workers) { // one after the other
            end(worker);
            start(worker);
        }
        use_shards(m_uri, queue, m_shards);
        const auto retired = [&] {
            hold_back();
            return retires();
        };
        if (!eventually(retired, 20s)) {
            // All have to be empty at once, which they may never be while producers push to them.
            ++m_orders.reloads;
            if (!eventually(retired, 160s)) {
                m_report.violation("the former shards do not drain");
            }
        }
        m_report.came(m_shards > before ? "times grown" : "times shrunk");
    }
    bool retires() {
        try {
            const std::vector<std::string> names = retire_shards(m_uri, queue);
            m_retired.insert(names.begin(), names.end());
            m_report.came("shards retired", names.size());
            return true;
        } catch (const ReplyError& error) {
            if (error.code() != "NOTEMPTY") {
                throw;
            }
            m_report.came("retirements refused");
            return false;
        }
    }

    [[nodiscard]] std::vector<std::string> read() const { return shards(m_uri, queue); }
    /// What waits must not grow without end: the former shards have to drain.
    void hold_back() { m_orders.wait = waiting() > 5000; }
    /// Jobs of all shards that there have been, wherever they are.
    [[nodiscard]] std::int64_t waiting() {
        std::set<std::string> names = m_retired;
        for (const std::size_t count : {6, 8, 12}) {
            for (std::string& name : detail::shard_names(queue, count)) {
                names.insert(std::move(name));
            }
        }
        std::int64_t sum = 0;
        for (const std::string& name : names) {
            RedisClient redis = m_cluster.client_of(name);
            const Keys keys(name);
            sum += redis.type(name) == "list" ? redis.llen(name) : 0;
            sum += redis.llen(keys.unack()) + redis.llen(keys.dead());
            sum += redis.command({"ZCARD", keys.scheduled()}).integer;
            for (const std::string& list : redis.keys(keys.processing("*"))) {
                // A collector may put a fence in its place at any time.
                const Answer length = redis.try_command({"LLEN", list});
                sum += length.is_error() || length.integer == 0 ? 0 : length.integer - 1;
            }
        }
        return sum;
    }

    void judge() {
        std::map<std::uint64_t, std::vector<std::uint64_t>> done; // by which processes
        std::ifstream journal(m_journal);
        for (std::uint64_t number = 0, serial = 0; journal >> number >> serial;) {
            done[number].push_back(serial);
        }
        std::uint64_t repeated = 0;
        for (const auto& [number, by] : done) {
            for (std::size_t i = 0; i + 1 < by.size(); ++i) {
                ++repeated;
                if (!m_killed.contains(by[i])) {
                    m_report.violation("done again though its worker lived: " +
                                       std::to_string(number));
                }
            }
            if (m_pushes.refused().contains(number)) {
                m_report.violation("done though its push was refused: " + std::to_string(number));
            }
        }
        for (const std::uint64_t number : m_pushes.confirmed()) {
            if (!done.contains(number)) {
                m_report.violation("LOST " + std::to_string(number));
            }
        }
        m_report.came("confirmed pushes", m_pushes.confirmed().size());
        m_report.came("jobs done", done.size());
        std::cout << repeated << " jobs done again after a kill\n";
    }

    FaultReport& m_report;
    Chance m_chance;
    Cluster m_cluster{3,
                      false,
                      {"--appendonly", "yes", "--appendfsync", "always",
                       "--cluster-require-full-coverage", "no"}};
    Orders m_orders;
    std::string m_uri = m_cluster.uri({0, 1, 2}) + "?connect_timeout=1000&command_timeout=2000";
    TempDir m_folder;
    std::string m_journal = m_folder.path() + "/journal";
    std::deque<Process> m_workers; // which cannot be moved into place
    std::uint64_t m_serial = 0;
    std::set<std::uint64_t> m_killed;
    std::size_t m_shards = 12;
    std::set<std::string> m_retired;
    std::map<std::string, std::chrono::steady_clock::time_point> m_moved;
    Pushes m_pushes;
    std::vector<std::jthread> m_producers;
};

const FaultProgram program("shard_storm", [](int count, char** arguments) {
    return main_of_processes(count, arguments, do_work, [&] {
        const FaultOptions options(count, arguments, {{"seed", "1"}, {"size", "40"}});
        FaultReport report(options);
        Storm storm(options, report);
        std::vector<std::string_view> kinds{"nodes killed", "shards moved", "shards retired",
                                            "times grown",  "times shrunk", "workers killed"};
        const auto all_came = [&] { return report.have_come(kinds); };
        for (std::uint64_t faults = 0;
             report.wants_more(faults, options.number("size"), all_came) && !report.is_full();
             ++faults) {
            storm.fault();
        }
        storm.finish();
        kinds.insert(kinds.end(), {"confirmed pushes", "jobs done"});
        return report.finish(kinds);
    });
});

} // namespace shard_storm_test
