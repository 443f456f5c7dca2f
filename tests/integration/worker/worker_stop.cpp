// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The shutdown of a worker, and what happens to its jobs.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace worker_stop_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::JobContext;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEvent;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Running;
using orizuru::test::status_of_child;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Fixture : WorkerFixture {
    /// A worker whose handlers end too late.
    WorkerOptions impatient(int concurrency = 1) const {
        WorkerOptions chosen = options(concurrency);
        chosen.stop_timeout = 50ms;
        return chosen;
    }
};

TEST_CASE_FIXTURE(Fixture, "a stop waits for the jobs that run, whose handlers are told") {
    const Gate gate;
    std::atomic<bool> told_before{true};
    std::atomic<bool> told{false};
    Worker worker(uri, options());
    worker.handle<Raw>("q", [&, gate](JobContext<Raw>& context) {
        const std::stop_token token = context.stop_token();
        told_before = token.stop_requested();
        gate.pass();
        told = eventually([&] { return token.stop_requested(); });
        handled.add(context->payload.bytes);
    });
    push_jobs({"a", "b"});
    std::stop_source source;
    Running running(worker, source.get_token());
    REQUIRE(gate.reached());
    SUBCASE("by stop()") { worker.stop(); }
    SUBCASE("by its token") { source.request_stop(); }
    CHECK_FALSE(running.ended(50ms));
    gate.open();
    CHECK(running.left() == 0);
    CHECK_FALSE(told_before);
    CHECK(told);
    CHECK(handled.all() == Texts{"a"});
    CHECK(jobs() == Texts{"b"});
    CHECK(nobody_left());
    CHECK(worker.statistics().succeeded == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "run_and_exit ends the process by status 1 where a handler does not end, "
                  "before anything is destroyed; else it returns") {
    constexpr int returned = orizuru::test::first_own_status;
    std::string last;
    SUBCASE("with a handler that ends") { last = "short"; }
    SUBCASE("with one that does not") { last = "endless"; }
    const auto life = [&] {
        orizuru::test::RedisClient client(uri); // the parent's goes on
        Worker worker(uri, impatient());
        worker.handle<Raw>("q", [&](const Raw& raw) {
            worker.stop();
            if (raw.bytes == "endless") {
                std::this_thread::sleep_for(1h);
            }
            client.lpush("ended", raw.bytes);
        });
        worker.run_and_exit();
        return returned;
    };
    push_jobs({last});
    CHECK(status_of_child(life) == (last == "endless" ? 1 : returned));
    CHECK(redis.llen("ended") == (last == "endless" ? 0 : 1));
    CHECK(jobs() == (last == "endless" ? Texts{last} : Texts{}));
}

TEST_CASE_FIXTURE(Fixture,
                  "a worker that was stopped before it ran ends at once, and loses nothing") {
    push_jobs({"a"});
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    worker.stop();
    CHECK(Running(worker).left() == 0);
    CHECK(redis.llen("q") + static_cast<std::int64_t>(handled.size()) == 1);
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fixture, "a worker that stops leaves fences that stay for ten minutes") {
    const QueueOptions rarely_beating{.lease = 1h}; // no beat is on its way at the stop
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", write_down(), rarely_beating);
    worker.handle<Raw>("r", write_down(), rarely_beating);
    push_jobs({"a"});
    {
        Running running(worker);
        REQUIRE(eventually([&] { return handled.size() == 1; }));
        CHECK(running.stop() == 0);
    }
    const Texts fences = redis.keys("orizuru:{*}:processing:*");
    CHECK(fences.size() >= 2);
    for (const std::string& fence : fences) {
        CAPTURE(fence);
        const std::int64_t ms = redis.command({"PTTL", fence}).integer;
        CHECK(ms > 0);
        CHECK(ms <= 600'000);
    }
}

TEST_CASE_FIXTURE(Fixture, "what does not end in time goes back once, as it was, to be served "
                           "next; what its handler does later has no effect") {
    const Gate gate;
    std::atomic<int> later{0};
    Worker worker(uri, impatient(2));
    worker.handle<Raw>("q", [&, gate](JobContext<Raw>& context) {
        gate.pass();
        try {
            context.guard()->bury("too late");
        } catch (const std::logic_error&) {
            ++later;
        }
        context.fail("too late");
    });
    push_jobs({"a", "b", "c"});
    const Texts before = waiting();
    {
        Running running(worker);
        REQUIRE(gate.reached(2));
        CHECK(running.stop() == 2);
        CHECK(waiting() == before);
        CHECK(held_jobs().empty());
        CHECK(diary.count(WorkerEventKind::requeued) == 2);
        CHECK(worker.statistics().requeued == 2);
    }
    gate.open();
    CHECK(eventually([&] { return later == 2; }));
    CHECK(eventually([&] { return worker.running().empty(); }));
    CHECK(waiting() == before);
    CHECK(put_off().empty());
    CHECK(redis.llen(dead) == 0);
    CHECK(eventually([&] { return nobody_left(); }));
}

TEST_CASE_FIXTURE(Fixture,
                  "an attribute that a run has set is kept when the job is requeued, unless "
                  "the job is too large with it") {
    bool ends = true;
    SUBCASE("because its handler ends by an exception at the stop") {}
    SUBCASE("because its handler does not end in time") { ends = false; }
    std::string value = "half";
    orizuru::JobAttributes kept{{"done", value}};
    SUBCASE("a small one") {}
    SUBCASE("a large one") {
        value.assign(9'000, 'x');
        kept.clear();
    }
    const Gate gate;
    Worker worker(uri, impatient());
    worker.handle<Raw>("q",
                       [=](JobContext<Raw>& job) {
                           job.set_attribute("done", value);
                           gate.pass();
                           CHECK(eventually([&] { return job.stop_token().stop_requested(); }));
                           throw std::runtime_error("stopped");
                       },
                       {.max_payload = 8'192});
    const std::string id = push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    worker.stop();
    if (ends) {
        gate.open();
    }
    CHECK(running.left() == (ends ? 0 : 1));
    gate.open();
    REQUIRE(jobs() == Texts{"a"});
    const auto job = job_of(oldest_first("q").front());
    CHECK(job.id == id);
    CHECK(job.attempt == 1);
    CHECK(job.attributes == kept);
    CHECK(diary.count(WorkerEventKind::requeued) == 1);
    CHECK(eventually([&] { return worker.running().empty() && nobody_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "on_event may ask the worker for its running jobs") {
    const Gate gate;
    std::atomic<std::size_t> seen{0};
    std::atomic<const Worker*> asked{nullptr};
    WorkerOptions chosen = impatient();
    chosen.on_event = [&](const WorkerEvent& event) {
        if (event.kind == WorkerEventKind::requeued) {
            seen = asked.load()->running().size();
        }
    };
    Worker worker(uri, chosen);
    asked = &worker;
    worker.handle<Raw>("q", [=](const Raw&) { gate.pass(); });
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    CHECK(running.stop() == 1);
    CHECK(seen == 1);
    gate.open();
    CHECK(eventually([&] { return worker.running().empty(); }));
}

TEST_CASE_FIXTURE(Fixture, "what was fetched with others and not begun goes back at once, in "
                           "order, while handlers go on") {
    const Gate gate;
    Worker worker(uri, options());
    QueueOptions by_threes{.prefetch = 3};
    SUBCASE("acked at once") {}
    SUBCASE("acked with the next fetch") { by_threes.ack = AckMode::deferred; }
    worker.handle<Raw>(
        "q", [=](const Raw&) { gate.pass(); }, by_threes);
    push_jobs({"a", "b", "c", "d", "e", "f", "g", "h"});
    const Texts before = waiting();
    Running running(worker);
    REQUIRE(gate.reached());
    REQUIRE(eventually([&] { return redis.llen("q") == 2; }));
    worker.stop();
    CHECK(eventually([&] { return redis.llen("q") == 7; }));
    CHECK(waiting() == Texts(before.begin() + 1, before.end()));
    CHECK(held_jobs() == Texts{"a"});
    gate.open();
    CHECK(running.left() == 0);
    CHECK(waiting() == Texts(before.begin() + 1, before.end()));
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fixture, "a batch that is not begun goes back in front of what waits, behind the "
                           "job that did not end") {
    const Gate gate;
    Worker worker(uri, impatient());
    worker.handle<Raw>("q", [=](const Raw&) { gate.pass(); }, {.prefetch = 2});
    push_jobs({"a", "b", "c", "d", "e", "f"});
    const Texts before = waiting();
    Running running(worker);
    REQUIRE(gate.reached());
    REQUIRE(eventually([&] { return redis.llen("q") == 2; }));
    CHECK(running.stop() == 1);
    CHECK(waiting() == before);
    gate.open();
    CHECK(eventually([&] { return worker.running().empty(); }));
    CHECK(waiting() == before);
}

TEST_CASE_FIXTURE(Fixture, "a stop is over in time, and nothing is fetched meanwhile, although a "
                           "stop callback of a handler's does not return") {
    const Gate begun;
    const Gate callback;
    Worker worker(uri, impatient(2));
    worker.handle<Raw>("q", [=](JobContext<Raw>& context) {
        const std::stop_callback calling(context.stop_token(), [=] { callback.pass(); });
        begun.pass();
    });
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(begun.reached());
    worker.stop();
    REQUIRE(callback.reached());
    CHECK(so_many_wait(0));
    push_jobs({"b"});
    CHECK(running.ended(7s));
    CHECK(jobs() == Texts{"b"});
    begun.open();
    callback.open();
    CHECK(running.left() == 2);
    CHECK(eventually([&] { return worker.running().empty(); }));
    CHECK(eventually([&] { return nobody_left(); }));
}

} // namespace worker_stop_test
