// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Redis closes idle connections, by CONFIG SET timeout or CLIENT KILL. The next operation notices
// that before it sends anything, and goes on over a new connection.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/jobs/progress.hpp>
#include <orizuru/jobs/recurring.hpp>
#include <orizuru/jobs/scheduled_list.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/once.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace idle_connections_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::EventKind;
using orizuru::Raw;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::OwnServer;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Texts;

struct Fixture : OwnServer {
    /// Closes all connections but the test's own; they are gone when this returns.
    void close_all() {
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        REQUIRE(only_own_is_left());
    }
    bool only_own_is_left() {
        return eventually([this] {
            const std::string clients = redis.command({"CLIENT", "LIST"}).text;
            return std::ranges::count(clients, '\n') == 1;
        });
    }
};

TEST_CASE_FIXTURE(Fixture, "a consumer's size asks on a new connection whenever Redis has closed "
                           "the idle one, and nothing else of the consumer suffers") {
    const Diary diary;
    auto listen = RedisServer::Listen::unix_socket;
    SUBCASE("over a Unix socket") {}
    SUBCASE("over TCP") { listen = RedisServer::Listen::tcp; }
    const RedisServer other({}, listen);
    RedisClient client(other.uri());
    client.lpush("q", "a", "b", "c");
    RawConsumer consumer{other.uri(), "q", {.on_event = diary.pen()}};
    auto guard = take(consumer);
    const std::string name = consumer.name();
    for (int i = 0; i < 20; ++i) {
        client.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        CHECK(consumer.size() == 2);
    }
    CHECK(consumer.name() == name);
    CHECK(guard.ack());
    CHECK(take(consumer).ack());
    CHECK(client.llen("q") == 1);
    CHECK(diary.count(EventKind::lease_lost) == 0);
    CHECK(diary.count(EventKind::redelivered) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a consumer settles on a new connection, without a recovery, what it "
                           "holds when Redis has closed the idle one") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.on_event = diary.pen()}};
    push({"a", "b", "c", "d", "e"});
    std::vector<RawGuard> guards;
    for (int i = 0; i < 5; ++i) {
        guards.push_back(take(consumer));
    }
    const std::string name = consumer.name();
    const std::array<std::function<bool(RawGuard&)>, 5> settlements{
        &RawGuard::ack, &RawGuard::reject, [](RawGuard& guard) { return guard.push("other"); },
        [](RawGuard& guard) { return guard.bury("too bad"); }, &RawGuard::release};
    for (std::size_t i = 0; i < settlements.size(); ++i) {
        close_all();
        CHECK(settlements[i](guards[i]));
        CHECK(consumer.name() == name);
    }
    CHECK(redis.lrange(unack) == Texts{"b"});
    CHECK(redis.lrange("other") == Texts{"c"});
    CHECK(redis.llen(dead) == 1);
    CHECK(redis.lrange("q") == Texts{"e"});
    CHECK(held().empty());
    CHECK(diary.count(EventKind::lease_lost) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a consumer flushes deferred acks, and fetches a batch, on a new "
                           "connection when Redis has closed the idle one") {
    RawConsumer consumer{server.uri(), "q", {.prefetch = 3, .ack = AckMode::deferred}};
    const std::string name = consumer.name();
    for (int i = 0; i < 2; ++i) {
        push({"a", "b"}); // less than a batch, so none is fetched ahead
        close_all();
        auto first = take(consumer);
        auto second = take(consumer);
        CHECK(first->bytes == "a");
        CHECK(second->bytes == "b");
        CHECK(first.ack());
        CHECK(second.ack());
        CHECK(held().size() == 2);
        close_all();
        CHECK(consumer.flush() == 0);
        CHECK(is_empty());
        CHECK(consumer.name() == name);
    }
}

TEST_CASE_FIXTURE(Fixture, "a consumer survives Redis' time-out for idle connections") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.on_event = diary.pen()}};
    push({"a"});
    auto guard = take(consumer);
    const std::string name = consumer.name();
    redis.command({"CONFIG", "SET", "timeout", "1"});
    REQUIRE(only_own_is_left());
    CHECK(consumer.size() == 0);
    CHECK(guard.ack());
    CHECK(consumer.name() == name);
    CHECK(is_empty());
    CHECK(diary.count(EventKind::lease_lost) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a health probe and on_event hear nothing of it when Redis closes the "
                           "connections of an idle consumer, and hear of an outage behind that") {
    const Diary diary;
    std::atomic<int> beats{0};
    const RawConsumer consumer{
        server.uri(), "q", {.lease = 300ms, .on_event = diary.pen(), .on_beat = [&] { ++beats; }}};
    for (int i = 0; i < 3; ++i) {
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        const int before = beats;
        REQUIRE(eventually([&] { return beats >= before + 2; })); // its thread has looked since
        CHECK(consumer.connected());
    }
    CHECK(diary.count(EventKind::disconnected) == 0);
    CHECK(diary.count(EventKind::reconnected) == 0);

    server.kill();
    CHECK(eventually([&] { return !consumer.connected(); }));
    CHECK(eventually([&] { return diary.count(EventKind::disconnected) == 1; }));
    server.restart();
    CHECK(eventually([&] { return consumer.connected(); }));
    CHECK(eventually([&] { return diary.count(EventKind::reconnected) == 1; }));
    CHECK(diary.count(EventKind::disconnected) == 1);
}

/// A server that closes all connections but the test's own and then does nothing for 3 s, in one
/// step.
struct HangingServer : OwnServer {
    HangingServer() : OwnServer(Texts{"--enable-debug-command", "yes"}) {}

    void hang() {
        redis.command({"MULTI"});
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        redis.command({"DEBUG", "SLEEP", "3"});
        redis.command({"EXEC"});
    }
};

TEST_CASE_FIXTURE(HangingServer,
                  "an outage behind an idle close is told even when connecting hangs") {
    const Diary diary;
    const RawConsumer consumer{
        server.uri() + "?connect_timeout=500", "q", {.lease = 300ms, .on_event = diary.pen()}};
    auto hanging = std::async(std::launch::async, [this] { hang(); });
    CHECK(eventually([&] { return !consumer.connected(); }));
    CHECK(eventually([&] { return diary.count(EventKind::disconnected) == 1; }));
    hanging.get();
    CHECK(eventually([&] { return consumer.connected(); }));
    CHECK(eventually([&] { return diary.count(EventKind::reconnected) == 1; }));
    CHECK(diary.count(EventKind::disconnected) == 1);
}

TEST_CASE_FIXTURE(Fixture, "an idle consumer's thread leaves a closed connection to who needs one, "
                           "as long as its beats are answered") {
    std::atomic<int> beats{0};
    RawConsumer consumer{server.uri(), "q", {.lease = 300ms, .on_beat = [&] { ++beats; }}};
    REQUIRE(eventually([&] { return beats >= 1; }));
    const std::string clients = redis.command({"CLIENT", "LIST"}).text;
    const std::size_t link = clients.rfind("id=", clients.find("cmd=info")) + 3;
    redis.command({"CLIENT", "KILL", "ID", clients.substr(link, clients.find(' ', link) - link)});
    const int before = beats;
    REQUIRE(eventually([&] { return beats >= before + 3; }));
    const std::string later = redis.command({"CLIENT", "LIST"}).text;
    CHECK(std::ranges::count(later, '\n') == 2); // its beats', and the test's own
    CHECK(consumer.connected());
    CHECK(consumer.size() == 0);
}

TEST_CASE_FIXTURE(Fixture, "each break that on_event tells of ends by one reconnected") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.on_event = diary.pen()}};
    for (std::size_t i = 1; i <= 5; ++i) {
        auto next = take_in_background(consumer);
        REQUIRE(somebody_waits());
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        CHECK(eventually([&] { return diary.count(EventKind::reconnected) == i; }));
        CHECK(diary.count(EventKind::disconnected) == i);
        push({"a"});
        CHECK(next.get()->ack());
    }
}

/// An operation of an object that keeps a connection; returns whether it has worked.
struct Use {
    std::string name;
    std::function<bool()> works;
};

TEST_CASE_FIXTURE(Fixture, "whatever keeps a connection goes on over a new one when Redis has "
                           "closed it while it was idle") {
    const auto queued = [this] { return redis.llen("q"); };
    const std::string uri = server.uri();
    orizuru::Connection connection(uri);
    orizuru::Producer<Raw> producer(uri, "q");
    orizuru::BufferedProducer<Raw> buffered(uri, "q", {.size = 10});
    orizuru::JobProducer<Raw> jobs(uri, "q");
    orizuru::DeadList dead_list(uri, "q");
    orizuru::ScheduledList scheduled_list(uri, "q");
    orizuru::Pause pause(uri, "q");
    orizuru::Progress progress(uri, "q");
    orizuru::GarbageCollector collector(uri, "q");
    orizuru::Scheduler scheduler(uri, "q");
    orizuru::Once once(uri, "q");
    orizuru::Recurring<Raw> recurring(uri, "q", std::vector<orizuru::Recurrence<Raw>>{});

    int claims = 0;
    const std::vector<Use> uses{
        {"Connection", [&] { return connection.command("q", "LLEN", "q").integer == queued(); }},
        {"Producer::push", [&] { return producer.push({"a"}) > 0; }},
        {"Producer::push_all",
         [&] {
             return producer.push_all({Raw{"a"}, Raw{"b"}}) > 0;
         }},
        {"Producer::size", [&] { return std::cmp_equal(producer.size(), queued()); }},
        {"Producer::flush, with a buffer",
         [&] {
             buffered.push({"a"});
             buffered.flush();
             return buffered.unconfirmed() == 0;
         }},
        {"Producer::size, with a buffer",
         [&] { return std::cmp_equal(buffered.size(), queued()); }},
        {"JobProducer", [&] { return jobs.push({"a"}) && jobs.push({"a"}, {.delay = 1h}); }},
        {"DeadList", [&] { return dead_list.size() == 0 && dead_list.list(0, 1).empty(); }},
        {"ScheduledList",
         [&] { return scheduled_list.list(0, 9).size() == scheduled_list.size(); }},
        {"Pause",
         [&] {
             pause.pause();
             const bool paused = pause.paused();
             pause.resume();
             return paused;
         }},
        {"Progress",
         [&] {
             progress.set("id", 0.5);
             return progress.get("id").has_value();
         }},
        {"GarbageCollector", [&] { return collector.collect() == orizuru::Collected{}; }},
        {"Scheduler", [&] { return scheduler.move_due() == 0; }},
        {"Once",
         [&] {
             const auto claim = once.claim(std::to_string(++claims));
             once.renew();
             return once.complete(claim.token);
         }},
        {"Recurring", [&] { return recurring.push_due() == 0; }},
    };
    for (const Use& use : uses) {
        INFO(use.name);
        bool used = false;
        CHECK_NOTHROW(used = use.works());
        CHECK(used);
        for (int i = 0; i < 3; ++i) {
            close_all();
            used = false;
            CHECK_NOTHROW(used = use.works());
            CHECK(used);
        }
    }
}

} // namespace idle_connections_test
