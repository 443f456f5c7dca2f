// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Several kinds of jobs in one queue, each with a handler and options of its own; attributes.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace worker_kinds_test {

using namespace std::chrono_literals;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::JobProducer;
using orizuru::make_job;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::Record;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Fixture : WorkerFixture {
    Worker worker{uri, options()};

    template <class T>
    void push(const std::string& kind, T payload) {
        JobProducer<T>(uri, "q", {.kind = kind}).push(std::move(payload));
    }
    /// Records the payload behind a name.
    [[nodiscard]] auto write_down_as(const std::string& name) const {
        return [name, record = handled](const Raw& payload) {
            record.add(name + " " + payload.bytes);
        };
    }
    void fails_with(const std::string& reason) {
        REQUIRE(eventually([&] { return diary.count(WorkerEventKind::failed) == 1; }));
        CHECK(diary.of(WorkerEventKind::failed).front().detail == reason);
        REQUIRE(eventually([&] { return put_off().size() == 1; }));
        CHECK(put_off().front().last_error == reason);
        CHECK(put_off().front().attempt == 2);
        CHECK(redis.llen(dead) == 0);
    }
};

TEST_CASE_FIXTURE(Fixture, "each kind of a queue has a handler and a type of its own, and they run "
                           "in the order of the queue") {
    worker.handle<Raw>("q", write_down_as("none"))
        .handle<Raw>("q", "a", write_down_as("a"))
        .handle<std::uint64_t>("q", "number", [record = handled](const std::uint64_t& number) {
            record.add("number " + std::to_string(number));
        });
    push("", Raw{"1"});
    push("a", Raw{"2"});
    push<std::uint64_t>("number", 3);
    push("", Raw{"4"});
    const Running running(worker);
    CHECK(has_handled({"none 1", "a 2", "number 3", "none 4"}));
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a job of a kind that has no handler fails, with a reason that lists "
                           "those that have one, and a newer worker handles it") {
    std::string kind = "c";
    std::string reason = "no handler of the kind 'c'; handled here:";
    bool to_others = true;
    worker.serve("q", much_later());
    SUBCASE("beside kinds") {
        worker.handle<Raw>("q", "b", write_down_as("b")).handle<Raw>("q", "a", write_down_as("a"));
        reason += " 'a', 'b'";
    }
    SUBCASE("of none, beside a kind") {
        worker.handle<Raw>("q", "a", write_down_as("a"));
        kind = "";
        reason = "no handler of jobs without a kind; handled here: 'a'";
        to_others = false;
    }
    push(kind, Raw{"x"});
    Running running(worker);
    fails_with(reason);
    CHECK(handled.size() == 0);
    CHECK(put_off().front().kind == kind);
    CHECK(running.stop() == 0);
    if (to_others) {
        redis.command({"DEL", "orizuru:{q}:scheduled"});
        push(kind, Raw{"x"});
        Worker newer(uri, options());
        newer.handle<Raw>("q", "c", write_down_as("c"));
        const Running running_newer(newer);
        CHECK(has_handled({"c x"}));
    }
}

TEST_CASE_FIXTURE(Fixture, "a job of a kind fails at a handler without one, whose type it may not "
                           "be") {
    worker.handle<std::string>(
        "q", [](const std::string&) {}, much_later());
    push("c", Raw{"\xc1"});
    const Running running(worker);
    fails_with("no handler of the kind 'c'; handled here: jobs without a kind");
}

TEST_CASE_FIXTURE(Fixture, "a batch handler takes all kinds of its queue") {
    worker.handle_batch<Raw>("q",
                             [record = handled](const orizuru::JobBatch<Raw>& jobs) {
                                 for (const JobContext<Raw>& job : jobs) {
                                     record.add(job.kind() + " " + job->payload.bytes);
                                 }
                             },
                             {.size = 2});
    push("a", Raw{"1"});
    push("", Raw{"2"});
    const Running running(worker);
    CHECK(has_handled({"a 1", " 2"}));
}

TEST_CASE_FIXTURE(Fixture, "a kind has a retry policy and an expiry of its own, else its queue's") {
    const auto fail = [](const Raw&) { throw std::runtime_error("no luck"); };
    worker.serve("q", {.retry = {.backoff = orizuru::backoff::fixed(1h)}, .expires_after = 24h})
        .handle<Raw>("q", "hours", fail)
        .handle<Raw>("q", "days", fail,
                     {.retry = orizuru::RetryPolicy{.backoff = orizuru::backoff::fixed(48h)}})
        .handle<Raw>("q", "once", fail, {.retry = orizuru::RetryPolicy{.max_attempts = 1}})
        .handle<Raw>("q", "short", fail, {.expires_after = 1min});
    Job<Raw> job = make_job(Raw{"old"});
    job.first_enqueued_at -= 2min;
    const auto push_as = [&](const std::string& kind) {
        job.kind = kind;
        redis.lpush("q", bytes_of(job));
    };
    push_as("short");
    push_as("hours");
    push_as("days");
    push_as("once");
    job.expires_at = job.first_enqueued_at + 1h;
    push_as("short");
    job.expires_at.reset();
    job.first_enqueued_at -= 24h;
    push_as("hours");
    const Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::expired) == 2; }));
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::died) == 1; }));
    CHECK(diary.count(WorkerEventKind::failed) == 3);
    Texts kinds;
    for (const Job<Raw>& late : put_off()) {
        kinds.push_back(late.kind);
    }
    REQUIRE(kinds.size() == 3);
    CHECK(kinds.back() == "days");
}

TEST_CASE_FIXTURE(Fixture, "a worker schedules the retry queue of a kind, too") {
    orizuru::WorkerOptions chosen = options();
    chosen.scheduler.emplace();
    Worker scheduling(uri, chosen);
    scheduling.handle<Raw>("q", "a", [](const Raw&) { throw std::runtime_error("no luck"); },
                           {.retry = orizuru::RetryPolicy{.backoff = orizuru::backoff::fixed(1ms),
                                                          .retry_queue = "elsewhere"}});
    push("a", Raw{"1"});
    const Running running(scheduling);
    CHECK(eventually([&] { return jobs("elsewhere") == Texts{"1"}; }));
}

TEST_CASE_FIXTURE(Fixture, "a job says itself how often it is tried") {
    worker.handle<Raw>("q", [](const Raw&) { throw std::runtime_error("no luck"); },
                       {.retry = {.max_attempts = 2, .backoff = orizuru::backoff::fixed(1h)}});
    JobProducer<Raw> producer(uri, "q");
    producer.push(Raw{"once"}, {.max_attempts = 1});
    producer.push(Raw{"often"}, {.max_attempts = 3});
    const Running running(worker);
    REQUIRE(eventually([&] { return redis.llen(dead) == 1; }));
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    Job<Raw> often = put_off().front();
    CHECK(often.payload.bytes == "often");
    CHECK(often.max_attempts == 3);
    redis.lpush("q", bytes_of(often)); // beyond the policy's two
    REQUIRE(eventually([&] { return put_off().size() == 2; }));
    CHECK(redis.llen(dead) == 1);
}

TEST_CASE_FIXTURE(Fixture, "attributes travel to the handler, which may change them for the next "
                           "try") {
    Record<std::string> seen;
    orizuru::WorkerOptions chosen = options();
    chosen.handle_middleware = {[](orizuru::JobRun& job, const std::function<void()>& next) {
        job.set_attribute("seen", std::to_string(job.attempt()));
        next();
    }};
    Worker tagging(uri, chosen);
    tagging.handle<Raw>(
        "q",
        [seen](JobContext<Raw>& job) {
            seen.add(job.attributes().at("trace"));
            seen.add(job.attributes().at("seen"));
            seen.add(message_of<std::invalid_argument>([&] { job.set_attribute("", "x"); }));
            seen.add(message_of<std::invalid_argument>(
                [&] { job.set_attribute("large", std::string(16'384, 'x')); }));
            throw std::runtime_error("no luck");
        },
        much_later());
    JobProducer<Raw>(uri, "q").push(Raw{"a"}, {.attributes = {{"trace", "0af7"}}});
    const Running running(tagging);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(seen.all().at(0) == "0af7");
    CHECK(seen.all().at(1) == "1");
    CHECK(seen.all().at(2) == "a job's attribute has no name");
    CHECK(contains(seen.all().at(3), "at most 64, and at most 16384 bytes"));
    CHECK(put_off().front().attributes == orizuru::JobAttributes{{"seen", "1"}, {"trace", "0af7"}});
}

TEST_CASE_FIXTURE(Fixture, "a kind, its options and a second handler that cannot be are refused, "
                           "and change nothing") {
    const auto refusal = [&](auto register_it) {
        return message_of<std::invalid_argument>([&] { register_it(); });
    };
    const auto none = [](const Raw&) {};
    worker.handle<Raw>("q", "a", write_down_as("a")).serve("q", {.concurrency = 1});
    CHECK(refusal([&] { worker.handle<Raw>("q", "a", none); }) ==
          "queue 'q', kind 'a' is handled already");
    CHECK(refusal([&] { worker.handle<Raw>("q", "", none); }) ==
          "queue 'q': a kind has 1 to 100 bytes");
    CHECK(contains(refusal([&] { worker.handle<Raw>("q", std::string(101, 'k'), none); }),
                   "100 bytes"));
    CHECK(contains(refusal([&] { worker.handle<Raw>("q", "a\tb", none); }), "control character"));
    CHECK(refusal([&] { worker.serve("q", {}); }) ==
          "queue 'q' is handled already, or has its options");
    CHECK(refusal([&] { worker.handle<Raw>("q", none); }) ==
          "queue 'q' is handled already, or has its options");
    CHECK(refusal([&] { worker.handle_batch<Raw>("q", [](orizuru::JobBatch<Raw>) {}, {}); }) ==
          "queue 'q' is handled already");
    worker.handle_batch<Raw>("batches", [](orizuru::JobBatch<Raw>) {}, {});
    CHECK(refusal([&] { worker.handle<Raw>("batches", "a", none); }) ==
          "queue 'batches' is handled already, in batches, as a whole");
    CHECK(contains(refusal([&] { worker.handle<Raw>("q", "b", none, {.time_limit = 0ms}); }),
                   "queue 'q', kind 'b': time_limit must be 1 ms"));
    CHECK(contains(refusal([&] { worker.handle<Raw>("q", "b", none, {.expires_after = 0ms}); }),
                   "queue 'q', kind 'b': expires_after must be 1 ms or more"));
    CHECK(contains(refusal([&] {
                       worker.handle<Raw>("q", "b", none,
                                          {.retry = orizuru::RetryPolicy{.max_attempts = 0}});
                   }),
                   "queue 'q', kind 'b': max_attempts"));
    CHECK(contains(refusal([&] { worker.serve("other", {.concurrency = 0}); }),
                   "queue 'other': concurrency must be 1 to 10000"));
    CHECK(contains(refusal([&] { worker.serve("other", {.time_limit = 25h}); }),
                   "queue 'other': time_limit must be 1 ms to 24 h"));
    push("a", Raw{"1"});
    const Running running(worker);
    CHECK(has_handled({"a 1"}));
    CHECK_THROWS_AS(worker.serve("late", {}), std::logic_error);
}

TEST_CASE_FIXTURE(Fixture, "a queue that was given options and no handler does not run") {
    worker.serve("q", {});
    CHECK(message_of<std::logic_error>([&] { worker.run(); }) == "queue 'q' has no handler");
}

} // namespace worker_kinds_test
