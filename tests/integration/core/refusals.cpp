// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Operations that cannot succeed, now or ever: Redis hangs up on too large commands, rights are
// missing, replies have the wrong type. Nothing hangs, nothing spins, and no call reports success.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <string>

namespace refusals_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::EventKind;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::OwnServer;
using orizuru::test::patience;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::Texts;
using orizuru::test::time_of;

struct NarrowServer : OwnServer {
    NarrowServer() : OwnServer({"--client-query-buffer-limit", "1mb"}) {}
};

/// A user whose rights come and go.
struct Clerk : OwnServer {
    Clerk() { change({"reset", "on", ">open-sesame", "~*", "&*", "+@all"}); }

    std::string clerk = "unix://clerk:open-sesame@" + server.socket_path();

    void change(const Texts& rules) {
        Texts words{"ACL", "SETUSER", "clerk"};
        words.insert(words.end(), rules.begin(), rules.end());
        redis.command(words);
    }
};

/// A script that fetches or settles, by its name or in full.
bool is_settling(const Texts& argv) {
    return argv.at(0) == "EVALSHA" || (argv.at(0) == "EVAL" && contains(argv.at(1), "STALE"));
}

TEST_CASE_FIXTURE(NarrowServer, "a move at which Redis hangs up each time is refused, and others "
                                "are settled meanwhile") {
    const Diary diary;
    RawConsumer consumer{uri(500ms), "q", {.lease = 2s, .prefetch = 2, .on_event = diary.pen()}};
    push({"a", "b"});
    auto guard = take(consumer);
    auto other = take(consumer);
    auto pushed = std::async(std::launch::async, [&] {
        return guard.push("other", Raw{std::string(std::size_t{8} << 20, 'z')});
    });
    auto acked = std::async(std::launch::async, [&] { return other.ack(); });
    const bool both_ended = pushed.wait_for(patience) == std::future_status::ready &&
                            acked.wait_for(patience) == std::future_status::ready;
    if (!both_ended) {
        server.kill(); // or they would try for ever, and this test would not end
    }
    REQUIRE(both_ended);
    CHECK(acked.get());
    CHECK_THROWS_AS(pushed.get(), ReplyError);
    CHECK_FALSE(guard.settled());
    // Each lost connection may have caused one more try, but not dozens.
    CHECK(diary.count(EventKind::reconnected) < 10);
    CHECK_FALSE(redis.exists("other"));
    CHECK(held() == Texts{"a"});
    CHECK(guard.push("other"));
    CHECK(redis.lrange("other") == Texts{"a"});
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Clerk, "a consumer that only looks in, and may not end its wait in Redis, gets "
                         "what that wait brings") {
    change({"-client|unblock"});
    RawConsumer consumer{clerk, "q"};
    CHECK_FALSE(consumer.next(50ms));
    for (const std::string message : {"a", "b"}) {
        push({message});
        std::optional<RawGuard> guard;
        CHECK(eventually([&] { return (guard = consumer.next(0ms)).has_value(); }, 4s));
        REQUIRE(guard);
        CHECK((*guard)->bytes == message);
        CHECK(guard->ack());
    }
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(Clerk, "flush does not report success when the acks were refused") {
    RawConsumer consumer{clerk, "q", {.lease = 1s, .prefetch = 2, .ack = AckMode::deferred}};
    push({"a", "b"});
    CHECK(take(consumer).ack());
    CHECK(take(consumer).ack());
    change({"-eval", "-evalsha"});
    for (int i = 0; i < 2; ++i) {
        CHECK_THROWS_AS(consumer.flush(), ReplyError);
    }
    CHECK(held() == Texts{"b", "a"});
    change({"+eval", "+evalsha"});
    CHECK(consumer.flush() == 0);
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OwnServer, "a producer and a collector leave a server that has become a replica: "
                             "the next call connects anew") {
    std::atomic<bool> replica{true};
    std::atomic<int> greetings{0};
    const FakeServer fake{
        [&](const Texts& argv) -> std::optional<std::string> {
            greetings += argv.at(0) == "PING" ? 1 : 0;
            return replica && argv.at(0) != "PING"
                       ? "-READONLY You can't write against a read only replica.\r\n"
                       : FakeServer::pass;
        },
        server.socket_path()};
    orizuru::Producer<Raw> producer{fake.uri(), "q"};
    orizuru::GarbageCollector collector{fake.uri(), "q"};
    CHECK_THROWS_AS(producer.push({"a"}), ReplyError);
    CHECK_THROWS_AS(producer.push_all({Raw{"a"}, Raw{"b"}}), ReplyError);
    CHECK_THROWS_AS(collector.collect(), ReplyError);
    CHECK(greetings == 5);
    replica = false;
    CHECK(producer.push({"a"}) == 1);
    collector.collect();
    CHECK(greetings == 7);
    CHECK(producer.push({"b"}) == 2);
    CHECK(greetings == 7);
}

TEST_CASE_FIXTURE(OwnServer, "a push that a replica has refused is sent once more, on a new "
                             "connection, and no other one is") {
    std::atomic<int> pushes{0};
    std::atomic<int> greetings{0};
    std::string answer;
    const FakeServer fake{[&](const Texts& argv) -> std::optional<std::string> {
                              greetings += argv.at(0) == "PING" ? 1 : 0;
                              if (argv.at(0) != "LPUSH") {
                                  return FakeServer::pass;
                              }
                              const bool first = ++pushes == 1;
                              if (first && answer.empty()) {
                                  return std::nullopt; // it is in doubt
                              }
                              return first ? answer : FakeServer::pass;
                          },
                          server.socket_path()};
    orizuru::Producer<Raw> producer{fake.uri(), "q"};
    bool again = true;
    SUBCASE("READONLY") { answer = "-READONLY You can't write against a read only replica.\r\n"; }
    SUBCASE("UNBLOCKED") { answer = "-UNBLOCKED force unblock from blocking operation\r\n"; }
    SUBCASE("OOM") {
        answer = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
        again = false;
    }
    SUBCASE("no answer") { again = false; }
    if (again) {
        CHECK(producer.push({"a"}) == 1);
        CHECK(pushes == 2);
        CHECK(greetings == 2);
        CHECK(everywhere() == Texts{"a"});
    } else {
        CHECK_THROWS_AS(producer.push({"a"}), orizuru::Error);
        CHECK(pushes == 1);
        CHECK(everywhere().empty());
    }
}

TEST_CASE_FIXTURE(OwnServer, "replies of the wrong type lead to a few new connections, not to "
                             "thousands") {
    std::atomic<bool> lying{false};
    std::atomic<int> greetings{0};
    FakeServer fake{[&](const Texts& argv) -> std::optional<std::string> {
                        greetings += argv.at(0) == "PING" ? 1 : 0;
                        return lying && is_settling(argv) ? "+OK\r\n" : FakeServer::pass;
                    },
                    server.socket_path()};
    RawConsumer consumer{fake.uri(), "q", {.prefetch = 2}};
    lying = true;
    const int before = greetings;
    // It does not matter here whether a call ends by its time or by a reply.
    CHECK(time_of([&] {
              for (int i = 0; i < 2; ++i) {
                  try {
                      const bool found = consumer.next(500ms).has_value();
                      CHECK_FALSE(found);
                  } catch (const ReplyError&) { // NOLINT(bugprone-empty-catch)
                  }
              }
          }) < 4s);
    CHECK(greetings - before < 40);
    lying = false;
    push({"a", "b"});
    const auto first = [&] {
        try {
            return take(consumer);
        } catch (const ReplyError&) { // of the last lie, when a call ended before it
            return take(consumer);
        }
    };
    CHECK(first().ack());
    CHECK(take(consumer).ack());
    CHECK(is_empty());
}

} // namespace refusals_test
