// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs that recur, pushed by workers.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs/cron.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/recurring.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/recur.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace worker_recurring_test {

using namespace std::chrono_literals;
using orizuru::Job;
using orizuru::make_job;
using orizuru::Raw;
using orizuru::Recurrence;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Fixture : WorkerFixture {
    /// Each second, with its time as the payload.
    static Recurrence<Job<Raw>> every_second() {
        return {.name = "tick",
                .cron = orizuru::Cron("* * * * * *"),
                .message = [](std::chrono::sys_seconds at) {
                    return make_job(Raw{std::to_string(at.time_since_epoch().count())});
                }};
    }
    /// Each occurrence once, and none left out.
    void are_consecutive(const Texts& payloads) {
        REQUIRE(payloads.size() >= 3);
        for (std::size_t i = 1; i < payloads.size(); ++i) {
            CHECK(std::stoll(payloads[i]) == std::stoll(payloads[i - 1]) + 1);
        }
    }
};

TEST_CASE_FIXTURE(Fixture, "any number of workers push each occurrence once, to a queue that need "
                           "not be theirs") {
    Worker first(uri, options());
    Worker second(uri, options());
    Worker third(uri, options());
    first.handle<Raw>("q", write_down()).recur<Raw>("q", {every_second()});
    second.handle<Raw>("another", write_down()).recur<Raw>("q", {every_second()});
    third.handle<Raw>("third", write_down()).recur<Raw>("q", {every_second()});
    const Running running(first);
    {
        const Running beside(second);
        const Running beside_both(third);
        REQUIRE(eventually([&] { return handled.size() >= 2; }));
    }
    REQUIRE(eventually([&] { return handled.size() >= 4; }));
    are_consecutive(handled.all());
}

TEST_CASE_FIXTURE(Fixture, "recurring jobs need no connection of their own, and go on behind an "
                           "outage") {
    RedisServer server;
    RedisClient own(server.uri());
    const auto connections = [&](bool recurring) {
        Worker worker(server.uri(), options());
        worker.handle<Raw>("q", write_down());
        if (recurring) {
            worker.recur<Raw>("q", {every_second()});
        }
        const Running running(worker);
        own.lpush("q", bytes_of(make_job(Raw{"first"})));
        const std::size_t least = handled.size() + (recurring ? 3 : 1);
        REQUIRE(eventually([&] { return handled.size() >= least; }));
        REQUIRE(eventually([&] {
            return contains(own.command({"INFO", "clients"}).text, "blocked_clients:1");
        }));
        const std::string info = own.command({"INFO", "clients"}).text;
        return info.substr(info.find("connected_clients:"), 20);
    };
    const auto without = connections(false);
    CHECK(connections(true) == without);
    Worker worker(server.uri() + "?command_timeout=500", options());
    worker.handle<Raw>("q", write_down()).recur<Raw>("q", {every_second()});
    const Running running(worker);
    const std::size_t before = handled.size();
    REQUIRE(eventually([&] { return handled.size() > before; }));
    server.restart();
    const std::size_t after = handled.size();
    CHECK(eventually([&] { return handled.size() > after + 1; }));
}

TEST_CASE_FIXTURE(Fixture, "a message that cannot be made is told, and other queues go on") {
    Recurrence<Job<Raw>> broken = every_second();
    broken.message = [](std::chrono::sys_seconds) -> Job<Raw> {
        throw std::runtime_error("no report today");
    };
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down())
        .recur<Raw>("broken", {broken})
        .recur<Raw>("q", {every_second()});
    const Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::upkeep_failed) > 0; }));
    CHECK(diary.of(WorkerEventKind::upkeep_failed).front().queue == "broken");
    CHECK(diary.of(WorkerEventKind::upkeep_failed).front().detail ==
          "pushing what recurs: no report today");
    const std::size_t before = handled.size();
    CHECK(eventually([&] { return handled.size() > before + 1; }));
}

TEST_CASE_FIXTURE(Fixture, "a list of recurrences that cannot be is refused before the worker "
                           "runs") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    const auto refusal = [&](const std::string& queue, std::vector<Recurrence<Job<Raw>>> list) {
        return message_of<std::invalid_argument>(
            [&] { worker.recur<Raw>(queue, std::move(list)); });
    };
    CHECK(contains(refusal("", {every_second()}), "queue name is empty"));
    CHECK(refusal("q", {every_second(), every_second()}) ==
          "recurrence 'tick': another has the same name");
    Recurrence<Job<Raw>> nameless = every_second();
    nameless.name.clear();
    CHECK(refusal("q", {nameless}) == "recurrence '': it has no name");
    worker.recur<Raw>("q", {every_second()});
    CHECK(refusal("q", {every_second()}) == "queue 'q' has its recurrences already");
    const Running running(worker);
    REQUIRE(eventually([&] { return handled.size() > 0; }));
    CHECK_THROWS_AS(worker.recur<Raw>("late", {every_second()}), std::logic_error);
}

} // namespace worker_recurring_test
