// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// How much memory payloads take that a consumer refuses.

#include "integration/core/queue_fixture.hpp"
#include "support/counted_memory.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>
#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace payload_memory_test {

using orizuru::Consumer;
using orizuru::DecodeError;
using orizuru::test::CountedMemory;
using orizuru::test::QueueFixture;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

TEST_CASE("the largest growth of the process' memory is counted, of all threads and of hiredis") {
    const auto allocate = [](std::size_t size) { std::free(std::calloc(size, 1)); };
    const std::size_t growth = CountedMemory::growth_of([&] {
        allocate(8 * mebibyte);
        std::jthread([&] { allocate(64 * mebibyte); }).join();
        allocate(16 * mebibyte);
    });
    CHECK(growth >= 64 * mebibyte);
    CHECK(growth < 65 * mebibyte);
    CHECK(CountedMemory::growth_of([] { ::redisReaderFree(::redisReaderCreate()); }) > 0);
    CHECK(CountedMemory::growth_of([] {}) == 0);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "64 MiB over the cap in the queue take less than 3 times that memory") {
    const std::size_t size = 64 * mebibyte;
    for (const int prefetch : {1, 2}) {
        CAPTURE(prefetch);
        redis.flushall();
        redis.lpush("q", std::string(size, 'x'));
        redis.lpush("q", "a");
        const std::size_t growth = CountedMemory::growth_of([&] {
            // A reply that comes too late would be fetched twice.
            Consumer<std::string> consumer(uri + "?command_timeout=60000", "q",
                                           {.prefetch = prefetch});
            try {
                static_cast<void>(consumer.next());
                FAIL_CHECK("it was not refused");
            } catch (const DecodeError& error) {
                CHECK(error.payload().size() == size);
            }
            CHECK(consumer.size() <= 1);
        });
        MESSAGE("MiB for a payload of 64 MiB: " << growth / mebibyte);
        CHECK(growth >= size);
        CHECK(growth < 3 * size);
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
        const std::size_t growth = CountedMemory::growth_of([&] {
            Consumer<std::vector<std::vector<int>>> consumer(uri, "q");
            CHECK_THROWS_AS(static_cast<void>(consumer.next()), DecodeError);
        });
        CHECK(growth > 0);
        CHECK(growth < 64 * mebibyte);
    }
    CHECK(redis.llen(dead) == 4);
}

} // namespace payload_memory_test
