// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Redis goes away and comes back: killed, paused, unreachable, loading. Consumers wait for it,
// producers fail fast, and settlements wait as long as the lease.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/proxy.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace outages_test {

using namespace std::chrono_literals;
using orizuru::ConnectionError;
using orizuru::EventKind;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::test::Diary;
using orizuru::test::DurableServer;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::OwnServer;
using orizuru::test::patience;
using orizuru::test::Proxy;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::Texts;
using orizuru::test::time_of;
using Cut = Proxy::Cut;
using Direction = Proxy::Direction;
using std::chrono::milliseconds;

/// Whether the failed push may have run; empty when the push did not fail.
std::optional<bool> push_in_doubt(Producer<Raw>& producer, const std::string& message) {
    try {
        producer.push({message});
        return std::nullopt;
    } catch (const ConnectionError& error) {
        return error.in_doubt();
    }
}

using Seconds = std::chrono::duration<double>;

template <class Action>
Seconds seconds_of(Action action) {
    const auto begun = std::chrono::steady_clock::now();
    action();
    return std::chrono::steady_clock::now() - begun;
}

Seconds median(std::vector<Seconds> times) {
    std::ranges::sort(times);
    return times.at(times.size() / 2);
}

/// A server in front of the real one that refuses the next commands of a name.
struct Refusing {
    Refusing(const std::string& backend, std::string command, std::string error)
        : name(std::move(command)),
          server(
              [this, error = std::move(error)](const Texts& argv) -> std::optional<std::string> {
                  if (argv.at(0) != name) {
                      return FakeServer::pass;
                  }
                  int left = refusals.load();
                  while (left > 0 && !refusals.compare_exchange_weak(left, left - 1)) {
                  }
                  return left > 0 ? "-" + error + "\r\n" : FakeServer::pass;
              },
              backend) {}

    std::atomic<int> refusals{0};
    std::string name;
    FakeServer server;
};

TEST_CASE_FIXTURE(DurableServer,
                  "a consumer that waits in next goes on by itself after Redis was killed") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.on_event = diary.pen()}};
    for (const std::string message : {"first", "second"}) {
        auto next = take_in_background(consumer);
        REQUIRE(somebody_waits());
        server.restart();
        push({message});
        auto guard = next.get();
        REQUIRE(guard);
        CHECK((*guard)->bytes == message);
        CHECK(guard->ack());
    }
    CHECK(is_empty());
    CHECK(registered() == 1);
    CHECK(eventually([&] { return diary.count(EventKind::reconnected) >= 2; }));
    CHECK(diary.count(EventKind::lease_lost) == 0);
}

TEST_CASE_FIXTURE(DurableServer, "an outage is told when it begins and, with its length, when it "
                                 "ends; a health probe sees it") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.lease = 1s, .on_event = diary.pen()}};
    CHECK(consumer.connected());
    auto next = take_in_background(consumer);
    REQUIRE(somebody_waits());
    const auto before_kill = std::chrono::steady_clock::now();
    server.kill();
    CHECK(eventually([&] { return !consumer.connected(); }));
    REQUIRE(eventually([&] { return diary.count(EventKind::disconnected) == 1; }));
    CHECK_FALSE(diary.of(EventKind::disconnected).front().detail.empty());
    CHECK(diary.of(EventKind::disconnected).front().queue == "q");
    CHECK(diary.count(EventKind::reconnected) == 0);
    std::this_thread::sleep_for(50ms);
    server.restart();
    push({"a"});
    CHECK(next.get()->ack());
    CHECK(consumer.connected());
    CHECK(eventually([&] { return diary.count(EventKind::reconnected) == 1; }));
    CHECK(diary.count(EventKind::disconnected) == 1);
    const std::string detail = diary.of(EventKind::reconnected).front().detail;
    const std::string before = server.uri() + ", after ";
    REQUIRE(detail.starts_with(before));
    const std::chrono::milliseconds length{std::stoll(detail.substr(before.size()))};
    CHECK(length >= 50ms);
    CHECK(length <= std::chrono::steady_clock::now() - before_kill);
    CHECK(detail.find(" ms; the last error was: ") != std::string::npos);
}

TEST_CASE_FIXTURE(DurableServer, "guards held over a restart of Redis can be settled") {
    RawConsumer consumer{server.uri(), "q", {.prefetch = 5}};
    push({"a", "b", "c", "d", "e"});
    std::vector<RawGuard> guards;
    for (int i = 0; i < 5; ++i) {
        guards.push_back(take(consumer));
    }
    server.restart();
    CHECK(guards[1].ack());
    CHECK(guards[4].push("other"));
    CHECK(guards[0].reject());
    CHECK(guards[3].bury("too bad"));
    CHECK(guards[2].release());
    CHECK(redis.lrange("q") == Texts{"c"});
    CHECK(redis.lrange("other") == Texts{"e"});
    CHECK(redis.lrange(unack) == Texts{"a"});
    CHECK(redis.llen(dead) == 1);
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(OwnServer, "guards learn that a Redis that came back empty lost their message") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.on_event = diary.pen()}};
    push({"a"});
    auto guard = take(consumer);
    server.restart();
    CHECK_FALSE(guard.ack());
    CHECK(eventually([&] { return diary.count(EventKind::lease_lost) == 1; }));
    push({"b"});
    CHECK(take(consumer).ack());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OwnServer, "a fetch that Redis forgets while nothing is asked of it costs no "
                             "message: the consumer looks at its list behind each broken "
                             "connection") {
    Proxy proxy(server.socket_path());
    RawConsumer consumer{proxy.uri(), "q"};
    push({"a"});
    auto forgotten = take(consumer);
    // As after a kill before the file had the fetch.
    redis.command({"LMOVE", "orizuru:{q}:processing:" + consumer.name(), "q", "LEFT", "RIGHT"});
    proxy.break_all();
    auto again = take(consumer);
    CHECK(again->bytes == "a");
    CHECK_FALSE(forgotten.ack());
    push({"b"});
    auto next = take(consumer);
    CHECK(again.ack());
    CHECK(held() == Texts{"b"});
    CHECK(next.ack());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(DurableServer, "settling during an outage waits and then succeeds") {
    RawConsumer consumer{server.uri(), "q", {.prefetch = 3}};
    push({"a", "b", "c"});
    auto first = take(consumer);
    auto second = take(consumer);
    auto third = take(consumer);
    server.kill();
    auto acked = std::async(std::launch::async, [&] { return first.ack(); });
    auto pushed = std::async(std::launch::async, [&] { return second.push("other"); });
    CHECK(acked.wait_for(150ms) == std::future_status::timeout);
    server.restart();
    CHECK(acked.get());
    CHECK(pushed.get());
    CHECK(third.reject());
    CHECK(held().empty());
    CHECK(everywhere({"other"}) == Texts{"b", "c"});
}

TEST_CASE_FIXTURE(DurableServer,
                  "settling beyond the lease is in doubt, stays queued and ends as an event") {
    const Diary diary;
    RawConsumer consumer{uri(100ms), "q", {.lease = 300ms, .prefetch = 2, .on_event = diary.pen()}};
    push({"a", "b"});
    auto acked = take(consumer);
    auto pushed = take(consumer);
    server.kill();
    const auto waited = time_of([&] {
        try {
            acked.ack();
            FAIL_CHECK("Redis is gone");
        } catch (const ConnectionError& error) {
            CHECK(error.in_doubt());
        }
    });
    CHECK(waited >= 100ms);
    CHECK(waited < 2s);
    CHECK(acked.settled());
    CHECK_THROWS_AS(acked.ack(), std::logic_error);
    CHECK_THROWS_AS(pushed.push("other"), ConnectionError);
    CHECK(pushed.settled());
    CHECK(diary.count(EventKind::late_settlement) == 0);
    server.restart();
    CHECK(eventually([&] { return diary.count(EventKind::late_settlement) == 2; }));
    CHECK(everywhere({"other"}) == Texts{"b"});
    CHECK_FALSE(consumer.next(0ms));
}

TEST_CASE_FIXTURE(DurableServer, "a guard's destructor waits no longer than command_timeout, and "
                                 "the rejection comes later") {
    const Diary diary;
    RawConsumer consumer{uri(100ms), "q", {.on_event = diary.pen()}};
    push({"a"});
    std::optional guard = take(consumer);
    server.kill();
    CHECK(time_of([&] { guard.reset(); }) < 1s);
    server.restart();
    CHECK(eventually([&] { return redis.lrange(unack) == Texts{"a"}; }));
    CHECK(held().empty());
    CHECK(eventually([&] { return diary.count(EventKind::late_settlement) == 1; }));
}

TEST_CASE_FIXTURE(OwnServer, "a consumer's destructor waits no longer than command_timeout") {
    std::optional<RawConsumer> consumer;
    consumer.emplace(uri(100ms), "q");
    std::optional<RawGuard> guard;
    SUBCASE("when Redis is gone") {
        CHECK_FALSE(consumer->next(1ms));
        server.kill();
    }
    SUBCASE("when Redis is gone and a message in hand") {
        push({"a"});
        guard = consumer->next(patience);
        REQUIRE(guard);
        server.kill();
    }
    SUBCASE("when Redis is paused and a BLMOVE outstanding") {
        auto next = take_in_background(*consumer);
        REQUIRE(somebody_waits());
        server.pause();
        consumer->stop();
        CHECK_FALSE(next.get());
    }
    CHECK(time_of([&] { consumer.reset(); }) < 1s);
    CHECK(time_of([&] { guard.reset(); }) < 1s);
}

TEST_CASE_FIXTURE(OwnServer,
                  "nothing of a consumer that is to end by a time waits longer for Redis, "
                  "but what its guards do later") {
    auto consumer = std::make_unique<RawConsumer>(uri(5s), "q");
    push({"a", "b"});
    auto held = take(*consumer);
    auto settled = take(*consumer);
    server.pause();
    auto settling = std::async(std::launch::async, [&] {
        CHECK_THROWS_AS(settled.ack(), ConnectionError);
        CHECK(settled.settled());
    });
    auto waiting = std::async(std::launch::async, [&] { return consumer->next(); });
    const auto taken = time_of([&] {
        consumer->end_by(std::chrono::steady_clock::now() + 300ms);
        settling.get();
        CHECK_FALSE(waiting.get());
        CHECK_THROWS_AS(consumer->size(), ConnectionError);
        consumer.reset();
    });
    CHECK(taken >= 300ms);
    CHECK(taken < 2s);
    server.resume();
    CHECK(held.ack());
    CHECK(eventually([this] { return is_empty() && nobody_left(); }));
}

TEST_CASE_FIXTURE(OwnServer, "next keeps its time while Redis is away") {
    bool is_paused = false;
    int prefetch = 1;
    SUBCASE("gone") {}
    SUBCASE("gone, with a prefetch") { prefetch = 10; }
    SUBCASE("paused") { is_paused = true; }
    SUBCASE("paused, with a prefetch") {
        is_paused = true;
        prefetch = 10;
    }
    RawConsumer consumer{server.uri(), "q", {.prefetch = prefetch}};
    CHECK_FALSE(consumer.next(10ms));
    is_paused ? server.pause() : server.kill();
    for (const milliseconds timeout : {0ms, 200ms, 50ms, 0ms}) {
        CAPTURE(timeout.count());
        const auto waited = time_of([&] { CHECK_FALSE(consumer.next(timeout)); });
        CHECK(waited >= timeout);
        CHECK(waited < timeout + 400ms);
    }
    is_paused ? server.resume() : server.restart();
    push({"a"});
    CHECK(take(consumer).ack());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OwnServer, "a consumer that only looks in with next(0) gets over an outage") {
    RawConsumer consumer{server.uri(), "q"};
    CHECK_FALSE(consumer.next(0ms));
    push({"a"});
    std::optional<RawGuard> guard;
    REQUIRE(eventually([&] { return (guard = consumer.next(0ms)).has_value(); }));
    CHECK(guard->ack());
    server.restart();
    push({"b"});
    std::optional<RawGuard> after;
    // With the default lease of 30 s a beat comes every 10 s: it is not the beat that ends the
    // outage.
    CHECK(eventually([&] { return (after = consumer.next(0ms)).has_value(); }, 3s));
}

TEST_CASE_FIXTURE(OwnServer, "a pause of Redis shorter than the time-outs goes unnoticed") {
    RawConsumer consumer{server.uri(), "q"};
    const std::string id = consumer.name();
    push({"a"});
    auto guard = take(consumer);
    server.pause();
    auto acked = std::async(std::launch::async, [&] { return guard.ack(); });
    auto next = take_in_background(consumer);
    CHECK(acked.wait_for(200ms) == std::future_status::timeout);
    server.resume();
    push({"b"});
    CHECK(acked.get());
    auto second = next.get();
    REQUIRE(second);
    CHECK(second->ack());
    CHECK(is_empty());
    CHECK(consumer.name() == id);
}

TEST_CASE_FIXTURE(OwnServer, "a pause of Redis longer than the lease costs nothing while nobody "
                             "takes the consumer for dead") {
    RawConsumer consumer{uri(150ms), "q", {.lease = 300ms, .prefetch = 2}};
    push({"a", "b"});
    auto first = take(consumer);
    auto second = take(consumer);
    auto next = take_in_background(consumer);
    REQUIRE(somebody_waits());
    server.pause();
    CHECK_THROWS_AS(first.ack(), ConnectionError);
    CHECK(next.wait_for(200ms) == std::future_status::timeout);
    server.resume();
    CHECK(second.ack());
    push({"c"});
    auto third = next.get();
    REQUIRE(third);
    CHECK((*third)->bytes == "c");
    CHECK(third->ack());
    CHECK(eventually([&] { return is_empty(); }));
    CHECK(registered() == 1);
}

TEST_CASE_FIXTURE(OwnServer, "a control connection that falls silent is replaced within "
                             "command_timeout") {
    Proxy proxy{server.socket_path()};
    const Diary diary;
    RawConsumer consumer{proxy.uri() + "?command_timeout=200", "q", {.on_event = diary.pen()}};
    push({"a", "b"});
    auto guard = take(consumer);
    proxy.cut_after(Direction::to_client, proxy.bytes(0, Direction::to_client), Cut::silence, 0);
    CHECK(time_of([&] { CHECK(guard.ack()); }) < 2s);
    CHECK(proxy.cuts() == 1);
    CHECK(eventually([&] { return diary.count(EventKind::reconnected) == 1; }));
    CHECK(take(consumer).ack());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OwnServer, "a wait connection that falls silent is replaced, and the message "
                             "that it swallowed is delivered") {
    Proxy proxy{server.socket_path()};
    const Diary diary;
    RawConsumer consumer{proxy.uri() + "?command_timeout=200", "q", {.on_event = diary.pen()}};
    auto next = take_in_background(consumer);
    REQUIRE(somebody_waits());
    // 0 is control; the beat comes later.
    proxy.cut_after(Direction::to_client, proxy.bytes(1, Direction::to_client), Cut::silence, 1);
    push({"a"});
    auto guard = next.get();
    REQUIRE(guard);
    CHECK(guard->ack());
    CHECK(is_empty());
    CHECK(eventually([&] { return diary.count(EventKind::redelivered) == 1; }));
    CHECK(registered() == 1);
    CHECK(diary.count(EventKind::disconnected) == 1);
    next = take_in_background(consumer);
    CHECK(eventually([&] { return diary.count(EventKind::reconnected) == 1; }));
    push({"b"});
    CHECK(next.get());
}

TEST_CASE_FIXTURE(OwnServer, "a network that freezes and thaws loses nothing") {
    Proxy proxy{server.socket_path()};
    RawConsumer consumer{proxy.uri() + "?command_timeout=100", "q"};
    push({"a", "b"});
    auto guard = take(consumer);
    proxy.freeze();
    auto acked = std::async(std::launch::async, [&] { return guard.ack(); });
    CHECK(acked.wait_for(300ms) == std::future_status::timeout);
    proxy.thaw();
    CHECK(acked.get());
    auto second = take(consumer);
    CHECK(second->bytes == "b");
    CHECK(second.ack());
    CHECK(is_empty());
    CHECK(registered() == 1);
}

TEST_CASE_FIXTURE(OwnServer, "a command that Redis refuses for now is repeated") {
    std::string command;
    std::string error;
    SUBCASE("LOADING, to the greeting") {
        command = "PING";
        error = "LOADING Redis is loading the dataset in memory";
    }
    SUBCASE("BUSY, to the scripts") {
        command = "EVALSHA";
        error = "BUSY Redis is busy running a script.";
    }
    SUBCASE("BUSY, to adoption and beat") {
        command = "EVAL";
        error = "BUSY Redis is busy running a script.";
    }
    SUBCASE("MISCONF, to the blocking fetch") {
        command = "BLMOVE";
        error = "MISCONF Errors writing to the AOF file";
    }
    SUBCASE("READONLY, to the scripts") {
        command = "EVALSHA";
        error = "READONLY You can't write against a read only replica.";
    }
    SUBCASE("UNBLOCKED, to the blocking fetch") {
        command = "BLMOVE";
        error = "UNBLOCKED force unblock from blocking operation";
    }
    Refusing refusing{server.socket_path(), command, error};
    RawConsumer consumer{refusing.server.uri(), "q", {.lease = 1s}};
    push({"a", "b", "c"});
    CHECK(take(consumer).ack());
    auto guard = take(consumer);
    // So that greeting and adoption happen, too.
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    refusing.refusals = 4;
    CHECK(guard.ack());
    auto third = take(consumer);
    CHECK(third->bytes == "c");
    CHECK(third.ack());
    CHECK(eventually([&] {
        push({"more"});
        CHECK(take(consumer).ack());
        return refusing.refusals == 0;
    }));
    CHECK(is_empty());
    CHECK(registered() == 1);
}

TEST_CASE_FIXTURE(OwnServer, "a consumer sent to another server connects at once, and pauses when "
                             "that one has sent it away as well") {
    Refusing refusing{server.socket_path(), "EVALSHA",
                      "READONLY You can't write against a replica."};
    RawConsumer consumer{refusing.server.uri(), "q"};
    Producer<Raw> other{server.uri(), "other"};
    std::vector<Seconds> sent_away;
    std::vector<Seconds> new_ones; // which connect, greet and take a message, too
    for (int i = 0; i < 31; ++i) {
        push({"a"});
        auto guard = take(consumer);
        refusing.refusals = 1;
        sent_away.push_back(seconds_of([&] { CHECK(guard.ack()); }));
        other.push({"b"});
        new_ones.push_back(seconds_of([&] {
            RawConsumer another{refusing.server.uri(), "other"};
            CHECK(take(another).ack());
        }));
    }
    CHECK(median(sent_away) < median(new_ones) + 10ms); // pauses of up to 50 ms would make it 25

    push({"a"});
    auto guard = take(consumer);
    const int many = 1000;
    refusing.refusals = many;
    auto acked = std::async(std::launch::async, [&] { return guard.ack(); });
    CHECK(acked.wait_for(500ms) == std::future_status::timeout);
    CHECK(many - refusing.refusals < 50);
    refusing.refusals = 0;
    CHECK(acked.get());
}

TEST_CASE_FIXTURE(OwnServer, "a producer fails fast when Redis is gone, and nothing is in doubt") {
    Producer<Raw> producer{server.uri(), "q"};
    producer.push({"a"});
    server.kill();
    for (int i = 0; i < 3; ++i) {
        CHECK(time_of([&] { CHECK(push_in_doubt(producer, "b") == false); }) < 500ms);
        CHECK_THROWS_AS(producer.size(), ConnectionError);
    }
    CHECK_THROWS_AS(Producer<Raw>(server.uri(), "q"), ConnectionError);
    CHECK_THROWS_AS(RawConsumer(server.uri(), "q"), ConnectionError);
    server.restart();
    CHECK(producer.push({"c"}) == 1);
}

TEST_CASE_FIXTURE(DurableServer, "a producer that was idle over a restart just goes on") {
    Producer<Raw> producer{server.uri(), "q"};
    CHECK(producer.push({"a"}) == 1);
    server.restart();
    CHECK(producer.push({"b"}) == 2);
    server.restart();
    CHECK(producer.size() == 2);
    server.restart();
    CHECK(producer.push_all({{"c"}, {"d"}}) == 4);
}

TEST_CASE_FIXTURE(OwnServer, "a push whose reply is lost is in doubt") {
    Proxy proxy{server.socket_path()};
    std::string address = proxy.uri();
    Cut cut = Cut::fin;
    SUBCASE("by an orderly end") {}
    SUBCASE("by a reset") { cut = Cut::rst; }
    SUBCASE("by silence") {
        cut = Cut::silence;
        address += "?command_timeout=1000";
    }
    Producer<Raw> producer{address, "q"};
    producer.push({"a"});
    const auto so_far = proxy.bytes(0, Direction::to_client);
    proxy.cut_after(Direction::to_client, so_far, cut, 0);
    CHECK(push_in_doubt(producer, "b") == true);
    CHECK(redis.lrange("q") == Texts{"b", "a"});
    CHECK(producer.push({"c"}) == 3);
}

TEST_CASE_FIXTURE(OwnServer, "a push that a paused Redis does not answer is in doubt") {
    Producer<Raw> producer{uri(100ms), "q"};
    server.pause();
    const auto waited = time_of([&] { CHECK(push_in_doubt(producer, "a") == true); });
    CHECK(waited >= 100ms);
    CHECK(waited < 1s);
    server.resume();
    CHECK(eventually([&] { return redis.llen("q") == 1; }));
    CHECK(producer.push({"b"}) == 2);
}

} // namespace outages_test
