// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/ops/job_metrics.hpp>
#include <orizuru/ops/ledger_metrics.hpp>
#include <orizuru/ops/metrics.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace metrics_test {

using namespace std::chrono_literals;
using orizuru::JobTime;
using orizuru::prometheus;
using orizuru::QueueState;

const JobTime now(1'700'000'000'000ms);

/// The lines of one gauge, without its help.
std::string lines_of(const std::string& text, const std::string& name) {
    std::string found;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        if (line.starts_with(name + "{")) {
            found += line + "\n";
        }
        at = end + 1;
    }
    return found;
}

TEST_CASE("the state of queues is written as Prometheus' text") {
    const std::vector<QueueState> queues{{.queue = "orders",
                                          .waiting = 1,
                                          .held = 2,
                                          .scheduled = 3,
                                          .rejected = 4,
                                          .suspected = 7,
                                          .dead = 5,
                                          .consumers = 6,
                                          .unheard = 1,
                                          .paused = true,
                                          .oldest = now - 61'007ms,
                                          .next_due = now - 1'050ms,
                                          .now = now},
                                         {.queue = "idle", .consumers = 1, .now = now},
                                         {.queue = "at rest", .now = now}};
    CHECK(prometheus(queues) == R"(# HELP orizuru_queue_messages How many messages are where.
# TYPE orizuru_queue_messages gauge
orizuru_queue_messages{queue="orders",state="waiting"} 1
orizuru_queue_messages{queue="orders",state="held"} 2
orizuru_queue_messages{queue="orders",state="scheduled"} 3
orizuru_queue_messages{queue="orders",state="rejected"} 4
orizuru_queue_messages{queue="orders",state="suspected"} 7
orizuru_queue_messages{queue="orders",state="dead"} 5
orizuru_queue_messages{queue="idle",state="waiting"} 0
orizuru_queue_messages{queue="idle",state="held"} 0
orizuru_queue_messages{queue="idle",state="scheduled"} 0
orizuru_queue_messages{queue="idle",state="rejected"} 0
orizuru_queue_messages{queue="idle",state="suspected"} 0
orizuru_queue_messages{queue="idle",state="dead"} 0
orizuru_queue_messages{queue="at rest",state="dead"} 0
# HELP orizuru_queue_oldest_seconds How long the job that is served next has waited.
# TYPE orizuru_queue_oldest_seconds gauge
orizuru_queue_oldest_seconds{queue="orders"} 61.007
orizuru_queue_oldest_seconds{queue="idle"} 0.000
# HELP orizuru_queue_overdue_seconds How long the first scheduled message is past its time.
# TYPE orizuru_queue_overdue_seconds gauge
orizuru_queue_overdue_seconds{queue="orders"} 1.050
orizuru_queue_overdue_seconds{queue="idle"} 0.000
# HELP orizuru_queue_consumers How many consumers are registered.
# TYPE orizuru_queue_consumers gauge
orizuru_queue_consumers{queue="orders"} 6
orizuru_queue_consumers{queue="idle"} 1
# HELP orizuru_queue_consumers_unheard How many of these are unheard for their lease.
# TYPE orizuru_queue_consumers_unheard gauge
orizuru_queue_consumers_unheard{queue="orders"} 1
orizuru_queue_consumers_unheard{queue="idle"} 0
# HELP orizuru_queue_paused Whether workers must not take from it.
# TYPE orizuru_queue_paused gauge
orizuru_queue_paused{queue="orders"} 1
orizuru_queue_paused{queue="idle"} 0
# HELP orizuru_queue_keys How many keys have jobs.
# TYPE orizuru_queue_keys gauge
# HELP orizuru_queue_slots How many of its handlers run within its limit.
# TYPE orizuru_queue_slots gauge
# HELP orizuru_queue_groups How many groups of jobs have not ended.
# TYPE orizuru_queue_groups gauge
# HELP orizuru_queue_group_members How many members of these have not ended.
# TYPE orizuru_queue_group_members gauge
)");
}

TEST_CASE("keys, groups and slots of a queue have their lines where there are any") {
    std::vector<QueueState> queues{{.queue = "q",
                                    .now = now,
                                    .keys = 2,
                                    .behind = 5,
                                    .groups = 3,
                                    .members = 7,
                                    .slots_taken = 4}};
    const std::string text = prometheus(queues);
    CHECK(text.find("orizuru_queue_messages{queue=\"q\",state=\"behind\"} 5\n") !=
          std::string::npos);
    CHECK(lines_of(text, "orizuru_queue_keys") == "orizuru_queue_keys{queue=\"q\"} 2\n");
    CHECK(lines_of(text, "orizuru_queue_slots") == "orizuru_queue_slots{queue=\"q\"} 4\n");
    CHECK(lines_of(text, "orizuru_queue_groups") == "orizuru_queue_groups{queue=\"q\"} 3\n");
    CHECK(lines_of(text, "orizuru_queue_group_members") ==
          "orizuru_queue_group_members{queue=\"q\"} 7\n");
    queues[0].members.reset();
    CHECK(lines_of(prometheus(queues), "orizuru_queue_group_members").empty());
    queues[0] = {.queue = "q", .now = now, .groups = 1}; // of which no member is in this queue
    CHECK(lines_of(prometheus(queues), "orizuru_queue_consumers") ==
          "orizuru_queue_consumers{queue=\"q\"} 0\n");
}

TEST_CASE("a queue with nothing but suspected messages is not at rest") {
    const std::vector<QueueState> queues{{.queue = "q", .suspected = 1, .now = now}};
    CHECK(lines_of(prometheus(queues), "orizuru_queue_consumers") ==
          "orizuru_queue_consumers{queue=\"q\"} 0\n");
}

TEST_CASE("what is due later is not overdue, and what is not known is left out") {
    const std::vector<QueueState> later{
        {.queue = "q", .scheduled = 1, .next_due = now + 1h, .now = now}};
    CHECK(lines_of(prometheus(later), "orizuru_queue_overdue_seconds") ==
          "orizuru_queue_overdue_seconds{queue=\"q\"} 0.000\n");
    const std::vector<QueueState> unknown{
        {.queue = "no clock", .waiting = 1, .oldest = now},
        {.queue = "no job", .waiting = 1, .now = now},
    };
    CHECK(lines_of(prometheus(unknown), "orizuru_queue_oldest_seconds").empty());
    CHECK(lines_of(prometheus(unknown), "orizuru_queue_consumers") ==
          "orizuru_queue_consumers{queue=\"no clock\"} 0\n"
          "orizuru_queue_consumers{queue=\"no job\"} 0\n");
    CHECK(lines_of(prometheus(std::vector<QueueState>{}), "orizuru_queue_messages").empty());
}

TEST_CASE("outcomes and times of jobs are written as counters and cumulative histograms") {
    orizuru::QueueStatistics orders{.queue = "or\"ders",
                                    .outcomes = {1, 2, 3, 4, 5, 6, 7},
                                    .runs = {.sum = 1'234'567us},
                                    .waits = {.sum = 86'400s}};
    orders.runs.counts[0] = 3;
    orders.runs.counts[2] = 2;
    orders.waits.counts[15] = 1;
    const std::vector<orizuru::QueueStatistics> queues{orders, {.queue = "empty"}};
    const std::string text = prometheus(queues);
    CHECK(lines_of(text, "orizuru_jobs_total")
              .starts_with("orizuru_jobs_total{queue=\"or\\\"ders\",outcome=\"succeeded\"} 1\n"
                           "orizuru_jobs_total{queue=\"or\\\"ders\",outcome=\"failed\"} 2\n"
                           "orizuru_jobs_total{queue=\"or\\\"ders\",outcome=\"died\"} 3\n"
                           "orizuru_jobs_total{queue=\"or\\\"ders\",outcome=\"expired\"} 4\n"
                           "orizuru_jobs_total{queue=\"or\\\"ders\",outcome=\"settled\"} 5\n"
                           "orizuru_jobs_total{queue=\"or\\\"ders\",outcome=\"requeued\"} 6\n"
                           "orizuru_jobs_total{queue=\"or\\\"ders\",outcome=\"discarded\"} 7\n"
                           "orizuru_jobs_total{queue=\"empty\",outcome=\"succeeded\"} 0\n"));
    const std::string begin = "_bucket{queue=\"or\\\"ders\",le=\"";
    const std::string runs = lines_of(text, "orizuru_job_duration_seconds_bucket");
    const std::string run = "orizuru_job_duration_seconds" + begin;
    CHECK(runs.starts_with(run + "0.001000\"} 3\n" + run + "0.004000\"} 3\n" + run +
                           "0.016000\"} 5\n"));
    CHECK(runs.find(run + "268435.456000\"} 5\n" + run + "+Inf\"} 5\n") != std::string::npos);
    CHECK(std::count(runs.begin(), runs.end(), '\n') == 2 * 16);
    CHECK(lines_of(text, "orizuru_job_duration_seconds_sum")
              .starts_with("orizuru_job_duration_seconds_sum{queue=\"or\\\"ders\"} 1.234567\n"));
    CHECK(lines_of(text, "orizuru_job_duration_seconds_count")
              .starts_with("orizuru_job_duration_seconds_count{queue=\"or\\\"ders\"} 5\n"));
    CHECK(lines_of(text, "orizuru_job_wait_seconds_sum")
              .starts_with("orizuru_job_wait_seconds_sum{queue=\"or\\\"ders\"} 86400.000000\n"));
    const std::string waits = lines_of(text, "orizuru_job_wait_seconds_bucket");
    const std::string wait = "orizuru_job_wait_seconds" + begin;
    CHECK(waits.find(wait + "268435.456000\"} 0\n" + wait + "+Inf\"} 1\n") != std::string::npos);
    CHECK(text.find("# TYPE orizuru_jobs_total counter\n") != std::string::npos);
    CHECK(text.find("# TYPE orizuru_job_wait_seconds histogram\n") != std::string::npos);
}

TEST_CASE("a name cannot break out of its label") {
    const std::vector<QueueState> queues{{.queue = "a\"} 1\nb{c=\"\\", .waiting = 1}};
    CHECK(lines_of(prometheus(queues), "orizuru_queue_paused") ==
          "orizuru_queue_paused{queue=\"a\\\"} 1\\nb{c=\\\"\\\\\"} 0\n");
}

TEST_CASE("a ledger's jobs are gauges by their state, with the age of the oldest that is pending") {
    const std::vector<orizuru::LedgerCounts> ledgers{
        {.queue = "a\"b",
         .pending = 1,
         .scheduled = 5,
         .running = 2,
         .failed = 3,
         .dead = 4,
         .oldest = orizuru::JobTime(1500ms),
         .now = orizuru::JobTime(3505ms)},
        {.queue = "idle", .now = orizuru::JobTime(5s)}};
    const std::string text = prometheus(ledgers);
    CHECK(lines_of(text, "orizuru_ledger_jobs") ==
          "orizuru_ledger_jobs{queue=\"a\\\"b\",state=\"pending\"} 1\n"
          "orizuru_ledger_jobs{queue=\"a\\\"b\",state=\"scheduled\"} 5\n"
          "orizuru_ledger_jobs{queue=\"a\\\"b\",state=\"running\"} 2\n"
          "orizuru_ledger_jobs{queue=\"a\\\"b\",state=\"failed\"} 3\n"
          "orizuru_ledger_jobs{queue=\"a\\\"b\",state=\"dead\"} 4\n"
          "orizuru_ledger_jobs{queue=\"idle\",state=\"pending\"} 0\n"
          "orizuru_ledger_jobs{queue=\"idle\",state=\"scheduled\"} 0\n"
          "orizuru_ledger_jobs{queue=\"idle\",state=\"running\"} 0\n"
          "orizuru_ledger_jobs{queue=\"idle\",state=\"failed\"} 0\n"
          "orizuru_ledger_jobs{queue=\"idle\",state=\"dead\"} 0\n");
    CHECK(lines_of(text, "orizuru_ledger_oldest_seconds") ==
          "orizuru_ledger_oldest_seconds{queue=\"a\\\"b\"} 2.005\n"
          "orizuru_ledger_oldest_seconds{queue=\"idle\"} 0.000\n");
}

TEST_CASE("a queue's name is UTF-8 in metrics") {
    const auto line = [](const std::string& name) {
        const std::vector<orizuru::LedgerCounts> ledgers{{.queue = name}};
        return lines_of(prometheus(ledgers), "orizuru_ledger_oldest_seconds");
    };
    CHECK(line("\xff\u00e9\xc3") ==
          "orizuru_ledger_oldest_seconds{queue=\"\\\\xff\u00e9\\\\xc3\"} 0.000\n");
}

} // namespace metrics_test
