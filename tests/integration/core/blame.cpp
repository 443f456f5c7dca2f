// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Which messages are counted when a consumer dies, and where a message goes that was counted once
// too often.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/redis/scripts/sha1.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace blame_test {

using namespace std::chrono_literals;
using orizuru::Collected;
using orizuru::Consumer;
using orizuru::EventKind;
using orizuru::GarbageCollector;
using orizuru::GarbageCollectorOptions;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::is_dead_entry;
using orizuru::test::is_dead_entry_of;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;

struct Blaming : QueueFixture {
    Diary diary;
    GarbageCollector collector{
        uri,
        "q",
        {.max_recoveries = 1, .grace = 0ms, .on_event = diary.pen(), .blamed = 1'000'000}};

    static std::string field_of(const std::string& payload) {
        return std::string(std::string_view(orizuru::detail::sha1_hex(payload)));
    }
    std::string count_of(const std::string& payload) {
        return redis.command({"HGET", recoveries, field_of(payload)}).text;
    }
    std::int64_t counted() { return redis.command({"HLEN", recoveries}).integer; }

    /// A consumer takes these messages and dies; a collector makes a pass.
    Collected die_with(const Texts& payloads) {
        add_dead_consumer("number " + std::to_string(++m_deaths), payloads);
        return collector.collect();
    }
    /// The same, and then the queue is empty again.
    void die_once_with(const Texts& payloads) {
        REQUIRE(die_with(payloads).buried == 0);
        REQUIRE(waiting() == payloads);
        redis.del("q");
    }
    Texts told_as_buried() {
        Texts payloads;
        for (const auto& told : diary.of(EventKind::buried)) {
            payloads.push_back(told.payload);
        }
        return payloads;
    }

  private:
    int m_deaths = 0;
};

TEST_CASE_FIXTURE(Blaming, "all that a dead consumer held is counted, for 72 hours") {
    CHECK(die_with({"a", "b", "c"}) == Collected{.reclaimed = 3, .consumers = 1});
    CHECK(waiting() == Texts{"a", "b", "c"});
    CHECK(counted() == 3);
    for (const std::string payload : {"a", "b", "c"}) {
        CHECK(count_of(payload) == "1");
    }
    const auto left = redis.command({"PTTL", recoveries}).integer;
    CHECK(left <= 72 * 3'600'000);
    CHECK(left > 72 * 3'600'000 - 60'000);
    redis.command({"PEXPIRE", recoveries, "100000"});
    CHECK(die_with({"d"}).reclaimed == 1);
    CHECK(redis.command({"PTTL", recoveries}).integer > 100'000);
}

TEST_CASE_FIXTURE(Blaming, "who kills wherever it is held is buried, whoever was beside it once "
                           "goes back in its order") {
    die_once_with({"a", "killer", "b"});
    const auto since = server_ms();
    CHECK(die_with({"c", "killer", "d"}) == Collected{.reclaimed = 2, .buried = 1, .consumers = 1});
    CHECK(waiting() == Texts{"c", "d"});
    REQUIRE(redis.llen(dead) == 1);
    CHECK(is_dead_entry(redis.lrange(dead).front(), "killer", "held by 2 consumers that died",
                        since, server_ms()));
    REQUIRE(diary.size() == 1);
    const auto told = diary.of(EventKind::buried).front();
    CHECK(told.payload == "killer");
    CHECK(told.consumer == "number 2");
    CHECK(told.queue == "q");
    // The count is gone with it: put back by hand, the message has all its attempts again.
    CHECK(count_of("killer").empty());
    for (const std::string payload : {"a", "b", "c", "d"}) {
        CHECK(count_of(payload) == "1");
    }
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Blaming, "every message that is once too often held is buried, the newest on the "
                           "left, and told of") {
    die_once_with({"a", "b"});
    CHECK(die_with({"x", "a", "y", "b", "z"}) ==
          Collected{.reclaimed = 3, .buried = 2, .consumers = 1});
    CHECK(waiting() == Texts{"x", "y", "z"});
    const Texts entries = oldest_first(dead);
    REQUIRE(entries.size() == 2);
    CHECK(is_dead_entry_of(entries[0], "a"));
    CHECK(is_dead_entry_of(entries[1], "b"));
    CHECK(told_as_buried() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(Blaming, "when all that it held is buried nothing goes back") {
    die_once_with({"a", "b"});
    CHECK(die_with({"a", "b"}) == Collected{.buried = 2, .consumers = 1});
    CHECK_FALSE(redis.exists("q"));
    CHECK_FALSE(redis.exists(recoveries));
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Blaming, "equal messages are counted once for a death, and are buried together") {
    die_once_with({"a", "b", "a", "a"});
    CHECK(count_of("a") == "1");
    CHECK(die_with({"a", "c", "a"}) == Collected{.reclaimed = 1, .buried = 2, .consumers = 1});
    CHECK(waiting() == Texts{"c"});
    CHECK(redis.llen(dead) == 2);
    CHECK(told_as_buried() == Texts{"a", "a"});
    CHECK(count_of("a").empty());
}

TEST_CASE_FIXTURE(Blaming, "dead_limit bounds what one death adds, and the newest stay") {
    GarbageCollector strict(uri, "q",
                            {.max_recoveries = 0,
                             .grace = 0ms,
                             .dead_limit = 2,
                             .on_event = diary.pen(),
                             .blamed = 1'000'000});
    add_dead_consumer("id", {"a", "b", "c"});
    CHECK(strict.collect() == Collected{.buried = 3, .consumers = 1});
    const Texts entries = oldest_first(dead);
    REQUIRE(entries.size() == 2);
    CHECK(is_dead_entry_of(entries[0], "b"));
    CHECK(is_dead_entry_of(entries[1], "c"));
    CHECK(told_as_buried() == Texts{"a", "b", "c"});
}

TEST_CASE_FIXTURE(Blaming, "thousands are counted, go back in their order or are buried") {
    Texts many;
    for (int i = 0; i < 10'000; ++i) {
        many.push_back(std::to_string(i));
    }
    die_once_with(many);
    CHECK(counted() == 10'000);
    CHECK(die_with(many) == Collected{.buried = 10'000, .consumers = 1});
    CHECK(redis.llen(dead) == 10'000);
    CHECK(told_as_buried() == many);
}

TEST_CASE_FIXTURE(Blaming, "messages of a living consumer are not counted") {
    Consumer<Raw> consumer(uri, "q");
    push({"a"});
    const auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK(collector.collect() == Collected{});
    CHECK_FALSE(redis.exists(recoveries));
}

TEST_CASE_FIXTURE(Blaming, "a consumer that held nothing leaves no count behind") {
    CHECK(die_with({}) == Collected{.consumers = 1});
    CHECK_FALSE(redis.exists(recoveries));
}

TEST_CASE_FIXTURE(Blaming, "an impossible count is named, before anything is counted or moved") {
    for (const std::string wrong : {"once", "", "007", "1.5", " 1"}) {
        CAPTURE(wrong);
        redis.flushall();
        add_dead_consumer("id", {"a", "b", "c"});
        redis.command({"HSET", recoveries, field_of("b"), wrong});
        CHECK(contains(message_of<ReplyError>([&] { collector.collect(); }), recoveries));
        CHECK(held("id") == Texts{"a", "b", "c"});
        CHECK(counted() == 1);
        CHECK(ids() == Texts{"id"});
        redis.command({"HSET", recoveries, field_of("b"), "0"});
        CHECK(collector.collect() == Collected{.reclaimed = 3, .consumers = 1});
        CHECK(count_of("b") == "1");
    }
}

TEST_CASE_FIXTURE(Blaming,
                  "the oldest messages are blamed, as many as `blamed` says, and none after them") {
    GarbageCollector two(uri, "q", {.max_recoveries = 1, .grace = 0ms, .blamed = 2});
    add_dead_consumer("1", {"a", "b", "c", "a"});
    CHECK(two.collect() == Collected{.reclaimed = 4, .consumers = 1});
    CHECK(count_of("a") == "1");
    CHECK(count_of("b") == "1");
    CHECK(count_of("c").empty());
    redis.del("q");
    add_dead_consumer("2", {"x", "b", "a", "b"});
    CHECK(two.collect() == Collected{.reclaimed = 3, .buried = 1, .consumers = 1});
    CHECK(waiting() == Texts{"x", "a", "b"});
    REQUIRE(redis.llen(dead) == 1);
    CHECK(is_dead_entry_of(redis.lrange(dead).front(), "b"));
}

TEST_CASE("what a collector cannot be given is refused before it connects") {
    const auto nowhere = [](const std::string& queue, GarbageCollectorOptions options) {
        return message_of<std::invalid_argument>(
            [&] { GarbageCollector("unix:///nowhere", queue, std::move(options)); });
    };
    CHECK(contains(nowhere("q", {.blamed = 0}), "blamed"));
    CHECK(contains(nowhere("q", {.batch = 0}), "batch"));
    CHECK(contains(nowhere("q", {.grace = 25h}), "grace"));
    CHECK(contains(nowhere("{", {}), "{"));
}

TEST_CASE_FIXTURE(Blaming, "by default the oldest alone is blamed, not even its equals are") {
    GarbageCollector by_default(uri, "q", {.max_recoveries = 1, .grace = 0ms});
    for (const bool again : {false, true}) {
        add_dead_consumer(again ? "2" : "1", {"a", "b", "a"});
        CHECK(by_default.collect() ==
              Collected{.reclaimed = again ? 2U : 3U, .buried = again ? 1U : 0U, .consumers = 1});
        CHECK(waiting() == (again ? Texts{"b", "a"} : Texts{"a", "b", "a"}));
        CHECK(counted() == (again ? 0 : 1));
        redis.del("q");
    }
    REQUIRE(redis.llen(dead) == 1);
    CHECK(is_dead_entry_of(redis.lrange(dead).front(), "a"));
}

} // namespace blame_test
