// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Many messages by one call: when a batch is complete, what ends it earlier, and that each of its
// messages is settled on its own.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/batch.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <limits>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace batch_test {

using namespace std::chrono_literals;
using orizuru::BatchOptions;
using orizuru::Consumer;
using orizuru::EventKind;
using orizuru::MessageGuard;
using orizuru::next_batch;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;

using Batch = std::vector<MessageGuard<Raw>>;

Texts texts_of(const Batch& batch) {
    Texts texts;
    for (const auto& guard : batch) {
        texts.push_back(guard->bytes);
    }
    return texts;
}

struct Batching : QueueFixture {
    Consumer<Raw> consumer{uri, "q"};

    std::future<Batch> batch_in_background(const BatchOptions& options,
                                           const std::stop_token& token = {}) {
        return std::async(std::launch::async,
                          [=, this] { return next_batch(consumer, options, token); });
    }
    /// Waits until a batch of another thread has these messages and waits for more.
    void await_held(const Texts& payloads) {
        REQUIRE(eventually([&] { return held() == payloads; }));
        REQUIRE(somebody_waits());
    }
    /// Makes the waiting consumer ask Redis again.
    void end_wait() {
        const std::string list = redis.command({"CLIENT", "LIST"}).text;
        const auto line = list.rfind("id=", list.find("cmd=blmove")) + 3;
        REQUIRE(redis.command({"CLIENT", "UNBLOCK", list.substr(line, list.find(' ', line) - line)})
                    .integer == 1);
    }
};

TEST_CASE_FIXTURE(Batching, "a batch that is full does not wait for its time") {
    for (const int prefetch : {1, 2, 100}) {
        CAPTURE(prefetch);
        redis.flushall();
        Consumer<Raw> own(uri, "q", {.prefetch = prefetch});
        push({"a", "b", "c", "d"});
        Batch batch;
        CHECK(time_of([&] { batch = next_batch(own, {.size = 3, .time = 1h}); }) < 5s);
        CHECK(texts_of(batch) == Texts{"a", "b", "c"});
        for (auto& guard : batch) {
            CHECK(guard.ack());
        }
        CHECK(texts_of(next_batch(own, {.size = 1, .time = 1h})) == Texts{"d"});
    }
}

TEST_CASE_FIXTURE(Batching, "a batch that is not full ends with its time") {
    auto batch = batch_in_background({.size = 3, .time = 1s});
    REQUIRE(somebody_waits());
    const auto waited = time_of([&] {
        push({"a"});
        await_held({"a"});
        push({"b"});
        CHECK(texts_of(batch.get()) == Texts{"a", "b"});
    });
    CHECK(waited >= 1s);
    CHECK(waited < 6s);
}

TEST_CASE_FIXTURE(Batching, "the time of a batch begins with its first message") {
    auto batch = batch_in_background({.size = 3, .time = 50ms});
    REQUIRE(somebody_waits());
    CHECK(batch.wait_for(200ms) == std::future_status::timeout);
    push({"a"});
    CHECK(texts_of(batch.get()) == Texts{"a"});
}

TEST_CASE_FIXTURE(Batching, "messages that come while a batch waits fill it") {
    auto batch = batch_in_background({.size = 3, .time = 1h});
    for (const Texts& so_far : {Texts{"a"}, Texts{"a", "b"}}) {
        push({so_far.back()});
        await_held(so_far);
    }
    push({"c"});
    REQUIRE(batch.wait_for(patience) == std::future_status::ready);
    CHECK(texts_of(batch.get()) == Texts{"a", "b", "c"});
}

TEST_CASE_FIXTURE(Batching, "a batch without time takes the messages that are there") {
    push({"a", "b", "c"});
    for (const int prefetch : {1, 100}) {
        CAPTURE(prefetch);
        Consumer<Raw> own(uri, "q", {.prefetch = prefetch});
        const BatchOptions at_once{.size = 100, .time = 0ms};
        Batch batch;
        CHECK(time_of([&] { batch = next_batch(own, at_once); }) < 5s);
        CHECK(texts_of(batch) == Texts{"a", "b", "c"});
        while (!batch.empty()) {
            CHECK(batch.back().release());
            batch.pop_back();
        }
        CHECK(texts_of(next_batch(own, {.size = 2, .time = 0ms})) == Texts{"a", "b"});
        redis.del(unack);
        redis.del("q");
        push({"a", "b", "c"});
    }
}

TEST_CASE_FIXTURE(Batching, "the longest time and the largest size are no error") {
    auto batch = batch_in_background({.size = 100'000, .time = milliseconds::max()});
    push({"a"});
    await_held({"a"});
    consumer.stop();
    CHECK(texts_of(batch.get()) == Texts{"a"});
}

TEST_CASE_FIXTURE(Batching, "each message of a batch is settled on its own") {
    push({"a", "b", "c", "d"});
    auto batch = next_batch(consumer, {.size = 4});
    REQUIRE(batch.size() == 4);
    CHECK(batch[2].ack());
    CHECK(held() == Texts{"a", "b", "d"});
    CHECK(batch[0].reject());
    CHECK(rejected() == Texts{"a"});
    CHECK(batch[3].bury("no use"));
    CHECK(redis.llen(dead) == 1);
    CHECK(held() == Texts{"b"});
    batch.clear();
    CHECK(held().empty());
    CHECK(rejected() == Texts{"a", "b"});
    CHECK_FALSE(redis.exists("q"));
}

TEST_CASE_FIXTURE(Batching, "a batch that goes unsettled rejects all of it") {
    push({"a", "b", "c"});
    try {
        const auto batch = next_batch(consumer, {.size = 3});
        REQUIRE(held() == Texts{"a", "b", "c"});
        throw std::runtime_error("the handler failed");
    } catch (const std::runtime_error&) {
        CHECK(rejected() == Texts{"a", "b", "c"});
    }
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Batching, "a stop while a batch waits returns its messages, at once") {
    std::stop_source source;
    for (const bool of_consumer : {false, true}) {
        CAPTURE(of_consumer);
        auto batch = batch_in_background({.size = 3, .time = 1h}, source.get_token());
        push({"a"});
        await_held({"a"});
        const auto waited = time_of([&] {
            if (of_consumer) {
                consumer.stop();
            } else {
                source.request_stop();
            }
            batch.wait();
        });
        CHECK(waited < 5s);
        Batch stopped = batch.get();
        REQUIRE(texts_of(stopped) == Texts{"a"});
        CHECK(stopped.front().ack());
        source = std::stop_source();
    }
    CHECK(next_batch(consumer).empty());
}

TEST_CASE_FIXTURE(Batching, "a stop before the first message returns none") {
    std::stop_source source;
    auto batch = batch_in_background({}, source.get_token());
    REQUIRE(somebody_waits());
    source.request_stop();
    REQUIRE(batch.wait_for(patience) == std::future_status::ready);
    CHECK(batch.get().empty());
    push({"a"});
    CHECK(next_batch(consumer, {}, source.get_token()).empty());
    CHECK(waiting() == Texts{"a"});
}

TEST_CASE_FIXTURE(QueueFixture, "undecodable messages are passed over, wherever they lie") {
    const Diary diary;
    Consumer<int> numbers(uri, "q", {.on_event = diary.pen()});
    push({"\xc1", "\x01", "\xc1", "\xc1", "\x02", "\x03"});
    auto batch = orizuru::next_batch(numbers, {.size = 3, .time = 1h});
    REQUIRE(batch.size() == 3);
    for (std::size_t i = 0; i < batch.size(); ++i) {
        CHECK(*batch[i] == static_cast<int>(i) + 1);
        CHECK(batch[i].ack());
    }
    CHECK(redis.llen(dead) == 3);
    CHECK(diary.count(EventKind::decode_failed) == 3);
}

TEST_CASE_FIXTURE(QueueFixture, "neither further messages nor undecodable ones prolong a batch") {
    for (const bool decodable : {true, false}) {
        CAPTURE(decodable);
        redis.flushall();
        Consumer<int> numbers(uri, "q");
        push({"\x01"});
        auto batch = std::async(std::launch::async, [&] {
            return orizuru::next_batch(numbers, {.size = 1000, .time = 300ms}).size();
        });
        int pushed = 0;
        while (batch.wait_for(20ms) == std::future_status::timeout && pushed < 500) {
            push({decodable ? "\x02" : "\xc1"});
            ++pushed;
        }
        CHECK(pushed < 500);
        numbers.stop();
        batch.wait();
    }
}

TEST_CASE_FIXTURE(Batching, "an error ends a batch that has begun, and the next call throws it") {
    auto batch = batch_in_background({.size = 3, .time = 1h});
    push({"a", "b"});
    await_held({"a", "b"});
    redis.set("q", "a string");
    end_wait();
    REQUIRE(batch.wait_for(patience) == std::future_status::ready);
    Batch begun = batch.get();
    CHECK(texts_of(begun) == Texts{"a", "b"});
    CHECK(contains(message_of<ReplyError>([&] { static_cast<void>(next_batch(consumer)); }),
                   "WRONGTYPE"));
    for (auto& guard : begun) {
        CHECK(guard.ack());
    }
    redis.del("q");
    push({"c"});
    CHECK(texts_of(next_batch(consumer, {.size = 1})) == Texts{"c"});
    CHECK_FALSE(redis.exists(dead));
}

TEST_CASE_FIXTURE(Batching, "a batch sends what next sends, and nothing else") {
    push({"a", "b", "c", "d", "e"});
    const auto commands_of = [this](auto take) {
        redis.command({"CONFIG", "RESETSTAT"});
        take();
        return info("stats", "total_commands_processed:");
    };
    const auto first = consumer.next(patience); // connects, too
    Batch one_by_one;
    const auto alone = commands_of([&] {
        for (int i = 0; i < 2; ++i) {
            auto guard = consumer.next(patience);
            REQUIRE(guard);
            one_by_one.push_back(std::move(*guard));
        }
    });
    Batch batch;
    CHECK(commands_of([&] { batch = next_batch(consumer, {.size = 2}); }) == alone);
    CHECK(batch.size() == 2);
}

TEST_CASE_FIXTURE(Batching, "an impossible size or time is named, and nothing is fetched") {
    push({"a"});
    for (const int size : {0, -1, 100'001, std::numeric_limits<int>::min()}) {
        CHECK(contains(message_of<std::invalid_argument>(
                           [&] { static_cast<void>(next_batch(consumer, {.size = size})); }),
                       "size"));
    }
    for (const milliseconds time : {-1ms, milliseconds::min()}) {
        CHECK(contains(message_of<std::invalid_argument>(
                           [&] { static_cast<void>(next_batch(consumer, {.time = time})); }),
                       "time"));
    }
    CHECK(waiting() == Texts{"a"});
}

} // namespace batch_test
