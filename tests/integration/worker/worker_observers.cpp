// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The hooks at the begin and the end of each run of a job.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/in_flight.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

namespace worker_observers_test {

using namespace std::chrono_literals;
using orizuru::JobContext;
using orizuru::JobDone;
using orizuru::JobEnd;
using orizuru::JobObserver;
using orizuru::JobRun;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::InFlightFixture;
using orizuru::test::Record;
using orizuru::test::Running;
using orizuru::test::Texts;

struct Fixture : InFlightFixture {
    Record<std::string> seen;

    /// Writes "begin" and "end", with the outcome, each behind `name`.
    [[nodiscard]] JobObserver observer(const std::string& name = "") const {
        return [seen = seen, name](JobRun&) {
            seen.add(name + "begin");
            return [seen, name](const JobEnd& end) {
                seen.add(name + std::string(to_string(end.outcome)) +
                         (end.why.empty() ? "" : ": " + std::string(end.why)));
            };
        };
    }
    [[nodiscard]] WorkerOptions observing() const {
        WorkerOptions chosen = options(2);
        chosen.observers = {observer()};
        return chosen;
    }
    [[nodiscard]] bool has_seen(const Texts& lines) const {
        return eventually([&] { return seen.all() == lines; });
    }
    [[nodiscard]] static std::function<void(JobContext<Raw>&)> throwing() {
        return [](JobContext<Raw>&) { throw std::runtime_error("busy"); };
    }
};

TEST_CASE_FIXTURE(Fixture,
                  "an observer hears of the begin and the end of a run, whether its handler "
                  "blocks or ends it later") {
    std::function<void(JobContext<Raw>&)> handler = [](JobContext<Raw>&) {};
    std::string end = "done";
    QueueOptions chosen = much_later();
    SUBCASE("done") {}
    SUBCASE("failed") {
        end = "failed: no such user";
        handler = [](JobContext<Raw>& job) { job.fail("no such user"); };
    }
    SUBCASE("failed by an exception") {
        end = "failed: busy";
        handler = throwing();
    }
    SUBCASE("over its time limit") {
        end = "failed: the time limit is over";
        chosen.time_limit = 20ms;
        handler = [](JobContext<Raw>& job) {
            CHECK(eventually([&] { return job.stop_token().stop_requested(); }));
        };
    }
    SUBCASE("settled") {
        end = "settled";
        handler = [](JobContext<Raw>& job) { job.guard()->ack(); };
    }
    SUBCASE("buried") {
        end = "buried: no such user";
        handler = [](JobContext<Raw>& job) { job.guard()->bury("no such user"); };
    }
    Worker worker(uri, observing());
    worker.serve("q", chosen)
        .handle<Raw>("q", "now", handler)
        .handle<Raw>("q", "later", [handler](JobContext<Raw>& job, JobDone done) {
            handler(job);
            done();
        });
    const Running running(worker);
    for (const std::string kind : {"now", "later"}) {
        seen.clear();
        auto job = orizuru::make_job(Raw{"x"});
        job.kind = kind;
        redis.lpush("q", bytes_of(job));
        CHECK(has_seen({"begin", end}));
    }
}

TEST_CASE_FIXTURE(Fixture, "the end of a run in flight is told before its job is settled") {
    Worker worker(uri, [&] {
        WorkerOptions chosen = options();
        chosen.observers = {[this](JobRun& job) {
            return [this, &job](const JobEnd&) {
                seen.add(job.id() + (held_jobs() == Texts{"x"} ? " held" : " gone"));
            };
        }};
        return chosen;
    }());
    worker.handle<Raw>("q",
                       [kept = kept](const Raw&, JobDone done) { kept.add("x", std::move(done)); });
    const std::string id = push_jobs({"x"});
    const Running running(worker);
    REQUIRE(kept.has(1));
    CHECK(seen.size() == 0);
    kept.take("x")();
    CHECK(has_seen({id + " held"}));
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a run that a stop ends is told as requeued") {
    WorkerOptions chosen = observing();
    chosen.stop_timeout = 20ms;
    Worker worker(uri, chosen);
    std::stop_token token;
    worker.handle<Raw>("q", [&](JobContext<Raw>& job, JobDone done) {
        token = job.stop_token();
        kept.add("x", std::move(done));
    });
    push_jobs({"x"});
    Running running(worker);
    REQUIRE(kept.has(1));
    SUBCASE("since it does not end") {
        CHECK(running.stop() == 0);
        CHECK(seen.all() == Texts{"begin"});
        static_cast<void>(kept.take("x")); // it may use its context until then
    }
    SUBCASE("by its exception") {
        worker.stop();
        REQUIRE(eventually([&] { return token.stop_requested(); }));
        kept.take("x")(std::make_exception_ptr(std::runtime_error("interrupted")));
        CHECK(running.left() == 0);
    }
    CHECK(has_seen({"begin", "requeued"}));
    CHECK(jobs() == Texts{"x"});
}

TEST_CASE_FIXTURE(Fixture,
                  "observers are around middleware, the first outermost, and each job of a "
                  "batch has its own") {
    WorkerOptions chosen = options();
    chosen.observers = {observer("1 "), observer("2 ")};
    chosen.handle_middleware = {[this](JobRun&, const std::function<void()>& next) {
        seen.add("middleware");
        next();
    }};
    Worker worker(uri, chosen);
    SUBCASE("alone") {
        worker.handle<Raw>("q", [](const Raw&) {});
        push_jobs({"x"});
        const Running running(worker);
        CHECK(has_seen({"1 begin", "2 begin", "middleware", "2 done", "1 done"}));
    }
    SUBCASE("in a batch") {
        worker.handle_batch<Raw>("q", [](const orizuru::JobBatch<Raw>&) {}, {.size = 2});
        push_jobs({"x", "y"});
        const Running running(worker);
        CHECK(has_seen({"1 begin", "1 begin", "2 begin", "2 begin", "middleware", "2 done",
                        "2 done", "1 done", "1 done"}));
    }
}

TEST_CASE_FIXTURE(Fixture, "no job fails for its observers") {
    WorkerOptions chosen = options();
    JobObserver broken;
    SUBCASE("an empty one") {}
    SUBCASE("one that throws") {
        broken = [](JobRun&) -> std::function<void(const JobEnd&)> { throw std::bad_alloc(); };
    }
    SUBCASE("one that throws at the end") {
        broken = [](JobRun&) {
            return [](const JobEnd&) { throw std::runtime_error("disk full"); };
        };
    }
    SUBCASE("one that looks for begins only") {
        broken = [](JobRun&) { return std::function<void(const JobEnd&)>(); };
    }
    chosen.observers = {broken, observer()};
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", [](const Raw&) {});
    push_jobs({"x"});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(seen.all() == Texts{"begin", "done"});
}

} // namespace worker_observers_test
