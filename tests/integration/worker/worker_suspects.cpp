// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a worker does with jobs that were blamed for the death of one: so few of them run beside
// each other that the next death tells who kills.

#include "integration/worker/worker_fixture.hpp"

#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace worker_suspects_test {

using namespace std::chrono_literals;
using orizuru::BatchOptions;
using orizuru::GarbageCollector;
using orizuru::Guarantee;
using orizuru::Job;
using orizuru::JobBatch;
using orizuru::JobContext;
using orizuru::make_job;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::detail::TrialLimits;
using orizuru::test::Answer;
using orizuru::test::Child;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Record;
using orizuru::test::RedisClient;
using orizuru::test::Running;
using orizuru::test::server;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Fixture : WorkerFixture {
    static std::string suspects(const std::string& queue = "q") {
        return "orizuru:{" + queue + "}:suspects";
    }
    /// Jobs that were blamed so often wait apart.
    void suspect(const Texts& payloads, int deaths, const std::string& queue = "q") {
        for (const std::string& payload : payloads) {
            const Job<Raw> job = make_job(Raw{payload});
            redis.command({"HSET", "orizuru:{" + queue + "}:recoveries", "job " + job.id,
                           std::to_string(deaths)});
            redis.lpush(suspects(queue), {bytes_of(job)});
        }
        redis.command({"SET", suspects(queue) + ":asked", "", "PX", "600000"});
    }
    /// In this order: a suspect that is taken meanwhile is seen in a list of those that hold jobs.
    bool none_apart_or_left() { return redis.llen(suspects()) == 0 && nothing_left(); }
    /// With a lease of 300 ms: each beat, after 100 ms, tells that suspects wait.
    static QueueOptions short_lease() { return {.lease = 300ms}; }
};

// ---- Whom the deaths of workers bury

TEST_CASE_FIXTURE(Fixture, "a job that kills its worker is buried alone, and each job beside it is "
                           "begun four times at most") {
    bool batches = false;
    bool collects = true;
    SUBCASE("jobs come one by one") {}
    SUBCASE("jobs come in batches") { batches = true; }
    SUBCASE("a collector runs elsewhere") { collects = false; }
    Texts innocent;
    for (int i = 1; i <= 9; ++i) {
        innocent.push_back("innocent " + std::to_string(i));
    }
    push_jobs(innocent);
    push_jobs({"killer"});
    const auto begin = [](RedisClient& client, const std::string& job) {
        client.command({"HINCRBY", "begun", job, "1"});
    };
    const auto end = [](const std::string& job) {
        std::this_thread::sleep_for(job == "killer" ? 100ms : 400ms);
        if (job == "killer") {
            ::raise(SIGKILL);
        }
    };
    const auto live = [&] {
        WorkerOptions chosen = options(batches ? 2 : 10);
        chosen.collect_interval =
            collects ? std::optional<std::chrono::milliseconds>(100ms) : std::nullopt;
        Worker worker(uri, chosen);
        if (batches) {
            worker.handle_batch<Raw>(
                "q",
                [&](JobBatch<Raw> batch) {
                    RedisClient client(server().uri());
                    bool kills = false;
                    for (const JobContext<Raw>& job : batch) {
                        begin(client, job->payload.bytes);
                        kills = kills || job->payload.bytes == "killer";
                    }
                    end(kills ? "killer" : "innocent");
                },
                {.size = 5, .time = 10ms}, short_lease());
        } else {
            worker.handle<Raw>(
                "q",
                [&](const Raw& job) {
                    RedisClient client(server().uri());
                    begin(client, job.bytes);
                    end(job.bytes);
                },
                short_lease());
        }
        const Running running(worker);
        RedisClient client(server().uri());
        return eventually([&] {
            return client.llen("orizuru:{q}:dead") > 0 && client.llen("q") == 0 &&
                   client.llen(suspects()) == 0 &&
                   client.command({"HLEN", "orizuru:{q}:recoveries"}).integer == 0;
        })
                   ? 0
                   : 1;
    };
    int deaths = 0;
    int status = -1;
    while (status == -1 && deaths < 10) {
        Child child(live);
        status = child.status();
        deaths += status == -1 ? 1 : 0;
        if (!collects && status == -1) { // while no worker lives
            GarbageCollector collector(uri, "q", {.grace = 0ms, .on_event = {}});
            REQUIRE(eventually([&] { return collector.collect().consumers == 1; }));
        }
    }
    CHECK(status == 0);
    CHECK(deaths == 4);
    CHECK(redis.llen(dead) == 1);
    const Answer begun = redis.command({"HGETALL", "begun"});
    CHECK(begun.field("killer") == "4");
    for (const std::string& job : innocent) {
        CHECK(std::stoi(begun.field(job)) <= 4);
    }
    CHECK(held_jobs().empty());
    // The acks of the innocent ones have ended their counts.
    CHECK(redis.command({"HLEN", recoveries}).integer == 0);
}

// ---- How many run beside each other

TEST_CASE("with n jobs at a time, n^(1 - c/3) suspects with c recoveries are held, and one at the "
          "last") {
    const auto most = [](int jobs, int max_recoveries) {
        const auto limits = TrialLimits::of(jobs, max_recoveries).most;
        return std::vector(limits.begin(), limits.end());
    };
    using Most = std::vector<int>;
    CHECK(most(1, 3) == Most{1, 1, 1});
    CHECK(most(8, 3) == Most{4, 2, 1});
    CHECK(most(10, 3) == Most{4, 2, 1});
    CHECK(most(27, 3) == Most{9, 3, 1});
    CHECK(most(1000, 3) == Most{100, 10, 1});
    CHECK(most(10'000, 3) == Most{464, 21, 1});
    CHECK(most(10'000, 100) == Most{464, 21, 1});
    CHECK(most(100, 2) == Most{10, 1, 1});
    CHECK(most(100, 1) == Most{1, 1, 1});
    CHECK(most(100, 0) == Most{1, 1, 1});
}

TEST_CASE_FIXTURE(Fixture, "so many suspects run beside any number of other jobs") {
    struct Case {
        int deaths;
        int at_once;
    };
    Case expected{1, 4};
    SUBCASE("blamed once") {}
    SUBCASE("blamed twice") { expected = {2, 2}; }
    SUBCASE("blamed three times") { expected = {3, 1}; }
    SUBCASE("blamed oftener") { expected = {17, 1}; }
    const Gate gate;
    Worker worker(uri, options(8));
    worker.handle<Raw>(
        "q", [=](const Raw&) { gate.pass(); }, short_lease());
    suspect({"1", "2", "3", "4", "5", "6"}, expected.deaths);
    const Running running(worker);
    REQUIRE(gate.reached(expected.at_once));
    push_jobs({"a", "b"});
    REQUIRE(gate.reached(expected.at_once + 2));
    std::this_thread::sleep_for(300ms); // three beats
    CHECK(gate.arrived() == expected.at_once + 2);
    CHECK(redis.llen(suspects()) == 6 - expected.at_once);
    gate.open();
    CHECK(eventually([&] { return none_apart_or_left(); }));
    CHECK(redis.command({"HLEN", recoveries}).integer == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "one that was blamed more often waits until it fits beside those that run, "
                  "in all queues of the worker") {
    const Gate gate;
    const Gate other_gate;
    Worker worker(uri, options(8));
    worker.handle<Raw>(
        "q", [=](const Raw&) { gate.pass(); }, short_lease());
    worker.handle<Raw>(
        "other", [=](const Raw&) { other_gate.pass(); }, short_lease());
    suspect({"1", "2"}, 1);
    const Running running(worker);
    REQUIRE(gate.reached(2));
    suspect({"3"}, 3, "other");
    push_jobs({"a"}, "other");
    REQUIRE(other_gate.reached(1));
    std::this_thread::sleep_for(300ms);
    CHECK(other_gate.arrived() == 1);
    gate.open();
    CHECK(other_gate.reached(2));
    other_gate.open();
}

TEST_CASE_FIXTURE(Fixture, "a suspect of a batch handler is a batch of one") {
    const Record<Texts> batches;
    const Gate gate;
    Worker worker(uri, options(2));
    worker.handle_batch<Raw>(
        "q",
        [=](JobBatch<Raw> batch) {
            Texts payloads;
            for (const JobContext<Raw>& job : batch) {
                payloads.push_back(job->payload.bytes);
            }
            batches.add(payloads);
        },
        {.size = 10, .time = 200ms}, short_lease());
    suspect({"1", "2", "3"}, 1);
    push_jobs({"a", "b", "c"});
    const Running running(worker);
    CHECK(eventually([&] { return none_apart_or_left(); }));
    for (const Texts& batch : batches.all()) {
        const bool suspected = std::ranges::any_of(
            batch, [](const std::string& job) { return job.find_first_of("123") == 0; });
        CHECK((!suspected || batch.size() == 1));
    }
    CHECK(eventually([this] { return redis.command({"HLEN", recoveries}).integer == 0; }));
}

TEST_CASE_FIXTURE(Fixture, "a worker tells in its list how many jobs it runs at once") {
    Worker worker(uri, options(8));
    const auto ignore = [](const Raw&) {};
    worker.handle<Raw>("q", ignore, short_lease());
    QueueOptions few = short_lease();
    few.concurrency = 3;
    worker.handle<Raw>("few", ignore, few);
    worker.handle_batch<Raw>(
        "many", [](const JobBatch<Raw>&) {}, {.size = 5}, short_lease());
    const Running running(worker);
    const auto tells = [this](const std::string& queue, const std::string& what) {
        return eventually([&] {
            const Answer keys = redis.command({"KEYS", "orizuru:{" + queue + "}:processing:*"});
            return keys.elements.size() == 1 &&
                   contains(redis.lrange(keys.elements[0].text, -1, -1).at(0), what);
        });
    };
    CHECK(tells("q", "l300n8:"));
    CHECK(tells("few", "l300n3:"));
    CHECK(tells("many", "l300n40:"));
}

// ---- What becomes of them

TEST_CASE_FIXTURE(Fixture, "a suspect that a stop interrupts waits apart again") {
    const Gate gate;
    WorkerOptions chosen = options();
    chosen.stop_timeout = 10ms;
    Worker worker(uri, chosen);
    worker.handle<Raw>(
        "q", [=](const Raw&) { gate.pass(); }, short_lease());
    suspect({"1"}, 1);
    Running running(worker);
    REQUIRE(gate.reached());
    CHECK(running.stop() == 1); // one that it has requeued
    CHECK(jobs(suspects()) == Texts{"1"});
    CHECK(jobs().empty());
    CHECK(redis.command({"HLEN", recoveries}).integer == 1);
    gate.open();
}

TEST_CASE_FIXTURE(Fixture,
                  "a suspect that fails keeps its count, which is charged as attempts once") {
    Worker worker(uri, options());
    QueueOptions of_queue = much_later();
    of_queue.lease = 300ms;
    worker.handle<Raw>(
        "q", [](const Raw&) { throw std::runtime_error("no"); }, of_queue);
    suspect({"1"}, 2);
    const Running running(worker);
    REQUIRE(eventually([this] { return put_off().size() == 1; }));
    Job<Raw> job = put_off().front();
    CHECK(job.attempt == 4);
    CHECK(redis.command({"HGET", recoveries, "job " + job.id}).text == "2");
    redis.del("orizuru:{q}:scheduled");
    redis.lpush("q", {bytes_of(job)});
    REQUIRE(eventually([this] { return put_off().size() == 1; }));
    CHECK(put_off().front().attempt == 5);
    redis.command({"HINCRBY", recoveries, "job " + job.id, "1"}); // another death
    redis.del("orizuru:{q}:scheduled");
    redis.lpush("q", {bytes_of(job)});
    REQUIRE(eventually([this] { return put_off().size() == 1; }));
    CHECK(put_off().front().attempt == 6);
}

TEST_CASE_FIXTURE(Fixture,
                  "a death is charged as an attempt by the step that puts the next attempt off") {
    QueueOptions elsewhere = much_later();
    elsewhere.retry.retry_queue = "elsewhere";
    redis.set("elsewhere", "no list");
    const Job<Raw> job = make_job(Raw{"1"});
    redis.command({"HSET", recoveries, "job " + job.id, "1"});
    redis.lpush("q", {bytes_of(job)});
    const auto fails = [](const Raw&) { throw std::runtime_error("no"); };
    {
        Worker worker(uri, options());
        worker.handle<Raw>("q", fails, elsewhere);
        const Running running(worker);
        REQUIRE(eventually([this] { return diary.count(WorkerEventKind::unsettled) > 0; }));
    }
    CHECK(redis.command({"HLEN", recoveries}).integer == 1);
    redis.del("elsewhere");
    Worker worker(uri, options());
    worker.handle<Raw>("q", fails, elsewhere);
    const Running running(worker);
    REQUIRE(eventually([this] { return put_off("elsewhere").size() == 1; }));
    CHECK(put_off("elsewhere").front().attempt == 3);
    CHECK(redis.command({"HGET", recoveries, "charged job " + job.id}).text == "1");
}

} // namespace worker_suspects_test
