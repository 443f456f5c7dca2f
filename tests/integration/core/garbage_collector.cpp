// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Collectors bring messages back: rejected ones, and those of consumers that died.

#include "integration/core/queue_fixture.hpp"
#include "support/fake_server.hpp"

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/collector/fleet_turn.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace garbage_collector_test {

using orizuru::Collected;
using orizuru::Connection;
using orizuru::Consumer;
using orizuru::EventKind;
using orizuru::GarbageCollector;
using orizuru::GarbageCollectorOptions;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::is_dead_entry;
using orizuru::test::is_dead_entry_of;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;

/// Running collectors, each in a thread.
class Fleet {
  public:
    Fleet(const QueueFixture& queue, int size, milliseconds interval) {
        for (int i = 0; i < size; ++i) {
            m_threads.emplace_back([uri = queue.uri, interval](const std::stop_token& token) {
                GarbageCollector(uri, "q", {.grace = milliseconds(0)}).run(token, interval);
            });
        }
    }

  private:
    std::vector<std::jthread> m_threads;
};

const std::string sha1_of_a = "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8";

struct Collecting : QueueFixture {
    static constexpr milliseconds none{0};
    GarbageCollector collector{uri, "q", {.grace = none}};
    std::string collected = "orizuru:{q}:collected";

    /// How often Redis has run a command.
    std::int64_t calls(const std::string& command) {
        return info("commandstats", "cmdstat_" + command + ":calls");
    }

    /// A collector with this interval makes a pass and is destroyed.
    void had_a_turn(milliseconds interval) {
        redis.lpush(unack, "made");
        const Fleet fleet(*this, 1, interval);
        REQUIRE(eventually([this] { return redis.exists("q"); }));
        redis.del("q");
    }
    /// Makes it look as if this much time had passed since the last turn.
    void age_turn(milliseconds time) {
        const auto left = redis.command({"PTTL", collected}).integer;
        redis.command({"PEXPIRE", collected, std::to_string(left - time.count())});
    }

    static Texts numbered(int first, int last) {
        Texts texts;
        for (int i = first; i <= last; ++i) {
            texts.push_back(std::to_string(i));
        }
        return texts;
    }
};

TEST_CASE_FIXTURE(Collecting, "a collector that finds nothing makes no keys") {
    CHECK(collector.collect() == Collected{});
    CHECK(redis.keys().empty());
}

TEST_CASE_FIXTURE(Collecting,
                  "rejected messages return to the source's far end, the oldest first") {
    push({"x", "y"});
    redis.lpush(unack, "a", "b", "c");
    CHECK(collector.collect() == Collected{.unacked = 3});
    CHECK(waiting() == Texts{"x", "y", "a", "b", "c"});
    CHECK_FALSE(redis.exists(unack));
}

TEST_CASE_FIXTURE(Collecting, "many rejected messages return in batches and keep their order") {
    GarbageCollector small(uri, "q", {.batch = 7, .grace = none});
    redis.lpush(unack, numbered(1, 100));
    CHECK(small.collect().unacked == 100);
    CHECK(waiting() == numbered(1, 100));
    redis.flushall();
    redis.lpush(unack, numbered(1, 2500));
    CHECK(collector.collect().unacked == 2500);
    CHECK(waiting() == numbered(1, 2500));
}

TEST_CASE_FIXTURE(Collecting, "a pass returns no more than was rejected before it began") {
    orizuru::test::RedisClient other(server().uri());
    int rejected_meanwhile = 0;
    const FakeServer fake(
        [&](const Texts& words) {
            const bool refill = words.at(0) == "EVALSHA" && words.size() > 3 && words[3] == unack;
            if (refill && rejected_meanwhile < 50) {
                other.lpush(unack, "late " + std::to_string(++rejected_meanwhile));
            }
            return FakeServer::pass;
        },
        server().socket_path());
    GarbageCollector busy(fake.uri(), "q", {.batch = 1, .grace = none});
    redis.lpush(unack, "a", "b", "c");
    CHECK(busy.collect().unacked == 3);
    CHECK(waiting() == Texts{"a", "b", "c"});
    CHECK(rejected_meanwhile == 3);
    CHECK(redis.llen(unack) == 3);
}

TEST_CASE_FIXTURE(Collecting, "a dead consumer's messages are served next, the oldest first") {
    push({"x", "y"});
    add_dead_consumer("mill:host:1:0000000000000001", {"a", "b", "c"});
    CHECK(collector.collect() == Collected{.reclaimed = 3, .consumers = 1});
    CHECK(waiting() == Texts{"a", "b", "c", "x", "y"});
    CHECK(nobody_left());
    CHECK(collector.collect() == Collected{});
    CHECK(waiting() == Texts{"a", "b", "c", "x", "y"});
}

TEST_CASE_FIXTURE(Collecting, "a dead consumer that held thousands loses none and no order") {
    add_dead_consumer("id", numbered(1, 2500));
    push({"x"});
    CHECK(collector.collect() == Collected{.reclaimed = 2500, .consumers = 1});
    Texts expected = numbered(1, 2500);
    expected.push_back("x");
    CHECK(waiting() == expected);
}

TEST_CASE_FIXTURE(Collecting, "the fence says reaped and repeats the header, for seven days") {
    add_dead_consumer("busy", {"a"}, "orz:00000000000000aa:41");
    add_dead_consumer("idle", {}, "orz:00000000000000bb:0");
    redis.command({"SADD", consumers, "gone"}); // Redis has lost its list
    CHECK(collector.collect() == Collected{.reclaimed = 1, .consumers = 3});
    CHECK(fence("busy") == "reaped orz:00000000000000aa:41");
    CHECK(fence("idle") == "reaped orz:00000000000000bb:0");
    CHECK(fence("gone") == "reaped ");
    for (const std::string id : {"busy", "idle", "gone"}) {
        const auto left = redis.command({"PTTL", processing(id)}).integer;
        CHECK(left <= 604'800'000);
        CHECK(left > 604'800'000 - 60'000);
    }
    CHECK_FALSE(redis.exists(consumers));
}

TEST_CASE_FIXTURE(Collecting, "only an element with a header's shape is taken for one") {
    add_dead_consumer("a", {"1"}, "orz:0123456789abcdef:");
    CHECK(collector.collect().reclaimed == 2);
    CHECK(waiting() == Texts{"orz:0123456789abcdef:", "1"});
}

TEST_CASE_FIXTURE(Collecting, "a living consumer keeps its messages") {
    Consumer<Raw> consumer(uri, "q");
    push({"a", "b"});
    auto guard = consumer.next();
    CHECK(collector.collect() == Collected{});
    CHECK(held() == Texts{"a"});
    CHECK(guard->ack());
}

TEST_CASE_FIXTURE(Collecting,
                  "only the oldest message of a dead consumer is counted, for 72 hours") {
    add_dead_consumer("1", {"a", "b"});
    CHECK(collector.collect().reclaimed == 2);
    const auto counts = redis.command({"HGETALL", recoveries}).elements;
    REQUIRE(counts.size() == 2);
    CHECK(counts[0].text == sha1_of_a);
    CHECK(counts[1].text == "1");
    const auto left = redis.command({"PTTL", recoveries}).integer;
    CHECK(left <= 72 * 3'600'000);
    CHECK(left > 72 * 3'600'000 - 60'000);
    redis.command({"PEXPIRE", recoveries, "100000"});
    add_dead_consumer("2", {"a"});
    CHECK(collector.collect().reclaimed == 1);
    CHECK(redis.command({"HGET", recoveries, sha1_of_a}).text == "2");
    CHECK(redis.command({"PTTL", recoveries}).integer > 100'000);
}

TEST_CASE_FIXTURE(Collecting,
                  "a message that killed once too often is buried, its neighbours are not") {
    for (const int most : {0, 1, 3}) {
        CAPTURE(most);
        redis.flushall();
        const Diary diary;
        GarbageCollector strict(uri, "q",
                                {.max_recoveries = most, .grace = none, .on_event = diary.pen()});
        for (int death = 1; death <= most; ++death) {
            add_dead_consumer(std::to_string(death), {"a", "b", "c"});
            CHECK(strict.collect() == Collected{.reclaimed = 3, .consumers = 1});
            CHECK(waiting() == Texts{"a", "b", "c"});
            redis.del("q");
        }
        CHECK(diary.size() == 0);
        add_dead_consumer("last", {"a", "b", "c"});
        const auto since = server_ms();
        CHECK(strict.collect() == Collected{.reclaimed = 2, .buried = 1, .consumers = 1});
        const auto until = server_ms();
        CHECK(waiting() == Texts{"b", "c"});
        REQUIRE(redis.llen(dead) == 1);
        const std::string reason =
            "held as the oldest message by " + std::to_string(most + 1) + " consumers that died";
        CHECK(is_dead_entry(redis.lrange(dead).front(), "a", reason, since, until));
        CHECK_FALSE(redis.exists(recoveries));
        REQUIRE(diary.count(EventKind::buried) == 1);
        CHECK(diary.of(EventKind::buried).front().payload == "a");
        CHECK(diary.of(EventKind::buried).front().consumer == "last");
        CHECK(diary.of(EventKind::buried).front().queue == "q");
        // The count is gone with it: put back by hand, the message has all its attempts again.
        if (most > 0) {
            add_dead_consumer("another", {"a"});
            CHECK(strict.collect().reclaimed == 1);
        }
    }
}

TEST_CASE_FIXTURE(Collecting, "dead_limit keeps the newest of the dead") {
    GarbageCollector strict(uri, "q", {.max_recoveries = 0, .grace = none, .dead_limit = 2});
    for (const std::string payload : {"a", "b", "c"}) {
        add_dead_consumer("of " + payload, {payload});
        CHECK(strict.collect().buried == 1);
    }
    const Texts entries = redis.lrange(dead);
    REQUIRE(entries.size() == 2);
    CHECK(is_dead_entry_of(entries[0], "c"));
    CHECK(is_dead_entry_of(entries[1], "b"));

    GarbageCollector unbounded(uri, "q", {.max_recoveries = 0, .grace = none});
    for (int i = 0; i < 5; ++i) {
        add_dead_consumer(std::to_string(i), {std::to_string(i)});
        CHECK(unbounded.collect().buried == 1);
    }
    CHECK(redis.llen(dead) == 7);
}

TEST_CASE_FIXTURE(
    Collecting, "until Redis has taken writes for the grace nobody is declared dead whose lease is "
                "unknown, and what was rejected is returned") {
    add_dead_consumer("id", {"a"});
    redis.lpush(unack, "b");
    GarbageCollector patient(uri, "q", {.grace = std::chrono::hours(1)});
    CHECK(patient.collect() == Collected{.unacked = 1});
    CHECK(ids() == Texts{"id"});
    CHECK(held("id") == Texts{"a"});
    CHECK(waiting() == Texts{"b"});
    CHECK(collector.collect().reclaimed == 1);
}

TEST_CASE_FIXTURE(Collecting, "a list without a registered owner is returned at the second pass") {
    const std::string orphan = "worker:host:1:0123456789abcdef";
    add_dead_consumer(orphan, {"a", "b"});
    redis.del(consumers);
    CHECK(collector.collect() == Collected{});
    CHECK(held(orphan) == Texts{"a", "b"});
    CHECK(collector.collect() == Collected{.reclaimed = 2, .consumers = 1});
    CHECK(waiting() == Texts{"a", "b"});
    CHECK(fence(orphan) == "reaped orz:0123456789abcdef:7");
    CHECK(collector.collect() == Collected{});
}

TEST_CASE_FIXTURE(Collecting, "a list whose owner is alive or registers meanwhile is left alone") {
    const std::string alive = "worker:host:1:0123456789abcdef";
    const std::string late = "worker:host:2:0123456789abcdef";
    add_dead_consumer(alive, {"a"});
    add_dead_consumer(late, {"b"});
    redis.del(consumers);
    redis.set(heartbeat(alive), "1");
    CHECK(collector.collect() == Collected{});
    redis.set(heartbeat(late), "1");
    redis.command({"SADD", consumers, late});
    CHECK(collector.collect() == Collected{});
    CHECK(held(alive) == Texts{"a"});
    CHECK(held(late) == Texts{"b"});
}

TEST_CASE_FIXTURE(Collecting, "the search for lost lists is not misled by names like patterns") {
    const std::string queue = "q[a-z]*?\\^";
    const std::string id = "worker:host:1:0123456789abcdef";
    const std::string own = "orizuru:{" + queue + "}:processing:" + id;
    const std::string other = "orizuru:{qb-xyz\\^}:processing:" + id;
    redis.lpush(own, "a");
    redis.lpush(other, "b");
    for (int i = 0; i < 3000; ++i) { // more than a page of the scan
        redis.set("filler:" + std::to_string(i), "");
    }
    GarbageCollector odd(uri, queue, {.grace = none});
    CHECK(odd.collect() == Collected{});
    CHECK(odd.collect() == Collected{.reclaimed = 1, .consumers = 1});
    CHECK(redis.lrange(queue) == Texts{"a"});
    CHECK(redis.lrange(other) == Texts{"b"});
}

TEST_CASE_FIXTURE(Collecting, "several collectors at once move every message once") {
    constexpr int dead_consumers = 60;
    Texts expected;
    for (int i = 0; i < dead_consumers; ++i) {
        Texts payloads;
        for (int j = 0; j < 5; ++j) {
            payloads.push_back(std::to_string(5 * i + j));
        }
        expected.insert(expected.end(), payloads.begin(), payloads.end());
        add_dead_consumer("id " + std::to_string(i), payloads);
    }
    Texts more = numbered(5 * dead_consumers, 999);
    redis.lpush(unack, more);
    expected.insert(expected.end(), more.begin(), more.end());
    Collected sum;
    std::mutex mutex;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&] {
                GarbageCollector one(uri, "q", {.batch = 10, .grace = none});
                for (int pass = 0; pass < 3; ++pass) {
                    const Collected moved = one.collect();
                    const std::lock_guard lock(mutex);
                    sum.unacked += moved.unacked;
                    sum.reclaimed += moved.reclaimed;
                    sum.buried += moved.buried;
                    sum.consumers += moved.consumers;
                }
            });
        }
    }
    CHECK(sum == Collected{.unacked = 1000 - 5 * dead_consumers,
                           .reclaimed = 5 * dead_consumers,
                           .buried = 0,
                           .consumers = dead_consumers});
    Texts found = waiting();
    std::ranges::sort(found);
    std::ranges::sort(expected);
    CHECK(found == expected);
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Collecting, "a pass looks at a thousand consumers at once, and at none of the "
                              "living by a script") {
    for (int i = 0; i < 2500; ++i) {
        add_dead_consumer("id " + std::to_string(i), {});
        redis.set(heartbeat("id " + std::to_string(i)), "1");
    }
    for (const int dead_one : {0, 999, 1000, 2000, 2499}) {
        redis.lpush(processing("id " + std::to_string(dead_one)), std::to_string(dead_one));
        forget_heartbeat("id " + std::to_string(dead_one));
    }
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(collector.collect() == Collected{.reclaimed = 5, .consumers = 5});
    CHECK(calls("mget") == 3);
    CHECK(calls("exists") == 6); // by REAP, and whether suspects wait
    Texts returned = waiting();
    std::ranges::sort(returned);
    CHECK(returned == Texts{"0", "1000", "2000", "2499", "999"});
    CHECK(ids().size() == 2495);
}

TEST_CASE_FIXTURE(Collecting, "a heartbeat of any type counts") {
    add_dead_consumer("id", {"a"});
    redis.lpush(heartbeat("id"), "no string");
    CHECK(collector.collect() == Collected{});
    CHECK(held("id") == Texts{"a"});
}

TEST_CASE_FIXTURE(Collecting,
                  "the text of a script is sent when Redis does not have it, only then") {
    redis.command({"SCRIPT", "FLUSH"});
    redis.command({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 3; ++i) {
        add_dead_consumer(std::to_string(i), {"a"});
        redis.lpush(unack, "b");
        CHECK(collector.collect() == Collected{.unacked = 1, .reclaimed = 1, .consumers = 1});
    }
    CHECK(calls("eval") == 2);
}

TEST_CASE_FIXTURE(Collecting, "collectors that run share their passes") {
    const Fleet fleet(*this, 8, milliseconds(100));
    redis.command({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 10; ++i) {
        redis.lpush(processing(std::to_string(i)),
                    std::to_string(i)); // first, because START does all in one step
        redis.command({"SADD", consumers, std::to_string(i)});
        CHECK(eventually([&] { return redis.llen("q") == i + 1; }));
    }
    CHECK(calls("smembers") <= 30);
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Collecting, "collectors that run share the search for orphans, and return them") {
    const std::string orphan = "worker:host:1:0123456789abcdef";
    add_dead_consumer(orphan, {"a"});
    redis.del(consumers);
    redis.command({"CONFIG", "RESETSTAT"});
    const Fleet fleet(*this, 8, milliseconds(20));
    CHECK(eventually([this] { return waiting() == Texts{"a"}; }));
    CHECK(calls("scan") == 1);
    CHECK(eventually([this] { return calls("smembers") >= 20; }));
    CHECK(calls("scan") == 1);
}

TEST_CASE_FIXTURE(Collecting,
                  "a collector whose search another has made asks for the next in time") {
    redis.command({"SET", orizuru::Keys("q").swept(), "", "PX", "600000"}); // made now
    const Fleet fleet(*this, 1, milliseconds(50));
    REQUIRE(eventually([this] { return calls("smembers") >= 2; }));
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(eventually([this] { return calls("smembers") >= 10; }));
    // One for each pass, and some that come early when Redis was slow to hear of the last pass.
    CHECK(2 * calls("evalsha") <= 3 * calls("smembers"));
}

TEST_CASE_FIXTURE(Collecting, "a collector that dies in its pass holds up the others until their "
                              "interval is over, no longer") {
    const auto took = time_of([this] {
        had_a_turn(std::chrono::seconds(2));
        add_dead_consumer("id", {"a"});
        age_turn(milliseconds(1500));
        const Fleet fleet(*this, 1, std::chrono::seconds(2));
        CHECK(eventually([this] { return waiting() == Texts{"a"}; }));
    });
    CHECK(took >= milliseconds(200));
    CHECK(took < milliseconds(1200));
}

TEST_CASE_FIXTURE(Collecting,
                  "collectors that wait for one turn ask once, within an interval of the "
                  "last one, and not at the same moment") {
    using orizuru::detail::PassTurns;
    constexpr milliseconds interval = std::chrono::hours(1);
    Connection connection(uri);
    std::set<orizuru::detail::TimePoint> asks;
    const auto begun = orizuru::detail::Clock::now();
    std::list<PassTurns> fleet;
    for (int i = 0; i < 100; ++i) {
        PassTurns& turns = fleet.emplace_back(collected);
        CHECK(turns.take(connection, interval) == (i == 0));
        asks.insert(turns.next());
    }
    const auto ended = orizuru::detail::Clock::now();
    CHECK(asks.size() > 90);
    // One millisecond, because Redis' clock counts whole ones.
    CHECK(*asks.begin() >= begun + interval * 9 / 10 - milliseconds(1));
    CHECK(*asks.rbegin() <= ended + interval + milliseconds(1));
    CHECK(*asks.rbegin() - *asks.begin() > interval / 20);
}

TEST_CASE_FIXTURE(Collecting, "a collector that makes few passes does not keep others from more") {
    const Fleet slow(*this, 1, std::chrono::hours(1));
    CHECK(eventually([this] { return redis.exists(collected); }));
    const Fleet quick(*this, 1, milliseconds(10));
    for (int i = 0; i < 5; ++i) {
        redis.lpush(unack, "a");
        CHECK(eventually([&] { return redis.llen("q") == i + 1; }));
    }
}

TEST_CASE_FIXTURE(Collecting, "passes ask for Redis' state once a minute") {
    GarbageCollector fresh(uri, "q", {.grace = none});
    redis.command({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 5; ++i) {
        fresh.collect();
    }
    CHECK(calls("info") == 1);
    add_dead_consumer("id", {"a"});
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(fresh.collect().reclaimed == 1);
    CHECK(calls("info") == 0);
}

TEST_CASE_FIXTURE(Collecting, "a turn counts for as long as the interval is") {
    constexpr auto interval = std::chrono::minutes(10);
    had_a_turn(interval);
    age_turn(std::chrono::minutes(8));
    redis.lpush(unack, "a");
    redis.command({"CONFIG", "RESETSTAT"});
    {
        const Fleet fleet(*this, 1, interval);
        CHECK(eventually([this] { return calls("pttl") > 0; }));
    }
    CHECK(calls("smembers") == 0);
    CHECK(rejected() == Texts{"a"});
    age_turn(std::chrono::minutes(1));
    const Fleet fleet(*this, 1, interval);
    CHECK(eventually([this] { return waiting() == Texts{"a"}; }));
}

TEST_CASE_FIXTURE(Collecting, "a pass whose connection was lost does not use up the turn") {
    for (const std::string command : {"SMEMBERS", "LLEN"}) {
        CAPTURE(command);
        redis.flushall();
        redis.lpush(unack, "a");
        std::atomic<int> losses{1};
        const FakeServer fake(
            [&](const Texts& words) -> std::optional<std::string> {
                if (words.at(0) == command && losses-- > 0) {
                    return std::nullopt;
                }
                return FakeServer::pass;
            },
            server().socket_path());
        GarbageCollector unlucky(fake.uri(), "q", {.grace = none});
        const std::jthread running(
            [&](const std::stop_token& token) { unlucky.run(token, std::chrono::hours(1)); });
        CHECK(eventually([this] { return waiting() == Texts{"a"}; }));
    }
}

TEST_CASE_FIXTURE(Collecting, "a collector that loses its connection in each pass leaves the turns "
                              "to others") {
    constexpr milliseconds interval(1000);
    std::atomic<int> losses{0};
    const FakeServer fake(
        [&](const Texts& words) -> std::optional<std::string> {
            if (words.at(0) == "SMEMBERS") {
                ++losses;
                return std::nullopt;
            }
            return FakeServer::pass;
        },
        server().socket_path());
    GarbageCollector unlucky(fake.uri(), "q", {.grace = none});
    const std::jthread running([&](const std::stop_token& token) { unlucky.run(token, interval); });
    REQUIRE(eventually([&] { return losses >= 2; }));
    const Fleet fleet(*this, 1, interval);
    for (int i = 0; i < 4; ++i) {
        redis.lpush(unack, "a");
        const auto took =
            time_of([&] { CHECK(eventually([&] { return redis.llen("q") == i + 1; })); });
        CHECK(took < interval * 3 / 2);
    }
    CHECK(losses <= 4);
}

TEST_CASE_FIXTURE(Collecting, "no value at the key of the shared passes stops them") {
    constexpr auto interval = std::chrono::hours(1);
    had_a_turn(interval);
    const auto memory = redis.command({"PTTL", collected}).integer;
    for (const Texts& words :
         {Texts{"SET", collected, "for ever"}, Texts{"LPUSH", collected, "a list"},
          Texts{"SET", collected, "", "EX", "1000000"}}) {
        redis.flushall();
        redis.command(words);
        redis.lpush(unack, "a");
        const Fleet fleet(*this, 1, interval);
        CHECK(eventually([this] { return redis.exists("q"); }));
        const auto left = redis.command({"PTTL", collected}).integer;
        CHECK(left > 0);
        CHECK(left <= memory + 1000);
    }
}

TEST_CASE_FIXTURE(Collecting, "run makes passes until it is told to stop") {
    std::stop_source source;
    std::jthread thread([&] { collector.run(source.get_token(), milliseconds(5)); });
    for (int i = 0; i < 3; ++i) {
        redis.lpush(unack, "a");
        CHECK(eventually([&] { return redis.llen("q") == i + 1; }));
    }
    source.request_stop();
    thread.join();
    redis.lpush(unack, "b");
    CHECK(redis.llen(unack) == 1);
}

TEST_CASE_FIXTURE(Collecting, "run stops at once, however long its interval is") {
    for (const milliseconds interval : {milliseconds(std::chrono::hours(1)), milliseconds::max()}) {
        std::stop_source source;
        redis.lpush(unack, "a");
        std::jthread thread([&] { collector.run(source.get_token(), interval); });
        CHECK(eventually([this] { return redis.exists("q"); }));
        const auto waited = time_of([&] {
            source.request_stop();
            thread.join();
        });
        CHECK(waited < milliseconds(2500));
        CHECK(redis.llen("q") == 1);
        redis.flushall();
    }
}

TEST_CASE_FIXTURE(Collecting, "run with the longest interval does not make pass after pass") {
    std::stop_source source;
    redis.lpush(unack, "a");
    redis.command({"CONFIG", "RESETSTAT"});
    std::jthread thread([&] { collector.run(source.get_token(), milliseconds::max()); });
    CHECK(eventually([this] { return redis.exists("q"); }));
    redis.lpush(unack, "b");
    CHECK_FALSE(eventually([this] { return redis.llen(unack) == 0; }, milliseconds(100)));
    source.request_stop();
}

TEST_CASE_FIXTURE(Collecting, "run that was stopped before does nothing") {
    std::stop_source source;
    source.request_stop();
    redis.lpush(unack, "a");
    collector.run(source.get_token(), milliseconds(1));
    CHECK(redis.llen(unack) == 1);
}

TEST_CASE_FIXTURE(Collecting, "run ends with a ReplyError when only a person can help") {
    redis.set("q", "a string");
    redis.lpush(unack, "a");
    std::string text;
    std::jthread([&] {
        text = orizuru::test::message_of<ReplyError>(
            [&] { collector.run(std::stop_token(), milliseconds(1)); });
    }).join();
    CHECK(contains(text, "WRONGTYPE"));
}

TEST_CASE_FIXTURE(Collecting, "run goes on after its connection was killed") {
    std::stop_source source;
    std::jthread thread([&] { collector.run(source.get_token(), milliseconds(5)); });
    for (int i = 0; i < 5; ++i) {
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        redis.lpush(unack, "a");
        CHECK(eventually([&] { return redis.llen("q") == i + 1; }));
    }
    source.request_stop();
}

TEST_CASE_FIXTURE(Collecting, "run waits until a Redis that cannot serve at present can") {
    for (const std::string refusal : {"READONLY a replica", "MASTERDOWN no master", "LOADING"}) {
        CAPTURE(refusal);
        redis.flushall();
        std::atomic<int> refusals{2};
        const FakeServer fake(
            [&](const Texts& words) {
                return words.at(0) != "PING" && refusals-- > 0 ? "-" + refusal + "\r\n"
                                                               : FakeServer::pass;
            },
            server().socket_path());
        GarbageCollector patient(fake.uri(), "q", {.grace = none});
        redis.lpush(unack, "a");
        std::stop_source source;
        auto running = std::async(std::launch::async,
                                  [&] { patient.run(source.get_token(), milliseconds(5)); });
        CHECK(eventually([&] {
            return redis.llen("q") == 1 ||
                   running.wait_for(milliseconds(0)) == std::future_status::ready;
        }));
        source.request_stop();
        CHECK_NOTHROW(running.get());
        CHECK(redis.llen("q") == 1);
    }
}

TEST_CASE_FIXTURE(Collecting,
                  "a key of the wrong type is a ReplyError that names it, nothing is lost") {
    add_dead_consumer("id", {"a", "b"});
    redis.lpush(unack, "c");
    std::string wrong;
    SUBCASE("the source") { wrong = "q"; }
    SUBCASE("the dead list") { wrong = dead; }
    SUBCASE("the recoveries") { wrong = recoveries; }
    redis.set(wrong, "a string");
    try {
        collector.collect();
        FAIL_CHECK("no exception");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "WRONGTYPE");
        CHECK(contains(error.what(), wrong));
    }
    CHECK(held("id") == Texts{"a", "b"});
    CHECK(rejected() == Texts{"c"});
    CHECK(ids() == Texts{"id"});
    CHECK(redis.command({"GET", wrong}).text == "a string");
    redis.del(wrong);
    CHECK(collector.collect() == Collected{.unacked = 1, .reclaimed = 2, .consumers = 1});
    CHECK(waiting() == Texts{"a", "b", "c"});
}

TEST_CASE_FIXTURE(Collecting, "an unack list or registry of the wrong type is named") {
    for (const std::string& wrong : {unack, consumers}) {
        redis.flushall();
        redis.set(wrong, "a string");
        const std::string text =
            orizuru::test::message_of<ReplyError>([&] { collector.collect(); });
        CHECK(contains(text, "WRONGTYPE"));
        CHECK(contains(text, wrong));
    }
}

TEST_CASE_FIXTURE(Collecting, "a policy that evicts keys is told once") {
    const Diary diary;
    GarbageCollector watchful(uri, "q", {.grace = none, .on_event = diary.pen()});
    redis.command({"CONFIG", "SET", "maxmemory-policy", "volatile-ttl"});
    watchful.collect();
    watchful.collect();
    redis.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
    REQUIRE(diary.count(EventKind::not_noeviction) == 1);
    CHECK(diary.of(EventKind::not_noeviction).front().detail == "volatile-ttl");
    CHECK(diary.of(EventKind::not_noeviction).front().queue == "q");
}

TEST_CASE_FIXTURE(Collecting, "impossible options are refused") {
    const auto refused = [this](const GarbageCollectorOptions& options) {
        CHECK_THROWS_AS(GarbageCollector(uri, "q", options), std::invalid_argument);
    };
    refused({.max_recoveries = -1});
    refused({.batch = 0});
    refused({.batch = 1001});
    refused({.grace = milliseconds(-1)});
    refused({.dead_limit = -1});
}

} // namespace garbage_collector_test
