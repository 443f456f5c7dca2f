// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A server that is made a replica and then a primary again takes the other server's state.
// Connections that do not wait at that moment stay open, and nothing tells their owners.

#include "integration/core/fault_fixture.hpp"
#include "support/replication.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <string>

namespace role_changes_test {

using namespace std::chrono_literals;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::follow;
using orizuru::test::OwnServer;
using orizuru::test::RawConsumer;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Texts;

struct RoleChanges {
    RedisServer server{{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp};
    RedisServer other{{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp};
    RedisClient redis{server.uri()};
    RedisClient other_redis{other.uri()};
    std::string uri = "unix://" + server.socket_path();

    static void copy(RedisClient& to, const RedisServer& from) {
        follow(to, from);
        to.command({"REPLICAOF", "NO", "ONE"});
    }
    void remember() { copy(other_redis, server); }
    void rewind() { copy(redis, other); }

    /// How often each message comes until none is left.
    std::map<std::string, int> drain(RawConsumer& consumer) {
        std::map<std::string, int> times;
        CHECK(eventually([&] {
            if (auto guard = consumer.next(20ms)) {
                ++times[std::string(guard->payload())];
                CHECK(guard->ack());
                return false;
            }
            return none_is_left();
        }));
        return times;
    }
    bool none_is_left() {
        return redis.llen("q") == 0 &&
               std::ranges::all_of(redis.keys("orizuru:{q}:processing:*"),
                                   [this](const std::string& key) {
                                       return redis.command({"TYPE", key}).text != "list" ||
                                              redis.llen(key) <= 1; // its header
                                   });
    }
};

const std::map<std::string, int> each_once{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}};

TEST_CASE_FIXTURE(RoleChanges, "what was fetched and acked before Redis went back comes again, and "
                               "late guards are told") {
    redis.lpush("q", {"a", "b", "c", "d", "e"});
    remember();
    for (const int prefetch : {1, 3}) {
        CAPTURE(prefetch);
        RawConsumer consumer(uri, "q", {.prefetch = prefetch});
        CHECK(OwnServer::take(consumer).ack());
        auto held = OwnServer::take(consumer);
        CHECK(held.payload() == "b");
        rewind();
        CHECK_FALSE(held.ack());
        CHECK(drain(consumer) == each_once);
        rewind();
    }
}

TEST_CASE_FIXTURE(RoleChanges, "acks are right though Redis went back to before the last of them") {
    redis.lpush("q", {"a", "b", "c", "d", "e"});
    RawConsumer consumer(uri, "q", {.prefetch = 5});
    auto first = OwnServer::take(consumer);
    auto second = OwnServer::take(consumer);
    auto third = OwnServer::take(consumer);
    remember();
    CHECK(second.ack());
    rewind();
    // The list holds the consumer's messages and one more; only that one comes again.
    CHECK(third.ack());
    CHECK(first.ack());
    CHECK(drain(consumer) == std::map<std::string, int>{{"b", 1}, {"d", 1}, {"e", 1}});
}

TEST_CASE_FIXTURE(
    RoleChanges,
    "a consumer that waits when Redis goes back gets the messages that are there then") {
    redis.lpush("q", {"a"});
    remember();
    redis.del("q");
    const Diary diary;
    RawConsumer consumer(uri, "q", {.on_event = diary.pen()});
    auto next = OwnServer::take_in_background(consumer);
    REQUIRE(eventually([this] {
        return redis.command({"CLIENT", "LIST"}).text.find("cmd=blmove") != std::string::npos;
    }));
    rewind();
    auto guard = next.get();
    REQUIRE(guard);
    CHECK(guard->payload() == "a");
    CHECK(guard->ack());
}

} // namespace role_changes_test
