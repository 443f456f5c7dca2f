// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What goes on beside a worker's jobs, when something is wrong with it.

#include "integration/queue_fixture.hpp"
#include "integration/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <chrono>
#include <csignal>

namespace {

using namespace std::chrono_literals;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerOptions;
using orizuru::test::Child;
using orizuru::test::eventually;
using orizuru::test::RedisClient;
using orizuru::test::WorkerFixture;

} // namespace

TEST_CASE_FIXTURE(WorkerFixture, "a process that can have no more descriptors goes on, and ends as "
                                 "it should") {
    Child child([this] {
        RedisClient own(uri); // the parent's goes on
        own.command({"PING"});
        WorkerOptions chosen = options();
        chosen.signals = orizuru::Signals::handle;
        chosen.scheduler.emplace();
        chosen.collect_interval = 10ms;
        Worker worker(uri, chosen);
        worker.handle<Raw>("q", [&](const Raw&) {
            const rlimit none{8, 8}; // all of which are in use
            ::setrlimit(RLIMIT_NOFILE, &none);
            own.lpush("handled", "x");
        });
        return worker.run();
    });
    REQUIRE(so_many_wait(2)); // the scheduler, and for jobs
    push_jobs({"the last descriptor goes"});
    REQUIRE(eventually([this] { return redis.llen("handled") == 1; }));
    // More than one beat of everything.
    CHECK_FALSE(eventually([&] { return child.ended(); }, 200ms));
    push_jobs({"handled all the same"});
    CHECK(eventually([this] { return redis.llen("handled") == 2; }));
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
    CHECK(nobody_left());
}
