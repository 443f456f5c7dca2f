// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What workers report of their jobs: each is counted once, whatever is lost on the way.

#include "integration/worker/worker_fixture.hpp"
#include "support/proxy.hpp"

#include <orizuru/detail/worker/reports/queue_report.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace worker_reports_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using namespace orizuru::detail;
using orizuru::Connection;
using orizuru::ConnectionError;
using orizuru::ConsumerState;
using orizuru::Inspector;
using orizuru::JobContext;
using orizuru::JobTime;
using orizuru::Keys;
using orizuru::QueueOptions;
using orizuru::QueueStatistics;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::WorkerReport;

const std::string counts = "orizuru:{q}:counts";

/// A queue without jobs, whose counts the test makes.
class Counting final : public ServedQueue {
  public:
    Counting()
        : ServedQueue(std::make_shared<WorkerShared>(WorkerOptions()), Keys("q"), QueueOptions()) {}

    std::string id = "worker:host:1:0123456789abcdef";

    void mark_suspects() noexcept override {}
    [[nodiscard]] TimePoint take_time() noexcept override { return {}; }
    std::size_t flush_acks() override { return 0; }
    [[nodiscard]] std::string consumer_id() override { return id; }

    void succeed(int times) {
        for (int i = 0; i < times; ++i) {
            counts().add(Outcome::succeeded);
        }
    }

  private:
    void place_free() noexcept override {}
};

struct Fixture : WorkerFixture {
    std::shared_ptr<Counting> queue = std::make_shared<Counting>();
    const RunningTasks tasks = [](const ServedQueue&) {
        return std::vector<std::shared_ptr<Task>>();
    };

    std::int64_t field(const std::string& key, const std::string& name) {
        const Answer value = redis.command({"HGET", key, name});
        return value.text.empty() ? 0 : std::stoll(value.text);
    }
    std::int64_t succeeded() { return field(counts, "succeeded"); }
    std::string key() const { return "orizuru:{q}:worker:" + queue->id; }
    QueueReport report(const std::string& address) const {
        return {*queue, tasks, std::make_shared<Connection>(address)};
    }
    Texts workers() { return redis.keys("orizuru:{q}:worker:*"); }
    std::string day() { return redis.keys("orizuru:{q}:counts:*").at(0); }
};

TEST_CASE_FIXTURE(Fixture, "each outcome of a worker's jobs is counted, since ever and by day") {
    WorkerOptions chosen = options(2);
    chosen.scheduler.emplace();
    Worker worker(uri, chosen);
    const auto handler = [](JobContext<Raw>& job) {
        const std::string& payload = job->payload.bytes;
        if (payload == "dies") {
            throw orizuru::DoNotRetry("bad");
        }
        if (payload == "discarded") {
            throw orizuru::Discard("old");
        }
        if (payload == "settled") {
            job.guard()->ack();
        }
        if (payload == "fails" && job.attempt() < 3) {
            throw std::runtime_error("again");
        }
        if (payload == "long") {
            std::this_thread::sleep_for(5ms);
        }
    };
    worker.handle<Raw>("q", handler, {.retry = {.backoff = orizuru::backoff::fixed(1ms)}});
    push_jobs({"a", "dies", "discarded", "settled", "fails", "long"});
    orizuru::Job<Raw> expired = orizuru::make_job(Raw{"expired"});
    expired.expires_at = orizuru::job_time() - 1h;
    orizuru::Job<Raw> late = orizuru::make_job(Raw{"late"});
    late.enqueued_at -= 2s;
    redis.lpush("q", {bytes_of(expired), bytes_of(late)});
    {
        Running running(worker);
        REQUIRE(eventually([&] {
            const auto so_far = worker.statistics();
            return so_far.succeeded == 4 && so_far.died == 1 && so_far.expired == 1;
        }));
        REQUIRE(eventually([&] { return nothing_left() || redis.llen(dead) == 1; }));
        running.stop();
    }
    const std::map<std::string, int> wanted{{"succeeded", 4}, {"failed", 4},  {"died", 1},
                                            {"expired", 1},   {"settled", 1}, {"discarded", 1},
                                            {"requeued", 0}};
    for (const auto& outcome : wanted) {
        const std::string& name = outcome.first; // clang captures no structured binding
        CAPTURE(name);
        CHECK(field(counts, name) == outcome.second);
        CHECK(field(day(), name) == outcome.second);
    }
    const Texts parts = redis.keys("orizuru:{q}:counts:*");
    REQUIRE(parts.size() == 1);
    const std::string today = redis.command({"TIME"}).elements.at(0).text;
    CHECK(day() ==
          counts + ":" +
              date_text(std::chrono::sys_days(std::chrono::days(std::stoll(today) / 86400))));
    CHECK(redis.command({"PTTL", day()}).integer > 89 * 86400 * 1000LL);
    CHECK(redis.command({"PTTL", counts}).integer == -1);
    CHECK(field(day(), "run:us") == 0);

    std::int64_t runs = 0;
    std::int64_t waits = 0;
    for (int bucket = 0; bucket < 16; ++bucket) {
        runs += field(counts, "run:" + std::to_string(bucket));
        waits += field(counts, "wait:" + std::to_string(bucket));
    }
    CHECK(runs == 9); // all but the expired one; the failing one three times
    CHECK(waits == 9);
    CHECK(field(counts, "run:us") >= 5000);
    CHECK(field(counts, "run:0") + field(counts, "run:1") < 9); // 5 ms are more than 4
    CHECK(field(counts, "wait:6") == 1);                        // 1024 to 4096 ms
    CHECK(field(counts, "wait:ms") >= 2000);

    REQUIRE(worker.queue_statistics().size() == 1);
    const QueueStatistics own = worker.queue_statistics().front();
    CHECK(own.queue == "q");
    CHECK(own.outcomes.succeeded == 4);
    CHECK(own.outcomes.discarded == 1);
    CHECK(own.runs.sum.count() == field(counts, "run:us"));
    CHECK(own.waits.counts.at(6) == 1);
    CHECK(workers().empty()); // it has left
}

TEST_CASE("a time is in the bucket of the least bound that is not below it") {
    QueueCounts all;
    const auto bucket = [&](std::chrono::microseconds time) {
        const CountRow before = all.row();
        all.add_run(JobTime(), TimePoint(), TimePoint(time));
        const CountRow after = all.row();
        std::size_t found = 99;
        for (std::size_t i = 0; i < 16; ++i) {
            found = after.at(runs_at + 1 + i) > before.at(runs_at + 1 + i) ? i : found;
        }
        return found;
    };
    CHECK(bucket(-1us) == 0);
    CHECK(bucket(0us) == 0);
    for (std::size_t i = 0; i < 15; ++i) {
        const std::chrono::milliseconds bound = orizuru::Durations::bound(i);
        CHECK(bucket(bound) == i);
        CHECK(bucket(bound + 1us) == i + 1);
    }
    CHECK(orizuru::Durations::bound(14) > 74h);
    CHECK(bucket(24h * 300) == 15);
}

TEST_CASE_FIXTURE(Fixture,
                  "a report has what the worker is, and expires; a repetition adds nothing") {
    QueueReport report = this->report(uri);
    report.step(); // also without any job
    CHECK(redis.command({"HGET", key(), "threads"}).text == "10");
    CHECK(redis.command({"HGET", key(), "running"}).text == "0");
    CHECK(std::abs(field(key(), "started") - orizuru::job_time().time_since_epoch().count()) <
          60'000);
    const std::int64_t left = redis.command({"PTTL", key()}).integer;
    CHECK(left > 0);
    CHECK(left <= 15'000);
    CHECK(succeeded() == 0);
    queue->succeed(3);
    report.step();
    CHECK(succeeded() == 3);
    CHECK(field(key(), "succeeded") == 3);
    // The same report again, as a stream that was thought lost may bring it.
    const auto again = [&](const std::string& base, const std::string& count) {
        return redis
            .command({"EVAL", std::string(report_script.source()), "3", key(), counts, day(),
                      std::to_string(std::chrono::floor<std::chrono::days>(orizuru::job_time())
                                         .time_since_epoch()
                                         .count()),
                      "15000", "60000", "0", "10", "5", "", "0",
                      "succeeded " + base + " " + count + " "})
            .integer;
    };
    CHECK(again("0", "3") == 1);
    CHECK(again("0", "2") == 1); // an older one
    CHECK(succeeded() == 3);
    CHECK(field(key(), "succeeded") == 3);
    CHECK(again("0", "5") == 1);
    CHECK(succeeded() == 5);
    CHECK(field(day(), "succeeded") == 5);
}

TEST_CASE_FIXTURE(Fixture, "a report that has another day goes to the day that it is") {
    redis.command({"HSET", counts + ":1970-01-02", "succeeded", "1"});
    CHECK(redis
              .command({"EVAL", std::string(report_script.source()), "3", key(), counts,
                        counts + ":1970-01-02", "1", "15000", "60000", "0", "10", "5", "", "0",
                        "succeeded 0 3 "})
              .integer > 20'000);
    CHECK(succeeded() == 0);
    CHECK_FALSE(redis.exists(key()));
    CHECK(date_text(std::chrono::sys_days(std::chrono::days(1))) == "1970-01-02");
    CHECK(date_text(std::chrono::sys_days(std::chrono::days(20'782))) == "2026-11-25");
}

TEST_CASE_FIXTURE(Fixture,
                  "an idle worker stays, and one that Redis has forgotten comes back whole") {
    QueueReport report = this->report(uri);
    queue->succeed(3);
    report.step();
    redis.command({"PEXPIRE", key(), "1000"});
    report.step(Clock::now() + 5s); // nothing new, and heard lately
    CHECK(redis.command({"PTTL", key()}).integer <= 1000);
    report.step(Clock::now() + 10s);
    CHECK(redis.command({"PTTL", key()}).integer > 14'000);
    redis.command({"DEL", key()});
    report.step(Clock::now() + 20s);
    CHECK(field(key(), "succeeded") == 3);
    CHECK(succeeded() == 3);
    redis.command({"DEL", key()});
    queue->counts().add(Outcome::died);
    report.step();
    CHECK(field(counts, "died") == 1);
    CHECK(field(key(), "succeeded") == 0);
    report.step(); // the whole, now that it knows
    CHECK(field(key(), "succeeded") == 3);
    CHECK(succeeded() == 3);
    queue->id = "worker:host:1:fedcba9876543210"; // its consumer has begun anew
    queue->succeed(1);
    report.step();
    CHECK(succeeded() == 4);
    CHECK(field(key(), "succeeded") == 4);
    report.leave();
    CHECK_FALSE(redis.exists(key()));
    CHECK(succeeded() == 4);
}

TEST_CASE_FIXTURE(Fixture, "without a consumer, only what is new is reported") {
    QueueReport report = this->report(uri);
    report.step();
    const std::string before = key();
    queue->id.clear();
    redis.command({"DEL", before});
    report.step(Clock::now() + 1h);
    CHECK(workers().empty());
    queue->succeed(1);
    report.step();
    CHECK(succeeded() == 1);
    CHECK(workers() == Texts{before});
}

TEST_CASE_FIXTURE(Fixture,
                  "a lost answer, or a lost report, is repeated and counted once, also when "
                  "the worker has expired meanwhile") {
    using Cut = Proxy::Cut;
    using Direction = Proxy::Direction;
    Proxy proxy(server().socket_path());
    std::int64_t sure = 0; // what must be counted
    std::int64_t all = 0;
    int lost = 0;
    for (const bool expires : {false, true}) {
        for (const Direction direction : {Direction::to_client, Direction::to_server}) {
            for (const std::uint64_t bytes : {0, 1, 3, 40, 200}) {
                CAPTURE(expires);
                CAPTURE(bytes);
                CAPTURE(static_cast<int>(direction));
                const std::size_t connection = proxy.accepted();
                QueueReport report = this->report(proxy.uri());
                queue->succeed(1);
                report.step();
                all += 1;
                CHECK(succeeded() >= sure + 1);
                proxy.cut_after(direction, proxy.bytes(connection, direction) + bytes, Cut::fin,
                                connection);
                const std::int64_t before = succeeded();
                queue->succeed(10);
                all += 10;
                bool failed = false;
                try {
                    report.step();
                } catch (const ConnectionError& error) {
                    failed = true;
                    ++lost;
                }
                proxy.cancel_cuts();
                const bool arrived = succeeded() == before + 10;
                queue->succeed(100);
                all += 100;
                if (expires) {
                    redis.command({"DEL", key()});
                }
                report.step();
                // A report that may have come is not added by guess.
                const bool dropped = expires && failed && !arrived;
                CHECK(succeeded() - before == (dropped ? 100 : 110));
                report.step();
                CHECK(succeeded() - before == (dropped ? 100 : 110));
                report.leave();
                CHECK(succeeded() - before == (dropped ? 100 : 110));
                sure = succeeded();
            }
        }
    }
    CHECK(lost > 10);
    CHECK(sure <= all);
    MESSAGE(lost << " lost, " << all - sure << " of " << all << " not counted");
}

TEST_CASE_FIXTURE(Fixture, "a full memory, and a key of another type, lose no counts") {
    QueueReport report = this->report(uri);
    redis.set(counts, "a text of somebody's");
    queue->succeed(2);
    CHECK_THROWS_WITH_AS(report.step(), doctest::Contains("WRONGTYPE orizuru:{q}:counts"),
                         ReplyError);
    CHECK_FALSE(redis.exists(key()));
    redis.command({"DEL", counts});
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    CHECK_THROWS_WITH_AS(report.step(), doctest::Contains("OOM"), ReplyError);
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    queue->succeed(1);
    report.step();
    CHECK(succeeded() == 3);
}

TEST_CASE_FIXTURE(Fixture, "a worker whose user may not report works, and says so once") {
    redis.command(
        {"ACL", "SETUSER", "clerk", "reset", "on", ">sesame", "~*", "&*", "+@all", "-hincrby"});
    Worker worker("unix://clerk:sesame@" + server().socket_path(), options());
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", write_down());
    {
        Running running(worker);
        push_jobs({"a"});
        push_jobs({"b"}, "other");
        CHECK(eventually([&] { return handled.size() == 2; }));
        CHECK(running.stop() == 0);
    }
    REQUIRE(diary.count(WorkerEventKind::upkeep_failed) == 1);
    const WorkerTold told = diary.of(WorkerEventKind::upkeep_failed).front();
    CHECK(contains(told.detail, "reporting how the jobs have ended"));
    CHECK(contains(told.detail, "NOPERM this user may not run HINCRBY on orizuru:{"));
    CHECK_FALSE(redis.exists(counts));
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture,
                  "workers that are killed lose the counts of the last 5 s, and count nothing "
                  "twice") {
    static_assert(QueueReport::interval <= 5s);
    constexpr int workers_killed = 3;
    const orizuru::JobTime begun = orizuru::job_time();
    std::deque<Child> children;
    for (int i = 0; i < workers_killed; ++i) {
        children.emplace_back([this] {
            orizuru::test::RedisClient own(uri);
            Worker worker(uri, options(2));
            worker.handle<Raw>("q",
                               [&](const Raw&) {
                                   // Just before its ack, so an effect more than counted is no
                                   // loss.
                                   own.command({"INCR", "effects"});
                                   std::this_thread::sleep_for(1ms);
                               },
                               {.concurrency = 1});
            return worker.run();
        });
    }
    const auto effects = [this] {
        return std::stoll("0" + redis.command({"GET", "effects"}).text);
    };
    Inspector inspector(uri);
    std::map<std::string, std::uint64_t> last; // of each worker, how many had succeeded
    std::map<std::string, int> changes;
    const auto each_has_reported = [&](int times) {
        return eventually([&] {
            if (redis.llen("q") < 200) {
                push_jobs(Texts(200, "a"));
            }
            CHECK(succeeded() <= effects());
            for (const WorkerReport& report : inspector.workers("q")) {
                const std::uint64_t now = report.jobs.outcomes.succeeded;
                changes[report.consumer_id] += now > std::exchange(last[report.consumer_id], now);
            }
            return std::ranges::count_if(changes, [&](const auto& one) {
                       return one.second >= times;
                   }) == workers_killed;
        });
    };
    REQUIRE(each_has_reported(1));
    const std::int64_t early = effects(); // of which the report is due
    changes.clear();
    REQUIRE(each_has_reported(2)); // the first may have been on its way
    const std::vector<WorkerReport> reports = inspector.workers("q");
    const std::vector<ConsumerState> consumers = inspector.consumers("q");
    REQUIRE(reports.size() == workers_killed);
    for (int i = 0; i < workers_killed; ++i) {
        CHECK(reports.at(i).consumer_id == consumers.at(i).id);
        CHECK(reports.at(i).threads == 2);
        CHECK(reports.at(i).running <= 1);
        CHECK(reports.at(i).started > begun - 1min);
        CHECK(reports.at(i).started < orizuru::job_time() + 1min);
    }
    for (Child& child : children) {
        child.signal(SIGKILL);
        CHECK(child.status() == -1);
    }
    const std::int64_t all = std::stoll(redis.command({"GET", "effects"}).text);
    MESSAGE(all << " effects, " << early << " before the last reports, " << succeeded()
                << " counted");
    CHECK(early > 0);
    CHECK(succeeded() >= early - workers_killed);
    CHECK(succeeded() <= all);
    CHECK(succeeded() == field(day(), "succeeded"));
    // Another worker finishes the rest, and its counts are added.
    const std::int64_t before = succeeded();
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    {
        Running running(worker);
        REQUIRE(eventually([&] { return redis.llen("q") == 0; }));
        running.stop();
    }
    CHECK(succeeded() - before == static_cast<std::int64_t>(worker.statistics().succeeded));
}

} // namespace worker_reports_test
