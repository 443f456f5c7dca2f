// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// An Inspector and Prometheus see what workers have done.

#include "integration/worker/worker_fixture.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/ops/metrics.hpp>
#include <orizuru/ops/worker_metrics.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace worker_counts_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::DayCounts;
using orizuru::Inspector;
using orizuru::prometheus;
using orizuru::QueueStatistics;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Worker;

struct Fixture : WorkerFixture {
    Inspector inspector{uri};

    std::chrono::sys_days today() {
        const std::string seconds = redis.command({"TIME"}).elements.at(0).text;
        return std::chrono::sys_days(std::chrono::days(std::stoll(seconds) / 86400));
    }
    bool is_in(const std::string& text, const std::string& line) {
        return contains("\n" + text, "\n" + line + "\n");
    }
};

TEST_CASE_FIXTURE(Fixture, "an Inspector has the counts of a worker that has stopped") {
    CHECK(inspector.counts("q").outcomes.succeeded == 0);
    CHECK(inspector.workers("q").empty());
    CHECK(inspector.days("q", 0).empty());
    Worker worker(uri, options(3));
    worker.handle<Raw>("q", [&](const Raw& payload) {
        if (payload.bytes == "bad") {
            throw orizuru::DoNotRetry("bad");
        }
    });
    {
        Running running(worker);
        push_jobs({"a", "bad", "c", "b"});
        REQUIRE(eventually([&] { return worker.statistics().succeeded == 3; }));
        REQUIRE(eventually([&] { return worker.statistics().died == 1; }));
        running.stop();
    }
    CHECK(inspector.workers("q").empty());
    const QueueStatistics all = inspector.counts("q");
    const QueueStatistics own = worker.queue_statistics().at(0);
    CHECK(all.queue == "q");
    CHECK(all.outcomes.succeeded == 3);
    CHECK(all.outcomes.failed == 1);
    CHECK(all.outcomes.died == 1);
    CHECK(all.runs.sum == own.runs.sum);
    CHECK(all.runs.counts == own.runs.counts);
    CHECK(all.waits.sum == own.waits.sum);
    CHECK(all.waits.counts == own.waits.counts);
    CHECK(inspector.days("q", 1).at(0).outcomes.succeeded == 3);
}

TEST_CASE_FIXTURE(Fixture,
                  "days come with the oldest first, and with zeros where there is nothing") {
    const std::chrono::sys_days now = today();
    const auto key = [](std::chrono::sys_days day) {
        const std::chrono::year_month_day date(day);
        char text[32];
        std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()),
                      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
        return "orizuru:{q}:counts:" + std::string(text);
    };
    redis.command({"HSET", key(now), "succeeded", "5", "from a later version", "x"});
    redis.command({"HSET", key(now - std::chrono::days(2)), "failed", "7"});
    const std::vector<DayCounts> days = inspector.days("q", 4);
    REQUIRE(days.size() == 4);
    CHECK(days[3].day == now);
    CHECK(days[3].outcomes.succeeded == 5);
    CHECK(days[1].day == now - std::chrono::days(2));
    CHECK(days[1].outcomes.failed == 7);
    CHECK(days[0].outcomes.failed + days[2].outcomes.failed == 0);
    CHECK(inspector.days("q", 1).at(0).outcomes.succeeded == 5);
    CHECK(inspector.days("q", 1000).size() == 90);
    CHECK_THROWS_AS(static_cast<void>(inspector.days("q", -1)), std::invalid_argument);
    redis.command({"DEL", key(now)});
    redis.set(key(now), "a text");
    CHECK_THROWS_WITH_AS(static_cast<void>(inspector.days("q", 2)),
                         doctest::Contains(key(now).c_str()), ReplyError);
}

TEST_CASE_FIXTURE(Fixture, "a user who may only read sees them") {
    redis.command({"SADD", "orizuru:{q}:consumers", "a:b:1:0123456789abcdef"});
    redis.command({"HSET", "orizuru:{q}:worker:a:b:1:0123456789abcdef", "threads", "4", "started",
                   "5", "succeeded", "3"});
    redis.command({"HSET", "orizuru:{q}:counts", "succeeded", "8", "run:us", "99"});
    redis.command({"ACL", "SETUSER", "guest", "reset", "on", ">x", "~*", "+@read", "+eval_ro"});
    Inspector guest("unix://guest:x@" + server().socket_path());
    CHECK(guest.counts("q").outcomes.succeeded == 8);
    CHECK(guest.counts("q").runs.sum == 99us);
    CHECK(guest.days("q", 3).size() == 3);
    REQUIRE(guest.workers("q").size() == 1);
    CHECK(guest.workers("q")[0].threads == 4);
    CHECK(guest.workers("q")[0].jobs.outcomes.succeeded == 3);
    redis.command({"ACL", "DELUSER", "guest"});
    redis.command({"DEL", "orizuru:{q}:counts"});
    redis.set("orizuru:{q}:counts", "a text");
    CHECK_THROWS_WITH_AS(static_cast<void>(inspector.counts("q")),
                         doctest::Contains("orizuru:{q}:counts"), ReplyError);
}

TEST_CASE_FIXTURE(Fixture, "the metrics of a worker are Prometheus' text, as promtool reads it") {
    Gate gate;
    Worker worker(uri, options(3));
    const std::string odd = "a\"b\\c\nd";
    worker.handle<Raw>("q", [&](const Raw&) { gate.pass(); }).handle<Raw>(odd, write_down());
    CHECK(is_in(prometheus(worker), "orizuru_worker_threads{state=\"idle\"} 0"));
    Running running(worker);
    push_jobs({"a"}, odd);
    push_jobs({"b"});
    REQUIRE(gate.reached());
    REQUIRE(eventually([&] { return worker.statistics().succeeded == 1; }));
    REQUIRE(eventually([&] { return worker.running().size() == 1; }));
    const std::string text = prometheus(worker);
    CHECK(is_in(text, "orizuru_jobs_total{queue=\"q\",outcome=\"succeeded\"} 0"));
    CHECK(is_in(text, R"(orizuru_jobs_total{queue="a\"b\\c\nd",outcome="succeeded"} 1)"));
    CHECK(is_in(text, R"(orizuru_job_wait_seconds_bucket{queue="a\"b\\c\nd",le="+Inf"} 1)"));
    CHECK(is_in(text, "orizuru_worker_threads{state=\"busy\"} 1"));
    CHECK(is_in(text, "orizuru_worker_threads{state=\"idle\"} 2"));
    CHECK_FALSE(contains(text, inspector.consumers("q").at(0).id));
    gate.open();
    if (std::system("command -v promtool >/dev/null 2>&1") != 0) { // NOLINT(*-env33-c)
        MESSAGE("promtool is missing (Debian's package prometheus)");
        return;
    }
    const auto check = [](const std::string& metrics) {
        std::FILE* const tool = ::popen("promtool check metrics >&2", "w"); // NOLINT(*-env33-c)
        REQUIRE(tool != nullptr);
        std::fwrite(metrics.data(), 1, metrics.size(), tool);
        return ::pclose(tool);
    };
    const std::vector<orizuru::QueueState> states{inspector.state("q"), inspector.state("r")};
    CHECK(check(text + prometheus(states)) == 0);
    CHECK(check(text + text) != 0);
}

TEST_CASE_FIXTURE(Fixture, "deaths are counted though the dead list is at its bound") {
    const auto metrics = [&] {
        return prometheus(std::vector{inspector.state("q")}) +
               prometheus(std::vector{inspector.counts("q")});
    };
    CHECK(is_in(metrics(), R"(orizuru_queue_messages{queue="q",state="dead"} 0)"));
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", [](const Raw&) { throw orizuru::DoNotRetry("bad"); });
    Running running(worker);
    push_jobs({"a", "b", "c"});
    REQUIRE(eventually([&] { return worker.statistics().died == 3; }));
    running.stop();
    orizuru::DeadList(uri, "q").trim({.most = 1});
    CHECK(is_in(metrics(), R"(orizuru_queue_messages{queue="q",state="dead"} 1)"));
    CHECK(is_in(metrics(), R"(orizuru_jobs_total{queue="q",outcome="died"} 3)"));
}

TEST_CASE_FIXTURE(Fixture, "a paused queue is told from one without workers, and from one whose "
                           "workers are gone") {
    const auto metrics = [&] { return prometheus(std::vector{inspector.state("q")}); };
    push_jobs({"a"});
    CHECK(is_in(metrics(), R"(orizuru_queue_consumers{queue="q"} 0)"));
    CHECK(is_in(metrics(), R"(orizuru_queue_paused{queue="q"} 0)"));
    add_dead_consumer("gone", {});
    CHECK(is_in(metrics(), R"(orizuru_queue_consumers{queue="q"} 1)"));
    CHECK(is_in(metrics(), R"(orizuru_queue_consumers_unheard{queue="q"} 1)"));
    orizuru::Pause(uri, "q").pause();
    CHECK(is_in(metrics(), R"(orizuru_queue_paused{queue="q"} 1)"));
}

} // namespace worker_counts_test
