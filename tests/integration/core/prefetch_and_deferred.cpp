// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Fetching ahead, requeuing messages that were not handed out, and acks that reach Redis later.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace prefetch_and_deferred_test {

using orizuru::AckMode;
using orizuru::Consumer;
using orizuru::GarbageCollector;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::test::eventually;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;

struct Ahead : QueueFixture {
    static Texts numbered(int first, int last) {
        Texts texts;
        for (int i = first; i <= last; ++i) {
            texts.push_back(std::to_string(i));
        }
        return texts;
    }
    static std::vector<MessageGuard<Raw>> take(Consumer<Raw>& consumer, int count) {
        std::vector<MessageGuard<Raw>> guards;
        while (count-- > 0) {
            auto guard = consumer.next(patience);
            REQUIRE(guard);
            guards.push_back(std::move(*guard));
        }
        return guards;
    }
    void reap(const std::string& id) {
        forget_heartbeat(id);
        GarbageCollector collector(uri, "q", {.grace = milliseconds(0)});
        REQUIRE(collector.collect().consumers == 1);
    }
};

TEST_CASE_FIXTURE(Ahead, "prefetch = n with n waiting holds n") {
    for (const int n : {2, 4, 1000}) {
        CAPTURE(n);
        redis.flushall();
        Consumer<Raw> consumer(uri, "q", {.prefetch = n});
        push(numbered(1, n));
        auto guard = consumer.next();
        REQUIRE(guard);
        CHECK((*guard)->bytes == "1");
        CHECK(redis.llen(processing(consumer.name())) == n + 1);
        CHECK(held() == numbered(1, n));
        CHECK_FALSE(redis.exists("q"));
        CHECK(guard->ack());
    }
}

TEST_CASE_FIXTURE(Ahead,
                  "the first of a full batch fetches the next batch, and nothing beyond it") {
    for (const AckMode mode : {AckMode::immediate, AckMode::deferred}) {
        redis.flushall();
        Consumer<Raw> consumer(uri, "q", {.prefetch = 3, .ack = mode});
        push(numbered(1, 10));
        std::vector<MessageGuard<Raw>> guards = take(consumer, 1);
        CHECK(eventually([&] { return held() == numbered(1, 6); }));
        CHECK(waiting() == numbered(7, 10));
        CHECK(guards[0].ack());
        for (int i = 2; i <= 3; ++i) {
            CHECK(take(consumer, 1).front().ack());
        }
        CHECK(consumer.flush() == 0);
        CHECK(held() == numbered(4, 6));
        CHECK(waiting() == numbered(7, 10));
        guards = take(consumer, 1);
        CHECK(guards[0]->bytes == "4");
        CHECK(eventually([&] { return held() == numbered(4, 9); }));
        CHECK(waiting() == Texts{"10"});
        CHECK(guards[0].ack());
    }
}

TEST_CASE_FIXTURE(Ahead, "two batches are held at the most, however fast the handler is") {
    constexpr int n = 10;
    constexpr int all = 20'000;
    for (const AckMode mode : {AckMode::immediate, AckMode::deferred}) {
        Consumer<Raw> consumer(uri, "q", {.prefetch = n, .ack = mode});
        push(numbered(1, all));
        std::atomic<bool> done{false};
        std::int64_t most = 0;
        std::jthread observer([&, key = processing(consumer.name())] {
            orizuru::test::RedisClient other(uri);
            while (!done) {
                most = std::max(most, other.llen(key) - 1);
            }
        });
        for (int i = 1; i <= all; ++i) {
            auto guard = consumer.next();
            REQUIRE((*guard)->bytes == std::to_string(i));
            REQUIRE(guard->ack());
        }
        done = true;
        observer.join();
        CHECK(most > n);
        CHECK(most <= 2 * n);
        CHECK(consumer.flush() == 0);
        CHECK(held().empty());
    }
}

TEST_CASE_FIXTURE(Ahead, "messages that come after a batch that was not full are for others") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 4});
    push(numbered(1, 3));
    auto guards = take(consumer, 1);
    push(numbered(4, 9));
    guards.push_back(std::move(take(consumer, 1).front()));
    guards.push_back(std::move(take(consumer, 1).front()));
    CHECK(consumer.size() == 6); // over the connection that a fetch would have used
    CHECK(held() == numbered(1, 3));
}

TEST_CASE_FIXTURE(Ahead, "prefetch = n holds n though Redis has forgotten the scripts") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 4});
    push(numbered(1, 8));
    auto guards = take(consumer, 4);
    CHECK(eventually([&] { return held() == numbered(1, 8); }));
    push(numbered(9, 12));
    for (auto& guard : take(consumer, 4)) {
        CHECK(guard.reject());
    }
    for (auto& guard : guards) {
        CHECK(guard.reject());
    }
    redis.command({"SCRIPT", "FLUSH"});
    SUBCASE("in a call that waits") { guards = take(consumer, 1); }
    SUBCASE("in a call that does not") {
        std::optional<MessageGuard<Raw>> guard;
        REQUIRE(eventually([&] { return (guard = consumer.next(milliseconds(0))).has_value(); }));
        guards.push_back(std::move(*guard));
    }
    CHECK(held() == numbered(9, 12));
}

TEST_CASE_FIXTURE(Ahead, "prefetch = 1 holds only the messages that were handed out") {
    Consumer<Raw> consumer(uri, "q");
    push(numbered(1, 3));
    const auto guard = consumer.next();
    CHECK(held() == Texts{"1"});
    CHECK(waiting() == Texts{"2", "3"});
}

TEST_CASE_FIXTURE(Ahead, "with fewer waiting than prefetch all of them are held") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 10});
    push(numbered(1, 3));
    auto guards = take(consumer, 1);
    CHECK(held() == numbered(1, 3));
    CHECK_FALSE(redis.exists("q"));
    guards = take(consumer, 2); // rejects the first
    CHECK(guards[0]->bytes == "2");
    CHECK(guards[1]->bytes == "3");
    CHECK_FALSE(consumer.next(milliseconds(0)));
}

TEST_CASE_FIXTURE(Ahead, "a consumer that fetches ahead waits for a message when there is none") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 10});
    std::jthread producer([this] {
        CHECK(somebody_waits());
        push({"late"});
    });
    const auto guard = consumer.next();
    REQUIRE(guard);
    CHECK((*guard)->bytes == "late");
}

TEST_CASE_FIXTURE(Ahead, "messages fetched ahead are handed out in the order they were pushed") {
    for (const AckMode mode : {AckMode::immediate, AckMode::deferred}) {
        Consumer<Raw> consumer(uri, "q", {.prefetch = 7, .ack = mode});
        push(numbered(1, 100));
        Texts seen;
        while (seen.size() < 100) {
            auto guard = consumer.next(patience);
            REQUIRE(guard);
            seen.push_back((*guard)->bytes);
            CHECK(guard->ack());
        }
        CHECK(seen == numbered(1, 100));
    }
    CHECK(nobody_left());
    CHECK_FALSE(redis.exists("q"));
}

TEST_CASE_FIXTURE(Ahead,
                  "messages that were not handed out are requeued in order and served next") {
    std::string id;
    SUBCASE("when the consumer is destroyed with nothing in anyone's hands") {
        {
            Consumer<Raw> consumer(uri, "q", {.prefetch = 5});
            id = consumer.name();
            push(numbered(1, 8));
            CHECK(take(consumer, 1).front().ack());
            CHECK(eventually([&] { return held() == numbered(2, 8); }));
        }
        CHECK(waiting() == numbered(2, 8));
    }
    SUBCASE("when the consumer is destroyed with a message in someone's hands") {
        std::vector<MessageGuard<Raw>> guards;
        {
            Consumer<Raw> consumer(uri, "q", {.prefetch = 5});
            id = consumer.name();
            push(numbered(1, 8));
            guards = take(consumer, 2);
        }
        CHECK(held() == numbered(1, 2));
        CHECK(waiting() == numbered(3, 8));
        CHECK(ids() == Texts{id});
        CHECK(guards[1].ack());
        CHECK(held() == Texts{"1"});
        CHECK(guards[0].ack());
    }
    SUBCASE("when next finds that the consumer was stopped") {
        {
            Consumer<Raw> consumer(uri, "q", {.prefetch = 5});
            id = consumer.name();
            push(numbered(1, 8));
            CHECK(take(consumer, 1).front().ack());
            consumer.stop();
            CHECK(eventually([&] { return !consumer.next() && waiting() == numbered(2, 8); }));
        }
        CHECK(waiting() == numbered(2, 8));
    }
    SUBCASE("when next finds that the consumer was stopped, with a message in someone's hands") {
        {
            Consumer<Raw> consumer(uri, "q", {.prefetch = 5});
            id = consumer.name();
            push(numbered(1, 8));
            auto guards = take(consumer, 1);
            consumer.stop();
            // A call awaits Redis for 15 ms, and the next one goes on.
            CHECK(eventually([&] { return !consumer.next() && waiting() == numbered(2, 8); }));
            CHECK(held() == Texts{"1"});
            CHECK(guards[0].ack());
        }
        CHECK(waiting() == numbered(2, 8));
    }
    CHECK(nobody_left());
    CHECK(fence(id).starts_with("released orz:"));
    CHECK(redis.command({"PTTL", processing(id)}).integer > 0);
    CHECK(redis.keys() == Texts{processing(id), "q"});
}

TEST_CASE_FIXTURE(Ahead, "a thousand messages and more go back in one piece") {
    {
        Consumer<Raw> consumer(uri, "q", {.prefetch = 1000});
        push(numbered(1, 2500));
        CHECK(take(consumer, 1).front().ack());
        CHECK(eventually([&] { return held().size() == 1999; }));
    }
    CHECK(waiting() == numbered(2, 2500));
}

TEST_CASE_FIXTURE(Ahead, "the fence of a consumer that left says how many of its scripts ran") {
    std::string id;
    std::string nonce;
    {
        Consumer<Raw> consumer(uri, "q");
        id = consumer.name();
        nonce = header(id).substr(4, header(id).rfind(':') - 4);
        push(numbered(1, 3));
        for (int i = 0; i < 3; ++i) {
            CHECK(take(consumer, 1).front().ack());
        }
        CHECK(header(id) == "orz:" + nonce + ":3");
    }
    CHECK(fence(id) == "released orz:" + nonce + ":4");
}

TEST_CASE_FIXTURE(Ahead, "a deferred ack is accepted at once and rides on the next fetch") {
    Consumer<Raw> consumer(uri, "q", {.ack = AckMode::deferred});
    const std::string id = consumer.name();
    push(numbered(1, 4));
    auto first = take(consumer, 1);
    const int before = version(id);
    CHECK(first[0].ack());
    CHECK(first[0].settled());
    CHECK_THROWS_AS(first[0].ack(), std::logic_error);
    CHECK(held() == Texts{"1"});
    CHECK(version(id) == before);
    const auto second = take(consumer, 1);
    CHECK(second[0]->bytes == "2");
    CHECK(held() == Texts{"2"});
    CHECK(version(id) == before + 1);
}

TEST_CASE_FIXTURE(Ahead, "a batch of deferred acks is one script with the next fetch") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 50, .ack = AckMode::deferred});
    push(numbered(1, 150));
    for (auto& guard : take(consumer, 50)) {
        CHECK(guard.ack());
    }
    CHECK(eventually([&] { return version(consumer.name()) == 2; }));
    CHECK(held() == numbered(1, 100));
    const auto guard = consumer.next();
    CHECK(eventually([&] { return version(consumer.name()) == 3; }));
    CHECK(held() == numbered(51, 150));
}

TEST_CASE_FIXTURE(Ahead, "flush sends the deferred acks and says that none came too late") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 5, .ack = AckMode::deferred});
    CHECK(consumer.flush() == 0);
    push(numbered(1, 5));
    auto guards = take(consumer, 5);
    CHECK(guards[0].ack());
    CHECK(guards[1].ack());
    CHECK(consumer.flush() == 0);
    CHECK(held() == Texts{"3", "4", "5"});
    CHECK(guards[3].ack());
    CHECK(consumer.flush() == 0);
    CHECK(held() == Texts{"3", "5"});
    const int before = version(consumer.name());
    CHECK(consumer.flush() == 0);
    CHECK(version(consumer.name()) == before);
    for (const std::size_t rest : {4U, 2U}) {
        CHECK(guards[rest].ack());
    }
    CHECK(consumer.flush() == 0);
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Ahead, "deferred acks reach Redis within a lease without any call") {
    Consumer<Raw> consumer(uri, "q", {.lease = milliseconds(1500), .ack = AckMode::deferred});
    push({"1"});
    auto guards = take(consumer, 1);
    const auto waited = time_of([&] {
        CHECK(guards[0].ack());
        CHECK(eventually([this] { return held().empty(); }));
    });
    // The timer takes a third of it; the rest is for a slow machine.
    CHECK(waited < milliseconds(1500));
    CHECK(consumer.flush() == 0);
}

TEST_CASE_FIXTURE(Ahead, "deferred acks are sent when the consumer is destroyed") {
    {
        Consumer<Raw> consumer(uri, "q", {.prefetch = 4, .ack = AckMode::deferred});
        push(numbered(1, 6));
        auto guards = take(consumer, 3);
        CHECK(guards[2].ack());
        CHECK(guards[0].ack());
        CHECK(guards[1].ack());
    }
    CHECK(waiting() == numbered(4, 6));
    CHECK_FALSE(redis.exists(unack));
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Ahead, "deferred acks are sent when next finds that the consumer was stopped") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 4, .ack = AckMode::deferred});
    push(numbered(1, 6));
    auto guards = take(consumer, 3);
    CHECK(guards[0].ack());
    CHECK(guards[2].ack());
    consumer.stop();
    CHECK_FALSE(consumer.next());
    CHECK(eventually([this] { return held() == Texts{"2"}; }));
    CHECK(waiting() == numbered(4, 6));
    CHECK(guards[1].ack());
}

TEST_CASE_FIXTURE(Ahead, "a deferred ack after the consumer is gone leaves the registry with it") {
    std::optional<MessageGuard<Raw>> guard;
    {
        Consumer<Raw> consumer(uri, "q", {.ack = AckMode::deferred});
        push({"1"});
        guard = consumer.next();
    }
    CHECK(guard->ack());
    CHECK(nobody_left());
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(Ahead, "deferred acks out of order remove exactly their own messages") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 10, .ack = AckMode::deferred});
    push(numbered(0, 9));
    auto guards = take(consumer, 10);
    for (const std::size_t index : {7U, 1U, 0U, 4U, 9U}) {
        CHECK(guards[index].ack());
    }
    CHECK(consumer.flush() == 0);
    CHECK(held() == Texts{"2", "3", "5", "6", "8"});
    for (const std::size_t index : {2U, 8U, 5U}) {
        CHECK(guards[index].ack());
    }
    CHECK(consumer.flush() == 0);
    CHECK(held() == Texts{"3", "6"});
    CHECK(guards[3].ack());
    CHECK(guards[6].ack());
    CHECK(consumer.flush() == 0);
    CHECK(held().empty());
    CHECK_FALSE(redis.exists(unack));
}

TEST_CASE_FIXTURE(Ahead, "of equal messages exactly the settled ones go, at their positions") {
    for (const AckMode mode : {AckMode::immediate, AckMode::deferred}) {
        Consumer<Raw> consumer(uri, "q", {.prefetch = 8, .ack = mode});
        push({"=", "a", "=", "b", "=", "=", "c", "="});
        auto guards = take(consumer, 8);
        CHECK(guards[4].ack());
        CHECK(consumer.flush() == 0);
        CHECK(held() == Texts{"=", "a", "=", "b", "=", "c", "="});
        CHECK(guards[7].push("other"));
        CHECK(held() == Texts{"=", "a", "=", "b", "=", "c"});
        CHECK(guards[0].ack());
        CHECK(guards[5].ack());
        CHECK(consumer.flush() == 0);
        CHECK(held() == Texts{"a", "=", "b", "c"});
        for (const std::size_t index : {1U, 2U, 3U, 6U}) {
            CHECK(guards[index].ack());
        }
        CHECK(consumer.flush() == 0);
        CHECK(held().empty());
    }
    CHECK(redis.lrange("other") == Texts{"=", "="});
}

TEST_CASE_FIXTURE(Ahead, "settlements other than acks are never deferred") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 6, .ack = AckMode::deferred});
    push(numbered(1, 6));
    auto guards = take(consumer, 6);
    CHECK(guards[0].ack());
    CHECK(guards[2].ack());
    CHECK(guards[1].reject());
    CHECK(rejected() == Texts{"2"});
    CHECK(guards[3].push("other"));
    CHECK(redis.lrange("other") == Texts{"4"});
    CHECK(guards[4].bury());
    CHECK(redis.llen(dead) == 1);
    CHECK(guards[5].release());
    CHECK(waiting() == Texts{"6"});
    CHECK(consumer.flush() == 0);
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Ahead, "flush counts once the acks that came after the lease was lost") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 5, .ack = AckMode::deferred});
    const std::string id = consumer.name();
    push(numbered(1, 5));
    auto guards = take(consumer, 5);
    CHECK(guards[0].ack());
    CHECK(consumer.flush() == 0);
    for (const std::size_t index : {1U, 2U, 3U}) {
        CHECK(guards[index].ack());
    }
    reap(id);
    CHECK(waiting() == numbered(2, 5));
    CHECK(consumer.flush() == 3);
    CHECK(consumer.flush() == 0);
    CHECK_FALSE(guards[4].ack());
    CHECK(consumer.name() != id);
    guards = take(consumer, 4);
    for (auto& guard : guards) {
        CHECK(guard.ack());
    }
    CHECK(consumer.flush() == 0);
    CHECK(held().empty());
    CHECK_FALSE(redis.exists("q"));
}

TEST_CASE_FIXTURE(Ahead,
                  "acks that reached Redis before the lease was lost did not come too late") {
    Consumer<Raw> consumer(uri, "q", {.ack = AckMode::deferred});
    push(numbered(1, 3));
    CHECK(take(consumer, 1).front().ack());
    CHECK(take(consumer, 1).front().ack()); // its fetch carried the ack before it
    reap(consumer.name());
    CHECK(waiting() == numbered(2, 3));
    CHECK(consumer.flush() == 1);
}

TEST_CASE_FIXTURE(Ahead,
                  "a message that was fetched ahead and lost with the lease is not handed out") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 3});
    push(numbered(1, 3));
    auto guards = take(consumer, 1);
    const std::string id = consumer.name();
    reap(id);
    CHECK_FALSE(guards[0].ack()); // and the consumer knows
    redis.del("q");
    CHECK_FALSE(consumer.next(milliseconds(0)));
    push({"4"});
    CHECK(take(consumer, 1).front()->bytes == "4");
}

} // namespace prefetch_and_deferred_test
