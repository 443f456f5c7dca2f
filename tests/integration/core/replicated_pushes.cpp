// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A push that waits for replicas: ProducerOptions::replicas.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace replicated_pushes_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::ConnectionError;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;

/// What a push says that leaves all of its messages in doubt.
template <class Push>
std::string doubt_of(Push push) {
    try {
        push();
        FAIL("it was confirmed");
    } catch (const ConnectionError& error) {
        CHECK(error.in_doubt());
        CHECK(error.pushed() == 0);
        return error.what();
    }
    return {};
}

struct Replicated {
    RedisServer server{{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp};
    RedisClient redis{server.uri()};
    RedisServer replica{{"--replicaof", "127.0.0.1", std::to_string(server.port())}};
    RedisClient copy{replica.uri()};

    Replicated() {
        redis.command({"SET", "first", "x"});
        REQUIRE(eventually([&] { return redis.command({"WAIT", "1", "100"}).integer == 1; }, 20s));
    }
    ~Replicated() { replica.resume(); }

    void push_patiently(const std::string& message) const {
        Producer<Raw>(server.uri(), "q", {.replicas = {.count = 1, .within = 20s}}).push({message});
    }
    static std::vector<Raw> many(int count) {
        std::vector<Raw> messages;
        for (int i = 0; i < count; ++i) {
            messages.push_back({std::to_string(i)});
        }
        return messages;
    }
};

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
    push_patiently("before");
    replica.pause();
    CHECK(contains(doubt_of([&] { producer.push({"a"}); }),
                   "LPUSH 'q': pushed, but only 0 of 1 replicas have it after 100 ms"));
    CHECK(redis.lrange("q") == Texts{"a", "before"});
    CHECK(contains(doubt_of([&] { producer.push_all(many(2500)); }), "only 0 of 1 replicas"));
    replica.resume();
    push_patiently("b");
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
    CHECK(contains(doubt_of([&] { producer.push({"a"}); }), "pushed, but WAIT: NOPERM"));
    CHECK(redis.llen("q") == 1);
}

TEST_CASE("replicas and their time are checked before anything is sent") {
    using Options = orizuru::ProducerOptions;
    for (const Options& options :
         {Options{.replicas = {.count = -1}}, Options{.replicas = {.count = 1, .within = 0ms}}}) {
        CHECK_THROWS_AS(Producer<Raw>("redis://127.0.0.1:1", "q", options), std::invalid_argument);
    }
}

} // namespace replicated_pushes_test
