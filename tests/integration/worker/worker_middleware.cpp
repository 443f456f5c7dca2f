// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The users' middleware around a worker's handlers, its fetches and the pushes of jobs.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace worker_middleware_test {

using namespace std::chrono_literals;
using orizuru::FetchMiddleware;
using orizuru::HandleMiddleware;
using orizuru::Job;
using orizuru::JobProducer;
using orizuru::JobRun;
using orizuru::PushMiddleware;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::Record;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

using Next = std::function<void()>;
using Fetch = std::function<bool()>;

struct Fixture : WorkerFixture {
    /// Middleware that records when it is entered and left.
    HandleMiddleware noting(const std::string& name) const {
        return [=, record = handled](JobRun& job, const Next& next) {
            record.add(name + " before " + job.queue());
            next();
            record.add(name + " after");
        };
    }
    WorkerOptions inside(std::vector<HandleMiddleware> middleware) const {
        WorkerOptions chosen = options();
        chosen.handle_middleware = std::move(middleware);
        return chosen;
    }
    WorkerOptions fetching_inside(std::vector<FetchMiddleware> middleware) const {
        WorkerOptions chosen = options();
        chosen.fetch_middleware = std::move(middleware);
        return chosen;
    }
};

TEST_CASE_FIXTURE(Fixture, "handling is inside its middleware, the first one outermost") {
    Worker worker(uri, inside({noting("one"), noting("two")}));
    SUBCASE("a handler of jobs") { worker.handle<Raw>("q", write_down()); }
    SUBCASE("a handler of batches") {
        worker.handle_batch<Raw>(
            "q", [this](orizuru::JobBatch<Raw> batch) { handled.add(batch[0]->payload.bytes); },
            {.size = 1});
    }
    push_jobs({"a"});
    const Running running(worker);
    CHECK(has_handled({"one before q", "two before q", "a", "two after", "one after"}));
    CHECK(eventually([this] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a job whose middleware does not go on fails, with all of its batch") {
    Worker worker(uri, inside({noting("one"), [](JobRun&, const Next&) {}, noting("three")}));
    std::size_t pushed = 1;
    SUBCASE("a handler of jobs") { worker.handle<Raw>("q", write_down(), much_later()); }
    SUBCASE("a handler of batches") {
        pushed = 3;
        worker.handle_batch<Raw>(
            "q", [this](orizuru::JobBatch<Raw>) { handled.add("handled"); }, {.size = 3},
            much_later());
    }
    push_jobs(Texts(pushed, "a"));
    const Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == pushed; }));
    CHECK(contains(put_off().back().last_error, "has not called next"));
    CHECK(worker.statistics().succeeded == 0);
    CHECK(worker.statistics().failed == pushed);
    CHECK(handled.all() == Texts{"one before q", "one after"});
}

TEST_CASE_FIXTURE(Fixture, "middleware and observers see the payload, while the run has it") {
    const auto text_of = [](const JobRun& job) {
        const Raw* const payload = job.payload<Raw>();
        return payload != nullptr ? payload->bytes : "none";
    };
    WorkerOptions chosen = inside({[=, record = handled](JobRun& job, const Next& next) {
        record.add(text_of(job));
        next();
        record.add(text_of(job));
        record.add(job.payload<std::string>() == nullptr ? "no text" : "a text");
    }});
    chosen.observers = {[=, record = handled](JobRun& job) {
        record.add("begins " + text_of(job));
        return nullptr;
    }};
    Worker worker(uri, chosen);
    bool moves = false;
    SUBCASE("which is there to the end") {}
    SUBCASE("which goes with its guard") { moves = true; }
    worker.handle<Raw>("q", [=](orizuru::JobContext<Raw>& context) {
        if (moves) {
            auto mine = std::move(*context.guard());
            mine.ack();
        }
    });
    push_jobs({"a"});
    const Running running(worker);
    CHECK(has_handled({"begins a", "a", moves ? "none" : "a", "no text"}));
    CHECK(eventually([this] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "middleware that does not go on may settle the job itself") {
    Worker worker(uri, inside({[](JobRun& job, const Next&) {
                      dynamic_cast<orizuru::JobContext<Raw>&>(job).guard()->bury("no licence");
                  }}));
    worker.handle<Raw>("q", write_down());
    push_jobs({"a"});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().settled == 1; }));
    CHECK(redis.llen(dead) == 1);
    CHECK(handled.all().empty());
    CHECK(diary.count(WorkerEventKind::failed) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a job fails by what its middleware throws, or lets through, or says") {
    HandleMiddleware failing;
    SUBCASE("throws before") {
        failing = [](JobRun&, const Next&) { throw std::runtime_error("no licence"); };
    }
    SUBCASE("throws behind") {
        failing = [](JobRun&, const Next& next) {
            next();
            throw std::runtime_error("no licence");
        };
    }
    SUBCASE("says") {
        failing = [](JobRun& job, const Next& next) {
            next();
            job.fail("no licence");
        };
    }
    Worker worker(uri, inside({[](JobRun&, const Next& next) { next(); }, failing}));
    worker.handle<Raw>(
        "q", [](const Raw&) {}, much_later());
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([this] { return put_off().size() == 1; }));
    CHECK(put_off().front().last_error == "no licence");
    CHECK(eventually([this] { return held_jobs().empty(); }));
}

TEST_CASE_FIXTURE(Fixture, "middleware can let a failed job pass") {
    std::atomic<bool> seen{false};
    Worker worker(uri, inside({[&](JobRun&, const Next& next) {
                      try {
                          next();
                      } catch (const std::runtime_error&) {
                          seen = true;
                      }
                  }}));
    worker.handle<Raw>("q", [](const Raw&) { throw std::runtime_error("no such user"); });
    push_jobs({"a"});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(seen);
}

TEST_CASE_FIXTURE(Fixture, "a fetch is inside its middleware, which sees whether there was "
                           "something") {
    const auto noting_fetch = [this](const std::string& name) {
        return [=, record = handled](std::string_view queue, const Fetch& fetch) {
            const bool found = fetch();
            if (found) {
                record.add(name + " from " + std::string(queue));
            }
            return found;
        };
    };
    Worker worker(uri, fetching_inside({noting_fetch("outer"), noting_fetch("inner")}));
    worker.handle<Raw>("q", write_down());
    push_jobs({"a"});
    const Running running(worker);
    CHECK(has_handled({"inner from q", "outer from q", "a"}));
}

TEST_CASE_FIXTURE(Fixture, "a queue that the fetch's middleware passes over is polled again") {
    std::atomic<bool> open{false};
    Worker worker(uri, fetching_inside({[&](std::string_view queue, const Fetch& fetch) {
                      return queue == "q" && !open ? false : fetch();
                  }}));
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", write_down());
    push_jobs({"a", "b"});
    push_jobs({"x", "y"}, "other");
    const Running running(worker);
    CHECK(has_handled({"x", "y"}));
    CHECK(so_many_wait(1));
    CHECK(jobs() == Texts{"a", "b"});
    open = true;
    CHECK(has_handled({"x", "y", "a", "b"}));
}

TEST_CASE_FIXTURE(Fixture, "what a fetch's middleware throws is told, and no other queue suffers") {
    std::atomic<bool> broken{true};
    Worker worker(uri, fetching_inside({[&](std::string_view queue, const Fetch& fetch) {
                      if (queue == "q" && broken) {
                          throw std::runtime_error("no licence");
                      }
                      return fetch();
                  }}));
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", write_down());
    push_jobs({"a"});
    push_jobs({"x"}, "other");
    const Running running(worker);
    CHECK(has_handled({"x"}));
    REQUIRE(eventually([this] { return diary.count(WorkerEventKind::fetch_failed) > 0; }));
    CHECK(diary.of(WorkerEventKind::fetch_failed).front().queue == "q");
    CHECK(diary.of(WorkerEventKind::fetch_failed).front().detail == "no licence");
    broken = false;
    CHECK(has_handled({"x", "a"}));
}

TEST_CASE_FIXTURE(Fixture, "a push is inside its middleware, which may change the job") {
    const auto tagging = [](const std::string& tag) -> PushMiddleware<Raw> {
        return [=](Job<Raw>& job, const Next& push) {
            job.payload.bytes += tag;
            push();
        };
    };
    JobProducer<Raw> producer(uri, "q", {.middleware = {tagging("1"), tagging("2")}});
    const std::optional<std::string> id = producer.push(Raw{"a"});
    REQUIRE(id);
    CHECK(jobs() == Texts{"a12"});
    CHECK(job_of(waiting().front()).id == *id);
    CHECK(producer.push(Raw{"later"}, {.expires_after = 2h, .delay = 1h}));
    REQUIRE(put_off().size() == 1);
    CHECK(put_off().front().payload.bytes == "later12");
}

TEST_CASE_FIXTURE(Fixture, "a push says the kind, the attributes and how often to try, and its "
                           "middleware may change them") {
    const PushMiddleware<Raw> tracing = [](Job<Raw>& job, const Next& push) {
        job.attributes["trace"] = "0af7";
        push();
    };
    JobProducer<Raw> producer(uri, "q", {.kind = "charge", .middleware = {tracing}});
    CHECK(producer.push(Raw{"a"}, {.attributes = {{"tenant", "acme"}}, .max_attempts = 7}));
    const Job<Raw> job = job_of(waiting().front());
    CHECK(job.kind == "charge");
    CHECK(job.attributes == orizuru::JobAttributes{{"tenant", "acme"}, {"trace", "0af7"}});
    CHECK(job.max_attempts == 7);
}

TEST_CASE_FIXTURE(Fixture, "a kind, attributes or a max_attempts that cannot be push nothing") {
    CHECK(message_of<std::invalid_argument>([&] { JobProducer<Raw>(uri, "q", {.kind = "a\n"}); }) ==
          "a job's kind must have at most 100 bytes and no control character");
    JobProducer<Raw> producer(uri, "q");
    CHECK_THROWS_AS(producer.push(Raw{"a"}, {.attributes = {{"", "x"}}}), orizuru::EncodeError);
    CHECK_THROWS_AS(producer.push(Raw{"a"}, {.max_attempts = 0}), orizuru::EncodeError);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Fixture, "a push is unique or bounded by its options, through the middleware") {
    const PushMiddleware<Raw> tagging = [](Job<Raw>& job, const Next& push) {
        job.payload.bytes += "!";
        push();
    };
    JobProducer<Raw> producer(uri, "q", {.middleware = {tagging}});
    CHECK(producer.push(Raw{"a"}, {.unique = "id"}));
    CHECK_FALSE(producer.push(Raw{"b"}, {.unique = "id"}));
    CHECK(producer.push(Raw{"c"}, {.delay = 1h, .unique = "later"}));
    CHECK_FALSE(producer.push(Raw{"d"}, {.unique = "later"}));
    REQUIRE(put_off().size() == 1);
    CHECK(put_off().front().payload.bytes == "c!");
    CHECK(producer.push(Raw{"e"}, {.bound = orizuru::QueueBound{.max_length = 2}}));
    CHECK_FALSE(producer.push(Raw{"f"}, {.bound = orizuru::QueueBound{.max_length = 2}}));
    CHECK(jobs() == Texts{"a!", "e!"});
    const orizuru::QueueBound bound{.max_length = 9};
    for (const orizuru::JobOptions& both : {orizuru::JobOptions{.unique = "x", .bound = bound},
                                            orizuru::JobOptions{.delay = 1h, .bound = bound}}) {
        CHECK(message_of<std::invalid_argument>([&] { producer.push(Raw{"g"}, both); }) ==
              "a job with a bound can be neither unique nor for later");
        CHECK_THROWS_AS(producer.push_all({Raw{"g"}}, both), std::invalid_argument);
    }
    CHECK_THROWS_AS(producer.push(Raw{"g"}, {.unique = ""}), std::invalid_argument);
    CHECK(jobs() == Texts{"a!", "e!"});
}

TEST_CASE_FIXTURE(Fixture, "many jobs are pushed through the middleware, and those that it keeps "
                           "are not") {
    const PushMiddleware<Raw> picking = [](Job<Raw>& job, const Next& push) {
        if (job.payload.bytes == "throw") {
            throw std::logic_error("no");
        }
        if (job.payload.bytes != "keep") {
            push();
        }
    };
    JobProducer<Raw> producer(uri, "q", {.middleware = {picking}});
    const auto ids = producer.push_all({Raw{"a"}, Raw{"keep"}, Raw{"b"}});
    CHECK(jobs() == Texts{"a", "b"});
    REQUIRE(ids.size() == 2);
    CHECK(job_of(oldest_first("q").back()).id == ids.back());
    CHECK_THROWS_AS(producer.push_all({Raw{"c"}, Raw{"throw"}}), std::logic_error);
    CHECK(jobs() == Texts{"a", "b"}); // not even the first
    CHECK(producer.push_all({Raw{"d"}, Raw{"e"}}, {.delay = 1h}).size() == 2);
    CHECK(put_off().size() == 2);
    CHECK(producer.push_all({Raw{"f"}, Raw{"g"}}, {.unique = "id"}).size() == 1);
    CHECK(jobs() == Texts{"a", "b", "f"});
    redis.command({"DEL", "orizuru:{q}:scheduled"});
    redis.command({"SET", "orizuru:{q}:scheduled", "no sorted set"});
    try {
        producer.push_all({Raw{"h"}, Raw{"i"}}, {.delay = 1h});
        FAIL("it was pushed");
    } catch (const orizuru::ReplyError& error) {
        CHECK(error.pushed() == 0);
    }
}

TEST_CASE_FIXTURE(Fixture, "a handler extends the lock of its unique job, and of no other") {
    Worker worker(uri, options());
    Record<bool> extended;
    worker.handle<Raw>("q", [=](orizuru::JobContext<Raw>& job) {
        extended.add(job.extend_unique(48h));
        CHECK_THROWS_AS(job.extend_unique(0ms), std::invalid_argument);
    });
    JobProducer<Raw> producer(uri, "q");
    producer.push(Raw{"a"}, {.unique = "id",
                             .unique_options = {.release = orizuru::UniqueRelease::on_expiry}});
    producer.push(Raw{"b"});
    const Running running(worker);
    REQUIRE(eventually([&] { return extended.size() == 2; }));
    CHECK(extended.all() == std::vector<bool>{true, false});
    CHECK(redis.command({"PTTL", "orizuru:{q}:unique:id"}).integer > 47 * 3'600'000);
}

TEST_CASE_FIXTURE(Fixture, "a job that is due at a time waits for it") {
    JobProducer<Raw> producer(uri, "q");
    const orizuru::JobTime time = orizuru::job_time() + 1h;
    producer.push(Raw{"past"}, {.delay = 1h, .at = time - 2h});
    CHECK(jobs() == Texts{"past"});
    producer.push(Raw{"later"}, {.at = time});
    CHECK(redis.command({"ZRANGE", "orizuru:{q}:scheduled", "0", "-1", "WITHSCORES"})
              .elements.at(1)
              .text == std::to_string(time.time_since_epoch().count()));
}

TEST_CASE_FIXTURE(Fixture, "a job for later counts as enqueued from when it is due") {
    JobProducer<Raw> producer(uri, "q");
    const orizuru::JobTime before = orizuru::job_time();
    const auto enqueued = [&](const orizuru::JobOptions& options) {
        redis.flushall();
        const auto begun = std::chrono::steady_clock::now();
        producer.push_all({Raw{"a"}}, options);
        // It may take Redis' time for one that is as old as half the way of the reply.
        const auto way =
            std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
        const Job<Raw> job = put_off().empty() ? job_of(waiting().front()) : put_off().front();
        CHECK(job.first_enqueued_at >= before - way);
        CHECK(job.first_enqueued_at < before + 1min);
        CHECK((!options.at || *options.at < before || job.enqueued_at == *options.at));
        return job.enqueued_at - job.first_enqueued_at;
    };
    CHECK(enqueued({}) == 0ms);
    CHECK(enqueued({.delay = 24h}) == 24h);
    CHECK(enqueued({.delay = -24h}) == 0ms);
    CHECK(enqueued({.delay = 1h, .unique = "u"}) == 1h);
    CHECK(enqueued({.at = before - 24h}) == 0ms);
    CHECK(enqueued({.at = before + 24h}) > 24h - 1min);
}

TEST_CASE_FIXTURE(Fixture, "a job expires after its time counted from when it is due") {
    JobProducer<Raw> producer(uri, "q");
    const auto expires_after = [&](const orizuru::JobOptions& options) {
        redis.flushall();
        producer.push(Raw{"a"}, options);
        const Job<Raw> job = put_off().empty() ? job_of(waiting().front()) : put_off().front();
        CHECK(job.expires_at.value() - job.enqueued_at == *options.expires_after);
        return job.expires_at.value() - job.first_enqueued_at;
    };
    CHECK(expires_after({.expires_after = 2h}) == 2h);
    CHECK(expires_after({.expires_after = 2h, .delay = 24h}) == 26h);
    CHECK(expires_after({.expires_after = 2h, .delay = -24h}) == 2h);
    const orizuru::JobTime now = orizuru::job_time();
    CHECK(expires_after({.expires_after = 2h, .delay = 24h, .at = now - 24h}) == 2h);
    CHECK(expires_after({.expires_after = 2h, .at = now + 24h}) > 26h - 1min);
}

TEST_CASE_FIXTURE(Fixture, "middleware that does not push, or throws, leaves nothing behind") {
    JobProducer<Raw> silent(uri, "q", {.middleware = {[](Job<Raw>&, const Next&) {}}});
    CHECK_FALSE(silent.push(Raw{"a"}));
    JobProducer<Raw> loud(
        uri, "q", {.middleware = {[](Job<Raw>&, const Next&) { throw std::logic_error("no"); }}});
    CHECK(message_of<std::logic_error>([&] { loud.push(Raw{"a"}); }) == "no");
    CHECK(nothing_left());
}

} // namespace worker_middleware_test
