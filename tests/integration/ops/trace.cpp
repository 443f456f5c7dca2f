// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A trace goes from the push of a job to its handler.

#include "integration/worker/worker_fixture.hpp"

#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/ops/trace.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace trace_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::handle_trace;
using orizuru::is_traceparent;
using orizuru::is_tracestate;
using orizuru::JobContext;
using orizuru::JobProducer;
using orizuru::JobRun;
using orizuru::observe_trace;
using orizuru::push_trace;
using orizuru::Raw;
using orizuru::TraceContext;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;

const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

struct Fixture : WorkerFixture {
    Record<std::string> seen;

    WorkerOptions tracing() const {
        WorkerOptions chosen = options();
        chosen.scheduler.emplace();
        chosen.handle_middleware = {handle_trace(
            [seen = seen](JobRun&, const TraceContext& trace, const std::function<void()>& next) {
                seen.add(trace.traceparent + "|" + trace.tracestate);
                next();
            })};
        return chosen;
    }
    /// Does the same by an observer, with how each run ended behind it.
    WorkerOptions observing() const {
        WorkerOptions chosen = options();
        chosen.observers = {observe_trace([seen = seen](JobRun&, const TraceContext& trace) {
            return [seen, trace](const orizuru::JobEnd& end) {
                seen.add(trace.traceparent + "|" + trace.tracestate + "|" +
                         std::string(to_string(end.outcome)));
            };
        })};
        return chosen;
    }
    bool has_seen(const Texts& contexts) const {
        return eventually([&] { return seen.all() == contexts; });
    }
};

TEST_CASE("a traceparent is of version 00, in lower case, and names a trace and a span") {
    CHECK(is_traceparent(parent));
    CHECK(is_traceparent("00-00000000000000000000000000000001-f000000000000000-ff"));
    for (const std::string& bad :
         {std::string(), parent + "-", parent.substr(1), "01" + parent.substr(2),
          "ff" + parent.substr(2),
          std::string("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
          std::string("00-0gf7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
          std::string("00-00000000000000000000000000000000-b7ad6b7169203331-01"),
          std::string("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"),
          std::string("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x"),
          std::string("00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
          std::string("00-0af7651916cd43dd8448eb211c80319cb-7ad6b7169203331-01")}) {
        CAPTURE(bad);
        CHECK_FALSE(is_traceparent(bad));
    }
    CHECK(is_tracestate(""));
    CHECK(is_tracestate("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
    CHECK(is_tracestate(std::string(512, 'a')));
    CHECK_FALSE(is_tracestate(std::string(513, 'a')));
    CHECK_FALSE(is_tracestate("a=b\n"));
    CHECK_FALSE(is_tracestate("a=\xc3\xa4"));
    CHECK_THROWS_AS(static_cast<void>(push_trace<Raw>(nullptr)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(handle_trace(nullptr)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(observe_trace(nullptr)), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "a job has the trace of its push, in each of its tries") {
    TraceContext current{parent, "rojo=1"};
    JobProducer<Raw> producer(uri, "q", {.middleware = {push_trace<Raw>([&] { return current; })}});
    producer.push({"a"});
    current = {parent, ""};
    producer.push({"b"});
    current = {};
    producer.push({"c"}, {.attributes = {{"traceparent", "of somebody else"}, {"tenant", "t"}}});
    Worker worker(uri, tracing());
    worker.handle<Raw>("q",
                       [](JobContext<Raw>& job) {
                           if (job->payload.bytes == "a" && job.attempt() == 1) {
                               job.fail("again");
                           }
                           CHECK(job.attributes().size() == (job->payload.bytes == "a" ? 2 : 1));
                       },
                       {.retry = {.backoff = orizuru::backoff::fixed(1ms)}});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 3; }));
    Texts all = seen.all();
    std::sort(all.begin(), all.end());
    CHECK(all == Texts{parent + "|", parent + "|rojo=1", parent + "|rojo=1", "|"});
}

TEST_CASE_FIXTURE(Fixture, "attributes that are no trace are none, and the job runs") {
    const std::vector<orizuru::JobAttributes> attributes{
        {{"traceparent", parent + "x"}, {"tracestate", "rojo=1"}},
        {{"tracestate", "rojo=1"}},
        {{"traceparent", parent}, {"tracestate", "a=\x1b[31m"}},
    };
    JobProducer<Raw> producer(uri, "q");
    for (const auto& some : attributes) {
        producer.push({"a"}, {.attributes = some});
    }
    Worker worker(uri, tracing());
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    CHECK(has_handled({"a", "a", "a"}));
    CHECK(has_seen({"|", "|", parent + "|"}));
}

TEST_CASE_FIXTURE(Fixture, "an observer has the trace of a job in flight, until it ends") {
    JobProducer<Raw>(uri, "q").push(
        {"a"}, {.attributes = {{"traceparent", parent}, {"tracestate", "rojo=1"}}});
    JobProducer<Raw>(uri, "q").push({"b"}, {.attributes = {{"traceparent", "none"}}});
    Worker worker(uri, observing());
    worker.handle<Raw>("q", [](const Raw&, orizuru::JobDone done) { done(); });
    const Running running(worker);
    CHECK(has_seen({parent + "|rojo=1|done", "||done"}));
}

TEST_CASE_FIXTURE(Fixture, "a push with what is no trace sends nothing") {
    TraceContext current{"00-1-2-3", ""};
    JobProducer<Raw> producer(uri, "q", {.middleware = {push_trace<Raw>([&] { return current; })}});
    CHECK(contains(message_of<std::invalid_argument>([&] { producer.push({"a"}); }),
                   "no traceparent: '00-1-2-3'"));
    current = {parent, "\n"};
    CHECK(contains(message_of<std::invalid_argument>([&] { producer.push({"a"}); }),
                   "no tracestate"));
    CHECK(redis.llen("q") == 0);
}

} // namespace trace_test
