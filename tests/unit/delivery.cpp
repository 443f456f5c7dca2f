// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/mirror/delivery.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace delivery_test {

using orizuru::Script;
using orizuru::detail::Delivery;
using orizuru::detail::DeliveryPool;
using orizuru::detail::DeliveryPtr;
using orizuru::detail::Move;

TEST_CASE("a delivery lives as long as one of its owners") {
    DeliveryPtr first = DeliveryPtr::make();
    first->payload = "bytes that do not fit into the string itself";
    CHECK(first.unique());
    DeliveryPtr second = first;
    CHECK_FALSE(first.unique());
    CHECK(first == second);
    first = nullptr;
    CHECK_FALSE(first);
    CHECK(second.unique());
    CHECK(second->payload.ends_with("itself"));
    DeliveryPtr third = second.second();
    CHECK_FALSE(second.unique());
    first = DeliveryPtr::make();
    first = std::move(third);
    CHECK_FALSE(third); // NOLINT(bugprone-use-after-move)
    CHECK(first == second);
    first = nullptr;
    CHECK(second.unique());
    const DeliveryPtr& itself = second;
    second = itself;
    CHECK(second.unique());
}

TEST_CASE("owners on many threads let go of it once") {
    DeliveryPtr message = DeliveryPtr::make();
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([message] {
                for (int j = 0; j < 10'000; ++j) {
                    DeliveryPtr copy = message;
                    DeliveryPtr other = std::move(copy);
                }
            });
        }
    }
    CHECK(message.unique());
}

TEST_CASE("a pool gives out what nobody else has, as new") {
    DeliveryPool pool;
    std::string payload = "first payload";
    DeliveryPtr first = pool.make(payload);
    CHECK(first->payload == "first payload");
    const Delivery* const memory = &*first;
    first->state = Delivery::State::settled;
    first->refusal = "NOPERM";
    first->taken = first->deferred = first->unattended = true;
    first->version = 7;
    first->failures = 3;
    pool.recycle(std::move(first));

    payload = "second payload";
    const DeliveryPtr second = pool.make(payload);
    CHECK(&*second == memory);
    CHECK(second.unique());
    CHECK(second->payload == "second payload");
    CHECK(second->state == Delivery::State::held);
    CHECK(second->refusal.empty());
    CHECK_FALSE(second->taken);
    CHECK_FALSE(second->deferred);
    CHECK_FALSE(second->unattended);
    CHECK(second->version == 0);
    CHECK(second->failures == 0);
}

TEST_CASE("a pool leaves alone what a guard still has") {
    DeliveryPool pool;
    std::string payload = "held";
    DeliveryPtr message = pool.make(payload);
    const DeliveryPtr guards = message;
    pool.recycle(std::move(message));
    payload = "another";
    const DeliveryPtr next = pool.make(payload);
    CHECK(next != guards);
    CHECK(guards->payload == "held");
}

TEST_CASE("what waits in a pool keeps nothing of its settlement") {
    DeliveryPool pool;
    std::string payload = "replaced";
    DeliveryPtr message = pool.make(payload);
    message->move = std::make_unique<Move>(Script("return"), std::vector<std::string>{"other"},
                                           std::vector{std::string(1 << 20, 'x')});
    const DeliveryPtr guards = message;
    pool.recycle(std::move(message));
    CHECK(guards->move == nullptr);
    CHECK(guards->payload == "replaced");
}

TEST_CASE("the memory of payloads goes around, large pieces are not kept") {
    DeliveryPool pool;
    std::string payload(1000, 'x');
    const char* const bytes = payload.data();
    DeliveryPtr message = pool.make(payload);
    CHECK(message->payload.data() == bytes);
    pool.recycle(std::move(message));
    payload = std::string(1000, 'y');
    message = pool.make(payload);
    CHECK(payload.data() == bytes);

    payload = std::string(100'000, 'z');
    DeliveryPtr large = pool.make(payload);
    pool.recycle(std::move(large));
    payload = "small";
    large = pool.make(payload);
    CHECK(payload.capacity() < 100'000);
    CHECK(large->payload.capacity() < 100'000);
}

} // namespace delivery_test
