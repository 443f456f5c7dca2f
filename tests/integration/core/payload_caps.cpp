// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Payloads over the cap, and their errors.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace payload_caps_test {

using orizuru::Consumer;
using orizuru::DecodeError;
using orizuru::EncodeError;
using orizuru::EventKind;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::is_dead_entry_of;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;

TEST_CASE_FIXTURE(QueueFixture, "a payload at the cap passes, one above it goes to the dead list") {
    const Diary diary;
    Consumer<Raw> consumer(uri, "q", {.max_payload = 1000, .on_event = diary.pen()});
    const std::string fits(1000, 'a');
    const std::string over(1001, 'b');
    push({fits, over, "c"});
    CHECK((*consumer.next())->bytes == fits);
    try {
        static_cast<void>(consumer.next());
        FAIL_CHECK("no exception");
    } catch (const DecodeError& error) {
        CHECK(error.payload() == over);
        CHECK(contains(error.what(), "1001"));
        CHECK(contains(error.what(), "1000"));
        CHECK_FALSE(contains(error.what(), "bbb"));
    }
    CHECK(is_dead_entry_of(redis.lrange(dead).front(), over));
    REQUIRE(diary.count(EventKind::decode_failed) == 1);
    CHECK(diary.of(EventKind::decode_failed).front().payload == over);
    CHECK((*consumer.next())->bytes == "c");
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(QueueFixture,
                  "payloads over the cap among those fetched ahead are buried one by one") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 10, .max_payload = 3});
    push({"a", "over 1", "b", "over 2", "over 3", "c"});
    Texts seen;
    int failures = 0;
    while (seen.size() < 3) {
        try {
            auto guard = consumer.next();
            seen.push_back((*guard)->bytes);
            CHECK(guard->ack());
        } catch (const DecodeError&) {
            ++failures;
        }
    }
    CHECK(seen == Texts{"a", "b", "c"});
    CHECK(failures == 3);
    CHECK(redis.llen(dead) == 3);
}

TEST_CASE_FIXTURE(QueueFixture, "a Codec never sees a payload over the cap") {
    Consumer<std::string> consumer(uri, "q", {.max_payload = 10});
    push({std::string(11, '\xc1')}); // undecodable as well, but the reason names the cap
    try {
        static_cast<void>(consumer.next());
        FAIL_CHECK("no exception");
    } catch (const DecodeError& error) {
        CHECK(contains(error.what(), "max_payload"));
    }
}

TEST_CASE_FIXTURE(QueueFixture, "the cap is 16 MiB unless it is chosen, for both ends alike") {
    const std::string fits(16 << 20, 'a');
    const std::string over((16 << 20) + 1, 'b');
    Producer<Raw> producer(uri, "q");
    CHECK(producer.push({fits}) == 1);
    CHECK_THROWS_AS(producer.push({over}), EncodeError);
    Consumer<Raw> consumer(uri, "q");
    CHECK((*consumer.next())->bytes.size() == fits.size());
    push({over});
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), DecodeError);
    Producer<Raw> generous(uri, "q", {.max_payload = 20 << 20});
    CHECK(generous.push({over}) == 1);
    redis.del("q");
    Consumer<Raw> taker(uri, "q", {.max_payload = 20 << 20});
    generous.push({over});
    CHECK(taker.next()->ack());
}

} // namespace payload_caps_test
