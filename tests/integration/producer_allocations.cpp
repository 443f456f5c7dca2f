// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a producer allocates for a message when it has pushed some before: nothing. The program
// counts operator new and, where msgpack calls them, malloc and realloc.

#include "integration/queue_fixture.hpp"

#include <orizuru/detail/reply_reader.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

std::atomic<std::size_t> allocations{0};

} // namespace

extern "C" {
void* __real_malloc(std::size_t size);
void* __real_realloc(void* memory, std::size_t size);

void* __wrap_malloc(std::size_t size) {
    ++allocations;
    return __real_malloc(size);
}
void* __wrap_realloc(void* memory, std::size_t size) {
    ++allocations;
    return __real_realloc(memory, size);
}
}

void* operator new(std::size_t size) {
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) {
        return memory;
    }
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace std::chrono_literals;
using orizuru::Producer;
using orizuru::test::QueueFixture;

struct Order {
    std::uint64_t id = 0;
    std::string name = "fifteen letters";
    MSGPACK_DEFINE(id, name)
};

constexpr std::size_t count = 10'000;
constexpr std::size_t in_a_chunk = 1000;

template <class Action>
std::size_t allocations_of(Action action) {
    const std::size_t before = allocations;
    action();
    return allocations - before;
}

/// Of reading the answer to an LPUSH, of which there is one for each chunk.
std::size_t allocations_of_a_reply() {
    orizuru::detail::ReplyReader reader;
    std::size_t last = 0;
    for (int i = 0; i < 3; ++i) {
        last = allocations_of([&] {
            reader.feed(":1234567\r\n");
            REQUIRE(reader.next());
        });
    }
    return last;
}

} // namespace

TEST_CASE_FIXTURE(QueueFixture, "allocations are counted in this program") {
    CHECK(allocations_of([] { const std::string text(100, 'x'); }) == 1);
    CHECK(allocations_of([] { std::free(std::malloc(100)); }) == 1);
}

TEST_CASE_FIXTURE(QueueFixture, "push allocates nothing, but what reading the answer does") {
    Producer<Order> producer(uri, "q");
    Order order;
    const auto push_some = [&] {
        for (std::size_t i = 0; i < count; ++i) {
            order.id = i;
            producer.push(order);
        }
    };
    push_some();
    CHECK(allocations_of(push_some) == count * allocations_of_a_reply());
    CHECK(redis.llen("q") == 2 * count);
}

TEST_CASE_FIXTURE(QueueFixture, "push_all allocates nothing, but what reading the answers does") {
    Producer<Order> producer(uri, "q");
    std::vector<Order> orders(count);
    for (std::size_t i = 0; i < count; ++i) {
        orders[i].id = i;
    }
    producer.push_all(orders);
    CHECK(allocations_of([&] { producer.push_all(orders); }) ==
          count / in_a_chunk * allocations_of_a_reply());
    CHECK(redis.llen("q") == 2 * count);
}

TEST_CASE_FIXTURE(QueueFixture, "a buffered push allocates nothing, but what reading the answers "
                                "does") {
    Producer<Order> producer(uri, "q",
                             {.buffer = static_cast<int>(in_a_chunk), .buffer_time = 24h});
    Order order;
    const auto push_some = [&] {
        for (std::size_t i = 0; i < count; ++i) {
            order.id = i;
            producer.push(order);
        }
        producer.flush();
    };
    push_some();
    CHECK(allocations_of(push_some) == count / in_a_chunk * allocations_of_a_reply());
    CHECK(redis.llen("q") == 2 * count);
}
