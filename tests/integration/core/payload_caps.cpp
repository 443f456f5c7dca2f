// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Payloads over the cap: their errors, and how much memory they take.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
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

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// In bytes; since the last reset_peak().
std::size_t peak_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) {
            return std::stoull(line.substr(6)) * 1024;
        }
    }
    return 0;
}
bool reset_peak() { return static_cast<bool>(std::ofstream("/proc/self/clear_refs") << "5\n"); }

/// Runs `action` in a child process and returns the peak growth of its memory; 0 when the action
/// threw or the measurement failed.
template <class Action>
std::size_t growth_of(Action action) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::size_t growth = 0;
        try {
            if (reset_peak()) {
                const std::size_t before = peak_memory();
                action();
                growth = peak_memory() - before;
            }
        } catch (...) {
            growth = 0;
        }
        const auto written = ::write(ends[1], &growth, sizeof growth);
        ::_exit(written == sizeof growth ? 0 : 1);
    }
    ::close(ends[1]);
    std::size_t growth = 0;
    const auto size = ::read(ends[0], &growth, sizeof growth);
    ::close(ends[0]);
    orizuru::test::wait_for(child);
    REQUIRE(size == static_cast<ssize_t>(sizeof growth));
    return growth;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool memory_is_watched = true;
#elif defined(__has_feature)
constexpr bool memory_is_watched =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_THREAD__)
constexpr bool memory_is_watched = true;
#else
constexpr bool memory_is_watched = false;
#endif

/// How much memory a payload of this size may take. A sanitizer keeps freed memory and more: there
/// the figure only has to be finite.
constexpr std::size_t allowed(std::size_t payload) {
    return (memory_is_watched ? 16 : 4) * payload + (memory_is_watched ? 64 : 16) * mebibyte;
}

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
    const std::string fits(16 * mebibyte, 'a');
    const std::string over(16 * mebibyte + 1, 'b');
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

TEST_CASE_FIXTURE(QueueFixture,
                  "64 MiB over the cap in the queue take less than 4 times that memory") {
    const std::size_t size = 64 * mebibyte;
    for (const int prefetch : {1, 2}) {
        CAPTURE(prefetch);
        redis.flushall();
        redis.lpush("q", std::string(size, 'x'));
        redis.lpush("q", "a");
        const std::size_t growth = growth_of([&] {
            bool refused = false;
            Consumer<std::string> consumer(uri, "q", {.prefetch = prefetch});
            try {
                static_cast<void>(consumer.next());
            } catch (const DecodeError& error) {
                refused = error.payload().size() == size;
            }
            if (!refused || consumer.size() > 1) {
                throw std::runtime_error("it was not refused");
            }
        });
        MESSAGE("MiB for a payload of 64 MiB: " << growth / mebibyte);
        CHECK(growth > 0);
        CHECK(growth < allowed(size));
        CHECK(redis.llen(dead) == 1);
        const auto entry_length =
            redis.command({"EVAL", "return #redis.call('LINDEX', KEYS[1], 0)", "1", dead});
        CHECK(entry_length.integer > static_cast<std::int64_t>(size));
    }
}

TEST_CASE_FIXTURE(QueueFixture,
                  "bytes that announce a larger size than they have take no memory for it") {
    for (const std::string& bomb :
         {std::string("\xdd\x10\x00\x00\x00", 5), std::string("\xdd\xff\xff\xff\xff", 5),
          std::string("\xdf\xff\xff\xff\xff", 5),
          std::string("\xdd\x00\xff\xff\xff", 5) + std::string(900'000, '\x91')}) {
        push({bomb});
        const std::size_t growth = growth_of([&] {
            Consumer<std::vector<std::vector<int>>> consumer(uri, "q");
            try {
                static_cast<void>(consumer.next());
            } catch (const DecodeError&) {
                return;
            }
            throw std::runtime_error("it was not refused");
        });
        CHECK(growth > 0);
        CHECK(growth < 64 * mebibyte * (memory_is_watched ? 4 : 1));
    }
    CHECK(redis.llen(dead) == 4);
}

} // namespace payload_caps_test
