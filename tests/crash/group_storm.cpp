// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills processes that handle groups of jobs, and now and then one that makes a group, while some
// jobs fail, some die, and writes are refused. Each member is written down before it is acked: the
// job that follows a group must come once, behind all of them, and never for a group that was not
// committed.
//
// usage: group_storm [--size KILLS] [--seed N] [--jobs N]

#include "crash/support/fault_program.hpp"
#include "support/elapsed.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/worker.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace group_storm_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::DeadList;
using orizuru::GroupThen;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::JobGroup;
using orizuru::OnDead;
using orizuru::Raw;
using orizuru::Worker;

constexpr int processes = 4;

/// "7" is the eighth job of its group; "7!" always kills its process, "7x" is not done until all
/// that is dead may run.
int live(const std::string& uri) {
    Worker worker(uri, {.concurrency = 2,
                        .recheck = 50ms,
                        .scheduler = orizuru::SchedulerOptions{.poll = 100ms},
                        .collect_interval = 50ms,
                        .on_event = [](const auto&) {}});
    worker.handle<Raw>(
        "{s}q",
        [&uri, random = std::minstd_rand(static_cast<unsigned>(::getpid()))](
            JobContext<Raw>& job) mutable {
            const std::string& payload = job->payload.bytes;
            RedisClient redis(uri);
            const bool allowed = redis.command({"EXISTS", "allowed"}).integer == 1;
            if (payload.ends_with('!') && !allowed) {
                ::kill(::getpid(), SIGKILL);
            }
            if (payload.ends_with('x') && !allowed) {
                throw orizuru::DoNotRetry("never");
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5)); // its work
            if (random() % 20 == 0) {
                throw std::runtime_error("not now");
            }
            constexpr std::size_t prefix = 10;
            redis.command({"SADD", "done:" + job->group.substr(prefix, 32), payload});
        },
        {.retry = {.max_attempts = 1000, .backoff = orizuru::backoff::fixed(20ms)},
         .lease = 500ms});
    return worker.run();
}

/// Makes one group. Every fifth maker goes without a commit.
int make(const std::string& uri, int number, int jobs) {
    RedisClient redis(uri);
    JobGroup group(uri, "{s}q",
                   {.then = GroupThen("{s}then", Raw{std::to_string(number)}),
                    .on_dead = number % 2 == 0 ? OnDead::wait : OnDead::count,
                    .expires_after = 1s});
    std::vector<Raw> payloads;
    for (int i = 0; i < jobs; ++i) {
        const bool kills = number < 2 && i == 5;
        payloads.push_back({std::to_string(i) + (kills ? "!" : i % 100 == 13 ? "x" : "")});
    }
    group.push_all("{s}q", payloads);
    if (number % 5 == 4) {
        redis.command({"SADD", "left", group.id()});
        return 0;
    }
    group.commit();
    redis.command({"SADD", "committed", group.id()});
    return 0;
}

class Storm {
  public:
    explicit Storm(const FaultOptions& options)
        : m_options(options),
          m_report(options),
          m_random(options.number("seed")),
          m_jobs(static_cast<int>(options.number("jobs"))) {}
    Storm(const Storm&) = delete;
    Storm& operator=(const Storm&) = delete;
    ~Storm() {
        for (const pid_t process : m_processes) {
            end(process);
        }
        if (m_maker > 0) {
            end(m_maker);
        }
    }

    int run() {
        for (int i = 0; i < processes; ++i) {
            m_processes.push_back(begin_worker());
        }
        const std::uint64_t kills = m_options.number("size");
        for (std::uint64_t kill = 0; kill < kills; ++kill) {
            if (m_redis.llen("{s}q") < m_jobs) {
                make_group();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(m_random() % 100)); // the storm's
            pid_t& process = m_processes[m_random() % m_processes.size()];
            end(process);
            m_report.came("kills");
            process = begin_worker();
            if (kill % 20 == 5) {
                refuse_writes();
            }
            judge_followers();
        }
        m_redis.command({"SET", "allowed", "1"});
        if (!holds_within(120s, [this] { return drained(); })) {
            m_report.violation("not all is done: " + left());
        }
        judge();
        return m_report.finish({"kills", "write outages", "groups", "groups left by their makers",
                                "groups with dead jobs", "dead jobs run again"});
    }

  private:
    template <class Life>
    static pid_t begin(Life life) {
        const pid_t child = ::fork();
        if (child == 0) {
            try {
                ::_exit(life());
            } catch (...) {
                ::_exit(99);
            }
        }
        return child;
    }
    pid_t begin_worker() {
        return begin([this] { return live(m_server.uri()); });
    }
    static void end(pid_t process) {
        ::kill(process, SIGKILL);
        int status = 0;
        ::waitpid(process, &status, 0);
    }
    void make_group() {
        if (m_maker > 0) {
            int status = 0;
            if (m_random() % 10 == 0) {
                end(m_maker);
            } else if (::waitpid(m_maker, &status, WNOHANG) != m_maker) {
                return;
            }
        }
        m_maker = begin([this, number = m_groups] { return make(m_server.uri(), number, m_jobs); });
        ++m_groups;
    }
    void refuse_writes() {
        m_redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
        std::this_thread::sleep_for(std::chrono::milliseconds(100 + m_random() % 400));
        m_redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        m_report.came("write outages");
    }
    bool drained() {
        for (pid_t& process : m_processes) { // killers end them
            int status = 0;
            if (::waitpid(process, &status, WNOHANG) == process) {
                process = begin_worker();
            }
        }
        m_report.came("dead jobs run again",
                      DeadList(m_server.uri(), "{s}q").redrive_all().redriven);
        return left() == "0 pending, 0 in the queue, 0 put off, 0 dead";
    }
    std::string left() {
        std::int64_t pending = 0;
        for (const std::string& id : set_of("committed")) {
            pending += std::stoll("0" + m_redis.command({"HGET", key_of(id), "left"}).text);
        }
        return std::to_string(pending) + " pending, " + std::to_string(m_redis.llen("{s}q")) +
               " in the queue, " +
               std::to_string(m_redis.command({"ZCARD", "orizuru:{s}:{s}q:scheduled"}).integer) +
               " put off, " + std::to_string(m_redis.llen("orizuru:{s}:{s}q:dead")) + " dead";
    }
    [[nodiscard]] std::vector<std::string> set_of(const std::string& key) {
        std::vector<std::string> found;
        for (const Answer& element : m_redis.command({"SMEMBERS", key}).elements) {
            found.push_back(element.text);
        }
        return found;
    }
    bool is_listed(const std::string& id) {
        return !m_redis.command({"ZSCORE", "orizuru:{s}:{s}q:groups", id}).text.empty();
    }
    static std::string key_of(const std::string& id) { return "orizuru:{s}:{s}q:group:" + id; }
    [[nodiscard]] std::vector<Job<Raw>> followers() {
        std::vector<Job<Raw>> found;
        for (const std::string& bytes : m_redis.lrange("{s}then")) {
            orizuru::Scratch scratch;
            found.push_back(orizuru::Codec<Job<Raw>>::decode(bytes, scratch));
        }
        return found;
    }
    /// All that have come have come behind the members of their groups.
    void judge_followers() {
        for (const Job<Raw>& job : followers()) {
            const int failed = std::stoi(job.attributes.at("group_failed"));
            if (m_judged.insert(job.id).second &&
                m_redis.command({"SCARD", "done:" + job.id}).integer + failed < m_jobs) {
                m_report.violation("group " + job.payload.bytes + " is followed before its end");
            }
        }
    }
    void judge() {
        judge_followers();
        std::map<std::string, int> times;
        for (const Job<Raw>& job : followers()) {
            ++times[job.id];
            const bool counts = std::stoi(job.payload.bytes) % 2 == 1;
            const int failed = std::stoi(job.attributes.at("group_failed"));
            if (job.attributes.at("group_jobs") != std::to_string(m_jobs) ||
                (!counts && failed > 0)) {
                m_report.violation("group " + job.payload.bytes + " says the wrong numbers");
            }
            m_report.came("groups with dead jobs", failed > 0 ? 1 : 0);
        }
        for (const auto& [id, count] : times) {
            if (count > 1) {
                m_report.violation("group " + id + " is followed " + std::to_string(count) +
                                   " times");
            }
        }
        for (const std::string& id : set_of("committed")) {
            m_report.came("groups");
            if (times[id] != 1) {
                m_report.violation("group " + id + " is not followed");
            }
            if (is_listed(id)) {
                m_report.violation("group " + id + " is done, and still on the list of those open");
            }
        }
        for (const std::string& id : set_of("left")) {
            m_report.came("groups left by their makers");
            if (times[id] != 0) {
                m_report.violation("group " + id + " is followed without a commit");
            }
        }
    }

    const FaultOptions& m_options;
    FaultReport m_report;
    std::mt19937 m_random;
    const int m_jobs;
    int m_groups = 0;
    RedisServer m_server;
    RedisClient m_redis{m_server.uri()};
    std::set<std::string> m_judged;
    std::vector<pid_t> m_processes;
    pid_t m_maker = 0;
};

int run(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments,
                                   {{"size", "60"}, {"seed", "1"}, {"jobs", "100"}});
        return Storm(options).run();
    });
}

const FaultProgram program("group_storm", &run);

} // namespace group_storm_test
