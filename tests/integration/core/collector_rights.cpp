// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A collector moves no message that it may not move to the end, and none of another queue.

#include "integration/core/queue_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace collector_rights_test {

using namespace std::chrono_literals;
using orizuru::Collected;
using orizuru::Consumer;
using orizuru::EventKind;
using orizuru::GarbageCollector;
using orizuru::JobProducer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Stopwatch;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;

struct Clerk : QueueFixture {
    Clerk() { change({"reset", "on", ">open-sesame", "~*", "&*", "+@all"}); }
    ~Clerk() { redis.try_command({"ACL", "DELUSER", "clerk"}); }

    std::string clerk = "unix://clerk:open-sesame@" + server().socket_path();

    void change(const Texts& rules) {
        Texts words{"ACL", "SETUSER", "clerk"};
        words.insert(words.end(), rules.begin(), rules.end());
        redis.command(words);
    }
    static void check_refused(GarbageCollector& collector) {
        try {
            collector.collect();
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK_MESSAGE(error.code() == "NOPERM", error.what());
        }
    }
    static Texts sorted(Texts list) {
        std::ranges::sort(list);
        return list;
    }
    /// All lists.
    std::map<std::string, Texts> lists() {
        std::map<std::string, Texts> found;
        for (const std::string& key : redis.keys()) {
            if (redis.type(key) == "list") {
                found.emplace(key, redis.lrange(key));
            }
        }
        return found;
    }
};

TEST_CASE_FIXTURE(Clerk, "a collector that may not shorten the unack list doubles nothing") {
    redis.lpush(unack, {"a", "b"});
    change({"-ltrim"});
    GarbageCollector collector(clerk, "q", {.grace = 0ms});
    const auto before = lists();
    for (int i = 0; i < 3; ++i) {
        check_refused(collector);
        CHECK(lists() == before);
    }
    change({"+ltrim"});
    CHECK(collector.collect() == Collected{.unacked = 2});
    CHECK(waiting().size() == 2);
    CHECK_FALSE(redis.exists(unack));
}

TEST_CASE_FIXTURE(Clerk, "a collector that may not fence a dead consumer doubles nothing") {
    add_dead_consumer("id", {"a", "b"});
    change({"-set"});
    GarbageCollector collector(clerk, "q", {.grace = 0ms});
    const auto before = lists();
    for (int i = 0; i < 3; ++i) {
        check_refused(collector);
        CHECK(lists() == before);
        CHECK(ids() == Texts{"id"});
    }
    change({"+set"});
    CHECK(collector.collect() == Collected{.reclaimed = 2, .consumers = 1});
    CHECK(waiting() == Texts{"a", "b"});
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Clerk, "a collector goes on without the rights that it can do without") {
    for (const Texts& rules :
         {Texts{"-info"}, Texts{"-role"}, Texts{"-scan"}, Texts{"-mget"}, Texts{"-client|unblock"},
          Texts{"-@dangerous"}, Texts{"-@dangerous", "-scan", "-mget"},
          Texts{"-@dangerous", "resetkeys", "~q", "~orizuru:{q}:*"}}) {
        CAPTURE(rules.back());
        redis.flushall();
        change({"+@all", "~*"});
        change(rules);
        GarbageCollector collector(clerk, "q", {.grace = 0ms});
        for (const std::string id : {"1", "2"}) {
            add_dead_consumer(id, {id});
            add_dead_consumer("alive " + id, {"c"});
            redis.set(heartbeat("alive " + id), "1");
            redis.lpush(unack, "b");
            CHECK(collector.collect() == Collected{.unacked = 1, .reclaimed = 1, .consumers = 1});
        }
        CHECK(waiting() == Texts{"2", "1", "b", "b"});
        CHECK(ids() == Texts{"alive 1", "alive 2"});
    }
}

TEST_CASE_FIXTURE(Clerk, "a collector that may not read a unique job's lock recovers all messages, "
                         "and keeps the job on a dead list that is over its limit") {
    change({"resetkeys", "~q",      "~orizuru:{q}:*", "-@all",  "+del",   "+eval",
            "+evalsha",  "+exists", "+expire",        "+hdel",  "+hget",  "+hincrby",
            "+llen",     "+lpush",  "+lrange",        "+ltrim", "+rpush", "+set",
            "+smembers", "+srem",   "+time",          "+type"});
    JobProducer<Raw>(uri, "q").push({"a"}, {.unique = "u"});
    const std::string lock = "orizuru:{q}:unique:u";
    const std::string job = waiting().at(0);
    Texts held{"b", "c"};
    std::int64_t blamed = 1;
    SUBCASE("that was there before") { REQUIRE(Consumer<Raw>(uri, "q").next(patience)->bury()); }
    SUBCASE("that is buried now") {
        redis.del("q");
        held = {job, "b"};
        blamed = 2;
    }
    add_dead_consumer("id", held);
    redis.lpush(unack, {"d"});
    const Diary diary;
    GarbageCollector collector(clerk, "q",
                               {.max_recoveries = 0,
                                .grace = 0ms,
                                .dead_limit = 1,
                                .on_event = diary.pen(),
                                .blamed = blamed});
    const Collected recovered = collector.collect();
    CHECK(recovered.unacked == 1);
    CHECK(recovered.reclaimed + recovered.buried == 2);
    CHECK(recovered.consumers == 1);
    CHECK(nobody_left());
    CHECK(redis.llen(dead) == 2);
    CHECK(redis.exists(lock));
    // With the right, those over the limit go, and the lock with its job.
    change({"+get"});
    add_dead_consumer("other", {"e"});
    CHECK(collector.collect() == Collected{.buried = 1, .consumers = 1});
    CHECK(redis.llen(dead) == 1);
    CHECK_FALSE(redis.exists(lock));
}

TEST_CASE_FIXTURE(Clerk, "a collector without the right to SCAN says so once, and leaves the lists "
                         "that nobody is registered for") {
    const std::string orphan = "worker:host:1:0123456789abcdef";
    add_dead_consumer(orphan, {"a"});
    redis.del(consumers);
    change({"-scan"});
    const Diary diary;
    {
        GarbageCollector collector(clerk, "q", {.grace = 0ms, .on_event = diary.pen()});
        for (int i = 0; i < 3; ++i) {
            CHECK(collector.collect() == Collected{});
        }
        CHECK(diary.count(EventKind::sweep_refused) == 1);
        GarbageCollector fresh(clerk, "q", {.grace = 0ms, .on_event = diary.pen()});
        const std::jthread running([&](const std::stop_token& token) { fresh.run(token, 5ms); });
        redis.lpush(unack, "b");
        CHECK(eventually([this] { return redis.exists("q"); }));
    }
    REQUIRE(diary.count(EventKind::sweep_refused) == 2);
    CHECK(diary.of(EventKind::sweep_refused).front().queue == "q");
    CHECK(contains(diary.of(EventKind::sweep_refused).front().detail, "NOPERM"));
    CHECK(held(orphan) == Texts{"a"});
    // It does not stop collectors that may.
    GarbageCollector other(uri, "q", {.grace = 0ms});
    const std::jthread running([&](const std::stop_token& token) { other.run(token, 5ms); });
    CHECK(eventually([this] { return sorted(waiting()) == Texts{"a", "b"}; }));
}

TEST_CASE_FIXTURE(Clerk, "collectors that may not share their passes make their own") {
    for (const Texts& rules : {Texts{"-pttl"},
                               Texts{"resetkeys", "~q", "~orizuru:{q}:[^cs]*", "~orizuru:{q}:su*",
                                     "~orizuru:{q}:consumers"},
                               Texts{"resetkeys", "~q", "~orizuru:{q}:[^cs]*", "~orizuru:{q}:su*",
                                     "~orizuru:{q}:consumers", "%R~orizuru:{q}:collected"}}) {
        CAPTURE(rules.back());
        redis.flushall();
        change({"+@all", "~*"});
        change(rules);
        // Another collector has just had a turn.
        redis.lpush(unack, "b");
        std::jthread before([&](const std::stop_token& token) {
            GarbageCollector(uri, "q", {.grace = 0ms}).run(token, 1h);
        });
        REQUIRE(eventually([this] { return waiting() == Texts{"b"}; }));
        redis.del("q");
        add_dead_consumer("id", {"a"});
        GarbageCollector collector(clerk, "q", {.grace = 0ms});
        const std::jthread running(
            [&](const std::stop_token& token) { collector.run(token, 50ms); });
        CHECK(eventually([this] { return waiting() == Texts{"a"}; }));
    }
}

/// Treats a collector whose run() throws as a worker does: starts it again after a pause.
class Restarted {
  public:
    Restarted(const std::string& uri, milliseconds interval, milliseconds pause)
        : m_thread([this, uri, interval, pause](const std::stop_token& token) {
              GarbageCollector collector(uri, "q", {.grace = 0ms});
              while (!token.stop_requested()) {
                  try {
                      collector.run(token, interval);
                  } catch (const ReplyError&) {
                      ++m_failures;
                      std::this_thread::sleep_for(pause);
                  }
              }
          }) {}

    [[nodiscard]] int failures() const noexcept { return m_failures; }

  private:
    std::atomic<int> m_failures{0};
    std::jthread m_thread;
};

TEST_CASE_FIXTURE(Clerk, "a collector whose passes fail leaves the turns to those whose do not") {
    constexpr auto interval = 1000ms;
    change({"-hincrby"});
    add_dead_consumer("0", {"a"});
    const Restarted failing(clerk, interval, interval / 12);
    REQUIRE(eventually([&] { return failing.failures() == 1; }));
    GarbageCollector collector(uri, "q", {.grace = 0ms});
    const Stopwatch stopwatch;
    const std::jthread running(
        [&](const std::stop_token& token) { collector.run(token, interval); });
    CHECK(eventually([this] { return redis.llen("q") == 1; }));
    // The turn was given back at once.
    CHECK(stopwatch.elapsed() < interval / 2);
    for (int i = 1; i <= 4; ++i) {
        CAPTURE(i);
        add_dead_consumer(std::to_string(i), {std::to_string(i)});
        const auto took =
            time_of([&] { CHECK(eventually([&] { return redis.llen("q") == i + 1; })); });
        CHECK(took < interval * 3 / 2);
    }
    CHECK(failing.failures() == 1);
}

TEST_CASE_FIXTURE(Clerk, "a collector whose passes fail tries again when no other one makes them") {
    constexpr auto interval = 200ms;
    change({"-hincrby"});
    add_dead_consumer("id", {"a"});
    const Restarted failing(clerk, interval, interval / 12);
    REQUIRE(eventually([&] { return failing.failures() >= 3; }));
    change({"+hincrby"});
    const auto before = failing.failures();
    CHECK(eventually([this] { return redis.llen("q") == 1; }));
    CHECK(failing.failures() <= before + 1);
}

TEST_CASE_FIXTURE(Clerk, "without the right to INFO the grace is the age of the collector's own "
                         "connection") {
    change({"-@dangerous"});
    add_dead_consumer("id", {"a"});
    const auto begun = std::chrono::steady_clock::now();
    GarbageCollector patient(clerk, "q", {.grace = 1h});
    GarbageCollector collector(clerk, "q", {.grace = 2s});
    CHECK(eventually([&] { return collector.collect().consumers == 1; }));
    CHECK(std::chrono::steady_clock::now() - begun > 1500ms);
    add_dead_consumer("other", {"b"});
    CHECK(patient.collect() == Collected{});
    CHECK(collector.collect() == Collected{.reclaimed = 1, .consumers = 1});
}

TEST_CASE_FIXTURE(Clerk, "a collector leaves alone the lists of a queue whose name begins as its "
                         "own processing lists do") {
    for (const std::string queue : {"a", "{t}a"}) {
        const std::string other = queue == "a" ? "processing:{a}" : "{t}a:processing:b";
        CAPTURE(other);
        redis.flushall();
        Consumer<Raw> consumer(uri, other);
        redis.lpush(other, {"held", "rejected", "buried", "waiting"});
        const auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK(consumer.next(patience)->reject());
        CHECK(consumer.next(patience)->bury());
        const auto before = lists();
        CHECK(before.size() == 4);
        GarbageCollector collector(uri, queue, {.grace = 0ms});
        // An unregistered list counts as an orphan when it is seen twice.
        for (int i = 0; i < 3; ++i) {
            CHECK(collector.collect() == Collected{});
        }
        CHECK(lists() == before);
    }
}

TEST_CASE_FIXTURE(QueueFixture, "a collector's interval must be positive") {
    GarbageCollector collector(uri, "q", {.grace = 0ms});
    std::stop_source stopped; // so that a collector that did run would end at once
    stopped.request_stop();
    for (const milliseconds interval : {0ms, -1ms, milliseconds::min()}) {
        CAPTURE(interval.count());
        CHECK_THROWS_AS(collector.run(stopped.get_token(), interval), std::invalid_argument);
    }
    CHECK_NOTHROW(collector.run(stopped.get_token(), 1ms));
}

} // namespace collector_rights_test
