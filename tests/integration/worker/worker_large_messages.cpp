// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker's queues share a link: large messages of one must not hold up the settlements of others.
// They come on the queue's own connection, one by one.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/consumer_options.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace worker_large_messages_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Running;
using orizuru::test::server;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

constexpr std::size_t large = 70'000;

struct Fixture : WorkerFixture {
    /// Payloads of these sizes, each of which begins with its number.
    Texts push(int count, const std::function<std::size_t(int)>& size) {
        Texts all;
        for (int i = 0; i < count; ++i) {
            all.push_back(std::to_string(i));
            push_jobs({all.back() + " " + std::string(size(i), 'x')});
        }
        return all;
    }
    /// Records the number of each payload.
    [[nodiscard]] auto number() const {
        return [record = handled](const Raw& payload) {
            record.add(payload.bytes.substr(0, payload.bytes.find(' ')));
        };
    }
    /// Handles 150 of 300 jobs and returns how many are held then. Handles the rest.
    std::size_t held_of(const QueueOptions& of_queue, const std::function<std::size_t(int)>& size) {
        const Gate gate;
        Worker worker(uri, options());
        const auto handle = [&](const Raw& payload) {
            number()(payload);
            if (handled.size() == 150) {
                gate.pass();
            }
        };
        worker.handle<Raw>("q", handle, of_queue).handle<Raw>("other", [](const Raw&) {});
        const Texts all = push(300, size);
        const Running running(worker);
        REQUIRE(gate.reached());
        const std::size_t held = held_jobs().size();
        gate.open();
        CHECK(has_handled(all));
        CHECK(eventually([this] { return nothing_left(); }));
        return held;
    }
    static std::function<std::size_t(int)> always(std::size_t size) {
        return [=](int) { return size; };
    }
};

TEST_CASE_FIXTURE(Fixture, "fetches have a mebibyte on a link that queues share, as far as those "
                           "before tell, and large messages come on another connection") {
    const QueueOptions many{.prefetch = 1000};
    SUBCASE("small ones come together") { CHECK(held_of(many, always(10)) == 151); }
    SUBCASE("a mebibyte of larger ones") {
        const std::size_t held = held_of(many, always(20'000));
        CHECK(held > 1);
        CHECK(held <= 52);
    }
    SUBCASE("large ones one by one") { CHECK(held_of(many, always(large)) == 1); }
    SUBCASE("one small one among large ones admits no more") {
        const auto in_turn = [](int i) { return i % 2 == 0 ? 10 : 3 * large; };
        CHECK(held_of(many, in_turn) == 1);
    }
}

TEST_CASE_FIXTURE(Fixture, "deferred acks of large messages do not pile up") {
    CHECK(held_of({.prefetch = 10, .ack = AckMode::deferred}, always(large)) <= 20);
}

TEST_CASE_FIXTURE(Fixture, "an empty queue whose last message was large holds up no other") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", number());
    worker.handle<Raw>("second", [this](const Raw& payload) {
        if (handled.size() == 0) {
            std::this_thread::sleep_for(100ms); // the waits end meanwhile
        }
        write_down()(payload);
    });
    const Running running(worker);
    push(1, always(large));
    REQUIRE(has_handled({"0"}));
    REQUIRE(so_many_wait(2));
    redis.command({"CONFIG", "RESETSTAT"});
    handled.clear();
    Texts small;
    for (int i = 0; i < 100; ++i) {
        small.push_back(std::to_string(i));
    }
    push_jobs(small, "second");
    REQUIRE(has_handled(small));
    CHECK(runs_of("lmove") > 10); // it is looked at between the jobs
    CHECK(runs_of("blmove") <= 4);
    CHECK(runs_of("client|unblock") <= 4);
}

TEST_CASE_FIXTURE(Fixture, "large messages come on another connection again when Redis' memory was "
                           "full meanwhile") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", [this](const Raw& payload) {
        std::this_thread::sleep_for(2ms);
        number()(payload);
    });
    worker.handle<Raw>("other", [](const Raw&) {});
    const Texts all = push(300, always(large));
    const Running running(worker);
    const auto by_wait_connection = [this] { return runs_of("lmove") + runs_of("blmove"); };
    REQUIRE(eventually([&] { return by_wait_connection() > 5; }));
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    const std::size_t before = handled.size();
    CHECK(eventually([&] { return handled.size() > before + 3; })); // by script
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(eventually([&] { return by_wait_connection() > 5; }));
    CHECK(redis.llen("q") > 0);
    CHECK(eventually([&] { return handled.size() == all.size(); }));
}

TEST_CASE_FIXTURE(Fixture, "without the right to LMOVE large messages come by script") {
    redis.command(
        {"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "&*", "+@all", "-lmove"});
    Worker worker("unix://clerk:open-sesame@" + server().socket_path(), options());
    worker.handle<Raw>("q", number()).handle<Raw>("other", write_down());
    const Texts all = push(100, always(large));
    const Running running(worker);
    CHECK(has_handled(all));
    CHECK(diary.count(WorkerEventKind::fetch_failed) == 0);
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture, "no more large messages come while Redis refuses their acks") {
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "&*", "+@all"});
    Worker worker("unix://clerk:open-sesame@" + server().socket_path(), options());
    worker.handle<Raw>("q",
                       [this](const Raw& payload) {
                           std::this_thread::sleep_for(1ms);
                           number()(payload);
                       },
                       {.lease = 1s, .prefetch = 10, .ack = AckMode::deferred});
    worker.handle<Raw>("other", [](const Raw&) {});
    const Texts all = push(300, always(large));
    const Running running(worker);
    REQUIRE(eventually([this] { return handled.size() > 20; }));
    redis.command({"ACL", "SETUSER", "clerk", "-evalsha"});
    CHECK(eventually([this] { return diary.count(WorkerEventKind::fetch_failed) > 0; }));
    CHECK(redis.llen("q") > 100);
    redis.command({"ACL", "SETUSER", "clerk", "+evalsha"});
    CHECK(eventually([&] { return handled.size() == all.size(); }));
    CHECK(eventually([this] { return nothing_left(); }));
    redis.command({"ACL", "DELUSER", "clerk"});
}

} // namespace worker_large_messages_test
