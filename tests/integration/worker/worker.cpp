// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// How a worker calls the handler of a job, and where the job goes then.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace worker_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using orizuru::Exhausted;
using orizuru::Job;
using orizuru::job_time;
using orizuru::JobContext;
using orizuru::make_job;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::is_dead_entry;
using orizuru::test::Record;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;
namespace backoff = orizuru::backoff;

struct Fixture : WorkerFixture {
    /// A worker that handles `q` with this handler.
    template <class Handler>
    std::unique_ptr<Worker> worker(Handler handler, QueueOptions of_queue = much_later()) {
        auto made = std::make_unique<Worker>(uri, options());
        made->handle<Raw>("q", std::move(handler), std::move(of_queue));
        return made;
    }
    WorkerOptions with_scheduler() const {
        WorkerOptions chosen = options();
        chosen.scheduler = {.poll = 100ms};
        return chosen;
    }
};

TEST_CASE_FIXTURE(Fixture, "a handler takes a job in whatever form it likes") {
    Worker worker(uri, options(2));
    worker.handle<Raw>("payload", [=, this](const Raw& payload) { handled.add(payload.bytes); })
        .handle<Raw>("job", [=, this](const Job<Raw>& job) { handled.add(job.payload.bytes); })
        .handle<Raw>("context",
                     [=, this](JobContext<Raw>& context) { handled.add(context->payload.bytes); })
        .handle<Raw>("anything", [=, this](const auto& payload) { handled.add(payload.bytes); })
        .handle<Raw>("anything and context",
                     [=, this](const auto& payload, auto& context) {
                         handled.add(payload.bytes + context.queue());
                     })
        .handle<Raw>("payload and context",
                     [=, this](const Raw& payload, JobContext<Raw>& context) {
                         handled.add(payload.bytes + context.queue());
                     })
        .handle<int>("job and context", [=, this](const Job<int>& job, JobContext<int>& context) {
            handled.add(std::to_string(job.payload) + context.id());
        });
    push_jobs({"a"}, "payload");
    push_jobs({"b"}, "job");
    push_jobs({"c"}, "context");
    push_jobs({"d"}, "payload and context");
    push_jobs({"e"}, "anything");
    push_jobs({"f"}, "anything and context");
    const std::string id = push_jobs({"\x05"}, "job and context");
    const Running running(worker);
    CHECK(eventually([&] {
        Texts all = handled.all();
        std::ranges::sort(all);
        return all ==
               Texts{"5" + id, "a", "b", "c", "dpayload and context", "e", "fanything and context"};
    }));
    CHECK(diary.count(WorkerEventKind::failed) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a job is held while its handler runs, and acked when it returns") {
    const Gate gate;
    const auto worker = this->worker([=](const Raw&) { gate.pass(); });
    const std::string id = push_jobs({"a"});
    Running running(*worker);
    REQUIRE(gate.reached());
    CHECK(held_jobs() == Texts{"a"});
    CHECK(jobs().empty());
    REQUIRE(worker->running().size() == 1);
    const orizuru::RunningJob job = worker->running().front();
    CHECK(job.job_id == id);
    CHECK(job.queue == "q");
    CHECK(job.attempt == 1);
    gate.open();
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(running.stop() == 0);
    CHECK(worker->statistics().succeeded == 1);
    CHECK(worker->statistics().failed == 0);
    CHECK(worker->running().empty());
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fixture, "a job whose handler fails is put off, with what it failed for") {
    std::string reason = "no such user";
    const auto worker = std::make_unique<Worker>(uri, options());
    SUBCASE("by an exception") {
        worker->handle<int>(
            "q", [](int) { throw std::runtime_error("no such user"); }, much_later());
    }
    SUBCASE("by something else that is thrown") {
        reason = "an exception that is no std::exception";
        worker->handle<int>(
            "q", [](int) { throw 5; }, much_later());
    }
    SUBCASE("by saying so") {
        worker->handle<int>(
            "q", [](int, JobContext<int>& context) { context.fail("no such user"); }, much_later());
    }
    // The number five, in more bytes than msgpack writes.
    Job<Raw> job = make_job(Raw{"\xcd\x00\x05"s});
    job.first_enqueued_at -= 1h;
    job.enqueued_at -= 1h;
    push({bytes_of(job)});
    Running running(*worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    const Job<Raw> again = put_off().front();
    CHECK(again.id == job.id);
    CHECK(again.attempt == 2);
    CHECK(again.first_enqueued_at == job.first_enqueued_at);
    CHECK(again.enqueued_at > job.enqueued_at + 30min);
    CHECK(again.last_error == reason);
    CHECK(again.payload.bytes == job.payload.bytes);
    CHECK(jobs().empty());
    CHECK(held_jobs().empty());
    CHECK(running.stop() == 0);
    const auto told = diary.of(WorkerEventKind::failed);
    REQUIRE(told.size() == 1);
    CHECK(told.front().job_id == job.id);
    CHECK(told.front().queue == "q");
    CHECK(told.front().detail == reason);
    CHECK(told.front().retry_in == 1h);
    CHECK(worker->statistics().failed == 1);
    CHECK(worker->statistics().succeeded == 0);
}

TEST_CASE_FIXTURE(Fixture, "a job is tried until a handler returns") {
    Worker worker(uri, with_scheduler());
    const Record<int> attempts;
    worker.handle<Raw>("q",
                       [=](JobContext<Raw>& context) {
                           attempts.add(context.attempt());
                           if (context.attempt() < 4) {
                               throw std::runtime_error("not yet");
                           }
                       },
                       {.retry = {.backoff = backoff::fixed(20ms)}});
    push_jobs({"a"});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(attempts.all() == std::vector{1, 2, 3, 4});
    CHECK(worker.statistics().failed == 3);
}

TEST_CASE_FIXTURE(Fixture, "what a handler settles itself is left alone") {
    std::string where;
    bool fails = true;
    std::unique_ptr<Worker> worker;
    SUBCASE("by burying it, even when it throws then") {
        where = dead;
        worker = this->worker([](JobContext<Raw>& context) {
            CHECK(context.guard()->bury("no such user"));
            throw std::runtime_error("too late");
        });
    }
    SUBCASE("by passing it on") {
        where = "other";
        fails = false;
        worker = this->worker([](JobContext<Raw>& context) { context.guard()->push("other"); });
    }
    SUBCASE("by rejecting it") {
        where = unack;
        worker = this->worker([](JobContext<Raw>& context) {
            context.guard()->reject();
            context.fail("too late");
        });
    }
    push_jobs({"a"});
    const auto bytes = waiting().front();
    Running running(*worker);
    CHECK(eventually([&] { return redis.llen(where) == 1; }));
    CHECK(running.stop() == 0);
    CHECK(orizuru::test::contains(redis.lrange(where).front(), bytes));
    CHECK(redis.llen("q") + redis.llen(unack) + redis.llen(dead) + redis.llen("other") == 1);
    CHECK(put_off().empty());
    CHECK(held_jobs().empty());
    CHECK(worker->statistics().succeeded == 0);
    CHECK(worker->statistics().failed == (fails ? 1 : 0));
    CHECK(worker->statistics().settled == (fails ? 0 : 1));
    REQUIRE(diary.count(WorkerEventKind::failed) == (fails ? 1 : 0));
    if (fails) {
        CHECK(diary.of(WorkerEventKind::failed).front().detail == "too late");
        CHECK_FALSE(diary.of(WorkerEventKind::failed).front().retry_in);
    }
}

TEST_CASE_FIXTURE(Fixture, "a handler that puts a job off itself counts no attempt") {
    const auto worker =
        this->worker([](JobContext<Raw>& context) { orizuru::push_after(*context.guard(), 1h); });
    push_jobs({"a"});
    const Running running(*worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(put_off().front().attempt == 1);
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(Fixture, "a job that its handler releases is served next") {
    const auto worker = this->worker([=, this, first = true](JobContext<Raw>& context) mutable {
        handled.add(context->payload.bytes);
        if (std::exchange(first, false)) {
            context.guard()->release();
        }
    });
    push_jobs({"a", "b"});
    const Running running(*worker);
    CHECK(has_handled({"a", "a", "b"}));
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a job that failed for the last time is buried, or gone") {
    QueueOptions once{.retry = {.max_attempts = 2}};
    WorkerEventKind kind = WorkerEventKind::died;
    SUBCASE("buried") {}
    SUBCASE("discarded") {
        once.retry.exhausted = Exhausted::discard;
        kind = WorkerEventKind::discarded;
    }
    const auto worker =
        this->worker([](const Raw&) { throw std::runtime_error("no such user"); }, once);
    Job<Raw> job = make_job(Raw{"a"});
    job.attempt = 2;
    const std::string bytes = bytes_of(job);
    const auto since = server_ms();
    push({bytes});
    const Running running(*worker);
    CHECK(eventually([&] { return diary.count(kind) == 1; }));
    CHECK(diary.of(kind).front().job_id == job.id);
    CHECK(diary.of(kind).front().detail == "no such user");
    CHECK(diary.of(kind).front().payload == bytes);
    CHECK(held_jobs().empty());
    CHECK(put_off().empty());
    if (kind == WorkerEventKind::died) {
        REQUIRE(redis.llen(dead) == 1);
        CHECK(is_dead_entry(redis.lrange(dead).front(), bytes, "no such user", since, server_ms()));
        CHECK(worker->statistics().died == 1);
    } else {
        CHECK(nothing_left());
    }
}

TEST_CASE_FIXTURE(Fixture, "a failed job comes again in the queue that retries go to") {
    Worker worker(uri, with_scheduler());
    worker.handle<Raw>("q", [](const Raw&) { throw std::runtime_error("not here"); },
                       {.retry = {.backoff = backoff::fixed(20ms), .retry_queue = "second"}});
    push_jobs({"a"});
    const Running running(worker);
    CHECK(eventually([&] { return jobs("second") == Texts{"a"}; }));
    CHECK(job_of(redis.lrange("second").front()).attempt == 2);
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a job says how far it has come") {
    const auto worker =
        this->worker([](JobContext<Raw>& context) { context.progress(0.25, "reading"); });
    const std::string key = "orizuru:{q}:progress:" + push_jobs({"a"});
    const Running running(*worker);
    CHECK(eventually([&] { return worker->statistics().succeeded == 1; }));
    CHECK(redis.command({"HGET", key, "fraction"}).text == "0.25");
    CHECK(redis.command({"HGET", key, "note"}).text == "reading");
    CHECK(redis.command({"PTTL", key}).integer > 23 * 3'600'000);
}

TEST_CASE_FIXTURE(Fixture, "a job that nobody needs any more is not handled") {
    Job<Raw> late = make_job(Raw{"late"});
    late.expires_at = job_time() - 1min; // Redis' clock, as the worker knows it, may be behind
    push({bytes_of(late)});
    Job<Raw> timely = make_job(Raw{"timely"}, 1h);
    push({bytes_of(timely)});
    const auto worker = this->worker(write_down());
    const Running running(*worker);
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(handled.all() == Texts{"timely"});
    REQUIRE(diary.count(WorkerEventKind::expired) == 1);
    CHECK(diary.of(WorkerEventKind::expired).front().job_id == late.id);
    CHECK(worker->statistics().expired == 1);
    // Counted once Redis' answer is here, which is after its queue is empty.
    CHECK(eventually([&] { return worker->statistics().succeeded == 1; }));
}

} // namespace worker_test
