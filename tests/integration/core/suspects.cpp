// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What several messages that were blamed for a death wait for, who gets them, and what becomes of
// their counts.

#include "integration/core/queue_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <orizuru/detail/redis/scripts/sha1.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace suspects_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::Collected;
using orizuru::Consumer;
using orizuru::EventKind;
using orizuru::GarbageCollector;
using orizuru::Job;
using orizuru::make_job;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::Answer;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::Proxy;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::Relay;
using orizuru::test::Texts;

struct Suspects : QueueFixture {
    const std::string suspects = "orizuru:{q}:suspects";
    const std::string asked = "orizuru:{q}:suspects:asked";
    const std::string header = "orz:0123456789abcdefl30000:7";
    Diary diary;
    GarbageCollector collector{
        uri, "q", {.grace = 0ms, .on_event = diary.pen(), .blamed = 1'000'000}};

    static std::string field_of(const std::string& payload) {
        return std::string(std::string_view(orizuru::detail::sha1_hex(payload)));
    }
    std::string count_of(const std::string& payload) {
        return redis.command({"HGET", recoveries, field_of(payload)}).text;
    }
    Texts apart() { return oldest_first(suspects); }

    /// Puts these apart, as one death does.
    void suspect(const Texts& payloads, int deaths = 1) {
        redis.lpush(suspects, payloads);
        for (const std::string& payload : payloads) {
            redis.command({"HSET", recoveries, field_of(payload), std::to_string(deaths)});
        }
        redis.command({"SET", asked, "", "PX", "600000"});
    }
    /// A living consumer that knows of suspects, although it asks for none.
    void add_taker() {
        redis.command({"SADD", consumers, "taker"});
        redis.command({"SET", heartbeat("taker"), "1"});
        redis.command({"RPUSH", processing("taker"), header});
    }
};

// ---- Where they wait

TEST_CASE_FIXTURE(Suspects,
                  "what several may have killed their consumer wait apart in their order, "
                  "and an event names each") {
    add_taker();
    push({"before"});
    add_dead_consumer("dead", {"a", "b", "c"});
    CHECK(collector.collect() == Collected{.reclaimed = 3, .consumers = 1, .suspects = 3});
    CHECK(apart() == Texts{"a", "b", "c"});
    CHECK(waiting() == Texts{"before"});
    CHECK(redis.exists(asked));
    Texts told;
    for (const auto& event : diary.of(EventKind::suspected)) {
        CHECK(event.consumer == "dead");
        CHECK(contains(event.detail, "held by 1 consumers that died"));
        told.push_back(event.payload);
    }
    CHECK(told == Texts{"a", "b", "c"});
    add_dead_consumer("later", {"d", "b"});
    CHECK(collector.collect().suspects == 2);
    CHECK(apart() == Texts{"a", "b", "c", "d", "b"});
    CHECK(count_of("b") == "2");
}

TEST_CASE_FIXTURE(Suspects, "those that are not blamed go back at once") {
    GarbageCollector two(uri, "q", {.grace = 0ms, .on_event = diary.pen(), .blamed = 2});
    add_taker();
    add_dead_consumer("dead", {"a", "b", "c"});
    CHECK(two.collect() == Collected{.reclaimed = 3, .consumers = 1, .suspects = 2});
    CHECK(apart() == Texts{"a", "b"});
    CHECK(waiting() == Texts{"c"});
}

TEST_CASE_FIXTURE(Suspects, "where no living consumer knows of them all go back to the source") {
    std::uint64_t dead_ones = 1;
    SUBCASE("there is none") {}
    SUBCASE("it is of 0.1.0") {
        add_taker();
        redis.command({"LSET", processing("taker"), "0", "orz:0123456789abcdef:7"});
    }
    SUBCASE("it has left") {
        add_taker();
        redis.command({"SET", processing("taker"), "released orz:0123456789abcdefl30000:7"});
    }
    SUBCASE("it is dead, too") {
        add_taker();
        redis.del(heartbeat("taker"));
        dead_ones = 2;
    }
    add_dead_consumer("dead", {"a", "b"});
    CHECK(collector.collect() == Collected{.reclaimed = 2, .consumers = dead_ones});
    CHECK(waiting() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(Suspects, "where nobody lives they wait apart for the next consumer, if the dead "
                            "one knew of them") {
    add_dead_consumer("dead", {"a", "b"}, header);
    CHECK(collector.collect() == Collected{.reclaimed = 2, .consumers = 1, .suspects = 2});
    CHECK(apart() == Texts{"a", "b"});
    CHECK(waiting().empty());
    redis.del(asked);
    CHECK(collector.collect() == Collected{});
    CHECK(apart() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(Suspects, "a consumer that tells how many it handles at once is blamed for as "
                            "many, whatever its collector says") {
    add_taker();
    GarbageCollector one(uri, "q", {.grace = 0ms, .on_event = diary.pen()});
    GarbageCollector* by = &collector;
    SUBCASE("which blames all") {}
    SUBCASE("which blames one") { by = &one; }
    add_dead_consumer("dead", {"a", "b", "c"}, "orz:0123456789abcdefl30000n2:7");
    CHECK(by->collect() == Collected{.reclaimed = 3, .consumers = 1, .suspects = 2});
    CHECK(apart() == Texts{"a", "b"});
    CHECK(waiting() == Texts{"c"});
    add_dead_consumer("alone", {"d", "e"}, "orz:0123456789abcdefl30000n1:7");
    CHECK(by->collect() == Collected{.reclaimed = 2, .consumers = 1});
    CHECK(count_of("d") == "1");
    CHECK(count_of("e").empty());
}

TEST_CASE_FIXTURE(Suspects,
                  "a key of another type in their place is named, and the messages go back "
                  "to the source") {
    add_taker();
    redis.command({"SET", suspects, "no list"});
    add_dead_consumer("dead", {"a", "b"});
    CHECK(contains(message_of<ReplyError>([this] { collector.collect(); }), suspects));
    CHECK(waiting() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(Suspects, "one that was blamed alone goes back at once") {
    GarbageCollector by_default(uri, "q", {.grace = 0ms});
    add_taker();
    add_dead_consumer("dead", {"a", "b"});
    CHECK(by_default.collect() == Collected{.reclaimed = 2, .consumers = 1});
    CHECK(waiting() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(Suspects, "those for which nobody asks go back before all others") {
    push({"waits"});
    suspect({"a", "b", "c"});
    collector.collect();
    CHECK(apart() == Texts{"a", "b", "c"});
    redis.del(asked);
    collector.collect(); // nobody lives who could take them from the source
    CHECK(apart() == Texts{"a", "b", "c"});
    add_taker();
    collector.collect();
    CHECK(apart().empty());
    CHECK(waiting() == Texts{"a", "b", "c", "waits"});
    Texts many;
    for (int i = 0; i < 2500; ++i) {
        many.push_back(std::to_string(i));
    }
    redis.del("q");
    redis.lpush(suspects, many);
    collector.collect();
    CHECK(waiting() == many);
}

// ---- Who takes them

/// Takes messages, keeps their guards, and says of each what it is.
struct Taking : Suspects {
    std::optional<Consumer<Raw>> consumer;
    std::vector<MessageGuard<Raw>> guards;

    void open(orizuru::ConsumerOptions options) {
        options.lease = 300ms; // so each beat, 100 ms after the other, tells that suspects wait
        consumer.emplace(uri, "q", options);
    }
    MessageGuard<Raw>& take(std::chrono::milliseconds timeout = patience) {
        auto guard = consumer->next(timeout);
        REQUIRE(guard);
        guards.push_back(std::move(*guard));
        return guards.back();
    }
    std::string taken() { return std::string((*take()).bytes); }
};

TEST_CASE_FIXTURE(Taking,
                  "a consumer that waits in Redis gets a suspect with its next beat, and one "
                  "at a time") {
    open({});
    auto first = std::async(std::launch::async, [this] { return consumer->next(patience); });
    REQUIRE(somebody_waits());
    suspect({"a", "b"});
    auto guard = first.get();
    REQUIRE(guard);
    CHECK((**guard).bytes == "a");
    guards.push_back(std::move(*guard));
    CHECK_FALSE(consumer->next(500ms)); // five beats
    CHECK(apart() == Texts{"b"});
    push({"innocent"});
    CHECK(taken() == "innocent");
    CHECK(guards.front().ack());
    CHECK(taken() == "b");
    CHECK(guards.back().ack());
    CHECK(guards[1].ack());
    CHECK_FALSE(redis.exists(suspects));
}

TEST_CASE_FIXTURE(Taking, "the ack of a suspect ends its count, however acks are given; so does a "
                          "settlement of the user's own, and no other") {
    AckMode ack = AckMode::immediate;
    SUBCASE("acks are awaited") {}
    SUBCASE("acks are deferred") { ack = AckMode::deferred; }
    open({.prefetch = 3, .ack = ack});
    const auto settled = [&](const std::string& payload, auto settle) {
        suspect({payload});
        auto& guard = take();
        REQUIRE((*guard).bytes == payload);
        REQUIRE(count_of(payload) == "1");
        REQUIRE(settle(guard));
        return count_of(payload);
    };
    CHECK(settled("acked", [](auto& guard) { return guard.ack(); }).empty());
    CHECK(settled("settled", [](auto& guard) {
              return guard.settle(orizuru::Script("return #KEYS == 0 and #ARGV == 0 or error('x')"),
                                  {}, {});
          }).empty());
    CHECK(settled("rejected", [](auto& guard) { return guard.reject(); }) == "1");
    CHECK(settled("pushed", [](auto& guard) { return guard.push("other"); }) == "1");
    CHECK(settled("buried", [](auto& guard) { return guard.bury("x"); }) == "1");
    CHECK(settled("released", [](auto& guard) { return guard.release(); }) == "1");
    CHECK(apart() == Texts{"released"});
    CHECK(rejected() == Texts{"rejected"});
    CHECK(redis.llen(dead) == 1);
    CHECK(redis.llen("other") == 1);
}

TEST_CASE_FIXTURE(Taking,
                  "a suspect whose fetch lost its reply comes all the same, and its ack ends "
                  "its count") {
    constexpr std::uint64_t of_unblock = 4; // bytes of a reply to CLIENT UNBLOCK
    bool lost = false;
    for (std::uint64_t before = 1; before < 10 && !lost; ++before) {
        redis.flushall();
        Proxy proxy(orizuru::test::server().socket_path());
        Diary heard;
        Consumer<Raw> behind(proxy.uri(), "q", {.lease = 300ms, .on_event = heard.pen()});
        auto next = std::async(std::launch::async, [&] { return behind.next(patience); });
        REQUIRE(somebody_waits());
        // The first connection is the one of the requests.
        proxy.cut_after(Relay::Direction::to_client,
                        proxy.bytes(0, Relay::Direction::to_client) + before * of_unblock,
                        Relay::Cut::fin, 0);
        suspect({"a"});
        auto guard = next.get();
        REQUIRE(guard);
        CHECK(guard->payload() == "a");
        CHECK(guard->ack());
        CHECK(count_of("a").empty());
        lost = heard.count(EventKind::redelivered) == 1;
    }
    CHECK(lost);
}

TEST_CASE_FIXTURE(Taking, "a user without the right to them leaves them to others, and is told "
                          "nothing") {
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">x", "~*", "&*", "+@all", "-lmove"});
    Diary heard;
    Consumer<Raw> other("unix://clerk:x@" + orizuru::test::server().socket_path(), "q",
                        {.lease = 300ms, .on_event = heard.pen()});
    suspect({"a"});
    CHECK_FALSE(other.next(500ms));
    push({"1"});
    const auto guard = other.next(patience);
    REQUIRE(guard);
    CHECK(guard->payload() == "1");
    CHECK(apart() == Texts{"a"});
    CHECK(heard.size() == 0);
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Taking, "a key of another type in their place stops no consumer") {
    for (const std::string& key : {suspects, asked, recoveries}) {
        CAPTURE(key);
        redis.flushall();
        open({});
        suspect({"a"});
        redis.del(key);
        redis.command({"SADD", key, "no list"});
        CHECK_FALSE(consumer->next(500ms));
        push({"1"});
        auto guard = consumer->next(patience);
        REQUIRE(guard);
        CHECK(guard->payload() == "1");
        CHECK(guard->ack());
    }
}

TEST_CASE_FIXTURE(Taking, "a consumer that fetches ahead asks for a suspect between two batches, "
                          "however many messages wait") {
    open({.prefetch = 10, .ack = AckMode::deferred});
    push(Texts(50'000, "many"));
    suspect({"a"});
    const auto limit = std::chrono::steady_clock::now() + patience;
    std::string taken;
    while (taken != "a" && std::chrono::steady_clock::now() < limit) {
        auto guard = consumer->next(patience);
        REQUIRE(guard);
        taken = (**guard).bytes;
        CHECK(guard->ack());
        std::this_thread::sleep_for(1ms); // it has 50 s of work
    }
    CHECK(taken == "a");
    CHECK(redis.llen("q") > 0);
}

TEST_CASE_FIXTURE(Taking, "while a consumer holds what it may, its beats keep the others apart") {
    open({});
    suspect({"a", "b"});
    CHECK(taken() == "a");
    redis.command({"PEXPIRE", asked, "100"});
    CHECK(eventually([this] { return redis.command({"PTTL", asked}).integer > 100'000; }));
    collector.collect();
    CHECK(apart() == Texts{"b"});
}

// ---- What is counted

TEST_CASE_FIXTURE(Suspects, "the attempts of a job share a count") {
    const auto bytes_of = [](const Job<std::string>& job) {
        std::string bytes;
        orizuru::Codec<Job<std::string>>::encode(job, bytes);
        return bytes;
    };
    for (const std::size_t size : {1U, 31U, 32U, 255U, 256U, 512U}) {
        CAPTURE(size);
        redis.flushall();
        auto job = make_job(std::string("payload"));
        job.id = std::string(size, 'i');
        add_dead_consumer("1", {bytes_of(job)});
        CHECK(collector.collect().reclaimed == 1);
        ++job.attempt;
        job.last_error = "failed";
        job.first_failed_at = job.enqueued_at;
        add_dead_consumer("2", {bytes_of(job)});
        CHECK(collector.collect().reclaimed == 1);
        CHECK(redis.command({"HGET", recoveries, "job " + job.id}).text == "2");
        CHECK(redis.command({"HLEN", recoveries}).integer == 1);
    }
}

TEST_CASE_FIXTURE(Suspects, "what only resembles a job counts by its bytes") {
    Texts payloads{"",
                   "x",
                   std::string("\x9b\x01\xa1i", 4),
                   std::string("\x9b\x01\xa1i\x01\xc0", 6),
                   std::string("\x9a\x01\xa1i\x01\xcf", 6),
                   std::string("\x9b\x00\xa1i\x01\xcf", 6),
                   std::string("\x9b\x01\xa0\x01\xcf", 5),
                   std::string("\x9b\x01\xda\x02\x01i", 6),
                   std::string("\xdc\x00\x0b\x01\xa5i\x01\xcf", 8)};
    add_dead_consumer("1", payloads);
    CHECK(collector.collect().reclaimed == payloads.size());
    for (const std::string& payload : payloads) {
        CHECK(count_of(payload) == "1");
    }
    CHECK(redis.command({"HLEN", recoveries}).integer ==
          static_cast<std::int64_t>(payloads.size()));
}

} // namespace suspects_test
