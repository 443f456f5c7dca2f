// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A consumer whose limit of messages for one fetch changes.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fetch_limit_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::Consumer;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::detail::ConsumerAccess;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;

struct Limited : QueueFixture {
    using Guards = std::vector<MessageGuard<Raw>>;

    static void take(Consumer<Raw>& consumer, std::size_t count, Guards& guards) {
        for (std::size_t i = 0; i < count; ++i) {
            auto guard = consumer.next(patience);
            REQUIRE(guard);
            guards.push_back(std::move(*guard));
        }
    }
};

TEST_CASE_FIXTURE(Limited, "a limited fetch takes this many, and none is sent ahead") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 10});
    push({"1", "2", "3", "4", "5", "6", "7", "8", "9"});
    ConsumerAccess::core(consumer).limit(3);
    Guards guards;
    take(consumer, 1, guards);
    CHECK(ConsumerAccess::core(consumer).in_hand() == 2);
    take(consumer, 2, guards);
    CHECK(ConsumerAccess::core(consumer).in_hand() == 0);
    // A fetch that was sent ahead would have arrived before the reply to another command.
    CHECK(consumer.size() == 6);
    CHECK(held() == Texts{"1", "2", "3"});
    ConsumerAccess::core(consumer).limit(1);
    take(consumer, 1, guards);
    CHECK(held() == Texts{"1", "2", "3", "4"});
    ConsumerAccess::core(consumer).limit(10);
    take(consumer, 5, guards);
    CHECK(held() == Texts{"1", "2", "3", "4", "5", "6", "7", "8", "9"});
    for (auto& guard : guards) {
        CHECK(guard.ack());
    }
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Limited,
                  "a limit counts from the next fetch: held messages are still handed out") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 4, .ack = AckMode::deferred});
    push({"1", "2", "3", "4", "5"});
    Guards guards;
    take(consumer, 1, guards);
    ConsumerAccess::core(consumer).limit(1);
    take(consumer, 4, guards);
    CHECK(guards.back()->bytes == "5");
    for (auto& guard : guards) {
        CHECK(guard.ack());
    }
    CHECK(consumer.flush() == 0);
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Limited, "a limited consumer waits for a message as any does") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 10});
    ConsumerAccess::core(consumer).limit(5);
    std::jthread producer([this] {
        CHECK(somebody_waits());
        push({"late"});
    });
    const auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK((*guard)->bytes == "late");
}

TEST_CASE_FIXTURE(Limited, "an impossible limit is refused") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 2});
    for (const int most : {-1, 0, 3}) {
        CHECK(message_of<std::invalid_argument>([&] {
                  ConsumerAccess::core(consumer).limit(most);
              }) == "a fetch must be limited to 1 to prefetch messages");
    }
}

} // namespace fetch_limit_test
