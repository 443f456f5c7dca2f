// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What else takes the job of a key that is out away, path by path: each brings the key's next job,
// or is refused, or is mended by the upkeep.

#include "integration/keyed/keyed_fixture.hpp"
#include "integration/worker/placed_jobs.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/keyed/order_upkeep.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace keyed_paths_test {

using namespace std::chrono_literals;
using orizuru::Connection;
using orizuru::DeadList;
using orizuru::KeyedJobProducer;
using orizuru::Keys;
using orizuru::Place;
using orizuru::Raw;
using orizuru::ScheduledList;
using orizuru::Worker;
using orizuru::detail::OrderSweep;
using orizuru::detail::OrderUpkeep;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::jobs_behind;
using orizuru::test::message_of;
using orizuru::test::PlacedJobs;
using orizuru::test::places;
using orizuru::test::Running;
using orizuru::test::Texts;

/// A key with three jobs: `a1` is out, wherever a test puts it.
struct Paths : PlacedJobs {
    Paths() { begin(); }

    void begin() {
        redis.flushall();
        for (const char* const payload : {"a1", "a2", "a3"}) {
            producer.push("a", Raw{payload});
        }
        ticketed = waiting().front();
    }

    KeyedJobProducer<Raw> producer{uri, "q"};
    const std::string order = "orizuru:{q}:key:a";
    std::string ticketed; ///< `a1`

    Texts behind() { return jobs_behind(redis, "a"); }
    std::uint64_t counted_behind() {
        const orizuru::QueueState state = inspector.state("q");
        CHECK(state.keys == 1);
        CHECK(inspector.keys("q", 0, 9).at(0).behind == state.behind);
        return state.behind;
    }
    /// The next job has come, and nothing is counted twice.
    void check_next_came() {
        CHECK(jobs() == Texts{"a2"});
        CHECK(behind() == Texts{"a3"});
        CHECK(counted_behind() == 1);
        CHECK(redis.lrange(order).front() == job_of(waiting().front()).ticket.substr(8, 16));
    }
    void check_nothing_came() {
        CHECK(behind() == Texts{"a2", "a3"});
        CHECK(counted_behind() == 2);
    }
    /// Takes `a1` out of the queue and puts it elsewhere.
    void place(Place where) { PlacedJobs::place(ticketed, where); }
    void bury() { place(Place::dead); }
    std::shared_ptr<Connection> connection() { return std::make_shared<Connection>(uri); }
};

TEST_CASE_FIXTURE(Paths, "wherever a person removes the job, the next one of its key comes") {
    for (const Place where : places) {
        CAPTURE(static_cast<int>(where));
        begin();
        place(where);
        remove_only(where);
        check_next_came();
    }
}

TEST_CASE_FIXTURE(Paths, "a dead list and a schedule, which know of no keys, refuse to remove it") {
    std::string why;
    SUBCASE("dead") {
        place(Place::dead);
        DeadList list(uri, "q");
        why = orizuru::test::message_of<std::invalid_argument>(
            [&] { list.remove(list.list(0, 1)[0]); });
        CHECK(list.size() == 1);
    }
    SUBCASE("scheduled") {
        place(Place::scheduled);
        ScheduledList list(uri, "q");
        why = orizuru::test::message_of<std::invalid_argument>(
            [&] { list.cancel(list.list(0, 1)[0]); });
        CHECK(list.size() == 1);
    }
    CHECK(why == "the job has its turn in the order of its key, and others wait for it: remove it "
                 "by an Inspector");
    check_nothing_came();
}

TEST_CASE_FIXTURE(Paths,
                  "a job that is moved to another queue leaves its turn, and has none there") {
    for (const Place where : places) {
        CAPTURE(static_cast<int>(where));
        begin();
        place(where);
        CHECK(inspector.move("q", only(where), "other"));
        check_next_came();
        const Texts moved = redis.lrange("other");
        REQUIRE(moved.size() == 1);
        CHECK(job_of(moved[0]).payload.bytes == "a1");
        CHECK(job_of(moved[0]).key == "a");
        CHECK(job_of(moved[0]).ticket.empty());
    }
}

TEST_CASE_FIXTURE(Paths, "a job that is run now keeps its turn") {
    for (const Place where : places) {
        CAPTURE(static_cast<int>(where));
        begin();
        place(where);
        CHECK(inspector.run_now("q", only(where)));
        check_nothing_came();
        CHECK(jobs() == Texts{"a1"});
        CHECK(job_of(waiting().front()).ticket == job_of(ticketed).ticket);
    }
}

TEST_CASE_FIXTURE(Paths,
                  "what a collector has buried leaves its turn at the next look, and comes back "
                  "behind the others of its key") {
    bury();
    OrderUpkeep upkeep(Keys("q"), connection(), 1ms, 10min);
    upkeep.step();
    check_next_came();
    DeadList list(uri, "q");
    const auto entries = list.list(0, 10);
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].reason == "held by 4 consumers that died");
    CHECK(entries[0].time.time_since_epoch() == 1'764'000'000'000ms);
    CHECK(job_of(entries[0].payload).ticket.empty());
    upkeep.step();
    check_next_came();
    CHECK(list.redrive(entries[0]));
    Worker worker(uri, options());
    worker.handle_keyed<Raw>("q", write_down());
    const Running running(worker);
    CHECK(has_handled({"a2", "a3", "a1"}));
}

TEST_CASE_FIXTURE(Paths, "it leaves its turn also where many others have died since") {
    bury();
    for (int i = 0; i < 250; ++i) {
        redis.lpush(dead, i == 100 ? std::string(2'000'000, 'x') : "no entry");
    }
    OrderUpkeep(Keys("q"), connection(), 1ms, 10min).step();
    check_next_came();
}

TEST_CASE_FIXTURE(Paths,
                  "a key whose list is of another type keeps no other from its turn, and is told") {
    producer.push("wrong", Raw{"w1"});
    const std::string wrong = redis.lrange("q").front();
    bury();
    redis.lpush(dead, dead_entry(wrong));
    redis.del(Keys("q").order("wrong"));
    redis.command({"SET", Keys("q").order("wrong"), "text"});
    OrderUpkeep upkeep(Keys("q"), connection(), 1ms, 10min);
    for (int step = 0; step < 2; ++step) {
        CHECK(contains(message_of<orizuru::ReplyError>([&] { upkeep.step(); }), "WRONGTYPE"));
        CHECK(redis.llen(dead) == 2);
        CHECK(jobs() == Texts{"a2"});
    }
}

TEST_CASE_FIXTURE(Paths, "what a consumer has buried undecoded leaves its turn as well") {
    Worker worker(uri, options());
    // Its payload is no msgpack integer.
    worker.handle_keyed<int>("q", [](int) {});
    const Running running(worker);
    CHECK(eventually([this] { return redis.llen(dead) == 3; }));
    CHECK(eventually([this] { return redis.command({"EXISTS", order}).integer == 0; }));
}

TEST_CASE_FIXTURE(Paths, "hundreds that were buried together leave their turns at one look") {
    redis.flushall();
    for (int i = 0; i < 250; ++i) {
        const std::string key = std::to_string(i);
        producer.push(key, Raw{"first"});
        producer.push(key, Raw{"second"});
    }
    for (const std::string& payload : redis.lrange("q")) {
        redis.lpush(dead, dead_entry(payload));
    }
    redis.del("q");
    OrderUpkeep(Keys("q"), connection(), 1ms, 10min).step();
    CHECK(jobs() == Texts(250, "second"));
}

TEST_CASE_FIXTURE(Paths, "a key whose job was taken away by hand goes on at the second sweep") {
    SUBCASE("out of the queue") { redis.del("q"); }
    SUBCASE("out of the dead list, before the upkeep saw it there") {
        bury();
        DeadList(uri, "q").purge();
    }
    OrderSweep sweep(Keys("q"));
    const auto link = connection();
    CHECK(sweep.pass(*link) == 0);
    check_nothing_came();
    CHECK(sweep.pass(*link) == 1);
    check_next_came();
    CHECK(sweep.pass(*link) == 0);
    CHECK(sweep.pass(*link) == 0);
    check_next_came();
}

TEST_CASE_FIXTURE(Paths,
                  "a sweep leaves a key alone whose job is anywhere, however long it stays") {
    for (const Place where : places) {
        CAPTURE(static_cast<int>(where));
        begin();
        place(where);
        OrderSweep sweep(Keys("q"));
        for (int pass = 0; pass < 3; ++pass) {
            CHECK(sweep.pass(*connection()) == 0);
        }
        check_nothing_came();
    }
    SUBCASE("also held by a consumer that is not registered") {
        begin();
        redis.del("q");
        redis.command({"RPUSH", processing("worker:host:1:0123456789abcdef"), ticketed,
                       "orz:0123456789abcdef:7"});
        OrderSweep sweep(Keys("q"));
        for (int pass = 0; pass < 3; ++pass) {
            CHECK(sweep.pass(*connection()) == 0);
        }
        check_nothing_came();
    }
}

TEST_CASE_FIXTURE(Paths, "a sweep finds a job behind thousands of others, and large ones") {
    redis.del("q");
    redis.command({"RPUSH", "q", ticketed});
    for (int i = 0; i < 2500; ++i) {
        redis.command({"LPUSH", "q", std::string(i % 500 == 0 ? 2'000'000 : 10, 'x')});
        redis.command({"RPUSH", "q", "y"});
    }
    OrderSweep sweep(Keys("q"));
    CHECK(sweep.pass(*connection()) == 0);
    CHECK(sweep.pass(*connection()) == 0);
    check_nothing_came();
}

TEST_CASE_FIXTURE(Paths, "a list of another kind under the name of a key's is left alone") {
    redis.lpush("orizuru:{q}:key:other", "no digits");
    OrderSweep sweep(Keys("q"));
    CHECK(sweep.pass(*connection()) == 0);
    CHECK(sweep.pass(*connection()) == 0);
    CHECK(redis.lrange("orizuru:{q}:key:other") == Texts{"no digits"});
    check_nothing_came();
}

TEST_CASE_FIXTURE(Paths, "a sweep mends what is counted of keys, whoever has changed their lists") {
    producer.push("b", Raw{"b1"});
    producer.push("c", Raw{"c1"});
    producer.push("c", Raw{"c2"});
    redis.command({"RPOP", order});
    redis.del("orizuru:{q}:key:b");
    CHECK(inspector.state("q").keys == 3);
    CHECK(inspector.state("q").behind == 3);
    OrderSweep(Keys("q")).pass(*connection());
    CHECK(inspector.state("q").keys == 2);
    const auto found = inspector.keys("q", 0, 9);
    REQUIRE(found.size() == 2);
    CHECK(found[0].behind == 1);
    CHECK(found[1].behind == 1);
    CHECK(inspector.state("q").behind == 2);
}

TEST_CASE_FIXTURE(Paths,
                  "one process looks after the orders, and another one when that is not heard") {
    OrderUpkeep first(Keys("q"), connection(), 1s, 10min);
    OrderUpkeep second(Keys("q"), connection(), 1s, 10min);
    first.step();
    bury();
    second.step();
    check_nothing_came();
    redis.del("orizuru:{q}:keyed:upkeep"); // as it expires
    second.step();
    check_next_came();
}

} // namespace keyed_paths_test
