// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The progress and the result of a job.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/progress.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace progress_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using orizuru::Progress;
using orizuru::ProtocolError;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;

struct Fixture : QueueFixture {
    Progress progress{uri, "q"};

    std::int64_t ttl(const std::string& key) { return redis.command({"PTTL", key}).integer; }
};

TEST_CASE_FIXTURE(Fixture, "the last progress of a job is returned, with a time of Redis' clock") {
    CHECK_FALSE(progress.get("j"));
    progress.set("j", 0.1, "reading");
    const std::int64_t since = server_ms();
    const std::string note("\0\r\n\xff", 4);
    progress.set("j", 1.0 / 3, note);
    const auto told = progress.get("j");
    REQUIRE(told);
    CHECK(told->fraction == 1.0 / 3);
    CHECK(told->note == note);
    CHECK(told->when.time_since_epoch().count() >= since);
    CHECK(told->when.time_since_epoch().count() <= server_ms());
    CHECK_FALSE(progress.get("another"));
    CHECK_FALSE(Progress(uri, "other").get("j"));
    for (const double fraction : {0.0, 1.0, 5e-324, 0.1}) {
        progress.set("j", fraction);
        CHECK(progress.get("j")->fraction == fraction);
        CHECK(progress.get("j")->note.empty());
    }
    CHECK(redis.keys() == Texts{"orizuru:{q}:progress:j"});
}

TEST_CASE_FIXTURE(Fixture, "progress and results expire, and never stay") {
    progress.set("j", 0.5, "", 1h);
    progress.set_result("j", "x", 1h);
    for (const std::string& key : {"orizuru:{q}:progress:j"s, "orizuru:{q}:result:j"s}) {
        CHECK(ttl(key) > 3'500'000);
        CHECK(ttl(key) <= 3'600'000);
    }
    progress.set("j", 0.5, "", 20ms);
    progress.set_result("j", "y", 20ms);
    CHECK(eventually([this] { return redis.keys().empty(); }));
    CHECK_FALSE(progress.get("j"));
    CHECK_FALSE(progress.result("j"));
}

TEST_CASE_FIXTURE(Fixture, "a result may be any bytes, and the last one stays") {
    CHECK_FALSE(progress.result("j"));
    for (const std::string& bytes : {"first"s, ""s, "\0\r\n\xff"s, std::string(100'000, 'x')}) {
        progress.set_result("j", bytes);
        CHECK(progress.result("j") == bytes);
    }
    CHECK_FALSE(progress.get("j"));
}

TEST_CASE_FIXTURE(Fixture, "each report is one command") {
    redis.command({"CONFIG", "RESETSTAT"});
    progress.set("j", 0.5);
    progress.set_result("j", "x");
    CHECK(info("commandstats", "cmdstat_eval:calls") == 2);
    CHECK(info("commandstats", "cmdstat_multi:calls") == 0);
}

TEST_CASE_FIXTURE(Fixture, "impossible values are refused before anything is sent") {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double fraction : {-0.01, 1.01, nan, HUGE_VAL}) {
        CHECK_THROWS_AS(progress.set("j", fraction), std::invalid_argument);
    }
    CHECK_THROWS_AS(progress.set("j", 0.5, std::string(1001, 'x')), std::invalid_argument);
    CHECK_THROWS_AS(progress.set_result("j", std::string((16 << 20) + 1, 'x')),
                    std::invalid_argument);
    for (const std::string& id : {""s, std::string(513, 'x')}) {
        CHECK_THROWS_AS(progress.set(id, 0.5), std::invalid_argument);
        CHECK_THROWS_AS(progress.get(id), std::invalid_argument);
        CHECK_THROWS_AS(progress.set_result(id, "x"), std::invalid_argument);
        CHECK_THROWS_AS(progress.result(id), std::invalid_argument);
    }
    for (const auto ttl : {0ms, -1ms, std::chrono::milliseconds::max()}) {
        CHECK_THROWS_AS(progress.set("j", 0.5, "", ttl), std::invalid_argument);
        CHECK_THROWS_AS(progress.set_result("j", "x", ttl), std::invalid_argument);
    }
    CHECK(redis.keys().empty());
    progress.set(std::string(512, 'x'), 0.5, std::string(1000, 'x'));
    CHECK(redis.keys().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a key of the wrong type is named, and stays as it is") {
    const std::string hash = "orizuru:{q}:progress:j";
    const std::string string = "orizuru:{q}:result:j";
    redis.lpush(hash, "x");
    redis.lpush(string, "x");
    CHECK(contains(message_of<ReplyError>([&] { progress.set("j", 0.5); }), hash + " is a list"));
    CHECK(contains(message_of<ReplyError>([&] { progress.get("j"); }), hash));
    CHECK(contains(message_of<ReplyError>([&] { progress.set_result("j", "y"); }),
                   string + " is a list"));
    CHECK(contains(message_of<ReplyError>([&] { progress.result("j"); }), string));
    CHECK(redis.lrange(hash) == Texts{"x"});
    CHECK(redis.lrange(string) == Texts{"x"});
}

TEST_CASE_FIXTURE(Fixture, "a foreign value is refused, and the next call works") {
    const std::string key = "orizuru:{q}:progress:j";
    redis.command({"HSET", key, "fraction", "half"});
    CHECK_THROWS_AS(progress.get("j"), ProtocolError);
    redis.command({"HSET", key, "note", "", "when", "1"});
    CHECK_THROWS_AS(progress.get("j"), ProtocolError);
    progress.set("j", 0.5);
    CHECK(progress.get("j")->fraction == 0.5);
}

TEST_CASE_FIXTURE(Fixture, "when memory is full the progress before stays") {
    progress.set("j", 0.25, "before");
    progress.set_result("j", "before");
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    const std::string set = message_of<ReplyError>([&] { progress.set("j", 0.5, "after"); });
    const std::string result = message_of<ReplyError>([&] { progress.set_result("j", "after"); });
    CHECK(progress.get("j")->note == "before");
    CHECK(progress.result("j") == "before");
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(contains(set, "OOM"));
    CHECK(contains(result, "OOM"));
    progress.set("j", 0.5, "after");
    CHECK(progress.get("j")->note == "after");
}

} // namespace progress_test
