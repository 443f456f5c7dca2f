// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Settling by a script of the user's: its body and the message's removal are one step.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace extension_scripts_test {

using orizuru::Consumer;
using orizuru::GarbageCollector;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Script;
using orizuru::test::contains;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;
using std::chrono::milliseconds;

struct Extended : QueueFixture {
    Consumer<Raw> consumer{uri, "q"};
    std::string id = consumer.name();

    MessageGuard<Raw> take(const std::string& payload) {
        push({payload});
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        return std::move(*guard);
    }
    std::string code_of(MessageGuard<Raw>& guard, const Script& script, const Texts& keys = {},
                        const Texts& args = {}) {
        try {
            guard.settle(script, keys, args);
        } catch (const ReplyError& error) {
            return error.code();
        }
        return "none";
    }
};

const std::string any_bytes("\0\r\n\xff]]\\'\"", 9);

TEST_CASE_FIXTURE(Extended, "a body and the removal of its message are one command") {
    const Script script("redis.call('ZADD', KEYS[1], ARGV[1], payload)");
    CHECK(take("warm-up").settle(script, {"later"}, {"1"}));
    auto guard = take(any_bytes);
    CHECK(guard.settle(script, {"later"}, {"12.5"}));
    CHECK(redis.command({"ZSCORE", "later", any_bytes}).text == "12.5");
    CHECK(held().empty());
    CHECK(version(id) == 2);
    auto third = take("c");
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(third.settle(script, {"later"}, {"13"}));
    CHECK(info("commandstats", "cmdstat_evalsha:calls") +
              info("commandstats", "cmdstat_eval:calls") ==
          1);
    CHECK(info("commandstats", "cmdstat_zadd:calls") == 1);
}

TEST_CASE_FIXTURE(Extended, "no client can look between a body and the removal") {
    // The body itself sees the message in the list; the next command of any client no longer does.
    const Script script("redis.call('SET', KEYS[1], redis.call('LLEN', ARGV[1]))");
    auto guard = take("a");
    CHECK(guard.settle(script, {"seen"}, {processing(id)}));
    CHECK(redis.command({"GET", "seen"}).text == "2");
    CHECK(redis.llen(processing(id)) == 1);
}

TEST_CASE_FIXTURE(Extended, "a body has KEYS and ARGV of its own, from 1, and the payload") {
    const Script script(R"(
        redis.call('RPUSH', KEYS[1], #KEYS, #ARGV, payload)
        for _, key in ipairs(KEYS) do redis.call('RPUSH', KEYS[1], key) end
        for _, arg in ipairs(ARGV) do redis.call('RPUSH', KEYS[1], arg) end
    )");
    CHECK(take(any_bytes).settle(script, {"one"}, {}));
    CHECK(redis.lrange("one") == Texts{"1", "0", any_bytes, "one"});
    CHECK(take("").settle(script, {"two", "x", "y"}, {"first", any_bytes, ""}));
    CHECK(redis.lrange("two") == Texts{"3", "3", "", "two", "x", "y", "first", any_bytes, ""});
}

TEST_CASE_FIXTURE(Extended, "a body needs neither keys nor arguments, and may do nothing") {
    CHECK(take("a").settle(Script("")));
    CHECK(take("b").settle(Script("-- nothing")));
    CHECK(take("c").settle(Script("assert(#KEYS == 0 and #ARGV == 0)")));
    CHECK(held().empty());
    CHECK(redis.keys() == Texts{consumers, heartbeat(id), processing(id)});
}

TEST_CASE_FIXTURE(Extended, "the value of a body does not matter unless it is an error") {
    for (const std::string result : {"nil", "false", "0", "'STALE'", "{}", "{1, 2}",
                                     "{ok = 'fine'}", "redis.status_reply('OK')"}) {
        CAPTURE(result);
        CHECK(take("a").settle(Script("return " + result)));
        CHECK(held().empty());
    }
}

TEST_CASE_FIXTURE(Extended, "a body that refuses leaves everything as it was") {
    const Script script(R"(
        if redis.call('EXISTS', KEYS[1]) == 1 then
            return redis.error_reply('TAKEN by somebody else')
        end
        redis.call('SET', KEYS[1], payload)
    )");
    redis.set("seat", "old");
    push({"a", "b", "c"});
    auto first = *consumer.next();
    auto second = *consumer.next();
    auto third = *consumer.next();
    const std::string before = header(id);
    try {
        second.settle(script, {"seat"});
        FAIL_CHECK("no exception");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "TAKEN");
        CHECK(contains(error.what(), "by somebody else"));
    }
    CHECK_FALSE(second.settled());
    CHECK(held() == Texts{"a", "b", "c"});
    CHECK(header(id) == before);
    CHECK(redis.command({"GET", "seat"}).text == "old");
    CHECK(consumer.name() == id);
    // The guard can still be settled in any way, in this one too.
    redis.del("seat");
    CHECK(second.settle(script, {"seat"}));
    CHECK(redis.command({"GET", "seat"}).text == "b");
    CHECK(code_of(third, script, {"seat"}) == "TAKEN");
    CHECK(third.ack());
    CHECK(first.reject());
    CHECK(held().empty());
    CHECK(rejected() == Texts{"a"});
}

TEST_CASE_FIXTURE(Extended, "a refusal may say anything, also what our own scripts say") {
    for (const std::string code : {"STALE", "SRC", "REFUSED", "FENCED", "NOSCRIPT", "BUSY", "OOM",
                                   "LOADING", "READONLY", "NOPERM", "MOVED", "ERR", "x"}) {
        CAPTURE(code);
        auto guard = take("a");
        CHECK(code_of(guard, Script("return redis.error_reply('" + code + " 1 2 3')")) == code);
        CHECK(held() == Texts{"a"});
        CHECK(consumer.name() == id);
        CHECK(guard.ack());
    }
}

TEST_CASE_FIXTURE(Extended, "a refusal of one settlement does not hold up the others") {
    push({"a", "b", "c", "d"});
    std::vector<MessageGuard<Raw>> guards;
    for (int i = 0; i < 4; ++i) {
        guards.push_back(*consumer.next());
    }
    const Script never("return redis.error_reply('NEVER mind')");
    for (int i = 0; i < 5; ++i) {
        CHECK(code_of(guards[1], never) == "NEVER");
    }
    CHECK(guards[0].ack());
    CHECK(code_of(guards[1], never) == "NEVER");
    CHECK(guards[3].push("other"));
    CHECK(held() == Texts{"b", "c"});
    CHECK(guards[1].ack());
    CHECK(guards[2].ack());
    CHECK(consumer.name() == id);
}

TEST_CASE_FIXTURE(Extended, "a body that fails is refused, and its message stays") {
    // Its writes before the failure stay: Redis does not roll back.
    const Script script(R"(
        redis.call('INCR', KEYS[1])
        redis.call('LPUSH', KEYS[1], 'a number is no list')
    )");
    push({"a", "b", "c"});
    auto first = *consumer.next();
    auto second = *consumer.next();
    auto third = *consumer.next();
    CHECK(code_of(second, script, {"tries"}) == "WRONGTYPE");
    CHECK(redis.command({"GET", "tries"}).text == "1");
    CHECK_FALSE(second.settled());
    CHECK(held() == Texts{"a", "b", "c"});
    CHECK(code_of(second, script, {"tries"}) == "WRONGTYPE");
    CHECK(redis.command({"GET", "tries"}).text == "2");
    CHECK(consumer.name() == id);
    CHECK(second.bury("cannot be done"));
    CHECK(held() == Texts{"a", "c"});
    CHECK(first.ack());
    CHECK(third.ack());
    CHECK(held().empty());
    CHECK(redis.llen(dead) == 1);
}

TEST_CASE_FIXTURE(Extended, "a body that raises an error of Lua, or is none, leaves its message") {
    for (const std::string body :
         {"error('no more')", "error({err = 'NOMORE of it'})", "local x = nil; return x.y",
          "this is no Lua", "end end end", "return redis.call('NOSUCHCOMMAND')",
          "redis.call('GET')", "undeclared = 1", "return redis.call('BLMOVE', 'q')"}) {
        CAPTURE(body);
        auto guard = take("a");
        CHECK_THROWS_AS(guard.settle(Script(body)), ReplyError);
        CHECK_FALSE(guard.settled());
        CHECK(held() == Texts{"a"});
        CHECK(guard.ack());
        CHECK(held().empty());
    }
    CHECK(ids().size() == 1);
}

TEST_CASE_FIXTURE(Extended, "a script that Redis cannot run at all is sent twice, not for ever") {
    auto guard = take("a");
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK_THROWS_AS(guard.settle(Script("this is no Lua")), ReplyError);
    const std::string stats = redis.command({"INFO", "commandstats"}).text;
    const auto evals = stats.find("cmdstat_eval:");
    REQUIRE(evals != std::string::npos);
    CHECK(contains(stats.substr(evals, stats.find('\r', evals) - evals), "failed_calls=2"));
    CHECK(held() == Texts{"a"});
    CHECK(guard.ack());
}

TEST_CASE_FIXTURE(Extended, "a body that catches its own errors can go on") {
    const Script script(R"(
        local result = redis.pcall('LPUSH', KEYS[1], payload)
        if type(result) == 'table' and result.err then redis.call('SET', KEYS[2], payload) end
    )");
    redis.set("wrong", "");
    CHECK(take("a").settle(script, {"wrong", "right"}));
    CHECK(redis.command({"GET", "right"}).text == "a");
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Extended, "a body does not run when the lease was lost") {
    auto guard = take("a");
    forget_heartbeat(id);
    GarbageCollector collector(uri, "q", {.grace = milliseconds(0)});
    REQUIRE(collector.collect().reclaimed == 1);
    CHECK_FALSE(guard.settle(Script("redis.call('INCR', KEYS[1])"), {"runs"}));
    CHECK_FALSE(redis.exists("runs"));
    CHECK(waiting() == Texts{"a"});
}

TEST_CASE_FIXTURE(Extended, "a body runs exactly once though Redis has forgotten all scripts") {
    const Script script("redis.call('INCR', KEYS[1])");
    for (int i = 0; i < 3; ++i) {
        redis.command({"SCRIPT", "FLUSH"});
        CHECK(take("a").settle(script, {"runs"}));
    }
    CHECK(redis.command({"GET", "runs"}).text == "3");
    CHECK(consumer.name() == id);
}

TEST_CASE_FIXTURE(Extended, "after a new script has been sent once, its name is enough") {
    const Script script("redis.call('INCR', KEYS[1]) --" + std::string(100'000, '-'));
    CHECK(take("a").settle(script, {"runs"}));
    CHECK(take("b").settle(script, {"runs"}));
    auto guard = take("c");
    const auto before = info("stats", "total_net_input_bytes");
    CHECK(guard.settle(script, {"runs"}));
    CHECK(info("stats", "total_net_input_bytes") - before < 10'000);
    CHECK(redis.command({"GET", "runs"}).text == "3");
}

TEST_CASE_FIXTURE(Extended, "one script settles for many guards") {
    const Script script("redis.call('RPUSH', KEYS[1], payload)");
    for (int i = 0; i < 50; ++i) {
        CHECK(take(std::to_string(i)).settle(script, {"all"}));
    }
    CHECK(redis.llen("all") == 50);
    CHECK(redis.lrange("all", -1, -1) == Texts{"49"});
    CHECK(held().empty());
}

} // namespace extension_scripts_test
