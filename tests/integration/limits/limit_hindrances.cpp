// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Worker::limit where a worker is busy elsewhere, is passed over, was asleep, or shares its queue
// with what cannot be read: nothing is held up, kept or lost for it.

#include "integration/worker/in_flight.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/limit.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace limit_hindrances_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::FleetLimit;
using orizuru::JobContext;
using orizuru::JobDone;
using orizuru::QueueOrder;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;

const std::string slots = "orizuru:{q}:slots";
const FleetLimit one_slot{.concurrency = 1};

// Well below the time after which a process asks by itself.
constexpr auto soon = 10s;

struct Hindrances : InFlightFixture {
    std::int64_t taken() { return redis.command({"ZCARD", slots}).integer; }
    bool handled_soon(std::size_t count) {
        return eventually([&] { return handled.size() == count; }, soon);
    }
    void end_kept() const {
        for (JobDone& done : kept.take_all()) {
            done();
        }
    }
};

TEST_CASE_FIXTURE(Hindrances,
                  "a queue with a bound of its own handles what a wait has brought, up to "
                  "that bound") {
    SUBCASE("on threads") {
        Worker worker(uri, options(4));
        worker.handle<Raw>("q", write_down(), {.concurrency = 1}).limit("q", {.concurrency = 5});
        const Running running(worker);
        REQUIRE(so_many_wait(1));
        push_jobs({"a"});
        CHECK(handled_soon(1));
    }
    SUBCASE("in batches") {
        Worker worker(uri, options(4));
        worker
            .handle_batch<Raw>("q",
                               [&](orizuru::JobBatch<Raw> /*jobs*/) { handled.add("a batch"); },
                               {.size = 1}, {.concurrency = 1})
            .limit("q", {.concurrency = 5});
        const Running running(worker);
        REQUIRE(so_many_wait(1));
        push_jobs({"a"});
        CHECK(handled_soon(1));
    }
    SUBCASE("in flight") {
        Worker worker(uri, options(2));
        worker.handle<Raw>("q", keep(), {.concurrency = 3}).limit("q", {.concurrency = 10});
        const Running running(worker);
        for (std::size_t count = 1; count <= 3; ++count) {
            REQUIRE(so_many_wait(1));
            push_jobs({"a"});
            CHECK(eventually([&] { return kept.size() == count; }, soon));
        }
        CHECK(taken() == 3);
        end_kept();
    }
}

TEST_CASE_FIXTURE(Hindrances,
                  "a job that comes to a worker which is busy just then goes to another") {
    const Gate gate;
    Worker busy(uri, options(1));
    Worker idle(uri, options(1));
    busy.handle<Raw>("q", write_down()).limit("q", one_slot);
    busy.handle<Raw>("other", [&](const Raw& /*payload*/) { gate.pass(); });
    idle.handle<Raw>("q", write_down()).limit("q", one_slot);
    const Running first(busy);
    REQUIRE(so_many_wait(2));
    redis.command({"EVAL",
                   "redis.call('LPUSH', 'q', ARGV[1]) redis.call('LPUSH', 'other', ARGV[1])", "2",
                   "q", "other", bytes_of(orizuru::make_job(Raw{"a"}))});
    REQUIRE(gate.reached());
    const Running second(idle);
    push_jobs({"b", "c"});
    CHECK(handled_soon(3));
    gate.open();
}

TEST_CASE_FIXTURE(Hindrances, "a queue with a limit comes before another in strict order") {
    push_jobs({"a", "b"});
    for (int i = 0; i < 20; ++i) {
        push_jobs({"x"}, "other");
    }
    WorkerOptions strict = options(1);
    strict.order = QueueOrder::strict;
    Worker worker(uri, strict);
    worker.handle<Raw>("q", write_down()).limit("q", {.rate = {{.most = 1000}}});
    worker.handle<Raw>("other", [&](const Raw& payload) {
        std::this_thread::sleep_for(60ms); // longer than a permit of a rate is good
        handled.add(payload.bytes);
    });
    const Running running(worker);
    REQUIRE(eventually([&] { return handled.size() == 22; }));
    const Texts all = handled.all();
    const auto others_before = std::ranges::find(all, "b") - all.begin();
    CHECK(others_before < 20); // an answer that takes longer than a moment lets one by
}

TEST_CASE_FIXTURE(Hindrances, "what cannot be decoded takes no slot, and no job beside it is "
                              "rejected") {
    for (int round = 0; round < 4; ++round) {
        redis.lpush("q", {"poison"});
        push_jobs({"a", "b"});
    }
    redis.lpush("q", {"poison"});
    Worker worker(uri, options(8));
    worker
        .handle<Raw>("q",
                     [&](const Raw& payload, JobDone done) {
                         handled.add(payload.bytes);
                         done();
                     },
                     {.concurrency = 8})
        .limit("q", {.concurrency = 8});
    const Running running(worker);
    CHECK(handled_soon(8));
    CHECK(eventually([&] { return redis.llen(dead) == 5; }));
    CHECK(redis.llen(unack) == 0);
    CHECK(eventually([&] { return taken() == 0; }));
}

TEST_CASE_FIXTURE(Hindrances, "those who wait for a slot that has lapsed, and cannot be given away "
                              "yet, ask seldom") {
    push_jobs({"a"});
    redis.command({"ZADD", slots, "1000", "86400000 ghost:host:1:0123456789abcdef 1"});
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", write_down(), {.lease = 30s}).limit("q", one_slot);
    const Running running(worker);
    REQUIRE(so_many_wait(1));
    const std::int64_t before = runs_of("zcard");
    redis.command({"LPUSH", slots + ":freed", "x"});
    REQUIRE(eventually([&] { return runs_of("zcard") > before; }));
    const std::int64_t asked = runs_of("zcard");
    std::this_thread::sleep_for(500ms); // many times what it took before it asked again
    CHECK(runs_of("zcard") - asked < 10);
    CHECK(handled.all().empty());
}

TEST_CASE_FIXTURE(Hindrances, "somebody watches a queue while slots are free") {
    const Gate hold;
    const Gate gate;
    std::atomic<bool> passes{false};
    WorkerOptions passing = options(1);
    passing.fetch_middleware.emplace_back(
        [&](std::string_view queue, const std::function<bool()>& fetch) {
            return (queue != "q" || !passes) && fetch();
        });
    Worker one(uri, options(1));
    Worker hindered(uri, passing);
    Worker third(uri, options(1));
    one.handle<Raw>("q", [&](const Raw& /*payload*/) { hold.pass(); }).limit("q", one_slot);
    hindered.handle<Raw>("q", write_down()).limit("q", one_slot);
    hindered.handle<Raw>("other", [&](const Raw& /*payload*/) { gate.pass(); });
    third.handle<Raw>("q", write_down()).limit("q", one_slot);
    push_jobs({"a"});
    Running first(one);
    REQUIRE(hold.reached());
    push_jobs({"b"});
    const Running second(hindered);
    REQUIRE(so_many_wait(2)); // for a slot, and for the other queue
    const auto begin = [&] {  // it is called first, and finds nothing
        redis.command({"DEL", "q"});
        one.quiet();
        REQUIRE(eventually([&] { return diary.count(orizuru::WorkerEventKind::quieted) == 1; }));
        hold.open();
    };
    SUBCASE("also when the one that was called is busy") {
        push_jobs({"x"}, "other");
        REQUIRE(gate.reached());
        const Running last(third);
        REQUIRE(so_many_wait(2)); // for a slot, both
        begin();
        REQUIRE(eventually([&] { return taken() == 0; }));
        push_jobs({"c"});
        CHECK(handled_soon(1));
        gate.open();
    }
    SUBCASE("also when it passes the queue over from then on") {
        const Running last(third);
        REQUIRE(so_many_wait(3));
        begin();
        REQUIRE(eventually([&] { return taken() == 0; }));
        passes = true;
        push_jobs({"c", "d"});
        CHECK(handled_soon(2));
    }
}

TEST_CASE_FIXTURE(Hindrances,
                  "a process that has slept for its lease does not have its slot again") {
    const auto life = [&] {
        Worker worker(uri, options(1));
        worker
            .handle<Raw>("q",
                         [&](JobContext<Raw>& job) {
                             RedisClient own(uri);
                             while (true) {
                                 own.command({"SET", "valid", job.lease_valid() ? "yes" : "no"});
                                 own.command({"INCR", "looks"});
                                 std::this_thread::sleep_for(5ms); // until it is killed
                             }
                         },
                         {.lease = 400ms})
            .limit("q", one_slot);
        return worker.run();
    };
    const auto looks = [&] { return std::stoll("0" + redis.command({"GET", "looks"}).text); };
    push_jobs({"a"});
    Child sleeper(life);
    REQUIRE(eventually([&] { return looks() > 0; }));
    CHECK(redis.command({"GET", "valid"}).text == "yes");
    sleeper.signal(SIGSTOP);
    const Gate gate;
    Worker worker(uri, options(1)); // without a collector: the job stays with the sleeper
    worker.handle<Raw>("q", [&](const Raw& /*payload*/) { gate.pass(); }, {.lease = 400ms})
        .limit("q", one_slot);
    push_jobs({"b"});
    const Running running(worker);
    REQUIRE(gate.reached());
    sleeper.signal(SIGCONT);
    const auto seen = looks();
    REQUIRE(eventually([&] { return taken() == 2; })); // it tells that its handler runs
    REQUIRE(eventually([&] { return looks() > seen + 20; }));
    CHECK(redis.command({"GET", "valid"}).text == "no");
    gate.open();
}

TEST_CASE_FIXTURE(Hindrances, "a queue without a rate touches no key of one") {
    redis.lpush("orizuru:{q}:rate", {"x"});
    auto job = orizuru::make_job(Raw{"old"});
    job.expires_at = job.enqueued_at - 1h;
    redis.lpush("q", {bytes_of(job)});
    push_jobs({"a"});
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", write_down()).limit("q", {.concurrency = 2});
    const Running running(worker);
    CHECK(handled_soon(1));
    CHECK(eventually([&] { return taken() == 0; }));
    CHECK(diary.count(WorkerEventKind::fetch_failed) == 0);
    CHECK(redis.llen("orizuru:{q}:rate") == 1);
}

TEST_CASE_FIXTURE(Hindrances,
                  "slots that stay are not written again with each that comes and goes") {
    constexpr int many = 200;
    Worker worker(uri, options(2));
    worker
        .handle<Raw>("q",
                     [&](const Raw& payload, JobDone done) {
                         if (payload.bytes == "long") {
                             kept.add(payload.bytes, std::move(done));
                         } else {
                             handled.add(payload.bytes);
                             done();
                         }
                     },
                     {.concurrency = many + 10})
        .limit("q", {.concurrency = 1000});
    push_jobs(Texts(many, "long"));
    const Running running(worker);
    REQUIRE(kept.has(many));
    REQUIRE(eventually([&] { return taken() == many; }));
    const std::int64_t before = runs_of("zadd");
    for (int i = 0; i < 20; ++i) {
        push_jobs({"short"});
        REQUIRE(eventually([&] { return handled.size() == static_cast<std::size_t>(i) + 1; }));
    }
    CHECK(runs_of("zadd") - before < many); // 20 are enough; a renewal would be one for each
    end_kept();
}

} // namespace limit_hindrances_test
