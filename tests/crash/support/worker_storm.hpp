// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The faults of storms over workers of one queue: processes are killed, and writes refused. With
// the option `failovers`, Redis is a Cluster of three nodes, whose replicas take over now and then.

#pragma once

#include "crash/support/cluster_failovers.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/worker.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

class WorkerStorm {
  public:
    /// Is a worker until it is killed. What it writes down goes to the diary, a Redis without
    /// faults.
    using Life = std::function<int(const std::string& uri, const std::string& diary)>;

    /// Options of a worker that soon finds what the faults have left.
    static WorkerOptions options(int concurrency) {
        return {.concurrency = concurrency,
                .recheck = std::chrono::milliseconds(50),
                .scheduler = SchedulerOptions{.poll = std::chrono::milliseconds(100)},
                .collect_interval = std::chrono::milliseconds(50),
                .on_event = [](const auto&) {}};
    }

    /// The node of the first queue is killed as well, and its replica has not heard from it for up
    /// to `unheard`; those of all queues hand over.
    WorkerStorm(const FaultOptions& options, std::vector<std::string> queues, Life life,
                std::chrono::milliseconds unheard = std::chrono::milliseconds(100))
        : m_report(options),
          m_random(options.number("seed")),
          m_size(options.number("size")),
          m_failovers(options.number("failovers")),
          m_queues(std::move(queues)),
          m_life(std::move(life)),
          m_unheard(static_cast<std::uint32_t>(unheard.count())) {
        m_failovers > 0 ? void(m_cluster.emplace(3, true)) : void(m_server.emplace());
    }
    WorkerStorm(const WorkerStorm&) = delete;
    WorkerStorm& operator=(const WorkerStorm&) = delete;
    ~WorkerStorm() {
        for (const pid_t process : m_processes) {
            end(process);
        }
    }

    [[nodiscard]] FaultReport& report() noexcept { return m_report; }
    [[nodiscard]] std::uint64_t size() const noexcept { return m_size; }
    /// Confirm what must outlast a failover.
    [[nodiscard]] int replicas() const noexcept { return m_cluster ? 1 : 0; }
    [[nodiscard]] std::string uri() const {
        return m_cluster ? m_cluster->uri({0, 1, 2}) + "?connect_timeout=2000&command_timeout=2000"
                         : m_server->uri();
    }
    [[nodiscard]] std::string diary_uri() const { return m_diary.uri(); }
    [[nodiscard]] RedisClient& diary() noexcept { return m_diary_client; }
    /// A client of the node that has the queue, or the first one.
    [[nodiscard]] RedisClient redis() { return redis(m_queues.front()); }
    [[nodiscard]] RedisClient redis(const std::string& queue) {
        return m_cluster ? m_cluster->client(await_owner(*m_cluster, queue))
                         : RedisClient(m_server->uri());
    }
    [[nodiscard]] std::uint32_t below(std::uint32_t bound) {
        return static_cast<std::uint32_t>(m_random() % bound);
    }
    /// True if what was done at `time` may be undone by a failover.
    [[nodiscard]] bool may_be_lost(std::chrono::steady_clock::time_point time) const {
        return std::ranges::any_of(
            m_gaps, [&](const Gap& gap) { return gap.begin <= time && time <= gap.end; });
    }

    [[nodiscard]] const std::vector<Gap>& gaps() const noexcept { return m_gaps; }

    /// Writes down what a process has done.
    static void write(const std::string& diary, const std::vector<std::string>& command) {
        RedisClient redis(diary);
        redis.command(command);
        redis.command({"INCR", "lines"});
    }

    /// Provokes the faults; `supply` is called before each of them, to see to it that the workers
    /// have something to do.
    template <class Supply>
    void rage(Supply supply) {
        for (std::uint64_t kill = 0; kill < m_size; ++kill) {
            renew();
            supply();
            std::this_thread::sleep_for(std::chrono::milliseconds(below(100)));
            pid_t& process = m_processes[below(processes)];
            end(process);
            m_report.came("kills");
            process = begin_worker();
            if (kill % 10 == 5) {
                refuse_writes();
            }
            if ((kill + 1) * m_failovers / m_size > kill * m_failovers / m_size) {
                go_on(supply);
                fail_over();
                go_on(supply);
            }
        }
    }
    /// Begins those that have ended again.
    void renew() {
        while (m_processes.size() < processes) {
            m_processes.push_back(begin_worker());
        }
        for (pid_t& process : m_processes) {
            int status = 0;
            if (::waitpid(process, &status, WNOHANG) == process) {
                process = begin_worker();
            }
        }
    }
    void pause_one(std::chrono::milliseconds longest) {
        const pid_t process = m_processes[below(processes)];
        ::kill(process, SIGSTOP);
        std::this_thread::sleep_for(
            std::chrono::milliseconds(below(static_cast<std::uint32_t>(longest.count()))));
        ::kill(process, SIGCONT);
        m_report.came("pauses");
    }
    /// The kinds of faults that must have come.
    [[nodiscard]] std::vector<std::string_view> kinds(std::vector<std::string_view> more) const {
        more.insert(more.end(), {"kills", "write outages"});
        if (m_failovers > 1) {
            more.insert(more.end(), {"nodes killed", "nodes that handed over"});
        }
        return more;
    }

    template <class Action>
    static pid_t begin(Action action) {
        const pid_t child = ::fork();
        if (child == 0) {
            try {
                ::_exit(action());
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

  private:
    static constexpr std::size_t processes = 4;

    pid_t begin_worker() {
        return begin([this] { return m_life(uri(), diary_uri()); });
    }
    void refuse_writes() {
        RedisClient refusing = redis();
        refusing.command({"CONFIG", "SET", "min-replicas-to-write", "9"});
        std::this_thread::sleep_for(std::chrono::milliseconds(100 + below(400)));
        refusing.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        m_report.came("write outages");
    }
    void fail_over() {
        if (m_failed_over++ % 2 == 0) {
            m_gaps.push_back(
                kill_owner(*m_cluster, m_queues.front(),
                           std::chrono::milliseconds(below(2) * (20 + below(m_unheard)))));
            m_report.came("nodes killed");
        } else {
            hand_over(*m_cluster, m_queues[m_failed_over / 2 % m_queues.size()]);
            m_report.came("nodes that handed over");
        }
    }
    /// Returns when the workers have done something.
    template <class Supply>
    void go_on(Supply supply) {
        const auto lines = [this] {
            return std::stoll("0" + m_diary_client.command({"GET", "lines"}).text);
        };
        const auto before = lines();
        const bool goes_on = eventually(
            [&] {
                renew();
                supply();
                return lines() >= before + 20;
            },
            std::chrono::seconds(60));
        if (!goes_on) {
            m_report.violation("the workers do not go on");
        }
    }

    FaultReport m_report;
    std::mt19937 m_random;
    const std::uint64_t m_size;
    const std::uint64_t m_failovers;
    const std::vector<std::string> m_queues;
    const Life m_life;
    const std::uint32_t m_unheard;
    std::optional<RedisServer> m_server;
    std::optional<Cluster> m_cluster;
    RedisServer m_diary;
    RedisClient m_diary_client{m_diary.uri()};
    std::vector<Gap> m_gaps;
    std::uint64_t m_failed_over = 0;
    std::vector<pid_t> m_processes;
};

} // namespace orizuru::test
