// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker's upkeep when something is wrong with it.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

namespace worker_upkeep_test {

using namespace std::chrono_literals;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::make_job;
using orizuru::Pause;
using orizuru::Producer;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::SchedulerOptions;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::Child;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::holds_within;
using orizuru::test::RedisClient;
using orizuru::test::Running;
using orizuru::test::server;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;
using orizuru::test::WorkerTold;

int threads_of(pid_t process) {
    const std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task");
    return static_cast<int>(std::distance(begin(threads), end(threads)));
}

TEST_CASE_FIXTURE(WorkerFixture, "a process that can have no more descriptors goes on, and ends as "
                                 "it should") {
    Child child([this] {
        RedisClient own(uri); // the parent's goes on
        own.command({"PING"});
        WorkerOptions chosen = options();
        chosen.signal_handling = orizuru::SignalHandling::worker;
        chosen.scheduler.emplace();
        chosen.collect_interval = 10ms;
        Worker worker(uri, chosen);
        worker.handle<Raw>("q", [&](const Raw&) {
            const rlimit none{8, 8}; // all of which are in use
            ::setrlimit(RLIMIT_NOFILE, &none);
            own.lpush("handled", "x");
        });
        return worker.run();
    });
    REQUIRE(so_many_wait(2)); // the scheduler and the queue's waiter
    push_jobs({"the last descriptor goes"});
    REQUIRE(eventually([this] { return redis.llen("handled") == 1; }));
    // Longer than each of its intervals.
    CHECK_FALSE(eventually([&] { return child.ended(); }, 200ms));
    push_jobs({"handled all the same"});
    CHECK(eventually([this] { return redis.llen("handled") == 2; }));
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(WorkerFixture, "a dead list that cannot be trimmed keeps neither others from it "
                                 "nor the worker from seeing that a queue was paused") {
    redis.command({"SET", "orizuru:{q}:dead", "no list"});
    redis.lpush("orizuru:{other}:dead", {"a", "b", "c"});
    const QueueOptions kept{.dead = {.most = 1}};
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down(), kept).handle<Raw>("other", write_down(), kept);
    const Running running(worker);
    CHECK(eventually([this] { return redis.llen("orizuru:{other}:dead") == 1; }));
    REQUIRE(eventually([this] { return diary.count(WorkerEventKind::upkeep_failed) == 1; }));
    CHECK(diary.of(WorkerEventKind::upkeep_failed).front().queue == "q");
    REQUIRE(so_many_wait(2));
    Pause(uri, "q").pause();
    CHECK(so_many_wait(1));
    Pause(uri, "q").resume();
    CHECK(so_many_wait(2));
    redis.command({"DEL", "orizuru:{q}:dead"});
    redis.lpush("orizuru:{q}:dead", {"a", "b", "c"});
    CHECK(eventually([this] { return redis.llen("orizuru:{q}:dead") == 1; }));
}

TEST_CASE_FIXTURE(WorkerFixture, "the jobs of a worker that died come back though neither user has "
                                 "a dangerous right") {
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">sesame", "~q", "~orizuru:{q}:*",
                   "&*", "+@all", "-@dangerous"});
    const std::string clerk = "unix://clerk:sesame@" + server().socket_path();
    const QueueOptions brief{.lease = 300ms};
    Child child([&] {
        Worker worker(clerk, options());
        worker.handle<Raw>(
            "q", [](const Raw&) { ::kill(::getpid(), SIGKILL); }, brief);
        return worker.run();
    });
    push_jobs({"a"});
    CHECK(child.status() == -1);
    WorkerOptions chosen = options();
    chosen.scheduler.emplace();
    chosen.collect_interval = 50ms;
    Worker worker(clerk, chosen);
    worker.handle<Raw>("q", write_down(), brief);
    const Running running(worker);
    // Without INFO, no consumer is declared dead before the collector has been connected for 10 s.
    CHECK(eventually([this] { return handled.size() == 1; }));
    CHECK(diary.count(WorkerEventKind::upkeep_failed) == 0);
}

TEST_CASE_FIXTURE(WorkerFixture, "a worker trims its dead lists on one connection each") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", [](JobContext<Raw>& context) { context.fail("of no use"); },
                       {.retry = {.max_attempts = 1}, .dead = {.most = 1}});
    const Running running(worker);
    REQUIRE(so_many_wait(1));
    const auto all_died = [&](std::uint64_t count) {
        return eventually(
            [&] { return worker.statistics().died == count && redis.llen(dead) == 1; });
    };
    push_jobs({"a", "b", "c"});
    REQUIRE(all_died(3));
    const auto before = info("stats", "total_connections_received");
    push_jobs({"a", "b", "c"});
    REQUIRE(all_died(6));
    CHECK(info("stats", "total_connections_received") == before);
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "a worker has one connection for each queue, and three to five of its own: a "
                  "fourth beats, a fifth asks about failures and tells of progress") {
    WorkerOptions chosen = options();
    chosen.scheduler.emplace();
    chosen.collect_interval = 1h;
    Worker worker(uri, chosen);
    QueueOptions of_queue = much_later();
    of_queue.lease = 4500ms;
    const int queues = 3;
    for (const std::string queue : {"q", "other", "third"}) {
        worker.handle<Raw>(
            queue,
            [](JobContext<Raw>& job) {
                if (job->payload.bytes == "fails") {
                    job.fail("no such user");
                } else {
                    job.progress(0.5);
                }
            },
            of_queue);
    }
    const auto has = [this](int connections) {
        return eventually([=, this] { // besides the test's own
            return info("clients", "connected_clients") == connections + 1;
        });
    };
    REQUIRE(has(0));
    const Running running(worker);
    CHECK(has(queues + 3));
    CHECK(has(queues + 4)); // from the first beat on
    push_jobs({"fails"});
    CHECK(has(queues + 5));
    push_jobs({"fails"}, "other");
    push_jobs({"tells"}, "third");
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(eventually([&] { return worker.statistics().failed == 2; }));
    CHECK(has(queues + 5));
}

TEST_CASE_FIXTURE(WorkerFixture, "what is scheduled in any of its queues wakes the worker") {
    WorkerOptions chosen = options();
    chosen.scheduler = SchedulerOptions{.poll = 1h};
    Worker worker(uri, chosen);
    for (const std::string queue : {"q", "other", "third"}) {
        worker.handle<Raw>(queue, write_down());
    }
    const Running running(worker);
    REQUIRE(so_many_wait(3 + 1));
    for (const std::string queue : {"third", "q", "other", "q"}) {
        Producer<Job<Raw>> producer(uri, queue);
        handled.clear();
        push_after(producer, 20ms, make_job(Raw{queue}));
        CHECK(has_handled({queue}));
    }
}

struct Looking : WorkerFixture {
    /// It looks for schedules, and not for pauses, which it does by the same command.
    [[nodiscard]] WorkerOptions looking_often() const {
        WorkerOptions chosen = with_scheduler();
        chosen.recheck = 1h;
        return chosen;
    }
};

TEST_CASE_FIXTURE(Looking, "a worker looks at no schedule by itself while none has a message") {
    Worker worker(uri, looking_often());
    for (const std::string queue : {"q", "other", "third"}) {
        worker.handle<Raw>(queue, write_down());
    }
    redis.command({"CONFIG", "RESETSTAT"});
    const Running running(worker);
    REQUIRE(eventually([this] { return runs_of("zrange") == 3; })); // the first looks
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(eventually([this] { return runs_of("exists") >= 3; }));
    CHECK(runs_of("zrange") == 0);

    Producer<Job<Raw>> producer(uri, "other");
    push_after(producer, 1h, make_job(Raw{"much later"}));
    CHECK(eventually([this] { return runs_of("zrange") >= 5; })); // for this one alone
    redis.command({"DEL", "orizuru:{other}:scheduled"});
    CHECK(eventually([this] {
        const auto before = runs_of("zrange");
        const auto asked = runs_of("exists");
        return eventually([&] { return runs_of("exists") >= asked + 3; }) &&
               runs_of("zrange") == before;
    }));
}

/// Schedules a job in `other`, and wakes nobody.
void schedule_unheard(RedisClient& redis, const std::string& uri) {
    Producer<Job<Raw>> elsewhere(uri, "elsewhere");
    push_after(elsewhere, 300ms, make_job(Raw{"unheard"}));
    const auto scheduled =
        redis.command({"ZRANGE", "orizuru:{elsewhere}:scheduled", "0", "0", "WITHSCORES"});
    redis.command({"ZADD", "orizuru:{other}:scheduled", scheduled.elements.at(1).text,
                   scheduled.elements.at(0).text});
}

TEST_CASE_FIXTURE(WorkerFixture, "a worker finds what is scheduled though nothing wakes it") {
    Worker worker(uri, with_scheduler());
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", write_down());
    const Running running(worker);
    REQUIRE(so_many_wait(2 + 1));
    schedule_unheard(redis, uri);
    CHECK(has_handled({"unheard"}));
}

TEST_CASE_FIXTURE(WorkerFixture, "a worker that cannot be woken looks for what is scheduled each "
                                 "second") {
    redis.command({"SET", "orizuru:{q}:scheduled:wake", "no list"});
    WorkerOptions chosen = options();
    chosen.scheduler = SchedulerOptions{.poll = 1h};
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", write_down());
    const Running running(worker);
    REQUIRE(eventually([this] { return diary.count(WorkerEventKind::upkeep_failed) > 0; }));
    schedule_unheard(redis, uri);
    CHECK(has_handled({"unheard"}));
}

TEST_CASE_FIXTURE(WorkerFixture, "a worker that is woken no longer looks at once at what waits") {
    WorkerOptions chosen = options();
    chosen.scheduler = SchedulerOptions{.poll = 1h};
    Producer<Job<Raw>> producer(uri, "other");
    push_after(producer, 1h, make_job(Raw{"much later"})); // its queue is not among the empty ones
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", write_down());
    const Running running(worker);
    REQUIRE(so_many_wait(2 + 1));
    redis.command({"SET", "orizuru:{q}:scheduled:wake", "no list"});
    schedule_unheard(redis, uri);
    CHECK(eventually([this] { return diary.count(WorkerEventKind::upkeep_failed) > 0; }));
    CHECK(has_handled({"unheard"}));
}

TEST_CASE_FIXTURE(WorkerFixture, "a schedule that a worker may not read keeps no other from being "
                                 "looked at") {
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">sesame", "~q", "~orizuru:{q}:*",
                   "~other", "~orizuru:{other}:[a-rt-z]*", "~orizuru:{other}:scheduled:wake", "&*",
                   "+@all"});
    Worker worker("unix://clerk:sesame@" + server().socket_path(), with_scheduler());
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", write_down());
    const Running running(worker);
    CHECK(eventually([this] { return diary.count(WorkerEventKind::upkeep_failed) > 0; }));
    for (const WorkerTold& told : diary.of(WorkerEventKind::upkeep_failed)) {
        CHECK(told.queue == "other");
    }
    Producer<Job<Raw>> producer(uri, "q");
    push_after(producer, 20ms, make_job(Raw{"a"}));
    CHECK(has_handled({"a"}));
}

TEST_CASE_FIXTURE(Looking,
                  "a worker looks only at those schedules in which something appears unnoticed") {
    Worker worker(uri, looking_often());
    Texts queues;
    for (int i = 0; i < 9; ++i) {
        queues.push_back("q" + std::to_string(i));
        worker.handle<Raw>(queues.back(), write_down());
    }
    redis.command({"CONFIG", "RESETSTAT"});
    const Running running(worker);
    REQUIRE(eventually([this] { return runs_of("zrange") == 9; })); // the first looks
    // A look enters the worker there.
    for (const std::string& queue : queues) {
        redis.command({"DEL", "orizuru:{" + queue + "}:schedulers"});
    }
    const auto looked_at = [&] {
        Texts found;
        std::ranges::copy_if(queues, std::back_inserter(found), [this](const std::string& queue) {
            return !redis.keys("orizuru:{" + queue + "}:schedulers").empty();
        });
        return found;
    };
    for (const std::string queue : {"q0", "q7"}) {
        redis.command({"ZADD", "orizuru:{" + queue + "}:scheduled", "99999999999999", "12345678x"});
    }
    CHECK(eventually([&] { return looked_at() == Texts{"q0", "q7"}; }));
    const auto asked = runs_of("exists");
    CHECK(eventually([&] { return runs_of("exists") >= asked + 5; }));
    CHECK(looked_at() == Texts{"q0", "q7"});
}

TEST_CASE_FIXTURE(Looking, "a schedule that cannot be looked at is told of once in 5 s") {
    Worker worker(uri, looking_often());
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", write_down());
    const Running running(worker);
    REQUIRE(so_many_wait(2 + 1));
    redis.command({"SET", "orizuru:{other}:scheduled", "no sorted set"});
    REQUIRE(eventually([this] { return diary.count(WorkerEventKind::upkeep_failed) > 0; }));
    const auto asked = runs_of("exists");
    CHECK(eventually([&] { return runs_of("exists") >= asked + 5; }));
    CHECK(diary.count(WorkerEventKind::upkeep_failed) == 1);
}

TEST_CASE_FIXTURE(WorkerFixture, "a worker that stops takes no wakes that others could act on") {
    const Gate gate;
    WorkerOptions chosen = options();
    chosen.scheduler = SchedulerOptions{.poll = 1h};
    Worker stopping(uri, chosen);
    stopping.handle<Raw>("q", [&](const Raw&) { gate.pass(); });
    push_jobs({"a"});
    Running first(stopping);
    REQUIRE(gate.reached());
    Worker other(uri, chosen);
    other.handle<Raw>("q", write_down());
    const Running second(other);
    REQUIRE(so_many_wait(3)); // both wait for what is scheduled, and one for jobs
    stopping.stop();
    // Sooner than Redis would end the wait.
    CHECK(holds_within(3s, [this] { return info("clients", "blocked_clients") == 2; }));
    Producer<Job<Raw>> producer(uri, "q");
    push_after(producer, 20ms, make_job(Raw{"b"}));
    CHECK(has_handled({"b"}));
    gate.open();
    CHECK(first.left() == 0);
}

TEST_CASE_FIXTURE(WorkerFixture, "a worker of more queues than RLIMIT_NOFILE admits says so, and "
                                 "fetches nothing") {
    push_jobs({"a"}, "q0");
    Child child([this] {
        const rlimit limit{100, 100};
        Worker worker(uri, options());
        for (int i = 0; i < 50; ++i) {
            worker.handle<Raw>("q" + std::to_string(i), write_down());
        }
        if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            return 1;
        }
        try {
            worker.run();
        } catch (const std::system_error& error) {
            return contains(error.what(), "RLIMIT_NOFILE is 100") ? 0 : 2;
        }
        return 3;
    });
    CHECK(child.status() == 0);
    CHECK(redis.llen("q0") == 1);
}

TEST_CASE_FIXTURE(WorkerFixture, "a worker has as many threads for 50 queues as for one") {
    const int queues = 50;
    const int concurrency = 10;
    Child child([&] {
        WorkerOptions chosen = options(concurrency);
        chosen.scheduler = WorkerOptions().scheduler;
        chosen.collect_interval = WorkerOptions().collect_interval;
        Worker worker(uri, chosen);
        for (int i = 0; i < queues; ++i) {
            worker.handle<Raw>("q" + std::to_string(i), write_down());
        }
        return worker.run();
    });
    REQUIRE(so_many_wait(queues + 1)); // those that look after schedules wait together
    CHECK(threads_of(child.pid()) <= concurrency + 6);
}

} // namespace worker_upkeep_test
