// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a consumer and a worker do behind a sleep of their host that was longer than the lease.

#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"
#include "support/sleeping_host.hpp"

#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>

namespace suspended_hosts_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::Consumer;
using orizuru::GarbageCollector;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::eventually;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::Running;
using orizuru::test::server;
using orizuru::test::SleepingHost;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

TEST_CASE_FIXTURE(QueueFixture, "behind a sleep a guard is not held until Redis has heard from its "
                                "consumer, which a fetch has done at once") {
    Consumer<Raw> consumer(uri, "q", {.lease = 24h});
    push({"a"});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    for (int sleeps = 0; sleeps < 3; ++sleeps) {
        server().pause(); // no beat comes through meanwhile
        SleepingHost::sleep(23h);
        CHECK(guard->held());
        SleepingHost::sleep(2h);
        CHECK_FALSE(guard->held());
        server().resume();
        CHECK_FALSE(consumer.next(0ms));
        CHECK(eventually([&] { return guard->held(); }));
    }
    CHECK(guard->ack());
}

TEST_CASE_FIXTURE(WorkerFixture, "behind a sleep a worker handles none of the jobs that it held "
                                 "and others have now") {
    Worker worker(uri, options());
    QueueOptions of_queue;
    of_queue.lease = 24h;
    of_queue.prefetch = 10;
    of_queue.ack = AckMode::deferred;
    std::atomic<bool> slept{false};
    worker.handle<Raw>(
        "q",
        [&](const Raw& payload) {
            handled.add(payload.bytes);
            orizuru::test::RedisClient others(uri);
            const auto beats = others.command({"KEYS", "orizuru:{q}:heartbeat:*"}).elements;
            REQUIRE(beats.size() == 1);
            others.command({"DEL", beats[0].text});
            GarbageCollector(uri, "q", {.grace = 0ms, .on_event = {}}).collect();
            others.command({"RENAME", "q", "with others"});
            SleepingHost::sleep(25h);
            slept = true;
            slept.notify_all();
        },
        of_queue);
    push_jobs({"a", "b", "c"});
    const Running running(worker);
    slept.wait(false); // where all clocks go on in a sleep, a deadline from before is over
    CHECK(eventually([this] { return diary.count(WorkerEventKind::lost) == 2; }));
    CHECK(handled.all() == Texts{"a"});
}

} // namespace suspended_hosts_test
