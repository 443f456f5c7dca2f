// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The observer that writes a line for each run of a job.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"
#include "support/stderr_pipe.hpp"

#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_log.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <regex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace worker_log_test {

using namespace std::chrono_literals;
using orizuru::Guarantee;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::JobRun;
using orizuru::log_jobs;
using orizuru::make_job;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::message_of;
using orizuru::test::Record;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

using Next = std::function<void()>;

void wait_for_stop(const std::stop_token& token) {
    CHECK(eventually([&] { return token.stop_requested(); }));
}

struct Fixture : WorkerFixture {
    Record<std::string> lines;

    WorkerOptions logging(int concurrency = 1) const {
        WorkerOptions chosen = options(concurrency);
        chosen.observers = {
            log_jobs([log = lines](std::string_view line) { log.add(std::string(line)); })};
        return chosen;
    }
    bool has_lines(std::size_t count) const {
        return eventually([&] { return lines.size() == count; });
    }
    /// The lines with N in place of each time.
    Texts timeless() const {
        Texts all = lines.all();
        for (std::string& line : all) {
            line = std::regex_replace(line, std::regex("=[0-9]+ms"), "=N");
        }
        return all;
    }
    /// A line of the first try of a job of `q`, with N in place of each time.
    static std::string line_of(const std::string& id, const std::string& how,
                               const std::string& rest = "") {
        return how + " queue=q job=" + id + " attempt=1 waited=N ran=N" + rest;
    }
};

TEST_CASE_FIXTURE(Fixture, "a log has a line for each run of a job, which says how it ended") {
    WorkerOptions chosen = logging();
    std::function<void(JobContext<Raw>&)> handler = [](JobContext<Raw>&) {};
    QueueOptions of_queue = much_later();
    std::string how = "failed";
    std::string why;
    SUBCASE("done") { how = "done"; }
    SUBCASE("done, and acked before") {
        how = "done";
        of_queue.guarantee = Guarantee::at_most_once;
    }
    SUBCASE("failed by an exception") {
        why = " why=busy";
        handler = [](JobContext<Raw>&) { throw std::runtime_error("busy"); };
    }
    SUBCASE("failed, and acked before") {
        why = " why=busy";
        of_queue.guarantee = Guarantee::at_most_once;
        handler = [](JobContext<Raw>&) { throw std::runtime_error("busy"); };
    }
    SUBCASE("failed by its own word") {
        why = R"( why="no such user")";
        handler = [](JobContext<Raw>& job) { job.fail("no such user"); };
    }
    SUBCASE("failed for its time") {
        why = R"( why="the time limit is over")";
        of_queue.time_limit = 20ms;
        handler = [](JobContext<Raw>& job) { wait_for_stop(job.stop_token()); };
    }
    SUBCASE("failed for its time and by an exception") {
        why = R"( why="the time limit is over: busy")";
        of_queue.time_limit = 20ms;
        handler = [](JobContext<Raw>& job) {
            wait_for_stop(job.stop_token());
            throw std::runtime_error("busy");
        };
    }
    SUBCASE("failed, because a middleware stands in the way") {
        why = R"( why="a middleware has not called next")";
        chosen.handle_middleware.emplace_back([](JobRun&, const Next&) {});
    }
    SUBCASE("settled by its handler") {
        how = "settled";
        handler = [](JobContext<Raw>& job) { job.guard()->ack(); };
    }
    SUBCASE("settled by a middleware") {
        how = "settled";
        chosen.handle_middleware.emplace_back(
            [](JobRun& job, const Next&) { dynamic_cast<JobContext<Raw>&>(job).guard()->ack(); });
    }
    SUBCASE("buried by its handler") {
        how = "buried";
        why = R"( why="no such user")";
        handler = [](JobContext<Raw>& job) { job.guard()->bury("no such user"); };
    }
    SUBCASE("settled by its handler, which then throws") {
        why = " why=busy";
        handler = [](JobContext<Raw>& job) {
            job.guard()->ack();
            throw std::runtime_error("busy");
        };
    }
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", handler, of_queue);
    const std::string id = push_jobs({"a"});
    Running running(worker);
    REQUIRE(has_lines(1));
    CHECK(running.stop() == 0);
    CHECK(timeless() == Texts{line_of(id, how, why)});
}

TEST_CASE_FIXTURE(Fixture, "a run that a shutdown interrupts is logged as requeued") {
    WorkerOptions chosen = logging();
    const Gate gate;
    std::string how = "requeued";
    bool late = false;
    std::function<void(JobContext<Raw>&)> handler;
    SUBCASE("by its exception") {
        handler = [](JobContext<Raw>& job) {
            wait_for_stop(job.stop_token());
            throw std::runtime_error("interrupted");
        };
    }
    SUBCASE("but not by DoNotRetry") {
        how = "failed";
        handler = [](JobContext<Raw>& job) {
            wait_for_stop(job.stop_token());
            throw orizuru::DoNotRetry("interrupted");
        };
    }
    SUBCASE("since it does not end in time") {
        late = true;
        chosen.stop_timeout = 0ms;
        handler = [](JobContext<Raw>&) {};
    }
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", [&](JobContext<Raw>& job) {
        gate.pass();
        handler(job);
    });
    const std::string id = push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    if (!late) {
        gate.open();
    }
    CHECK(running.stop() == (late ? 1 : 0));
    gate.open();
    REQUIRE(has_lines(1));
    CHECK(eventually([&] { return worker.running().empty(); }));
    CHECK(timeless() == Texts{line_of(id, how, how == "failed" ? " why=interrupted" : "")});
    CHECK(redis.llen("q") == (how == "requeued" ? 1 : 0));
}

TEST_CASE_FIXTURE(Fixture, "a line has the kind, the number of the try, and the attributes as they "
                           "are at its end") {
    Worker worker(uri, logging());
    worker.handle<Raw>("q", "charge",
                       [](JobContext<Raw>& job) { job.set_attribute("tenant", "7"); });
    Job<Raw> job = make_job(Raw{"a"});
    job.kind = "charge";
    job.attempt = 3;
    job.attributes = {{"tenant", "6"}, {"trace", "7b0c"}};
    push({bytes_of(job)});
    const Running running(worker);
    REQUIRE(has_lines(1));
    CHECK(timeless() == Texts{"done queue=q job=" + job.id +
                              " kind=charge attempt=3 waited=N ran=N attr.tenant=7 "
                              "attr.trace=7b0c"});
}

TEST_CASE_FIXTURE(Fixture, "a line is one line, whatever is in it") {
    Worker worker(uri, logging());
    worker.handle<Raw>(
        "q", [](const Raw&) { throw std::runtime_error("a \"b\"\nc\\d\x01\x7f \xc3\xa9"); },
        much_later());
    Job<Raw> job = make_job(Raw{"a"});
    job.attributes = {{"a b", ""}, {"c", "d=e"}};
    push({bytes_of(job)});
    const Running running(worker);
    REQUIRE(has_lines(1));
    CHECK(timeless() == Texts{line_of(job.id, "failed",
                                      " why=\"a \\\"b\\\"\\nc\\\\d\\x01\\x7f \xc3\xa9\" "
                                      "attr.\"a b\"=\"\" attr.c=\"d=e\"")});
}

TEST_CASE_FIXTURE(Fixture, "a line says how long a job waited and ran, and no time is negative") {
    Worker worker(uri, logging());
    worker.handle<Raw>("q", [](const Raw&) { std::this_thread::sleep_for(30ms); });
    const auto times = [&](std::chrono::milliseconds enqueued_before) {
        lines.clear();
        Job<Raw> job = make_job(Raw{"a"});
        job.enqueued_at -= enqueued_before;
        push({bytes_of(job)});
        REQUIRE(has_lines(1));
        const std::string line = lines.all().front();
        std::smatch found;
        REQUIRE(std::regex_search(line, found, std::regex("waited=([0-9]+)ms ran=([0-9]+)ms$")));
        return std::pair(std::stol(found[1]), std::stol(found[2]));
    };
    const Running running(worker);
    const auto [waited, ran] = times(1h);
    CHECK(waited >= 3'600'000);
    CHECK(waited < 3'660'000);
    CHECK(ran >= 30);
    CHECK(ran < 60'000);
    CHECK(times(-1h).first == 0);
}

TEST_CASE_FIXTURE(Fixture, "of a batch each job has a line") {
    Worker worker(uri, logging());
    worker.handle_batch<Raw>("q", [](const orizuru::JobBatch<Raw>&) {}, {.size = 2});
    const std::string first = push_jobs({"a"});
    const std::string second = push_jobs({"b"});
    Running running(worker);
    REQUIRE(eventually([&] { return worker.statistics().succeeded == 2; }));
    Texts lines = timeless();
    std::ranges::sort(lines);
    Texts expected{line_of(first, "done"), line_of(second, "done")};
    std::ranges::sort(expected);
    CHECK(lines == expected);
}

TEST_CASE_FIXTURE(Fixture, "lines are written one at a time, though jobs end on many threads") {
    constexpr std::size_t count = 200;
    std::atomic<int> writing{0};
    std::atomic<int> most{0};
    std::atomic<std::size_t> written{0};
    WorkerOptions chosen = options(8);
    chosen.observers = {log_jobs([&](std::string_view) {
        most = std::max(most.load(), ++writing);
        std::this_thread::sleep_for(100us);
        --writing;
        ++written;
    })};
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", [](const Raw&) {});
    push_jobs(Texts(count, "a"));
    const Running running(worker);
    CHECK(eventually([&] { return written == count; }));
    CHECK(most == 1);
}

TEST_CASE_FIXTURE(Fixture, "a line that cannot be written is no failure of its job, and what a "
                           "handler throws goes on as it is") {
    WorkerOptions chosen = options();
    chosen.observers = {log_jobs([](std::string_view) { throw std::runtime_error("disk full"); })};
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", [](const Raw& payload) {
        if (payload.bytes == "b") {
            throw orizuru::DoNotRetry("no such user");
        }
    });
    push_jobs({"a", "b"});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::died) == 1; }));
    CHECK(diary.of(WorkerEventKind::died).front().detail == "no such user");
    CHECK(diary.count(WorkerEventKind::failed) == 0);
}

TEST_CASE("a log writes to stderr unless told otherwise, and needs something that writes") {
    const orizuru::test::ShortPipe pipe;
    {
        const orizuru::test::StderrInto here(pipe);
        orizuru::write_line_to_stderr("done queue=q");
    }
    CHECK(pipe.drain_line() == "done queue=q\n");
    CHECK(log_jobs());
    CHECK(message_of<std::invalid_argument>([] { static_cast<void>(log_jobs(nullptr)); }) ==
          "a log of jobs needs a function that writes its lines");
}

} // namespace worker_log_test
