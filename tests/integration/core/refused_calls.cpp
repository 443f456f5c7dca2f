// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A call that Redis refuses for a missing right has done nothing, however often it is made.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"

#include <orizuru/jobs/recurring.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace refused_calls_test {

using namespace std::chrono_literals;
using orizuru::Consumer;
using orizuru::Cron;
using orizuru::MessageGuard;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::Recurring;
using orizuru::ReplyError;
using orizuru::Scheduler;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::server;
using orizuru::test::Texts;

struct Clerk : QueueFixture {
    Clerk() { allow_all_but({}); }
    ~Clerk() { redis.try_command({"ACL", "DELUSER", "clerk"}); }

    std::string clerk = "unix://clerk:x@" + server().socket_path();
    std::string scheduled = "orizuru:{q}:scheduled";

    void allow_all_but(const Texts& rules) {
        Texts words{"ACL", "SETUSER", "clerk", "reset", "on", ">x", "~*", "&*", "+@all"};
        words.insert(words.end(), rules.begin(), rules.end());
        redis.command(words);
    }
};

/// Acks all messages; goes on after errors.
void take_all(Consumer<Raw>& consumer, Texts& seen) {
    for (int errors = 0; errors < 4;) {
        try {
            auto guard = consumer.next(200ms);
            if (!guard) {
                return;
            }
            seen.push_back((*guard)->bytes);
            guard->ack();
        } catch (const orizuru::Error&) {
            ++errors;
        }
    }
}

TEST_CASE_FIXTURE(Clerk, "occurrences that cannot be written down are not pushed") {
    const auto tell = [](std::chrono::sys_seconds) { return Raw{"tick"}; };
    Recurring<Raw> recurring(clerk, "q",
                             {{.name = "tick", .cron = Cron("* * * * * *"), .message = tell}});
    CHECK(recurring.push_due() == 0);
    redis.command({"HSET", "orizuru:{q}:recurring", "tick", "1"});
    allow_all_but({"-hset"});
    for (int i = 0; i < 10; ++i) {
        CHECK_THROWS_AS(recurring.push_due(), ReplyError);
    }
    CHECK(waiting().empty());
    allow_all_but({});
    CHECK(recurring.push_due() == 1);
}

TEST_CASE_FIXTURE(Clerk, "a message that cannot be taken out of the scheduled ones is not moved") {
    Producer<Raw> producer(uri, "q");
    orizuru::push_after(producer, 1ms, Raw{"a"});
    Scheduler scheduler(clerk, "q");
    for (const std::string right : {"-zremrangebyrank", "-zremrangebyscore", "-zcard"}) {
        CAPTURE(right);
        allow_all_but({right});
        for (int i = 0; i < 5; ++i) {
            CHECK_THROWS_AS(scheduler.move_due(), ReplyError);
        }
        CHECK(waiting().empty());
    }
    allow_all_but({});
    CHECK(eventually([&] { return scheduler.move_due() == 1; }));
    CHECK(waiting() == Texts{"a"});
}

TEST_CASE_FIXTURE(Clerk, "a refused message is not scheduled") {
    Producer<Raw> producer(clerk, "q");
    for (const std::string right : {"-del", "-lpush", "-zadd", "-incr"}) {
        CAPTURE(right);
        allow_all_but({right});
        CHECK_THROWS_AS(orizuru::push_after(producer, 1h, Raw{"a"}), ReplyError);
        CHECK(redis.keys().empty());
    }
}

TEST_CASE_FIXTURE(Clerk,
                  "a message that Redis refuses to put off stays held, and is in no other place") {
    Consumer<Raw> consumer(clerk, "q");
    push({"a"});
    auto guard = *consumer.next();
    for (const std::string right : {"-del", "-lpush", "-zadd"}) {
        CAPTURE(right);
        allow_all_but({right});
        CHECK_THROWS_AS(orizuru::push_after(guard, 1h), ReplyError);
        CHECK_FALSE(guard.settled());
        CHECK(held() == Texts{"a"});
        CHECK_FALSE(redis.exists(scheduled));
    }
    allow_all_but({});
    CHECK(orizuru::push_after(guard, 1h));
    CHECK(redis.command({"ZCARD", scheduled}).integer == 1);
}

TEST_CASE_FIXTURE(Clerk, "a consumer that may not push any more takes nothing out of the queue") {
    Consumer<Raw> consumer(clerk, "q", {.prefetch = 3});
    push({"a", "b", "c"});
    allow_all_but({"-lpush"});
    CHECK(contains(message_of<ReplyError>([&] { static_cast<void>(consumer.next(0ms)); }),
                   "NOPERM this user may not run LPUSH on orizuru:{q}:processing:"));
    CHECK(waiting() == Texts{"a", "b", "c"});
    allow_all_but({});
    for (const std::string payload : {"a", "b", "c"}) {
        const auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK((*guard)->bytes == payload);
    }
}

TEST_CASE_FIXTURE(Clerk, "each right that SETTLE needs, taken away in the middle, loses nothing") {
    for (const std::string right :
         {"lindex", "llen", "lset", "lrem", "ltrim", "rpush", "rpop", "lpush"}) {
        CAPTURE(right);
        redis.flushall();
        allow_all_but({});
        Texts seen;
        {
            Consumer<Raw> consumer(clerk, "q", {.prefetch = 4, .ack = orizuru::AckMode::deferred});
            push({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"});
            std::vector<MessageGuard<Raw>> guards;
            for (int i = 0; i < 4; ++i) {
                guards.push_back(*consumer.next());
                seen.push_back(guards.back()->bytes);
            }
            allow_all_but({"-" + right});
            guards[3].ack();
            guards[0].ack();
            take_all(consumer, seen);
            allow_all_but({});
            guards.clear(); // rejects b and c
            take_all(consumer, seen);
            consumer.flush();
        }
        for (const Texts& left : {waiting(), rejected()}) {
            seen.insert(seen.end(), left.begin(), left.end());
        }
        for (const std::string payload : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) {
            CHECK_MESSAGE(std::ranges::find(seen, payload) != seen.end(), payload);
        }
    }
}

struct Settling : Clerk {
    /// Takes a right away, has the action run meanwhile, and gives the right back.
    template <class Action>
    void without(const std::string& right, Action action) {
        const std::uint64_t refused = refusals();
        allow_all_but({"-" + right});
        std::jthread thread(action);
        CHECK(eventually([&] { return refusals() > refused; }));
        allow_all_but({});
    }
    std::uint64_t refusals() {
        return static_cast<std::uint64_t>(info("stats", "unexpected_error_replies") +
                                          info("stats", "total_error_replies"));
    }
    static void try_ack(MessageGuard<Raw>& guard) {
        try {
            static_cast<void>(guard.ack());
        } catch (const ReplyError&) {
        }
    }
};

TEST_CASE_FIXTURE(Settling, "a right that is gone for a moment mixes up no equal messages") {
    for (const std::string right : {"rpush", "ltrim", "lset", "lrem"}) {
        CAPTURE(right);
        redis.flushall();
        allow_all_but({});
        Consumer<Raw> consumer(clerk, "q");
        push({"a", "a"});
        auto first = *consumer.next();
        auto second = *consumer.next();
        if (right == "rpush") {
            allow_all_but({"-rpush"});
            try_ack(first);
            allow_all_but({});
        } else {
            without(right, [&] { try_ack(right == "lrem" ? second : first); });
        }
        auto& other = right == "lrem" ? first : second;
        if (!other.settled()) {
            other.reject();
        }
        CHECK(redis.llen(unack) + redis.llen("q") + static_cast<int>(held().size()) >= 1);
    }
}

TEST_CASE_FIXTURE(Settling, "a right that is gone for a moment leaves no markers behind") {
    Texts got;
    {
        Consumer<Raw> consumer(clerk, "q");
        push({"a", "b", "c"});
        auto a = *consumer.next();
        auto b = *consumer.next();
        auto c = *consumer.next();
        bool acked = false;
        without("lrem", [&] { acked = b.ack(); });
        CHECK(acked);
        take_all(consumer, got);
    }
    CHECK(got.empty());
    CHECK(waiting().empty());
    Texts left = rejected();
    std::ranges::sort(left);
    CHECK(left == Texts{"a", "c"});
}

TEST_CASE_FIXTURE(Settling, "a collector returns messages only, whatever a lost right has left") {
    {
        Consumer<Raw> consumer(clerk, "q", {.lease = 300ms});
        push({"a", "b", "c"});
        auto a = *consumer.next();
        auto b = *consumer.next();
        auto c = *consumer.next();
        // The list as it is when LREM was refused and the process died.
        const std::string id = only_id();
        const std::string head = header(id);
        const std::string next = head.substr(0, head.rfind(':') + 1) + "99";
        redis.command({"LSET", processing(id), "-3", next});
        forget_heartbeat(id);
        orizuru::GarbageCollector collector(uri, "q", {.grace = 0ms});
        CHECK(collector.collect().reclaimed == 2);
        CHECK(waiting() == Texts{"a", "c"});
        CHECK(fence(id) == "reaped " + next);
    }
}

TEST_CASE("a consumer names the command that its server has renamed") {
    for (const std::string command : {"EVALSHA", "EVAL", "LPUSH", "BLMOVE", "RENAME", "TYPE"}) {
        CAPTURE(command);
        const RedisServer renaming({"--rename-command", command, "hidden"});
        const std::string message =
            message_of<ReplyError>([&] { const Consumer<Raw> consumer(renaming.uri(), "q"); });
        CHECK_MESSAGE(contains(message, command), message);
        CHECK(RedisClient(renaming.uri()).keys().empty());
    }
}

TEST_CASE("a consumer says that its server is older than 7.0") {
    const FakeServer old([](const Texts& argv) {
        return argv[0] == "EVAL" ? "-ERR Error compiling script (new function): user_script:1: "
                                   "unexpected symbol near '#' \r\n"
                                 : "+OK\r\n";
    });
    const std::string message =
        message_of<ReplyError>([&] { const Consumer<Raw> consumer(old.uri(), "q"); });
    CHECK_MESSAGE(contains(message, "Redis 7.0 or newer"), message);
}

} // namespace refused_calls_test
