// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Since when Redis has taken a queue's writes: how beats and passes go on with it, and what ends
// it.

#include "integration/core/queue_fixture.hpp"
#include "support/elapsed.hpp"

#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>

namespace write_series_test {

using namespace std::chrono_literals;
using orizuru::Consumer;
using orizuru::GarbageCollector;
using orizuru::Raw;
using orizuru::test::eventually;
using orizuru::test::QueueFixture;
using orizuru::test::time_of;

const std::string writes = "orizuru:{q}:writes";
const std::string dead_header = "orz:0123456789abcdefl3000:7"; // with a lease of 3 s

struct Series : QueueFixture {
    long gap = 0;
    long age = 0;
    long credit = 0;

    /// Reads it; false if there is none.
    bool read() {
        std::istringstream text(redis.command({"GET", writes}).text);
        return static_cast<bool>(text >> gap >> age >> credit);
    }
    /// One that the last write has left, so long ago.
    void leave(const std::string& value, long gap_now, long ago = 0) {
        redis.command({"SET", writes, value, "PX", std::to_string(gap_now - ago)});
    }
    long beat(const std::string& lease, const std::string& id = "living") {
        return redis
            .command({"EVAL", std::string(orizuru::detail::beat_script()), "4", heartbeat(id),
                      processing(id), consumers, writes, id, lease, "orizuru:{q}:suspects", "",
                      "600000"})
            .integer;
    }
    void visit(const std::string& unheard = "1") {
        redis.command({"EVAL", std::string(orizuru::detail::visit_script.source()), "2", writes,
                       heartbeat(""), "86400000", unheard});
    }
};

TEST_CASE_FIXTURE(Series, "a consumer's header tells its lease") {
    const Consumer<Raw> consumer(uri, "q", {.lease = 12345ms});
    CHECK(header(only_id()).find("l12345:") == 20);
}

TEST_CASE_FIXTURE(Series, "a first beat begins a series, and the next goes on with it") {
    CHECK(beat("12000") == 2);
    REQUIRE(read());
    CHECK(gap == 5000); // five twelfths of the lease
    CHECK(age == 0);
    leave("5000 100 0", 5000, 2000);
    beat("12000");
    REQUIRE(read());
    CHECK(age >= 2100);
    CHECK(gap == 5000);
    CHECK(redis.command({"PTTL", writes}).integer > 4000);
}

TEST_CASE_FIXTURE(Series, "a longer lease changes no gap; a shorter one begins another series") {
    leave("5000 100000 0", 5000);
    beat("24000");
    REQUIRE(read());
    CHECK(gap == 5000);
    CHECK(age >= 100'000);
    beat("1200");
    REQUIRE(read());
    CHECK(gap == 500);
    CHECK(age == 0);
}

TEST_CASE_FIXTURE(Series, "a beat ends the credit of a mark, a pass does not") {
    leave("5000 100 90000", 5000);
    beat("12000");
    REQUIRE(read());
    CHECK(credit == 90'000); // the series goes on behind it
    beat("1200");
    REQUIRE(read());
    CHECK(credit == 0);
    leave("86400000 0 0", 86'400'000, 60'000);
    beat("12000");
    REQUIRE(read());
    CHECK(credit == 0);
    CHECK(age == 0);
}

TEST_CASE_FIXTURE(Series,
                  "a pass goes on with a series, and neither begins one nor takes a mark for "
                  "one") {
    visit();
    CHECK_FALSE(read());
    leave("5000 100 7", 5000, 1000);
    visit();
    REQUIRE(read());
    CHECK(age >= 1100);
    CHECK(credit == 7);
    leave("86400000 0 0", 86'400'000, 60'000);
    visit();
    REQUIRE(read());
    CHECK(gap == 86'400'000);
    CHECK(redis.command({"PTTL", writes}).integer < 86'400'000 - 50'000);
    visit("0"); // all have been heard since
    CHECK(redis.command({"PTTL", writes}).integer <= 1);
}

TEST_CASE_FIXTURE(Series, "a fenced consumer's beat goes on with no series") {
    redis.command({"SET", processing("living"), "reaped x"});
    CHECK(beat("12000") == 0);
    CHECK_FALSE(read());
}

TEST_CASE_FIXTURE(Series,
                  "the passes of a collector keep the series of the last consumer going until "
                  "its lease is over") {
    GarbageCollector collector(uri, "q", {.grace = 1min});
    redis.lpush(processing("dead"), {dead_header, "held"});
    const std::jthread running([&](const std::stop_token& token) { collector.run(token, 300ms); });
    leave("1250 60000 0", 1250);
    const auto took = time_of([&] {
        CHECK(beat("3000", "dead") == 1); // the last one
        CHECK(eventually([&] { return redis.type(processing("dead")) == "string"; }));
    });
    CHECK(took >= 2900ms);
    CHECK(took < 4500ms); // without them a series would begin then, and take 3 s more
}

} // namespace write_series_test
