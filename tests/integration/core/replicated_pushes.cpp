// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Pushes and flushes that wait for replicas: ProducerOptions::replicas and the like.

#include "integration/core/replicated_fixture.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace replicated_pushes_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::BufferedProducer;
using orizuru::ConnectionError;
using orizuru::Error;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;

std::vector<Raw> many(int count) {
    std::vector<Raw> messages;
    for (int i = 0; i < count; ++i) {
        messages.push_back({std::to_string(i)});
    }
    return messages;
}

/// Sends nothing because of the time.
orizuru::BufferedProducerOptions buffering(std::chrono::milliseconds within) {
    return {.size = 100, .time = 24h, .replicas = {.count = 1, .within = within}};
}

bool confirms(BufferedProducer<Raw>& producer) {
    try {
        producer.flush();
        return true;
    } catch (const Error&) {
        return false;
    }
}

TEST_CASE_FIXTURE(Replicated, "a push returns when the replicas have it") {
    Producer<Raw> producer(server.uri(), "q", {.replicas = {.count = 1, .within = 20s}});
    for (std::size_t i = 1; i <= 50; ++i) {
        CHECK(producer.push({"a"}) == i);
        CHECK(copy.llen("q") == static_cast<long>(i));
    }
    CHECK(producer.push_all(many(5000)) == 5050);
    CHECK(copy.llen("q") == 5050);
}

TEST_CASE_FIXTURE(Replicated,
                  "a push that too few replicas confirm is in doubt, and in the queue") {
    Producer<Raw> producer(server.uri(), "q", {.replicas = {.count = 1, .within = 100ms}});
    redis.command({"LPUSH", "q", "before"});
    REQUIRE(caught_up());
    replica.pause();
    CHECK(contains(doubt_of([&] { producer.push({"a"}); }),
                   "LPUSH 'q': done, but only 0 of 1 replicas have it after 100 ms"));
    CHECK(redis.lrange("q") == Texts{"a", "before"});
    CHECK(contains(doubt_of([&] { producer.push_all(many(2500)); }), "only 0 of 1 replicas"));
    replica.resume();
    REQUIRE(caught_up());
    const long length = redis.llen("q"); // what was in flight may have run
    CHECK(length >= 1002);
    Producer<Raw> patient(server.uri(), "q", {.replicas = {.count = 1, .within = 20s}});
    CHECK(patient.push({"b"}) == static_cast<std::uint64_t>(length) + 1);
    CHECK(copy.lrange("q").front() == "b");
}

TEST_CASE_FIXTURE(Replicated, "a refused push is no matter of replicas, and the next one goes on") {
    Producer<Raw> producer(server.uri(), "q", {.replicas = {.count = 1, .within = 20s}});
    redis.command({"SET", "q", "x"});
    CHECK_THROWS_AS(producer.push({"a"}), ReplyError);
    CHECK_THROWS_AS(producer.push_all(many(2500)), ReplyError);
    redis.command({"DEL", "q"});
    CHECK(producer.push({"b"}) == 1);
    CHECK(copy.lrange("q") == Texts{"b"});
}

TEST_CASE_FIXTURE(Replicated, "without the right to WAIT a push is in doubt, and says so") {
    redis.command({"ACL", "SETUSER", "default", "-wait"});
    Producer<Raw> producer(server.uri(), "q", {.replicas = {.count = 1}});
    CHECK(contains(doubt_of([&] { producer.push({"a"}); }), "done, but WAIT: NOPERM"));
    CHECK(redis.llen("q") == 1);
}

TEST_CASE_FIXTURE(Replicated, "more replicas than there are leave a push in doubt") {
    Producer<Raw> producer(server.uri(), "q", {.replicas = {.count = 2, .within = 100ms}});
    CHECK(eventually([&] {
        return contains(doubt_of([&] { producer.push({"a"}); }), "only 1 of 2 replicas have it");
    }));
}

TEST_CASE_FIXTURE(Replicated, "a command of one's own waits for replicas, too") {
    Producer<Raw> producer(server.uri(), "q", {.replicas = {.count = 1, .within = 20s}});
    for (long i = 1; i <= 50; ++i) {
        CHECK(producer.command("RPUSH", "q", "a").integer == i);
        CHECK(copy.llen("q") == i);
    }
    CHECK_THROWS_AS(producer.command("INCR", "q"), ReplyError);
    CHECK(producer.push({"b"}) == 51); // and no reply to a WAIT was in its way
    replica.pause();
    Producer<Raw> hasty(server.uri(), "q", {.replicas = {.count = 1, .within = 500ms}});
    CHECK(contains(doubt_of([&] { hasty.command("RPUSH", "q", "c"); }),
                   "RPUSH 'q': done, but only 0 of 1 replicas have it after 500 ms"));
    CHECK(redis.llen("q") == 52);
    CHECK(producer.size() == 52);
}

TEST_CASE_FIXTURE(Replicated, "a flush confirms what the replicas have") {
    BufferedProducer<Raw> producer(server.uri(), "q", buffering(20s));
    for (int i = 0; i < 1000; ++i) {
        producer.push({std::to_string(i)});
        if (i % 100 == 99) {
            producer.flush();
            CHECK(copy.llen("q") == i + 1);
        }
    }
    CHECK(producer.unconfirmed() == 0);
}

TEST_CASE_FIXTURE(Replicated,
                  "a flush that too few replicas confirm is in doubt, as often as it is "
                  "tried, and nothing is pushed twice") {
    BufferedProducer<Raw> producer(server.uri(), "q", buffering(50ms));
    producer.push({"before"});
    REQUIRE(eventually([&] { return confirms(producer); }));
    replica.pause();
    producer.push({"a"});
    producer.push({"b"});
    for (int i = 0; i < 5; ++i) {
        CHECK(contains(doubt_of([&] { producer.flush(); }),
                       "LPUSH 'q': done, but only 0 of 1 replicas have it after 50 ms"));
        CHECK(producer.unconfirmed() >= 2);
        producer.push({std::to_string(i)}); // another LPUSH behind those that have run
    }
    CHECK(producer.size() >= 3);
    replica.resume();
    CHECK(eventually([&] { return confirms(producer); }));
    CHECK(producer.unconfirmed() == 0);
    CHECK(copy.lrange("q") == Texts{"4", "3", "2", "1", "0", "b", "a", "before"});
}

TEST_CASE_FIXTURE(Replicated, "the buffer's thread waits for the replicas by itself") {
    BufferedProducer<Raw> producer(server.uri(), "q", {.time = 1ms, .replicas = {1, 50ms}});
    replica.pause();
    producer.push({"a"});
    CHECK(eventually([&] { return producer.size() == 1; }));
    std::this_thread::sleep_for(300ms);
    CHECK(producer.unconfirmed() == 1);
    replica.resume();
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    CHECK(redis.lrange("q") == Texts{"a"});
}

TEST_CASE_FIXTURE(Replicated,
                  "a buffer that too few replicas confirm gets full, and loses nothing") {
    BufferedProducer<Raw> producer(server.uri(), "q", buffering(50ms));
    replica.pause();
    int accepted = 0;
    CHECK(contains(doubt_of([&] {
                       for (; accepted < 10'000; ++accepted) {
                           producer.push({std::to_string(accepted)});
                       }
                   }),
                   "only 0 of 1 replicas"));
    CHECK(accepted == 3 * 100);
    CHECK(producer.unconfirmed() == 300);
    replica.resume();
    CHECK(eventually([&] { return confirms(producer); }));
    CHECK(copy.llen("q") == accepted);
}

TEST_CASE_FIXTURE(Replicated,
                  "when the connection is lost, what too few replicas have is sent again") {
    BufferedProducer<Raw> producer(server.uri(), "q", buffering(50ms));
    replica.pause();
    producer.push({"a"});
    static_cast<void>(doubt_of([&] { producer.flush(); }));
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    replica.resume();
    CHECK(eventually([&] { return confirms(producer); }));
    CHECK(copy.lrange("q") == Texts{"a", "a"}); // the first may be on a server that is gone
}

TEST_CASE_FIXTURE(Replicated,
                  "a master that becomes a replica confirms nothing: the buffer sends it "
                  "to the next one") {
    BufferedProducer<Raw> producer(server.uri(), "q", buffering(50ms));
    replica.pause();
    producer.push({"a"});
    static_cast<void>(doubt_of([&] { producer.flush(); }));
    redis.command({"REPLICAOF", "127.0.0.1", "1"});
    // Redis ends a WAIT that goes on just then; the buffer has to push anew at once.
    std::string refused;
    while (refused.empty()) {
        try {
            producer.flush();
            FAIL("a replica has confirmed a push");
        } catch (const ConnectionError& doubt) {
            CHECK(doubt.in_doubt());
        } catch (const ReplyError& error) {
            refused = error.code();
        }
    }
    CHECK(refused == "READONLY");
    redis.command({"REPLICAOF", "NO", "ONE"});
    replica.resume();
    CHECK(eventually([&] { return confirms(producer); }));
    CHECK(copy.lrange("q") == Texts{"a", "a"});
}

TEST_CASE_FIXTURE(Replicated, "without the right to WAIT a flush is in doubt, and pushes once") {
    redis.command({"ACL", "SETUSER", "default", "-wait"});
    BufferedProducer<Raw> producer(server.uri(), "q", buffering(50ms));
    producer.push({"a"});
    for (int i = 0; i < 3; ++i) {
        CHECK(contains(doubt_of([&] { producer.flush(); }), "done, but WAIT: NOPERM"));
    }
    redis.command({"ACL", "SETUSER", "default", "+wait"});
    CHECK(eventually([&] { return confirms(producer); }));
    CHECK(copy.lrange("q") == Texts{"a"});
}

TEST_CASE_FIXTURE(Replicated, "the time of an LPUSH in flight begins when the one before it ends") {
    BufferedProducer<Raw> producer(server.uri() + "?command_timeout=200", "q",
                                   {.size = 1, .replicas = {.count = 1, .within = 400ms}});
    replica.pause();
    producer.push({"a"});
    producer.push({"b"});
    CHECK(contains(doubt_of([&] { producer.flush(); }), "only 0 of 1 replicas"));
    replica.resume();
    CHECK(eventually([&] { return confirms(producer); }));
    CHECK(copy.lrange("q") == Texts{"b", "a"});
}

TEST_CASE_FIXTURE(Replicated, "of threads that flush one buffer, none is told of a push that no "
                              "replica can have") {
    BufferedProducer<Raw> producer(server.uri(), "q", {.size = 50, .replicas = {1, 20s}});
    constexpr int threads = 4;
    constexpr int each = 100;
    std::atomic<int> changes{0}; // odd while the replica stands still
    std::atomic<int> early{0};
    {
        std::vector<std::jthread> pushing;
        for (int thread = 0; thread < threads; ++thread) {
            pushing.emplace_back([&] {
                for (int i = 0; i < each; ++i) {
                    const int before = changes;
                    producer.push({"a"});
                    CHECK_NOTHROW(producer.flush()); // 20 s are enough
                    early += static_cast<int>(before % 2 == 1 && before == changes);
                }
            });
        }
        for (int i = 0; i < 5; ++i) {
            std::this_thread::sleep_for(5ms);
            replica.pause();
            ++changes;
            std::this_thread::sleep_for(50ms);
            ++changes;
            replica.resume();
        }
    }
    CHECK(early == 0);
    CHECK(copy.llen("q") == threads * each);
}

TEST_CASE_FIXTURE(Replicated, "threads that flush while the replica is away are all in doubt") {
    BufferedProducer<Raw> producer(server.uri(), "q", buffering(100ms));
    replica.pause();
    std::atomic<int> in_doubt{0};
    {
        std::vector<std::jthread> flushing;
        for (int i = 0; i < 4; ++i) {
            flushing.emplace_back([&, i] {
                producer.push({std::to_string(i)});
                try {
                    producer.flush();
                } catch (const ConnectionError& error) {
                    in_doubt += error.in_doubt() ? 1 : 0;
                }
            });
        }
    }
    CHECK(in_doubt == 4);
    CHECK(producer.unconfirmed() == 4);
    replica.resume();
    CHECK(eventually([&] { return confirms(producer); }));
    CHECK(copy.llen("q") == 4);
}

TEST_CASE("replicas and their time are checked before anything is sent") {
    using Options = orizuru::ProducerOptions;
    for (const Options& options :
         {Options{.replicas = {.count = -1}}, Options{.replicas = {.count = 1, .within = 0ms}}}) {
        CHECK_THROWS_AS(Producer<Raw>("redis://127.0.0.1:1", "q", options), std::invalid_argument);
        CHECK_THROWS_AS(
            BufferedProducer<Raw>("redis://127.0.0.1:1", "q", {.replicas = options.replicas}),
            std::invalid_argument);
    }
}

} // namespace replicated_pushes_test
