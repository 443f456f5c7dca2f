// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a limit of five jobs at once costs Redis, by the number of processes, with one thread each.
// Prints the commands, those that scripts run included, and Redis' CPU time: for a second without
// jobs, for a job of a backlog, and for one that comes alone; and the same without a limit.

#include "benchmark/server_cost.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/limit.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::FleetLimit;
using orizuru::Raw;
using orizuru::benchmark::ServerCost;

constexpr int jobs = 2000;

/// Processes that serve a queue until the end of the scope.
class Fleet {
  public:
    Fleet(const std::string& uri, std::size_t processes, const FleetLimit& limit)
        : m_processes(processes) {
        for (pid_t& process : m_processes) {
            if ((process = ::fork()) == 0) {
                ::_exit(live(uri, limit));
            }
        }
    }
    Fleet(const Fleet&) = delete;
    Fleet& operator=(const Fleet&) = delete;
    ~Fleet() {
        for (const pid_t process : m_processes) {
            if (process > 0) {
                ::kill(process, SIGKILL);
                ::waitpid(process, nullptr, 0);
            }
        }
    }
    void await(int done) const {
        if (!eventually([&] { return *m_done >= done; })) {
            throw std::runtime_error("the jobs are not done in time");
        }
    }

  private:
    [[nodiscard]] int live(const std::string& uri, const FleetLimit& limit) const {
        orizuru::Worker worker(uri, {.concurrency = 1, .on_event = [](const auto&) {}});
        worker.handle<Raw>("q", [this](const Raw&) {
            std::this_thread::sleep_for(5ms); // its work
            ++*m_done;
        });
        if (limit.concurrency) {
            worker.limit("q", limit);
        }
        return worker.run();
    }

    std::vector<pid_t> m_processes;
    std::atomic<int>* const m_done = static_cast<std::atomic<int>*>( // of all processes
        ::mmap(nullptr, sizeof *m_done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
};

/// Prints what each of so many cost.
void print(ServerCost& cost, double number, const char* what) {
    std::printf("    %-24s %7.1f commands, %6.2f EVALSHA, %6.0f us\n", what,
                cost.figure("stats", "total_commands_processed") / number,
                cost.calls("evalsha") / number, 1e6 * cost.cpu_used() / number);
}

void measure(std::size_t processes, const FleetLimit& limit) {
    const RedisServer server;
    RedisClient redis(server.uri());
    const Fleet fleet(server.uri(), processes, limit);
    std::this_thread::sleep_for(15s + processes * 20ms); // first passes, first beats
    ServerCost idle(redis);
    std::printf("%zu processes, %s: %.0f connections\n", processes,
                limit.concurrency ? "5 at once" : "no limit",
                idle.figure("clients", "connected_clients") - 1);
    std::this_thread::sleep_for(10s);
    print(idle, idle.seconds(), "a second without jobs");
    orizuru::JobProducer<Raw> producer(server.uri(), "q");
    ServerCost backlog(redis);
    producer.push_all(std::vector<Raw>(jobs));
    fleet.await(jobs);
    print(backlog, jobs, "a job of a backlog");
    ServerCost singly(redis);
    for (int i = 0; i < jobs; ++i) {
        producer.push({});
        std::this_thread::sleep_for(2ms);
    }
    fleet.await(2 * jobs);
    print(singly, jobs, "a job that comes alone");
}

} // namespace

int main() {
    for (const std::size_t processes : {10U, 100U, 1000U}) {
        measure(processes, {});
        measure(processes, {.concurrency = 5});
    }
}
