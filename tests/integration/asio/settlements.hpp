// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages that coroutines take and settle, for the Asio that the including program calls `net`.

#pragma once

#include "integration/asio/context.hpp"
#include "integration/core/queue_fixture.hpp"
#include "support/collect_dead.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <orizuru/async/async_consumer.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/script.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace settlements_test {

using namespace std::chrono_literals;
using orizuru::async_ack;
using orizuru::async_bury;
using orizuru::async_flush;
using orizuru::async_next;
using orizuru::async_push;
using orizuru::async_reject;
using orizuru::async_release;
using orizuru::async_settle;
using orizuru::AsyncConsumer;
using orizuru::ConnectionError;
using orizuru::ConsumerOptions;
using orizuru::EventKind;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::Context;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::is_dead_entry_of;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Texts;

using Guard = MessageGuard<Raw>;

/// How a settlement has ended.
enum class End { done, lost, refused, in_doubt, aborted, other };

/// Whatever it throws is read here, where it is freed: how exceptions are shared, sanitizers do not
/// see.
net::awaitable<End> end_of(net::awaitable<bool> settlement) {
    try {
        co_return co_await std::move(settlement) ? End::done : End::lost;
    } catch (const ReplyError&) {
        co_return End::refused;
    } catch (const ConnectionError& error) {
        co_return error.in_doubt() ? End::in_doubt : End::other;
    } catch (const std::runtime_error& error) {
        const auto aborted = net::error::make_error_code(net::error::operation_aborted).message();
        co_return contains(error.what(), aborted) ? End::aborted : End::other;
    }
}

/// Not one that never comes.
template <class T>
T in_time(std::future<T> result) {
    REQUIRE(result.wait_for(20s) == std::future_status::ready);
    return result.get();
}

struct Fixture : QueueFixture {
    Context context;
    Diary diary;

    [[nodiscard]] ConsumerOptions options(int prefetch = 1) const {
        ConsumerOptions chosen;
        chosen.prefetch = prefetch;
        chosen.on_event = diary.pen();
        return chosen;
    }
    template <class Coroutine>
    auto run(Coroutine coroutine) {
        return in_time(net::co_spawn(context.executor(), std::move(coroutine), net::use_future));
    }
    std::int64_t scripts() { return info("commandstats", "cmdstat_evalsha:calls"); }
};

/// Takes that many messages, which are there.
net::awaitable<std::vector<Guard>> take(AsyncConsumer<Raw>& consumer, std::size_t count) {
    std::vector<Guard> guards;
    while (guards.size() < count) {
        auto guard = co_await async_next(consumer);
        guards.push_back(std::move(guard.value()));
    }
    co_return guards;
}

TEST_CASE_FIXTURE(Fixture, "a message that is awaited comes on the coroutine's executor, and each "
                           "settlement that is awaited ends there once Redis has it") {
    push({"a", "b", "c", "d", "e", "f", "g"});
    AsyncConsumer<Raw> consumer(uri, "q", options(10));
    run([&]() -> net::awaitable<void> {
        std::vector<Guard> guards = co_await take(consumer, 7);
        CHECK(std::this_thread::get_id() == context.thread());
        CHECK(co_await async_ack(guards[0]));
        CHECK(std::this_thread::get_id() == context.thread());
        CHECK(held() == Texts{"b", "c", "d", "e", "f", "g"});
        CHECK(co_await async_reject(guards[2]));
        CHECK(rejected() == Texts{"c"});
        CHECK(co_await async_release(guards[1]));
        CHECK(waiting() == Texts{"b"});
        CHECK(co_await async_push(guards[3], "other"));
        const Raw instead{"instead"};
        CHECK(co_await async_push(guards[4], "other", instead));
        CHECK(oldest_first("other") == Texts{"d", "instead"});
        CHECK(co_await async_bury(guards[5], "spoilt"));
        CHECK(is_dead_entry_of(redis.lrange(dead).at(0), "f"));
        REQUIRE(guards[5].buried() != nullptr);
        CHECK(*guards[5].buried() == "spoilt");
        const orizuru::Script script("redis.call('SET', KEYS[1], ARGV[1] .. payload)");
        std::vector<std::string> keys{"{q}:done"};
        std::vector<std::string> args{"it was "};
        CHECK(co_await async_settle(guards[6], script, keys, args));
        CHECK(redis.command({"GET", "{q}:done"}).text == "it was g");
        CHECK(held().empty());
        CHECK(std::ranges::all_of(guards, &Guard::settled));
        CHECK(std::ranges::none_of(guards, &Guard::held));
    });
    CHECK(diary.size() == 0);
}

TEST_CASE_FIXTURE(Fixture, "what Redis refuses is thrown where it is awaited, and the guard is "
                           "unsettled again") {
    push({"a", "b"});
    redis.command({"SET", "other", "no list"});
    AsyncConsumer<Raw> consumer(uri, "q", options(2));
    run([&]() -> net::awaitable<void> {
        std::vector<Guard> guards = co_await take(consumer, 2);
        Guard& guard = guards.front();
        for (int times = 0; times < 3; ++times) {
            CHECK(co_await end_of(async_push(guard, "other")) == End::refused);
            CHECK_FALSE(guard.settled());
            CHECK(guard.held());
            CHECK(held() == Texts{"a", "b"});
        }
        CHECK(co_await async_ack(guard));
        CHECK(guard.settled());
        CHECK(co_await end_of(async_push(guards[1], "other")) == End::refused);
        guards.pop_back(); // and is rejected, as any unsettled one
        CHECK(rejected() == Texts{"b"});
        CHECK(held().empty());
    });
}

TEST_CASE_FIXTURE(Fixture,
                  "a guard that is settled or whose settlement goes on is refused at once") {
    push({"a"});
    AsyncConsumer<Raw> consumer(uri, "q", options());
    run([&]() -> net::awaitable<void> {
        std::vector<Guard> guards = co_await take(consumer, 1);
        Guard& guard = guards.front();
        std::atomic<bool> told = false;
        async_ack(guard, [&](const std::exception_ptr& error, bool done) {
            told = error == nullptr && done;
        });
        CHECK(guard.settled());
        CHECK_THROWS_AS(static_cast<void>(async_reject(guard)), std::logic_error);
        CHECK_THROWS_AS(guard.ack(), std::logic_error);
        CHECK(eventually([&] { return held().empty(); }));
        CHECK_THROWS_AS(static_cast<void>(async_ack(guard)), std::logic_error);
        const Guard moved = std::move(guard);
        CHECK_THROWS_AS(static_cast<void>(async_ack(guard)), std::logic_error);
        CHECK_THROWS_AS(static_cast<void>(async_push(guard, "other")), std::logic_error);
        CHECK(eventually([&] { return told.load(); }));
        co_return;
    });
    CHECK(rejected().empty());
}

TEST_CASE_FIXTURE(Fixture, "a settlement that is awaited ends with false when the lease was lost") {
    push({"a", "b"});
    AsyncConsumer<Raw> consumer(uri, "q", options(2));
    auto guards = run([&] { return take(consumer, 2); });
    orizuru::test::collect_dead(redis, uri, "q");
    run([&]() -> net::awaitable<void> {
        CHECK_FALSE(co_await async_ack(guards[0]));
        CHECK(guards[0].settled());
        CHECK_FALSE(co_await async_push(guards[1], "other")); // known to be lost by now
        CHECK(guards[1].settled());
    });
    CHECK(redis.llen("other") == 0);
}

TEST_CASE_FIXTURE(Fixture, "a guard may move or go while its settlement is awaited") {
    push({"a", "b"});
    AsyncConsumer<Raw> consumer(uri, "q", options(2));
    auto guards = run([&] { return take(consumer, 2); });
    std::promise<bool> first;
    std::promise<bool> second;
    const auto tell = [](std::promise<bool>& promise) {
        return [&promise](const std::exception_ptr& error, bool done) {
            promise.set_value(error == nullptr && done);
        };
    };
    async_ack(guards[0], tell(first));
    async_push(guards[1], "other", tell(second));
    std::optional<Guard> moved = std::move(guards[0]);
    guards.clear();
    CHECK(in_time(first.get_future()));
    CHECK(in_time(second.get_future()));
    CHECK(moved->settled());
    moved.reset();
    CHECK(held().empty());
    CHECK(rejected().empty());
    CHECK(oldest_first("other") == Texts{"b"});
    CHECK(diary.size() == 0);
}

/// A server that can stop, and a message that was taken from it.
struct Outage {
    RedisServer server;
    RedisClient redis{server.uri()};
    Context context;
    Diary diary;
    std::optional<AsyncConsumer<Raw>> consumer;
    std::optional<Guard> guard;

    explicit Outage(std::chrono::milliseconds lease = 30s,
                    std::chrono::milliseconds command_timeout = 300ms) {
        redis.lpush("q", "a");
        ConsumerOptions options;
        options.lease = lease;
        options.on_event = diary.pen();
        consumer.emplace(server.uri() +
                             "?command_timeout=" + std::to_string(command_timeout.count()),
                         "q", options);
        guard = in_time(async_next(*consumer, net::use_future));
        REQUIRE(guard);
    }
    std::int64_t info(const std::string& section, const std::string& field) {
        const std::string text = redis.command({"INFO", section}).text;
        const auto at = text.find(field + "=");
        return at == std::string::npos ? 0 : std::stoll(text.substr(at + field.size() + 1));
    }
    Texts held() {
        const std::string pattern = "orizuru:{q}:processing:*";
        Texts list = redis.lrange(redis.keys(pattern).at(0));
        list.pop_back(); // the header
        return list;
    }
};

TEST_CASE("acks that are awaited side by side go to Redis together") {
    constexpr int count = 2000;
    Outage outage(30s, 30s); // its connection outlives the pause, however long the acks take
    for (int i = 1; i < count; ++i) {
        outage.redis.lpush("q", "x");
    }
    std::vector<Guard> guards;
    guards.push_back(std::move(*outage.guard));
    while (guards.size() < count) {
        guards.push_back(std::move(in_time(async_next(*outage.consumer, net::use_future)).value()));
    }
    std::ranges::reverse(guards); // the newest first: none is the list's oldest
    outage.redis.command({"CONFIG", "RESETSTAT"});
    outage.server.pause();
    std::atomic<int> done = 0;
    for (Guard& guard : guards) {
        async_ack(guard, [&](const std::exception_ptr& error, bool acked) {
            done += error == nullptr && acked ? 1 : 0;
        });
    }
    CHECK(done == 0);
    outage.server.resume();
    CHECK(eventually([&] { return done == count; }));
    CHECK(outage.held().empty());
    // What was sent before the server stood still, and the rest.
    CHECK(outage.info("commandstats", "cmdstat_evalsha:calls") <= 5);
}

TEST_CASE("a settlement that is awaited ends in doubt once the lease may be over, goes on, and is "
          "told to on_event") {
    Outage outage(600ms);
    outage.server.pause();
    const auto begun = std::chrono::steady_clock::now();
    auto end = net::co_spawn(
        outage.context.executor(), [&] { return end_of(async_push(*outage.guard, "other")); },
        net::use_future);
    CHECK(in_time(std::move(end)) == End::in_doubt);
    CHECK(std::chrono::steady_clock::now() - begun >= 250ms);
    CHECK(outage.guard->settled());
    outage.guard.reset();
    outage.server.resume();
    CHECK(eventually([&] { return outage.diary.count(EventKind::late_settlement) == 1; }));
    CHECK(outage.redis.lrange("other") == Texts{"a"});
    CHECK(outage.diary.of(EventKind::late_settlement).front().payload == "a");
}

TEST_CASE("a wait for a settlement that is cancelled ends at once; the settlement goes on, and "
          "on_event is told of it") {
    Outage outage;
    outage.server.pause();
    net::cancellation_signal signal;
    std::promise<End> ended;
    net::co_spawn(
        outage.context.executor(),
        [&]() -> net::awaitable<void> { static_cast<void>(co_await async_ack(*outage.guard)); },
        net::bind_cancellation_slot(signal.slot(), [&](const std::exception_ptr& error) {
            ended.set_value(error == nullptr ? End::done : End::aborted);
        }));
    CHECK(eventually([&] { return outage.guard->settled(); }));
    net::post(outage.context.executor(), [&] { signal.emit(net::cancellation_type::terminal); });
    CHECK(in_time(ended.get_future()) == End::aborted);
    CHECK(outage.guard->settled());
    CHECK(outage.diary.count(EventKind::late_settlement) == 0);
    outage.server.resume();
    CHECK(eventually([&] { return outage.diary.count(EventKind::late_settlement) == 1; }));
    CHECK(outage.held().empty());
}

TEST_CASE(
    "a consumer that goes ends each settlement that is awaited, on its executor; they go on") {
    Outage outage(10min);
    outage.server.pause();
    std::atomic<int> in_doubt = 0;
    net::co_spawn(
        outage.context.executor(),
        [&]() -> net::awaitable<void> {
            const End end = co_await end_of(async_ack(*outage.guard));
            CHECK(std::this_thread::get_id() == outage.context.thread());
            in_doubt += end == End::in_doubt ? 1 : 0;
        },
        net::detached);
    CHECK(eventually([&] { return outage.guard->settled(); }));
    outage.consumer.reset();
    CHECK(eventually([&] { return in_doubt == 1; }));
    outage.server.resume();
    outage.guard.reset();
}

TEST_CASE("a guard that goes while Redis refuses its settlement leaves it to the consumer, which "
          "asks again, or requeues the message at its end") {
    Outage outage(300ms);
    outage.redis.command({"SET", "other", "no list"});
    outage.server.pause();
    std::promise<bool> refused;
    async_push(*outage.guard, "other",
               [&](const std::exception_ptr& error, bool) { refused.set_value(error != nullptr); });
    outage.guard.reset();
    outage.server.resume();
    CHECK(in_time(refused.get_future()));
    CHECK(eventually([&] { return outage.diary.count(EventKind::settlement_refused) > 0; }));
    SUBCASE("again") {
        outage.redis.del("other");
        CHECK(eventually([&] { return outage.redis.llen("other") == 1; }));
        CHECK(outage.held().empty());
    }
    SUBCASE("at its end") {
        outage.consumer.reset();
        CHECK(eventually([&] { return outage.redis.lrange("q") == Texts{"a"}; }));
        CHECK(outage.redis.keys("orizuru:{q}:heartbeat:*").empty());
    }
}

TEST_CASE(
    "when Redis refuses a settlement whose wait was cancelled, on_event is told, and the guard "
    "is unsettled again") {
    Outage outage;
    outage.redis.command({"SET", "other", "no list"});
    outage.server.pause();
    net::cancellation_signal signal;
    std::promise<void> ended;
    const auto push = [&]() -> net::awaitable<void> {
        static_cast<void>(co_await async_push(*outage.guard, "other"));
    };
    net::co_spawn(outage.context.executor(), push,
                  net::bind_cancellation_slot(
                      signal.slot(), [&](const std::exception_ptr&) { ended.set_value(); }));
    CHECK(eventually([&] { return outage.guard->settled(); }));
    net::post(outage.context.executor(), [&] { signal.emit(net::cancellation_type::terminal); });
    in_time(ended.get_future());
    outage.server.resume();
    CHECK(eventually([&] { return outage.diary.count(EventKind::settlement_refused) == 1; }));
    CHECK(contains(outage.diary.of(EventKind::settlement_refused).front().detail, "WRONGTYPE"));
    CHECK_FALSE(outage.guard->settled());
    CHECK(outage.guard->ack());
    CHECK(outage.diary.count(EventKind::late_settlement) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a guard whose burial was refused is not buried, however it ends") {
    push({"a"});
    redis.command({"SET", dead, "no list"});
    AsyncConsumer<Raw> consumer(uri, "q", options());
    auto guards = run([&] { return take(consumer, 1); });
    run([&]() -> net::awaitable<void> {
        CHECK(co_await end_of(async_bury(guards[0], "spoilt")) == End::refused);
    });
    CHECK(guards[0].buried() == nullptr);
    SUBCASE("elsewhere") { CHECK(guards[0].ack()); }
    SUBCASE("by the loss of its lease") {
        redis.del(dead);
        orizuru::test::collect_dead(redis, uri, "q");
        CHECK_FALSE(guards[0].reject());
    }
    CHECK(guards[0].buried() == nullptr);
}

TEST_CASE_FIXTURE(Fixture, "contexts are destroyed at any point of taking and acking, and each "
                           "message is acked or comes again") {
    constexpr int count = 300;
    AsyncConsumer<Raw> consumer(uri, "q", options(20));
    for (int round = 0; round < 30; ++round) {
        for (int i = 0; i < count; ++i) {
            redis.lpush("q", std::to_string(i));
        }
        std::vector<std::atomic<bool>> acked(count);
        std::atomic<int> begun = 0;
        Context brief;
        for (int i = 0; i < 10; ++i) {
            net::co_spawn(
                brief.executor(),
                [&]() -> net::awaitable<void> {
                    while (auto guard = co_await async_next(consumer)) {
                        ++begun;
                        const auto number = std::stoul((*guard)->bytes);
                        if (co_await async_ack(*guard)) {
                            acked[number] = true;
                        }
                    }
                },
                net::detached);
        }
        CHECK(eventually([&] { return begun >= 7 * round; }));
        brief.end();
        // What was not told may be acked; what was told is gone.
        std::vector<Guard> left;
        const auto all_seen = [&] {
            return redis.llen("q") == 0 && redis.llen(unack) == 0 && held().size() == left.size();
        };
        while (!all_seen()) {
            redis.command({"LMOVE", unack, "q", "RIGHT", "LEFT"});
            if (redis.llen("q") > 0 || held().size() > left.size()) {
                left.push_back(std::move(in_time(async_next(consumer, net::use_future)).value()));
            }
        }
        for (Guard& guard : left) {
            CHECK_FALSE(acked[std::stoul(guard->bytes)].exchange(true));
            CHECK(guard.ack());
        }
        CHECK(diary.count(EventKind::lease_lost) == 0);
        CHECK(held().empty());
    }
}

TEST_CASE_FIXTURE(Fixture,
                  "a wait for a message that is cancelled ends at once, and what comes for "
                  "it goes to the next one") {
    AsyncConsumer<Raw> consumer(uri, "q", options());
    net::cancellation_signal signal;
    std::promise<End> ended;
    std::atomic<bool> waits = false;
    net::co_spawn(
        context.executor(),
        [&]() -> net::awaitable<void> {
            waits = true;
            static_cast<void>(co_await async_next(consumer));
        },
        net::bind_cancellation_slot(signal.slot(), [&](const std::exception_ptr& error) {
            ended.set_value(error == nullptr ? End::done : End::aborted);
        }));
    REQUIRE(eventually([&] { return waits && somebody_waits(); }));
    net::post(context.executor(), [&] { signal.emit(net::cancellation_type::terminal); });
    CHECK(in_time(ended.get_future()) == End::aborted);
    push({"a", "b"});
    auto guards = run([&] { return take(consumer, 2); });
    CHECK(guards[0]->bytes == "a");
    CHECK(guards[1]->bytes == "b");
    for (Guard& guard : guards) {
        CHECK(in_time(async_ack(guard, net::use_future)));
    }
}

TEST_CASE_FIXTURE(Fixture, "a consumer that stops ends each wait for a message with nothing, and "
                           "requeues what it had for those who were cancelled") {
    std::optional<AsyncConsumer<Raw>> consumer(std::in_place, uri, "q", options(5));
    std::atomic<int> ended = 0;
    for (int i = 0; i < 10; ++i) {
        net::co_spawn(
            context.executor(),
            [&]() -> net::awaitable<void> { ended += co_await async_next(*consumer) ? 0 : 1; },
            net::detached);
    }
    REQUIRE(somebody_waits());
    SUBCASE("by stop") {
        consumer->stop();
        CHECK(eventually([&] { return ended == 10; }));
        CHECK(consumer->stopped());
        CHECK_FALSE(in_time(async_next(*consumer, net::use_future)));
        consumer.reset();
    }
    SUBCASE("by its end") {
        consumer.reset();
        CHECK(eventually([&] { return ended == 10; }));
    }
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fixture, "deferred acks are flushed while others wait for messages") {
    push({"a", "b"});
    ConsumerOptions deferred = options(2);
    deferred.ack = orizuru::AckMode::deferred;
    AsyncConsumer<Raw> consumer(uri, "q", deferred);
    run([&]() -> net::awaitable<void> {
        std::vector<Guard> guards = co_await take(consumer, 2);
        auto next = async_next(consumer, net::use_future);
        CHECK(somebody_waits());
        CHECK(guards[0].ack());
        CHECK(co_await async_ack(guards[1])); // confirmed in this mode, too
        CHECK(co_await async_flush(consumer) == 0);
        CHECK(held().empty());
        push({"c"});
        CHECK(in_time(std::move(next)).value()->bytes == "c");
    });
}

} // namespace settlements_test
