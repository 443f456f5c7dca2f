// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Pushes that coroutines and callbacks await, for the Asio that the including program calls `net`.

#pragma once

#include "integration/asio/context.hpp"
#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <orizuru/async/async_producer.hpp>
#include <orizuru/error.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pushes_test {

using namespace std::chrono_literals;
using orizuru::async_push;
using orizuru::AsyncProducer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::Context;
using orizuru::test::eventually;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Texts;

/// g++ 12 destroys what braces make within a co_await expression at a wrong address.
Raw raw(std::string bytes) { return Raw{std::move(bytes)}; }

struct Fixture : QueueFixture {
    AsyncProducer<Raw> producer{uri, "q"};
    Context context;

    template <class Coroutine>
    void run(Coroutine coroutine) {
        net::co_spawn(context.executor(), std::move(coroutine), net::use_future).get();
    }
};

TEST_CASE_FIXTURE(Fixture, "a push that is awaited ends on the coroutine's executor when Redis has "
                           "the message") {
    run([&]() -> net::awaitable<void> {
        co_await async_push(producer, raw("a"));
        CHECK(std::this_thread::get_id() == context.thread());
        CHECK(waiting() == Texts{"a"});
        co_await async_push(producer, raw("b"));
        CHECK(waiting() == Texts{"a", "b"});
    });
}

TEST_CASE_FIXTURE(Fixture, "a thousand coroutines push side by side, each is told once, and each "
                           "one's messages keep their order") {
    std::atomic<int> told = 0;
    std::atomic<int> running = 1000;
    for (int i = 0; i < 1000; ++i) {
        net::co_spawn(
            context.executor(),
            [&, i]() -> net::awaitable<void> {
                for (int k = 0; k < 5; ++k) {
                    co_await async_push(producer, raw(std::to_string(1000 * k + i)));
                    ++told;
                }
                --running;
            },
            net::detached);
    }
    CHECK(eventually([&] { return running == 0; }));
    CHECK(told == 5000);
    const Texts all = waiting();
    REQUIRE(all.size() == 5000);
    std::vector<int> next(1000, 0);
    for (const std::string& message : all) {
        const int number = std::stoi(message);
        CHECK(number / 1000 == next[static_cast<std::size_t>(number % 1000)]++);
    }
}

TEST_CASE_FIXTURE(Fixture, "what Redis refuses is thrown where the push is awaited, and a payload "
                           "that cannot be sent is refused at once") {
    redis.command({"SET", "q", "no list"});
    AsyncProducer<Raw> brief(uri, "q", {.max_payload = 3});
    run([&]() -> net::awaitable<void> {
        try {
            co_await async_push(producer, raw("a"));
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK(error.code() == "WRONGTYPE");
        }
        CHECK_THROWS_AS(static_cast<void>(async_push(brief, Raw{"long"})), orizuru::EncodeError);
    });
}

TEST_CASE_FIXTURE(Fixture, "a callback is told as well, on its executor or on Asio's threads") {
    std::promise<std::thread::id> bound;
    std::promise<std::exception_ptr> unbound;
    async_push(producer, Raw{"a"},
               net::bind_executor(context.executor(), [&](const std::exception_ptr& error) {
                   CHECK(error == nullptr);
                   bound.set_value(std::this_thread::get_id());
               }));
    CHECK(bound.get_future().get() == context.thread());
    const auto told = [&](std::exception_ptr error) { unbound.set_value(std::move(error)); };
    async_push(producer, Raw{"b"}, told);
    CHECK(unbound.get_future().get() == nullptr);
    async_push(producer, Raw{"c"}, net::use_future).get();
    CHECK(waiting() == Texts{"a", "b", "c"});
}

TEST_CASE("a wait for a push that is cancelled ends at once, and the message is pushed") {
    RedisServer own;
    RedisClient redis(own.uri());
    AsyncProducer<Raw> producer(own.uri(), "q");
    Context context;
    net::cancellation_signal signal;
    std::promise<std::string> ended;
    own.pause();
    net::co_spawn(
        context.executor(),
        [&]() -> net::awaitable<void> { co_await async_push(producer, raw("a")); },
        net::bind_cancellation_slot(signal.slot(), [&](const std::exception_ptr& error) {
            // Read where it is freed: how exceptions are shared, sanitizers do not see.
            ended.set_value(orizuru::test::message_of<std::runtime_error>(
                [&] { std::rethrow_exception(error); }));
        }));
    CHECK(eventually([&] { return producer.unconfirmed() == 1; }));
    net::post(context.executor(), [&] { signal.emit(net::cancellation_type::terminal); });
    CHECK(contains(ended.get_future().get(),
                   net::error::make_error_code(net::error::operation_aborted).message()));
    CHECK(producer.unconfirmed() == 1);
    own.resume();
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    CHECK(redis.lrange("q") == Texts{"a"});
}

TEST_CASE(
    "a context that is destroyed destroys what waits there, also what would end the producer, "
    "and the message is pushed") {
    RedisServer own;
    RedisClient redis(own.uri());
    std::atomic<bool> destroyed = false;
    auto producer = std::make_shared<AsyncProducer<Raw>>(own.uri(), "q");
    const std::weak_ptr<AsyncProducer<Raw>> left = producer;
    std::optional<Context> context(std::in_place);
    net::any_io_executor executor = context->executor();
    SUBCASE("on its executor") {}
    SUBCASE("on a strand") { executor = net::make_strand(executor); }
    const auto push = [](std::shared_ptr<AsyncProducer<Raw>> owned,
                         std::shared_ptr<void>) -> net::awaitable<void> {
        co_await async_push(*owned, raw("a"));
    };
    own.pause();
    net::co_spawn(std::exchange(executor, {}),
                  push(std::exchange(producer, nullptr),
                       std::shared_ptr<void>(nullptr, [&](void*) { destroyed = true; })),
                  net::detached);
    CHECK(eventually([&] { return left.lock()->unconfirmed() == 1; }));
    std::thread later([&] {
        CHECK(eventually([&] { return destroyed.load(); }));
        own.resume();
    });
    context.reset();
    later.join();
    CHECK(redis.lrange("q") == Texts{"a"});
}

TEST_CASE_FIXTURE(Fixture, "what a context destroys may push, and nobody is told") {
    bool first = true;
    SUBCASE("when it is the first push there") {}
    SUBCASE("when others have pushed there") { first = false; }
    bool told = false;
    {
        Context brief;
        if (!first) {
            async_push(producer, Raw{"before"},
                       net::bind_executor(brief.executor(), net::use_future))
                .get();
        }
        brief.stop();
        std::shared_ptr<void> end(nullptr, [&, executor = brief.executor()](void*) {
            const auto tell = [&](const std::exception_ptr&) { told = true; };
            async_push(producer, Raw{"last"}, net::bind_executor(executor, tell));
        });
        net::post(brief.executor(), [end = std::move(end)] {});
    }
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    CHECK(waiting().back() == "last");
    CHECK_FALSE(told);
}

TEST_CASE_FIXTURE(Fixture,
                  "contexts are destroyed at any point of many pushes, and each message is "
                  "pushed once") {
    for (int round = 0; round < 50; ++round) {
        Context brief;
        std::atomic<int> begun = 0;
        for (int i = 0; i < 20; ++i) {
            net::co_spawn(
                brief.executor(),
                [&]() -> net::awaitable<void> {
                    for (;;) {
                        ++begun;
                        co_await async_push(producer, raw("a"));
                    }
                },
                net::detached);
        }
        CHECK(eventually([&] { return begun >= 20 + 7 * round; }));
        brief.stop();
        const int pushed = begun;
        brief.end();
        CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
        CHECK(redis.llen("q") == pushed);
        redis.del("q");
    }
}

} // namespace pushes_test
