// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Settles guards on many threads while one waits in next and others call the consumer.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace threads_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::test::eventually;
using orizuru::test::OwnServer;
using orizuru::test::patience;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::RedisClient;
using orizuru::test::time_of;

constexpr int workers = 8;

/// Hands guards from the thread inside `next` to the threads that settle them.
class Desk {
  public:
    void put(RawGuard guard) {
        const std::lock_guard lock(m_mutex);
        m_guards.push_back(std::move(guard));
        m_changed.notify_one();
    }
    void close() {
        const std::lock_guard lock(m_mutex);
        m_closed = true;
        m_changed.notify_all();
    }
    /// Empty = closed, with no guards left.
    std::optional<RawGuard> get() {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [this] { return m_closed || !m_guards.empty(); });
        if (m_guards.empty()) {
            return std::nullopt;
        }
        RawGuard guard = std::move(m_guards.front());
        m_guards.pop_front();
        return guard;
    }

  private:
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<RawGuard> m_guards;
    bool m_closed = false;
};

/// Consumes everything, settling on all workers; returns how often each message 0, 1, … was
/// delivered. Stops waiting for more when nothing has come for a while.
template <class Settle>
std::vector<int> consume_all(RawConsumer& consumer, int count, Settle settle) {
    Desk desk;
    std::vector<std::atomic<int>> delivered(static_cast<std::size_t>(count));
    std::vector<std::jthread> threads;
    for (int i = 0; i < workers; ++i) {
        threads.emplace_back([&] {
            while (auto guard = desk.get()) {
                ++delivered.at(std::stoul((*guard)->bytes));
                settle(*guard);
            }
        });
    }
    for (int i = 0; i < count; ++i) {
        auto guard = consumer.next(patience);
        if (!guard) {
            break;
        }
        desk.put(std::move(*guard));
    }
    desk.close();
    threads.clear();
    return {delivered.begin(), delivered.end()};
}

bool all_once(const std::vector<int>& delivered) {
    return std::ranges::all_of(delivered, [](int times) { return times == 1; });
}

TEST_CASE_FIXTURE(OwnServer, "guards are settled on eight threads while one waits in next") {
    constexpr int count = 20'000;
    AckMode mode = AckMode::immediate;
    int prefetch = 100;
    SUBCASE("with immediate acks") {}
    SUBCASE("with immediate acks and no prefetch") { prefetch = 1; }
    SUBCASE("with deferred acks") { mode = AckMode::deferred; }
    RawConsumer consumer{server.uri(), "q", {.prefetch = prefetch, .ack = mode}};
    std::jthread producer([&] {
        Producer<Raw> own{server.uri(), "q"};
        for (int i = 0; i < count; i += 100) {
            std::vector<Raw> some;
            for (int j = i; j < i + 100; ++j) {
                some.push_back({std::to_string(j)});
            }
            own.push_all(some);
        }
    });
    std::atomic<int> acked{0};
    std::vector<int> delivered;
    const auto took = time_of([&] {
        delivered =
            consume_all(consumer, count, [&](RawGuard& guard) { acked += guard.ack() ? 1 : 0; });
        CHECK(consumer.flush() == 0);
    });
    CHECK(took < 30s);
    CHECK(all_once(delivered));
    CHECK(acked == count);
    CHECK(is_empty());
    CHECK(registered() == 1);
}

TEST_CASE_FIXTURE(OwnServer, "all ways of settling can be mixed on all threads") {
    constexpr int count = 2'000;
    RawConsumer consumer{server.uri(), "q", {.prefetch = 50}};
    push_numbers(count);
    std::atomic<int> done{0};
    const auto delivered = consume_all(consumer, count, [&](RawGuard& guard) {
        switch (std::stoi(guard->bytes) % 5) {
        case 0:
            done += guard.ack() ? 1 : 0;
            break;
        case 1:
            done += guard.reject() ? 1 : 0;
            break;
        case 2:
            done += guard.push("other") ? 1 : 0;
            break;
        case 3:
            done += guard.bury("why not") ? 1 : 0;
            break;
        default:
            ++done; // the destructor rejects it
            { const RawGuard dropped = std::move(guard); }
            break;
        }
    });
    CHECK(all_once(delivered));
    CHECK(done == count);
    CHECK(held().empty());
    CHECK(redis.llen("q") == 0);
    CHECK(redis.llen("other") == count / 5);
    CHECK(redis.llen(unack) == count / 5 * 2);
    CHECK(redis.llen(dead) == count / 5);
}

TEST_CASE_FIXTURE(OwnServer, "an ack does not wait for the thread inside next") {
    RawConsumer consumer{server.uri(), "q"};
    for (int i = 0; i < 50; ++i) {
        push({"a"});
        auto guard = take(consumer);
        auto next = take_in_background(consumer);
        REQUIRE(somebody_waits());
        CHECK(time_of([&] { CHECK(guard.ack()); }) < 1s);
        push({"b"});
        auto second = next.get();
        REQUIRE(second);
        CHECK(second->ack());
    }
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OwnServer, "the consumer answers questions of other threads at any time") {
    constexpr int count = 2'000;
    std::optional<RawConsumer> consumer;
    consumer.emplace(
        server.uri(), "q",
        orizuru::ConsumerOptions{.lease = 150ms, .prefetch = 10, .ack = AckMode::deferred});
    std::atomic<bool> over{false};
    std::atomic<int> answers{0};
    std::atomic<std::size_t> late{0};
    std::atomic<int> wrong{0};
    std::vector<std::jthread> askers;
    askers.emplace_back([&] {
        for (; !over; ++answers) {
            late += consumer->flush();
        }
    });
    askers.emplace_back([&] {
        for (; !over; ++answers) {
            wrong += consumer->size() <= count ? 0 : 1;
        }
    });
    askers.emplace_back([&] {
        for (; !over; ++answers) {
            wrong += consumer->name().empty() || consumer->stopped() ? 1 : 0;
        }
    });
    push_numbers(count);
    const auto delivered =
        consume_all(*consumer, count, [&](RawGuard& guard) { wrong += guard.ack() ? 0 : 1; });
    CHECK(eventually([&] { return answers > 100; }));
    over = true;
    askers.clear();
    CHECK(all_once(delivered));
    CHECK(wrong == 0);
    CHECK(late == 0);
    CHECK(consumer->flush() == 0);
    CHECK(is_empty());
    std::jthread stopper([&] { consumer->stop(); });
    CHECK_FALSE(consumer->next());
    stopper.join();
    consumer.reset();
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(OwnServer, "guards outlive their consumer and the last one leaves the registry") {
    for (int round = 0; round < 20; ++round) {
        push_numbers(workers);
        std::vector<RawGuard> guards;
        {
            RawConsumer consumer{server.uri(), "q", {.prefetch = workers}};
            for (int i = 0; i < workers; ++i) {
                guards.push_back(take(consumer));
            }
        }
        CHECK(registered() == 1);
        std::atomic<int> done{0};
        {
            std::vector<std::jthread> threads;
            for (RawGuard& guard : guards) {
                threads.emplace_back(
                    [&done, own = std::move(guard)]() mutable { done += own.ack() ? 1 : 0; });
            }
        }
        CHECK(done == workers);
        CHECK(is_empty());
        CHECK(nobody_left());
    }
}

TEST_CASE_FIXTURE(OwnServer,
                  "deferred acks that two threads give while the consumer ends all count") {
    constexpr int rounds = 200;
    constexpr std::size_t count = 20;
    for (int round = 0; round < rounds; ++round) {
        push_numbers(count);
        auto consumer = std::make_unique<RawConsumer>(
            uri(patience), "q",
            orizuru::ConsumerOptions{.prefetch = count, .ack = AckMode::deferred});
        std::vector<RawGuard> guards;
        for (std::size_t i = 0; i < count; ++i) {
            guards.push_back(take(*consumer));
        }
        std::atomic<std::size_t> acked = 0;
        const auto ack_every_second = [&](std::size_t first) {
            for (std::size_t i = first; i < guards.size(); i += 2) {
                acked += guards[i].ack() ? 1U : 0U;
            }
        };
        std::thread one(ack_every_second, 0);
        std::thread other(ack_every_second, 1);
        consumer.reset();
        one.join();
        other.join();
        CHECK(acked == count);
        CHECK(eventually([this] { return nobody_left(); }));
        REQUIRE(is_empty());
    }
}

TEST_CASE_FIXTURE(OwnServer, "connections that break under eight settling threads lose nothing") {
    constexpr int count = 3'000;
    RawConsumer consumer{server.uri(), "q", {.prefetch = 20}};
    push_numbers(count);
    std::atomic<bool> over{false};
    std::atomic<std::int64_t> broken{0};
    std::atomic<int> acked{0};
    std::atomic<int> settled{0};
    std::jthread breaker([&] {
        RedisClient own{server.uri()};
        while (!over) {
            const int before = acked;
            broken += own.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).integer;
            std::this_thread::sleep_for(20ms);
            // However slowly they go, a connection lives for an ack, or for 5 s.
            static_cast<void>(eventually([&] { return over || acked > before; }, 5s));
        }
    });
    const auto delivered = consume_all(consumer, count, [&](RawGuard& guard) {
        acked += guard.ack() ? 1 : 0;
        // However fast the messages go, connections break among them.
        const int so_far = ++settled;
        if (so_far % 500 == 0) {
            CHECK(eventually([&] { return broken >= so_far / 500; }));
        }
    });
    over = true;
    breaker.join();
    CHECK(broken >= 5);
    CHECK(all_once(delivered));
    CHECK(acked == count);
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OwnServer, "on_event lives while it runs, whoever settles the last guard") {
    std::atomic<bool> inside{false};
    std::atomic<bool> destroyed{false};
    std::atomic<bool> destroyed_inside{false};
    push({"a", "b"});
    std::optional<RawGuard> first;
    std::optional<RawGuard> second;
    {
        // Its deleter tells when the last copy of on_event has gone.
        const std::shared_ptr<void> part(nullptr, [&](void*) { destroyed = true; });
        const auto on_event = [&, part](const orizuru::Event& event) {
            if (event.kind == orizuru::EventKind::lease_lost) {
                std::atomic<bool>& seen = destroyed_inside;
                inside = true;
                seen = eventually([&gone = destroyed] { return gone.load(); }, 300ms);
            }
        };
        RawConsumer consumer{server.uri(), "q", {.prefetch = 2, .on_event = on_event}};
        first = consumer.next();
        second = consumer.next();
    }
    for (const std::string& key : redis.keys("orizuru:{q}:processing:*")) {
        redis.command({"DEL", key});
    }
    std::jthread teller([&] { CHECK_FALSE(first->ack()); });
    REQUIRE(eventually([&] { return inside.load(); }));
    std::jthread other([&] { CHECK_FALSE(second->ack()); });
    teller.join();
    other.join();
    CHECK_FALSE(destroyed_inside);
}

} // namespace threads_test
