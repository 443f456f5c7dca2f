// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer with a buffer: the messages that it accepts are in Redis in time, in order, and once,
// unless a reply was lost.

#include "integration/core/queue_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace buffered_producer_test {

using namespace std::chrono_literals;
using orizuru::BufferedProducer;
using orizuru::BufferedProducerOptions;
using orizuru::EncodeError;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::Elapsed;
using orizuru::test::eventually;
using orizuru::test::Making;
using orizuru::test::message_of;
using orizuru::test::QueueFixture;
using orizuru::test::Stopwatch;
using orizuru::test::Texts;

/// Its Codec does what `use` says before it encodes.
struct Using {
    std::function<void()> use;
};

} // namespace buffered_producer_test

template <>
struct orizuru::Codec<buffered_producer_test::Using> {
    static std::string encode(const buffered_producer_test::Using& value) {
        value.use();
        return "encoded";
    }
    static buffered_producer_test::Using decode(std::string_view /*bytes*/) { return {}; }
};

namespace buffered_producer_test {

Texts numbered(std::size_t first, std::size_t end) {
    Texts texts;
    for (std::size_t i = first; i < end; ++i) {
        texts.push_back(std::to_string(i));
    }
    return texts;
}

void push_numbers(BufferedProducer<Raw>& producer, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
        producer.push({std::to_string(i)});
    }
}

std::ptrdiff_t threads() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

struct Buffering : QueueFixture {
    /// No message is sent because of the time.
    static constexpr BufferedProducerOptions patient(int buffer) {
        return {.size = buffer, .time = 24h};
    }

    Buffering() { redis.command({"CONFIG", "RESETSTAT"}); }
    ~Buffering() { redis.command({"CONFIG", "SET", "maxmemory", "0"}); }
    Buffering(const Buffering&) = delete;
    Buffering& operator=(const Buffering&) = delete;

    std::int64_t pushes() { return info("commandstats", "cmdstat_lpush:calls"); }
    /// Pushes numbers from `first` until push reports Redis' refusal; returns the first one that
    /// was not accepted.
    std::size_t push_until_refused(BufferedProducer<Raw>& producer, std::size_t first) {
        for (std::size_t i = first; i < first + 10'000; ++i) {
            try {
                producer.push({std::to_string(i)});
            } catch (const ReplyError&) {
                return i;
            }
        }
        throw std::runtime_error("nothing was refused");
    }
};

TEST_CASE_FIXTURE(Buffering, "an impossible size or time is refused by name") {
    for (const int size : {-1, 0, 1001}) {
        CHECK(contains(message_of<std::invalid_argument>(
                           [&] { BufferedProducer<Raw>(uri, "q", {.size = size}); }),
                       "size must"));
    }
    for (const std::chrono::milliseconds time : {0ms, -1ms, 24h + 1ms}) {
        CHECK(contains(message_of<std::invalid_argument>(
                           [&] { BufferedProducer<Raw>(uri, "q", {.size = 10, .time = time}); }),
                       "time must"));
    }
    CHECK_NOTHROW(BufferedProducer<Raw>(uri, "q", {.size = 1, .time = 1ms}));
    CHECK_NOTHROW(BufferedProducer<Raw>(uri, "q", {.size = 1000, .time = 24h}));
}

TEST_CASE_FIXTURE(Buffering, "a thread is started with a buffer, and only then") {
    const auto before = threads();
    const Producer<Raw> plain(uri, "q");
    CHECK(threads() == before);
    {
        const BufferedProducer<Raw> buffered(uri, "q", {.size = 10});
        CHECK(threads() == before + 1);
    }
    CHECK(threads() == before);
}

TEST_CASE_FIXTURE(Buffering, "pushed messages stay in the buffer until it is flushed") {
    BufferedProducer<Raw> producer(uri, "q", patient(1000));
    CHECK(producer.unconfirmed() == 0);
    for (const std::string text : {"a", "b", "c"}) {
        CHECK(producer.push({text}) == 0);
    }
    CHECK(producer.unconfirmed() == 3);
    CHECK_FALSE(redis.exists("q"));
    producer.flush();
    CHECK(producer.unconfirmed() == 0);
    CHECK(waiting() == Texts{"a", "b", "c"});
    CHECK(pushes() == 1);
    CHECK(producer.push({"d"}) == 3); // as Redis last reported it
    producer.flush();
    producer.flush();
    CHECK(waiting() == Texts{"a", "b", "c", "d"});
    CHECK(pushes() == 2);
}

TEST_CASE_FIXTURE(Buffering, "a full buffer goes to Redis by itself, in one LPUSH") {
    for (const int most : {1, 2, 10, 1000}) {
        redis.flushall();
        redis.command({"CONFIG", "RESETSTAT"});
        const auto count = static_cast<std::size_t>(most);
        BufferedProducer<Raw> producer(uri, "q", patient(most));
        push_numbers(producer, 0, 2 * count - 1);
        CHECK(eventually([&] { return waiting() == numbered(0, count); }));
        CHECK(eventually([&] { return producer.unconfirmed() == count - 1; }));
        push_numbers(producer, 2 * count - 1, 5 * count);
        CHECK(eventually([&] { return waiting() == numbered(0, 5 * count); }));
        CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
        CHECK(pushes() == 5);
    }
}

TEST_CASE_FIXTURE(Buffering, "large messages fill the buffer by their bytes") {
    BufferedProducer<Raw> producer(uri, "q", patient(1000));
    Texts texts;
    for (int i = 0; i < 44; ++i) {
        texts.push_back(std::string(100'000, static_cast<char>('0' + i)));
        producer.push({texts.back()});
    }
    CHECK(eventually([&] { return waiting() == texts; })); // 11 of them pass the mebibyte
    texts.push_back(std::string(5 << 20, 'x'));
    producer.push({texts.back()});
    CHECK(eventually([&] { return waiting() == texts; }));
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    CHECK(pushes() == 5);
}

TEST_CASE_FIXTURE(Buffering, "a message waits no longer than `time` when no call comes") {
    BufferedProducer<Raw> producer(uri, "q", {.size = 1000, .time = 30ms});
    for (std::size_t i = 0; i < 20; ++i) {
        const Stopwatch stopwatch;
        push_numbers(producer, 3 * i, 3 * i + 3);
        REQUIRE(eventually([&] { return redis.llen("q") >= static_cast<int>(3 * i + 3); }));
        const Elapsed waited = stopwatch.elapsed();
        CHECK(waited < 1s);
        // It is also confirmed, although no call asks for it.
        CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    }
    CHECK(waiting() == numbered(0, 60));
    CHECK(pushes() >= 20);
    CHECK(pushes() < 60);
}

TEST_CASE_FIXTURE(Buffering, "a million buffered messages arrive once each and in order") {
    constexpr std::size_t count = 1'000'000;
    {
        BufferedProducer<Raw> producer(uri, "q", {.size = 1000, .time = 1ms});
        push_numbers(producer, 0, count);
        producer.flush();
        CHECK(producer.unconfirmed() == 0);
    }
    REQUIRE(redis.llen("q") == count);
    constexpr std::size_t slice = 100'000;
    for (std::size_t first = 0; first < count; first += slice) {
        const auto from_right = static_cast<std::int64_t>(first);
        Texts part =
            redis.lrange("q", -from_right - static_cast<std::int64_t>(slice), -from_right - 1);
        std::ranges::reverse(part);
        REQUIRE(part == numbered(first, first + slice));
    }
}

TEST_CASE_FIXTURE(Buffering, "the destructor flushes, and so does an assignment") {
    {
        BufferedProducer<Raw> producer(uri, "q", patient(10));
        push_numbers(producer, 0, 17);
    }
    CHECK(waiting() == numbered(0, 17));
    BufferedProducer<Raw> one(uri, "q", patient(10));
    push_numbers(one, 17, 20);
    BufferedProducer<Raw> other(uri, "other", patient(10));
    other.push({"x"});
    other = std::move(one);
    CHECK(redis.lrange("other") == Texts{"x"});
    push_numbers(other, 20, 38);
    BufferedProducer<Raw> third(std::move(other));
    push_numbers(third, 38, 45);
    third.flush();
    CHECK(waiting() == numbered(0, 45));
}

TEST_CASE_FIXTURE(Buffering, "push, flush and size may take turns while the thread is at work") {
    BufferedProducer<Raw> producer(uri, "q", {.size = 4, .time = 1ms});
    std::size_t count = 0;
    for (std::size_t round = 0; round < 200; ++round) {
        push_numbers(producer, count, count + round % 15);
        count += round % 15;
        if (round % 2 == 0) {
            CHECK(producer.size() <= count);
        }
        if (round % 3 == 0) {
            producer.flush();
            CHECK(producer.unconfirmed() == 0);
            CHECK(producer.size() == count);
        }
    }
    producer.flush();
    CHECK(waiting() == numbered(0, count));
}

TEST_CASE_FIXTURE(Buffering, "size is the queue's length without the buffered messages") {
    BufferedProducer<Raw> producer(uri, "q", patient(10));
    push_numbers(producer, 0, 13);
    CHECK(producer.size() == 10);
    CHECK(producer.unconfirmed() == 3);
    redis.command({"RENAME", "q", "other"});
    CHECK(producer.size() == 0);
}

TEST_CASE_FIXTURE(Buffering, "a message that cannot be encoded is not accepted, those before are") {
    BufferedProducer<Raw> producer(uri, "q", {.max_payload = 100, .size = 3, .time = 24h});
    for (int i = 0; i < 5; ++i) {
        CHECK_THROWS_AS(producer.push({std::string(101, 'x')}), EncodeError);
        push_numbers(producer, static_cast<std::size_t>(i), static_cast<std::size_t>(i) + 1);
    }
    producer.flush();
    CHECK(waiting() == numbered(0, 5));
    CHECK(pushes() == 2);
}

TEST_CASE_FIXTURE(Buffering, "a Codec that uses the producer it encodes for is refused") {
    BufferedProducer<Using> producer(uri, "q", patient(10));
    const Using good{[] {}};
    const std::vector<std::function<void()>> uses{
        [&] { producer.push(good); }, [&] { static_cast<void>(producer.size()); },
        [&] { producer.flush(); }, [&] { static_cast<void>(producer.unconfirmed()); }};
    for (const auto& use : uses) {
        CHECK(contains(message_of<EncodeError>([&] { producer.push({use}); }), "is used"));
    }
    producer.push(good);
    producer.flush();
    CHECK(waiting() == Texts{"encoded"});
}

TEST_CASE_FIXTURE(Buffering,
                  "what Redis refuses stays in the buffer; a full buffer refuses the next "
                  "message, and nothing is lost or repeated") {
    redis.set("q", "a string");
    BufferedProducer<Raw> producer(uri, "q", patient(10));
    const std::size_t accepted = push_until_refused(producer, 0);
    CHECK(accepted == 30);
    CHECK(producer.unconfirmed() == accepted);
    // Again and again.
    CHECK(push_until_refused(producer, accepted) == accepted);
    try {
        producer.flush();
        FAIL_CHECK("no exception");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "WRONGTYPE");
        CHECK(contains(error.what(), "'q'"));
    }
    CHECK_THROWS_AS(producer.size(), ReplyError);
    CHECK(producer.unconfirmed() == accepted);
    redis.del("q");
    SUBCASE("flush sends it") { producer.flush(); }
    SUBCASE("the next push sends it") {
        push_numbers(producer, accepted, accepted + 1);
        producer.flush();
        CHECK(waiting() == numbered(0, accepted + 1));
        return;
    }
    SUBCASE("the thread sends it, when nobody calls") {
        CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    }
    CHECK(producer.unconfirmed() == 0);
    CHECK(waiting() == numbered(0, accepted));
}

TEST_CASE_FIXTURE(Buffering,
                  "messages pushed into a full Redis go by themselves when there is room") {
    BufferedProducer<Raw> producer(uri, "q", {.size = 10});
    producer.push({"first"});
    producer.flush();
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    const std::size_t accepted = push_until_refused(producer, 0);
    CHECK(message_of<ReplyError>([&] { producer.flush(); }).find("OOM") != std::string::npos);
    CHECK(producer.size() == 1); // is allowed, and returns the true size
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    Texts all = numbered(0, accepted);
    all.insert(all.begin(), "first");
    CHECK(waiting() == all);
}

TEST_CASE_FIXTURE(Buffering,
                  "an LPUSH that was on its way when the one in front was refused is done "
                  "once, and so is the refused one") {
    BufferedProducer<Raw> producer(uri, "q", patient(1000));
    redis.set("q", "a string");
    push_numbers(producer, 0, 1000);
    // The refusal has arrived but is not read when the next LPUSH goes.
    while (pushes() == 0) {
    }
    redis.del("q");
    push_numbers(producer, 1000, 3000);
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    Texts there = waiting();
    CHECK(there.size() == 3000);
    std::ranges::sort(there);
    Texts all = numbered(0, 3000);
    std::ranges::sort(all);
    CHECK(there == all);
}

TEST_CASE_FIXTURE(Buffering, "a connection that was closed while idle is replaced without a word") {
    BufferedProducer<Raw> producer(uri, "q", patient(10));
    for (std::size_t i = 0; i < 50; i += 10) {
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        push_numbers(producer, i, i + 10);
        producer.flush();
    }
    CHECK(waiting() == numbered(0, 50));
}

// Many threads.

/// Pushes "T-0" to "T-(count - 1)", for thread T.
void push_own(BufferedProducer<Raw>& producer, std::size_t thread, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        producer.push({std::to_string(thread) + "-" + std::to_string(i)});
    }
}

/// For each thread the numbers of its messages, in the order of the queue.
std::map<std::size_t, std::vector<std::size_t>> by_thread(const Texts& texts) {
    std::map<std::size_t, std::vector<std::size_t>> numbers;
    for (const std::string& text : texts) {
        const std::size_t dash = text.find('-');
        numbers[std::stoul(text.substr(0, dash))].push_back(std::stoul(text.substr(dash + 1)));
    }
    return numbers;
}

TEST_CASE_FIXTURE(Buffering, "eight threads share a producer: each message arrives once, in the "
                             "order of its thread") {
    constexpr std::size_t count = 20'000;
    BufferedProducer<Raw> producer(uri, "q", {.size = 100, .time = 1ms});
    {
        std::vector<std::jthread> threads;
        for (std::size_t thread = 0; thread < 8; ++thread) {
            threads.emplace_back([&, thread] { push_own(producer, thread, count); });
        }
    }
    producer.flush();
    CHECK(producer.unconfirmed() == 0);
    const auto numbers = by_thread(waiting());
    CHECK(numbers.size() == 8);
    for (const auto& entry : numbers) {
        const std::vector<std::size_t>& own = entry.second;
        CHECK(own.size() == count);
        CHECK(std::ranges::is_sorted(own));
        CHECK(std::ranges::adjacent_find(own) == own.end());
    }
}

TEST_CASE_FIXTURE(Buffering,
                  "what a thread has pushed before its flush is in Redis after it, while "
                  "others go on pushing") {
    BufferedProducer<Raw> producer(uri, "q", {.size = 50, .time = 24h});
    std::atomic<bool> done{false};
    std::vector<std::jthread> others;
    for (std::size_t thread = 1; thread < 4; ++thread) {
        others.emplace_back([&, thread] {
            while (!done) {
                push_own(producer, thread, 10);
            }
        });
    }
    for (int round = 0; round < 100; ++round) {
        const std::string mine = "0-" + std::to_string(round);
        producer.push({mine});
        producer.flush();
        const Texts there = redis.lrange("q");
        CHECK(std::ranges::count(there, mine) == 1);
        redis.del("q");
    }
    done = true;
}

TEST_CASE_FIXTURE(Buffering,
                  "push, flush, size and unconfirmed may be called by all threads at once") {
    constexpr std::size_t count = 300;
    BufferedProducer<Raw> producer(uri, "q", {.size = 7, .time = 1ms});
    {
        std::vector<std::jthread> threads;
        for (std::size_t thread = 0; thread < 8; ++thread) {
            threads.emplace_back([&, thread] {
                for (std::size_t i = 0; i < count; ++i) {
                    producer.push({std::to_string(thread) + "-" + std::to_string(i)});
                    if (i % 16 == thread) {
                        producer.flush();
                    } else if (i % 16 == thread + 8) {
                        static_cast<void>(producer.size());
                        static_cast<void>(producer.unconfirmed());
                    }
                }
            });
        }
    }
    producer.flush();
    CHECK(producer.size() == 8 * count);
    const auto numbers = by_thread(waiting());
    for (const auto& entry : numbers) {
        const std::vector<std::size_t>& own = entry.second;
        CHECK(own.size() == count);
        CHECK(std::ranges::is_sorted(own));
    }
}

TEST_CASE_FIXTURE(Buffering, "what Redis refuses is told to each thread that fills the buffer, and "
                             "all that was accepted arrives once") {
    redis.set("q", "a string");
    BufferedProducer<Raw> producer(uri, "q", {.size = 10, .time = 1h});
    std::mutex mutex;
    Texts accepted;
    std::atomic<int> told{0};
    {
        std::vector<std::jthread> threads;
        for (std::size_t thread = 0; thread < 8; ++thread) {
            threads.emplace_back([&, thread] {
                for (std::size_t i = 0; i < 1000; ++i) {
                    const std::string text = std::to_string(thread) + "-" + std::to_string(i);
                    try {
                        producer.push({text});
                    } catch (const ReplyError&) {
                        ++told;
                        return;
                    }
                    const std::lock_guard lock(mutex);
                    accepted.push_back(text);
                }
            });
        }
    }
    CHECK(told == 8);
    CHECK(accepted.size() == 30);
    CHECK(producer.unconfirmed() == 30);
    redis.del("q");
    producer.flush();
    Texts there = waiting();
    std::ranges::sort(there);
    std::ranges::sort(accepted);
    CHECK(there == accepted);
}

} // namespace buffered_producer_test
