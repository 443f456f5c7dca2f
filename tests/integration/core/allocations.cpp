// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A message costs no allocations but those of T itself, once some messages went before it. The
// program counts every malloc, calloc and realloc of the thread, those of operator new and of
// hiredis too.

#include "integration/core/queue_fixture.hpp"
#include "support/counted_memory.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::Consumer;
using orizuru::MessageGuard;
using orizuru::Producer;
using orizuru::test::CountedMemory;
using orizuru::test::QueueFixture;

struct Order {
    std::uint64_t id = 0;
    std::string name;
    MSGPACK_DEFINE(id, name)
};

const std::string short_name = "fifteen letters"; // fits into the string itself
const std::string long_name = "a name of thirty letters and so";

constexpr std::size_t count = 5'000;
constexpr std::size_t growth = 20; // buffers may still grow by a little, whatever the count

template <class Action>
std::size_t allocations_of(Action action) {
    const std::size_t before = CountedMemory::allocations();
    action();
    return CountedMemory::allocations() - before;
}

struct Allocations : QueueFixture {
    std::vector<Order> orders(const std::string& name) const {
        std::vector<Order> all(count);
        for (std::size_t i = 0; i < count; ++i) {
            all[i] = {i, name};
        }
        return all;
    }
    void fill(const std::string& name) { Producer<Order>(uri, "q").push_all(orders(name)); }

    /// The allocations for `count` messages that `handle` takes, the second time that it takes this
    /// many.
    template <class Handle>
    std::size_t allocations_of_second(const std::string& name, Handle handle) {
        fill(name);
        handle();
        fill(name);
        return allocations_of(handle);
    }
};

} // namespace

TEST_CASE_FIXTURE(Allocations, "allocations are counted in this program, hiredis' own too") {
    CHECK(allocations_of([] { const std::string text(100, 'x'); }) == 1);
    CHECK(allocations_of([] { std::free(std::malloc(100)); }) == 1);
    CHECK(allocations_of([] { ::redisReaderFree(::redisReaderCreate()); }) > 0);
}

TEST_CASE_FIXTURE(Allocations, "a push allocates nothing") {
    Producer<Order> producer(uri, "q");
    Order order{0, long_name};
    const auto push_some = [&] {
        for (order.id = 0; order.id < count; ++order.id) {
            producer.push(order);
        }
    };
    push_some();
    CHECK(allocations_of(push_some) <= growth);
    CHECK(redis.llen("q") == 2 * count);
}

TEST_CASE_FIXTURE(Allocations, "push_all allocates nothing") {
    Producer<Order> producer(uri, "q");
    const std::vector<Order> some = orders(long_name);
    producer.push_all(some);
    CHECK(allocations_of([&] { producer.push_all(some); }) <= growth);
    CHECK(redis.llen("q") == 2 * count);
}

TEST_CASE_FIXTURE(Allocations, "a buffered push allocates nothing") {
    orizuru::BufferedProducer<Order> producer(uri, "q", {.size = 1000, .time = 24h});
    Order order{0, long_name};
    const auto push_some = [&] {
        for (order.id = 0; order.id < count; ++order.id) {
            producer.push(order);
        }
        producer.flush();
    };
    push_some();
    CHECK(allocations_of(push_some) <= growth);
    CHECK(redis.llen("q") == 2 * count);
}

TEST_CASE_FIXTURE(Allocations, "a message that is taken and acked allocates what T needs") {
    for (const AckMode mode : {AckMode::immediate, AckMode::deferred}) {
        for (const int prefetch : {1, 10, 100, 1000}) {
            CAPTURE(prefetch);
            CAPTURE(static_cast<int>(mode));
            Consumer<Order> consumer(uri, "q", {.prefetch = prefetch, .ack = mode});
            const auto take_all = [&] {
                for (std::size_t i = 0; i < count; ++i) {
                    consumer.next()->ack();
                }
            };
            CHECK(allocations_of_second(short_name, take_all) <= growth);
            CHECK(allocations_of_second(long_name, take_all) <= count + growth);
        }
    }
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Allocations, "messages that are acked out of order allocate nothing") {
    for (const AckMode mode : {AckMode::immediate, AckMode::deferred}) {
        CAPTURE(static_cast<int>(mode));
        Consumer<Order> consumer(uri, "q", {.prefetch = 100, .ack = mode});
        std::vector<MessageGuard<Order>> held;
        held.reserve(50);
        const auto take_all = [&] {
            for (std::size_t i = 0; i < count; ++i) {
                held.push_back(std::move(*consumer.next()));
                for (; held.size() == 50 || (i + 1 == count && !held.empty()); held.pop_back()) {
                    held.back().ack();
                }
            }
        };
        CHECK(allocations_of_second(short_name, take_all) <= growth);
    }
    CHECK(nobody_left());
}

TEST_CASE("once it is composed, a request of a consumer's chain cannot fail for lack of memory") {
    using orizuru::Reply;
    using orizuru::detail::Mirror;
    const auto text = [](std::string bytes) { return Reply{Reply::Type::string, 0, bytes, {}}; };
    const auto make = [] { return orizuru::detail::make_identity("w"); };
    Mirror mirror(orizuru::Keys("q"), 30s, make);
    std::string out;
    out.reserve(1 << 20);
    mirror.send_start(out);
    mirror.on_start({Reply::Type::integer, 1, {}, {}});
    mirror.send_settle(out, 20);
    Reply fetched{Reply::Type::array, 0, {}, {}};
    for (int i = 0; i < 20; ++i) {
        fetched.elements.push_back(text(std::to_string(i)));
    }
    mirror.on_reply(std::move(fetched));
    while (const auto message = mirror.hand_out()) {
        mirror.want(message, std::make_unique<orizuru::detail::Move>(
                                 orizuru::detail::push_body(), std::vector<std::string>{"other"},
                                 std::vector<std::string>()));
    }
    mirror.send_move(out); // with the script's body
    std::size_t moves = 0;
    const std::size_t allocations = allocations_of([&] {
        for (; mirror.can_move(); ++moves) {
            mirror.send_move(out);
        }
    });
    CHECK(allocations <= moves); // the script's name, before
}
