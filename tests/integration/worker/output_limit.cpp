// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Redis closes the connection of a client for whom more waits than client-output-buffer-limit, so a
// larger message can never be read: each answer that has it ends the connection. The queue is named
// and looked at more and more seldom, until the limit is lifted.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace output_limit_test {

using namespace std::chrono_literals;
using orizuru::Consumer;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

constexpr std::size_t too_large = std::size_t{4} << 20;

/// Redis keeps at most 1 MiB for a client that has not read yet.
struct Fixture : WorkerFixture {
    Fixture() { set_limit("1mb"); }
    ~Fixture() { set_limit("0"); }
    Fixture(const Fixture&) = delete;
    Fixture& operator=(const Fixture&) = delete;

    void set_limit(const std::string& limit) {
        redis.command({"CONFIG", "SET", "client-output-buffer-limit", "normal " + limit + " 0 0"});
    }
    /// Calls `next` until it says what cannot be read; returns that.
    static std::string refusal_of(Consumer<Raw>& consumer) {
        std::string told;
        CHECK(eventually([&] {
            try {
                return consumer.next(100ms).has_value();
            } catch (const ReplyError& error) {
                told = error.what();
                return true;
            }
        }));
        return told;
    }
    [[nodiscard]] bool is_told_of(const std::string& queue) const {
        return std::ranges::any_of(diary.of(WorkerEventKind::fetch_failed), [&](const auto& told) {
            return told.queue == queue && contains(told.detail, "sends 1 message of 4194");
        });
    }
    [[nodiscard]] std::int64_t connections() {
        const std::string stats = redis.command({"INFO", "stats"}).text;
        const auto at = stats.find("total_connections_received:");
        REQUIRE(at != std::string::npos);
        return std::stoll(stats.substr(at + 27));
    }
};

TEST_CASE_FIXTURE(Fixture, "a message over Redis' output limit is named, with its queue and its "
                           "size, and comes once the limit is lifted") {
    Producer<Raw> producer(uri, "q");
    producer.push(Raw{std::string(too_large, 'x')});
    Consumer<Raw> consumer(uri, "q");
    const std::string told = refusal_of(consumer);
    CHECK(contains(told, "'q'"));
    CHECK(contains(told, "1 message of 4194304 bytes"));
    CHECK(contains(told, "client-output-buffer-limit"));
    set_limit("0");
    CHECK(eventually([&] {
        try {
            if (auto guard = consumer.next(100ms)) {
                CHECK(guard->payload().size() == too_large);
                return guard->ack();
            }
        } catch (const ReplyError&) { // NOLINT(bugprone-empty-catch)
            // It had been kept.
        }
        return false;
    }));
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Fixture, "messages that are over the output limit together are told of as well") {
    Producer<Raw> producer(uri, "q");
    for (int i = 0; i < 10; ++i) {
        producer.push(Raw{std::string(200'000, 'x')});
    }
    Consumer<Raw> consumer(uri, "q", {.prefetch = 10});
    CHECK(contains(refusal_of(consumer),
                   "10 messages of 2000000 bytes, the largest of 200000: see "));
}

TEST_CASE_FIXTURE(Fixture, "what is held beside such a message stays its consumer's: no lease ends "
                           "while the queue waits") {
    Producer<Raw> producer(uri, "q");
    producer.push(Raw{"held"});
    Consumer<Raw> consumer(uri, "q", {.lease = 1s});
    auto guard = consumer.next(1s);
    REQUIRE(guard);
    const orizuru::BackgroundCollector collecting(uri, "q", 100ms, {.grace = 0ms});
    producer.push(Raw{std::string(too_large, 'x')});
    for (int i = 0; i < 3; ++i) { // 1 s and 2 s lie between
        CHECK(contains(refusal_of(consumer), "2 messages of 4194308 bytes"));
    }
    CHECK(redis.llen("q") == 0);
    CHECK_FALSE(redis.exists("orizuru:{q}:recoveries"));
    set_limit("0");
    CHECK(guard->ack());
}

TEST_CASE_FIXTURE(Fixture, "a consumer that ends while its queue waits requeues what it can") {
    Producer<Raw> producer(uri, "q");
    producer.push(Raw{std::string(too_large, 'x')});
    {
        Consumer<Raw> consumer(uri + "?command_timeout=1000", "q");
        for (int i = 0; i < 3; ++i) { // the next pause has 4 s, the end 1 s
            CHECK_FALSE(refusal_of(consumer).empty());
        }
        set_limit("0");
    }
    CHECK(redis.llen("q") == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "a queue whose message is over the output limit is told of, and holds up "
                  "no other of its worker") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", [](const Raw&) {}, {.prefetch = 10});
    worker.handle<Raw>("other", write_down());
    push_jobs({std::string(too_large, 'x')});
    const Running running(worker);
    REQUIRE(eventually([this] { return is_told_of("q"); }));
    const auto before = connections();
    Texts all;
    for (int i = 0; i < 500; ++i) {
        all.push_back(std::to_string(i));
        push_jobs({all.back()}, "other");
    }
    CHECK(has_handled(all));
    // Each look ends the link once, and the pauses between looks double.
    CHECK(connections() - before <= 20);
    set_limit("0");
    CHECK(eventually([this] { return nothing_left(); }, 60s));
}

TEST_CASE_FIXTURE(Fixture, "each queue of a worker that has such a message is told of") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", [](const Raw&) {}, {.prefetch = 10});
    worker.handle<Raw>("second", [](const Raw&) {}, {.prefetch = 10});
    push_jobs({std::string(too_large, 'x')});
    push_jobs({std::string(too_large, 'x')}, "second");
    const Running running(worker);
    CHECK(eventually([this] { return is_told_of("q") && is_told_of("second"); }));
}

} // namespace output_limit_test
