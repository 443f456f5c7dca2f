// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A node of a real Redis Cluster refuses every command and script whose keys are in more than one
// slot, and every key that a script uses without having named it: so a whole life on one shows that
// all keys of a queue are in one slot.

#include "integration/core/fault_fixture.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

namespace cluster_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::GarbageCollector;
using orizuru::Job;
using orizuru::make_job;
using orizuru::Pause;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::SchedulerOptions;
using orizuru::SignalHandling;
using orizuru::Worker;
using orizuru::WorkerEvent;
using orizuru::WorkerEventKind;
using orizuru::test::eventually;
using orizuru::test::OwnServer;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Texts;

struct Node {
    RedisServer server{{"--cluster-enabled", "yes"}, RedisServer::Listen::tcp};
    RedisClient redis{server.uri()};
    std::string uri = "unix://" + server.socket_path();

    Node() {
        redis.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
        REQUIRE(eventually([this] { return serves(); }));
    }
    bool serves() {
        return redis.command({"CLUSTER", "INFO"}).text.starts_with("cluster_state:ok");
    }
    int info_blocked() {
        const std::string clients = redis.command({"INFO", "clients"}).text;
        const std::string field = "blocked_clients:";
        return std::stoi(clients.substr(clients.find(field) + field.size()));
    }
    std::string slot(const std::string& key) {
        return std::to_string(redis.command({"CLUSTER", "KEYSLOT", key}).integer);
    }
};

RawGuard take(RawConsumer& consumer) { return OwnServer::take(consumer); }

TEST_CASE_FIXTURE(Node, "a whole life of a queue needs no more than one slot of a cluster") {
    for (const std::string queue : {"q", "{shop}orders"}) {
        const std::string other = queue == "q" ? "{q}retries" : "{shop}retries";
        CAPTURE(queue);
        Producer<Raw> producer(uri, queue);
        producer.push_all({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}});
        {
            RawConsumer consumer(uri, queue, {.prefetch = 4, .ack = AckMode::deferred});
            CHECK(take(consumer).ack());
            CHECK(take(consumer).reject());
            CHECK(take(consumer).bury("enough"));
            CHECK(take(consumer).push(other));
            CHECK(take(consumer).release());
            CHECK(consumer.flush() == 0);

            // A collector declares it dead, and it finds out.
            RawGuard held = take(consumer);
            for (const std::string& key : redis.keys("*:heartbeat:*")) {
                redis.del(key);
            }
            CHECK(GarbageCollector(uri, queue, {.grace = 0ms}).collect().consumers == 1);
            CHECK_FALSE(held.reject());

            // Its connections break in the middle of an operation.
            RawGuard again = take(consumer);
            redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
            CHECK(again.reject());
        }
        GarbageCollector(uri, queue, {.grace = 0ms}).collect();
        CHECK(redis.lrange(other) == Texts{"d"});
        CHECK(producer.size() == 3); // except one acked and one buried
        CHECK(redis.keys("*:heartbeat:*").empty());
    }
}

TEST_CASE_FIXTURE(Node, "a queue in another slot is refused, and the message is still held") {
    redis.lpush("q", "a");
    RawConsumer consumer(uri, "q");
    RawGuard guard = take(consumer);
    try {
        guard.push("elsewhere");
        FAIL_CHECK("no exception");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "CROSSSLOT");
    }
    CHECK(guard.push("{q}elsewhere"));
    CHECK(redis.lrange("{q}elsewhere") == Texts{"a"});
}

TEST_CASE_FIXTURE(Node, "a worker's upkeep looks after queues in several slots") {
    std::atomic<int> failures{0};
    std::mutex mutex;
    std::set<std::string> handled;
    std::chrono::milliseconds poll = 5s;
    const std::string first = "q";
    std::string second = "elsewhere";
    SUBCASE("queues") { REQUIRE(slot(first) != slot(second)); }
    SUBCASE("a queue and its retry queue, when it is not looked at for long") { poll = 1h; }
    Worker worker(uri, {.concurrency = 1,
                        .signal_handling = SignalHandling::none,
                        .recheck = 20ms,
                        .scheduler = SchedulerOptions{poll},
                        .on_event = [&](const WorkerEvent& event) {
                            failures += event.kind == WorkerEventKind::upkeep_failed ? 1 : 0;
                        }});
    const auto handler = [&](const Raw& payload) {
        const std::lock_guard lock(mutex);
        handled.insert(payload.bytes);
    };
    if (poll == 5s) {
        worker.handle<Raw>(first, handler).handle<Raw>(second, handler);
    } else {
        worker.handle<Raw>(first, handler, {.retry = {.retry_queue = second}});
    }
    const std::jthread running([&](const std::stop_token& token) { worker.run(token); });
    const auto looked = [&](const std::string& queue) {
        return redis.command({"ZCARD", "orizuru:{" + queue + "}:schedulers"}).integer == 1;
    };
    REQUIRE(eventually([&] { return looked(first) && looked(second); }));
    for (const std::string& queue : {first, second}) {
        Producer<Job<Raw>> producer(uri, queue);
        push_after(producer, 10ms, make_job(Raw{queue}));
    }
    CHECK(eventually([&] {
        const std::lock_guard lock(mutex);
        return handled.contains(first) && (handled.contains(second) || redis.llen(second) == 1);
    }));
    Pause(uri, first).pause();
    CHECK(eventually([&] { return info_blocked() == (poll == 5s ? 1 : 0); }));
    Pause(uri, first).resume();
    CHECK(eventually([&] { return info_blocked() == (poll == 5s ? 2 : 1); }));
    CHECK(failures == 0);
}

TEST_CASE_FIXTURE(Node, "while no node serves the slot a consumer waits, then goes on") {
    RawConsumer consumer(uri, "q");
    auto next = OwnServer::take_in_background(consumer);
    redis.command({"CLUSTER", "DELSLOTS", slot("q")});
    REQUIRE(eventually([this] { return redis.try_command({"LLEN", "q"}).is_error(); }));
    redis.command({"CLUSTER", "ADDSLOTS", slot("q")});
    REQUIRE(eventually([this] { return serves(); }));
    redis.lpush("q", "a");
    auto guard = next.get();
    REQUIRE(guard);
    CHECK(guard->ack());
}

} // namespace cluster_test
