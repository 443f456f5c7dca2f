// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills processes that handle groups of jobs, and now and then one that makes a group, while some
// jobs fail, some die, and writes are refused. Each member is written down before it is acked: the
// job that follows a group must come once, behind all of them, and never for a group that was not
// committed. Each third group is followed in a queue of another hash tag: at least once. With
// failovers, makers have a replica confirm what they push; all else may be set back together.
//
// usage: group_storm [--size KILLS] [--seed N] [--jobs N] [--failovers N]

#include "crash/support/fault_program.hpp"
#include "crash/support/worker_storm.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/redis_client.hpp"

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

/// Those of each third group.
bool is_followed_elsewhere(int group) { return group % 3 == 2; }
std::string queue_behind(int group) { return is_followed_elsewhere(group) ? "{r}then" : "{s}then"; }

/// "7" is the eighth job of its group; "7!" always kills its process, "7x" is not done until all
/// that is dead may run.
int live(const std::string& uri, const std::string& diary) {
    Worker worker(uri, WorkerStorm::options(2));
    worker.handle<Raw>(
        "{s}q",
        [&diary, random = std::minstd_rand(static_cast<unsigned>(::getpid()))](
            JobContext<Raw>& job) mutable {
            const std::string& payload = job->payload.bytes;
            const bool allowed = RedisClient(diary).command({"EXISTS", "allowed"}).integer == 1;
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
            WorkerStorm::write(diary, {"SADD", "done:" + job->group.substr(prefix, 32), payload});
        },
        {.retry = {.max_attempts = 1000, .backoff = orizuru::backoff::fixed(20ms)},
         .lease = 500ms,
         .forward_to = {"{r}then"}});
    return worker.run();
}

/// Makes one group. Every fifth maker goes without a commit.
int make(const WorkerStorm& storm, int number, int jobs) {
    RedisClient diary(storm.diary_uri());
    JobGroup group(storm.uri(), "{s}q",
                   {.then = GroupThen(queue_behind(number), Raw{std::to_string(number)}),
                    .on_dead = number % 2 == 0 ? OnDead::wait : OnDead::count,
                    .expires_after = 1s,
                    .replicas = {.count = storm.replicas()}});
    std::vector<Raw> payloads;
    for (int i = 0; i < jobs; ++i) {
        const bool kills = number < 2 && i == 5;
        payloads.push_back({std::to_string(i) + (kills ? "!" : i % 100 == 13 ? "x" : "")});
    }
    group.push_all("{s}q", payloads);
    if (number % 5 == 4) {
        diary.command({"SADD", "left", group.id()});
        return 0;
    }
    group.commit();
    diary.command({"SADD", "committed", group.id()});
    return 0;
}

class Storm {
  public:
    explicit Storm(const FaultOptions& options)
        : m_storm(options, {"{s}q", "{r}then"}, live),
          m_jobs(static_cast<int>(options.number("jobs"))) {}
    Storm(const Storm&) = delete;
    Storm& operator=(const Storm&) = delete;
    ~Storm() {
        if (m_maker > 0) {
            WorkerStorm::end(m_maker);
        }
    }

    int run() {
        m_storm.rage([this] { supply(); });
        static_cast<void>(eventually([this] { // of a short storm
            supply();
            return set_of("left").size() >= 1 && set_of("committed").size() >= 8 &&
                   m_storm.redis("{r}then").llen("{r}then") > 0;
        }));
        m_storm.diary().command({"SET", "allowed", "1"});
        if (!holds_within(120s, [this] { return drained(); })) {
            m_storm.report().violation("not all is done: " + left());
        }
        judge();
        return m_storm.report().finish(
            m_storm.kinds({"groups", "groups left by their makers", "groups with dead jobs",
                           "dead jobs run again", "groups followed elsewhere"}));
    }

  private:
    void supply() {
        m_storm.renew(); // killers end them
        if (m_storm.redis().llen("{s}q") < m_jobs) {
            make_group();
        }
        judge_followers();
    }
    void make_group() {
        if (m_maker > 0) {
            int status = 0;
            if (m_storm.below(10) == 0) {
                WorkerStorm::end(m_maker);
            } else if (::waitpid(m_maker, &status, WNOHANG) != m_maker) {
                return;
            }
        }
        m_maker =
            WorkerStorm::begin([this, number = m_groups] { return make(m_storm, number, m_jobs); });
        ++m_groups;
    }
    bool drained() {
        m_storm.renew();
        m_storm.report().came("dead jobs run again",
                              DeadList(m_storm.uri(), "{s}q").redrive_all().redriven);
        return left() == "0 groups, 0 pending, 0 in the queue, 0 put off, 0 dead";
    }
    std::string left() {
        RedisClient redis = m_storm.redis();
        std::set<std::string> groups;
        std::int64_t pending = 0;
        for (const std::string& id : set_of("committed")) {
            groups.insert(id);
            pending += std::stoll("0" + redis.command({"HGET", key_of(id), "left"}).text);
        }
        for (const Job<Raw>& job : followers()) {
            groups.erase(job.id);
        }
        return std::to_string(groups.size()) + " groups, " + std::to_string(pending) +
               " pending, " + std::to_string(redis.llen("{s}q")) + " in the queue, " +
               std::to_string(redis.command({"ZCARD", "orizuru:{s}:{s}q:scheduled"}).integer) +
               " put off, " + std::to_string(redis.llen("orizuru:{s}:{s}q:dead")) + " dead";
    }
    [[nodiscard]] std::vector<std::string> set_of(const std::string& key) {
        std::vector<std::string> found;
        for (const Answer& element : m_storm.diary().command({"SMEMBERS", key}).elements) {
            found.push_back(element.text);
        }
        return found;
    }
    bool is_listed(const std::string& id) {
        return !m_storm.redis().command({"ZSCORE", "orizuru:{s}:{s}q:groups", id}).text.empty();
    }
    static std::string key_of(const std::string& id) { return "orizuru:{s}:{s}q:group:" + id; }
    [[nodiscard]] std::vector<Job<Raw>> followers() {
        std::vector<Job<Raw>> found;
        for (const std::string queue : {"{s}then", "{r}then"}) {
            for (const std::string& bytes : m_storm.redis(queue).lrange(queue)) {
                orizuru::Scratch scratch;
                found.push_back(orizuru::Codec<Job<Raw>>::decode(bytes, scratch));
            }
        }
        return found;
    }
    /// All that have come have come behind the members of their groups.
    void judge_followers() {
        for (const Job<Raw>& job : followers()) {
            const int failed = std::stoi(job.attributes.at("group_failed"));
            if (m_judged.insert(job.id).second &&
                m_storm.diary().command({"SCARD", "done:" + job.id}).integer + failed < m_jobs) {
                m_storm.report().violation("group " + job.payload.bytes +
                                           " is followed before its end");
            }
        }
    }
    void judge() {
        judge_followers();
        std::map<std::string, int> times;
        std::set<std::string> elsewhere;
        for (const Job<Raw>& job : followers()) {
            ++times[job.id];
            const bool counts = std::stoi(job.payload.bytes) % 2 == 1;
            const int failed = std::stoi(job.attributes.at("group_failed"));
            if (job.attributes.at("group_jobs") != std::to_string(m_jobs) ||
                (!counts && failed > 0)) {
                m_storm.report().violation("group " + job.payload.bytes +
                                           " says the wrong numbers");
            }
            m_storm.report().came("groups with dead jobs", failed > 0 ? 1 : 0);
            if (is_followed_elsewhere(std::stoi(job.payload.bytes))) {
                elsewhere.insert(job.id);
            }
        }
        for (const auto& [id, count] : times) {
            if (count > 1 && !elsewhere.contains(id)) {
                m_storm.report().violation("group " + id + " is followed " + std::to_string(count) +
                                           " times");
            }
        }
        m_storm.report().came("groups followed elsewhere", elsewhere.size());
        for (const std::string& id : set_of("committed")) {
            m_storm.report().came("groups");
            if (times[id] == 0) {
                m_storm.report().violation("group " + id + " is not followed");
            }
            if (is_listed(id)) {
                m_storm.report().violation("group " + id +
                                           " is done, and still on the list of those open");
            }
        }
        for (const std::string& id : set_of("left")) {
            m_storm.report().came("groups left by their makers");
            if (times[id] != 0) {
                m_storm.report().violation("group " + id + " is followed without a commit");
            }
        }
    }

    WorkerStorm m_storm;
    const int m_jobs;
    int m_groups = 0;
    std::set<std::string> m_judged;
    pid_t m_maker = 0;
};

int run(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(
            count, arguments, {{"size", "60"}, {"seed", "1"}, {"jobs", "100"}, {"failovers", "0"}});
        return Storm(options).run();
    });
}

const FaultProgram program("group_storm", &run);

} // namespace group_storm_test
