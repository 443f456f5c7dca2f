// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The job that follows a group in a queue of another hash tag: a worker of the group's own queue
// forwards it there.

#include "integration/worker/worker_fixture.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/jobs/group/forwarding.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <string>

namespace group_forwarding_test {

using namespace std::chrono_literals;
using orizuru::GroupThen;
using orizuru::Guarantee;
using orizuru::Job;
using orizuru::JobGroup;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::Child;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Forwarding : WorkerFixture {
    JobGroup group{
        uri,
        "q",
        {.then = GroupThen("other", Raw{"then"},
                           {.attributes = {{"of", "q"}}, .max_attempts = 1, .kind = "k"})}};

    /// It lies in the other queue as its maker wanted it, and in no place besides.
    void check_forwarded(std::size_t times = 1) {
        CHECK(eventually([&] { return jobs("other") == Texts(times, "then") && nothing_left(); }));
        for (const std::string& bytes : redis.lrange("other")) {
            const Job<Raw> then = job_of(bytes);
            CHECK(then.id == group.id());
            CHECK(then.group.empty());
            CHECK(then.kind == "k");
            CHECK(then.attempt == 1);
            CHECK(then.max_attempts == 1);
            CHECK(then.attributes ==
                  orizuru::JobAttributes{{"group_failed", "0"}, {"group_jobs", "0"}, {"of", "q"}});
        }
    }
};

const orizuru::QueueOptions to_other{.forward_to = {"other"}};

/// The one scheduled job is due: its 5 s are over.
void make_due(orizuru::test::RedisClient& redis, const std::string& schedule) {
    const std::string job = redis.command({"ZRANGE", schedule, "0", "0"}).elements.at(0).text;
    redis.command({"ZADD", schedule, "1", job});
}

TEST_CASE_FIXTURE(Forwarding, "the job that follows goes on to a queue of another hash tag, from "
                              "whatever kind of queue the group has") {
    group.commit();
    CHECK(jobs("other").empty());
    REQUIRE(redis.llen("q") == 1);
    CHECK(job_of(redis.lrange("q").front()).id == "orz-then:" + group.id());
    Worker worker(uri, options());
    SUBCASE("an ordinary one") { worker.handle<Raw>("q", write_down(), to_other); }
    SUBCASE("of a type that its payload is none of") {
        worker.handle<int>(
            "q", [](int) {}, to_other);
    }
    SUBCASE("in batches") {
        worker.handle_batch<Raw>(
            "q", [this](const auto&) { handled.add("a batch"); }, {.size = 10, .time = 10ms},
            to_other);
    }
    SUBCASE("in order by key") { worker.handle_keyed<Raw>("q", write_down(), to_other); }
    SUBCASE("with a Guarantee::at_most_once") {
        worker.handle<Raw>("q", write_down(),
                           {.guarantee = Guarantee::at_most_once, .forward_to = {"other"}});
    }
    SUBCASE("whose handlers end later") {
        worker.handle<Raw>(
            "q", [this](const Raw&, const orizuru::JobDone&) { handled.add("x"); }, to_other);
    }
    SUBCASE("with deferred acks, whose jobs have expired") {
        worker.handle<Raw>("q", write_down(),
                           {.expires_after = 1ms,
                            .prefetch = 10,
                            .ack = orizuru::AckMode::deferred,
                            .forward_to = {"other"}});
    }
    const Running running(worker);
    check_forwarded();
    CHECK(handled.size() == 0);
    CHECK(diary.of(WorkerEventKind::succeeded).empty());
}

TEST_CASE_FIXTURE(Forwarding,
                  "members end as ever, and their numbers go with the job that follows") {
    group.push("q", Raw{"a"});
    group.push("q", Raw{"b"});
    group.commit();
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down(), to_other);
    worker.handle<Raw>("other", "k", [this](orizuru::JobContext<Raw>& job) {
        handled.add(job->payload.bytes + job.attributes().at("group_jobs") + job.id());
    });
    const Running running(worker);
    CHECK(has_handled({"a", "b", "then2" + group.id()}));
}

TEST_CASE_FIXTURE(
    Forwarding,
    "while it cannot be pushed on it waits, holds up nobody, and runs out of no tries") {
    redis.set("other", "no list");
    group.commit();
    push_jobs({"a"});
    Worker worker(uri, with_scheduler());
    worker.handle<Raw>("q", write_down(), {.retry = {.max_attempts = 1}, .forward_to = {"other"}});
    const Running running(worker);
    for (std::size_t times = 1; times < 4; ++times) {
        CHECK(eventually([&] { return diary.count(WorkerEventKind::failed) == times; }));
        push_jobs({std::to_string(times)});
        if (times == 3) {
            redis.del("other");
        }
        make_due(redis, "orizuru:{q}:scheduled");
    }
    CHECK(has_handled({"a", "1", "2", "3"}));
    CHECK(contains(diary.of(WorkerEventKind::failed).front().detail, "WRONGTYPE"));
    check_forwarded();
}

TEST_CASE_FIXTURE(Forwarding, "a worker that dies between push and removal has it pushed on again, "
                              "with the same id") {
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">x", "~*", "&*", "+@all"});
    const auto live = [](const std::string& address) {
        Worker worker(address, {.signal_handling = orizuru::SignalHandling::none,
                                .collect_interval = 50ms,
                                .on_event = [](const auto&) {}});
        worker.handle<Raw>("q", [](const Raw&) {}, {.lease = 300ms, .forward_to = {"other"}});
        return worker.run();
    };
    {
        Child first(
            [&] { return live("unix://clerk:x@" + orizuru::test::server().socket_path()); });
        CHECK(so_many_wait(2)); // a consumer and a scheduler
        redis.command({"ACL", "SETUSER", "clerk", "-ltrim", "-lrem", "-lset", "-rpop"});
        group.commit();
        CHECK(eventually([&] { return redis.llen("other") == 1; }));
    }
    CHECK(held_jobs() == Texts{"then"});
    Child second([&] { return live(uri); });
    check_forwarded(2);
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Forwarding, "what only looks like it is a job of the queue, or dead") {
    Job<Raw> job = orizuru::make_job(Raw{"a"});
    job.id = "orz-then:" + std::string(32, '0');
    redis.lpush("q", bytes_of(job)); // without an address
    job.group = "orz-then:{}";
    redis.lpush("q", bytes_of(job));
    job.id = "other";
    job.group = "orz-then:other";
    redis.lpush("q", bytes_of(job));
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    CHECK(has_handled({"a", "a"}));
    CHECK(eventually([this] { return redis.llen(dead) == 1; }));
    CHECK(contains(orizuru::DeadList(uri, "q").list(0, 1).at(0).reason, "{}"));
    CHECK(redis.llen("other") == 0);
}

TEST_CASE_FIXTURE(Forwarding, "it goes to no queue that the worker was not told to push to") {
    group.commit();
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down(), {.forward_to = {"another"}});
    const Running running(worker);
    CHECK(eventually([this] { return redis.llen(dead) == 1; }));
    CHECK(contains(orizuru::DeadList(uri, "q").list(0, 1).at(0).reason, "'other'"));
    CHECK(redis.llen("other") == 0);
    CHECK(redis.llen("q") == 0);
}

TEST_CASE("in a Cluster it goes on to the node that has its queue, also behind that one's outage") {
    orizuru::test::Cluster cluster(2);
    const std::size_t there = cluster.owner("b");
    REQUIRE(cluster.owner("a") != there);
    JobGroup group(cluster.uri({0, 1}), "a", {.then = GroupThen("b", Raw{"then"})});
    group.push("a", Raw{"a"});
    group.commit();
    Worker worker(cluster.uri({0, 1}), {.signal_handling = orizuru::SignalHandling::none,
                                        .on_event = [](const auto&) {}});
    worker.handle<Raw>("a", [](const Raw&) {}, {.forward_to = {"b"}});
    auto nearby = cluster.client_of("a");
    SUBCASE("which there is none of") {}
    SUBCASE("of some seconds") {
        cluster.client(there).command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    }
    const Running running(worker);
    auto redis = cluster.client(there);
    const bool refuses =
        redis.command({"CONFIG", "GET", "min-replicas-to-write"}).elements.at(1).text == "1";
    if (refuses) {
        CHECK(eventually([&] {
            return nearby.command({"ZCARD", "orizuru:{a}:scheduled"}).integer == 1;
        }));
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        make_due(nearby, "orizuru:{a}:scheduled");
    }
    CHECK(eventually([&] { return redis.llen("b") == 1; }, 20s));
    CHECK(WorkerFixture::job_of(redis.lrange("b").front()).id == group.id());
    CHECK(eventually([&] { return nearby.llen("a") == 0; }));
}

} // namespace group_forwarding_test
