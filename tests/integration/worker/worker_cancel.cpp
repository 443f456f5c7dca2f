// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A job is cancelled wherever it is, also while it runs; and one sees which jobs run.

#include "integration/worker/in_flight.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/worker/stops/cancel_scripts.hpp>
#include <orizuru/detail/worker/stops/cancellations.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace worker_cancel_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::CancelResult;
using orizuru::Inspector;
using orizuru::JobBatch;
using orizuru::JobContext;
using orizuru::JobDone;
using orizuru::JobProducer;
using orizuru::JobTime;
using orizuru::KeyedJobProducer;
using orizuru::Place;
using orizuru::PlacedMessage;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerReport;

const std::string cancelled = "orizuru:{q}:cancelled";
const std::string lock = "orizuru:{q}:unique:u";

struct Fixture : WorkerFixture {
    Inspector inspector{uri};
    Gate gate;
    std::atomic<int> stopped{0};

    /// A handler that waits for its stop, and throws.
    auto until_stopped() {
        return [this](JobContext<Raw>& job) {
            gate.pass();
            REQUIRE(eventually([&] { return job.stop_token().stop_requested(); }));
            ++stopped;
            throw std::runtime_error("stopped");
        };
    }
    /// Reason and payload of each dead job, the oldest first.
    Texts dead_jobs() {
        Texts found;
        for (const PlacedMessage& message : inspector.peek("q", Place::dead, 0, 100)) {
            found.insert(found.begin(), message.reason + ": " + message.job()->payload.bytes);
        }
        return found;
    }
    bool has_died(const Texts& jobs) {
        return eventually([&] { return dead_jobs() == jobs; });
    }
    /// Who may not see which jobs of q are to be cancelled.
    void add_user_without_requests() {
        redis.command({"ACL", "SETUSER", "old", "reset", "on", ">open-sesame", "+@all", "%RW~r",
                       "%RW~orizuru:{r}:*", "%RW~q", "%RW~orizuru:{q}:[^c]*",
                       "%RW~orizuru:{q}:con*", "%RW~orizuru:{q}:cou*", "%RW~orizuru:queues",
                       "allchannels"});
    }
    /// Whether this was one of the last commands.
    bool was_sent(const Texts& command) {
        const auto entries = redis.command({"SLOWLOG", "GET", "-1"}).elements;
        return std::ranges::any_of(entries, [&](const Answer& entry) {
            return std::ranges::equal(entry.elements.at(3).elements, command, {}, &Answer::text);
        });
    }
    bool no_requests() {
        return eventually([&] { return !redis.exists(cancelled); });
    }
};

TEST_CASE_FIXTURE(Fixture, "a job that nobody holds is buried with the reason, wherever it is") {
    for (const Place place :
         {Place::waiting, Place::rejected, Place::suspected, Place::scheduled}) {
        redis.flushall();
        const std::string id = push_jobs({"a", "b"});
        const std::string bytes = redis.lrange("q").front();
        push_jobs({"c"});
        const Texts others = jobs();
        if (place != Place::waiting) {
            redis.command({"LREM", "q", "1", bytes});
        }
        if (place == Place::rejected) {
            redis.lpush(unack, bytes);
        } else if (place == Place::suspected) {
            redis.lpush("orizuru:{q}:suspects", bytes);
        } else if (place == Place::scheduled) {
            redis.command(
                {"ZADD", "orizuru:{q}:scheduled", "99999999999999", std::string(8, '\0') + bytes});
        }
        CHECK(inspector.cancel("q", id, "not wanted") == CancelResult::buried);
        CHECK(dead_jobs() == Texts{"not wanted: b"});
        CHECK(jobs() == Texts{"a", "c"});
        CHECK(put_off().empty());
        CHECK(redis.llen(unack) == 0);
        CHECK(redis.llen("orizuru:{q}:suspects") == 0);
        CHECK(inspector.cancel("q", id) == CancelResult::not_found);
    }
    CHECK(inspector.cancel("q", "nobody") == CancelResult::not_found);
    CHECK_THROWS_AS(inspector.cancel("q", ""), std::invalid_argument);
    CHECK_FALSE(redis.exists(cancelled));
}

TEST_CASE_FIXTURE(Fixture, "a unique job that is cancelled gives up its lock, waiting or running") {
    JobProducer<Raw> producer(uri, "q");
    const auto push = [&] { return producer.push(Raw{"a"}, {.unique = "u"}).has_value(); };
    REQUIRE(push());
    std::string id = job_of(redis.lrange("q").front()).id;
    CHECK(inspector.cancel("q", id) == CancelResult::buried);
    CHECK(dead_jobs() == Texts{"cancelled: a"});
    CHECK_FALSE(redis.exists(lock));

    REQUIRE(push());
    id = job_of(redis.lrange("q").front()).id;
    Worker worker(uri, options());
    worker.handle<Raw>("q", until_stopped());
    const Running running(worker);
    REQUIRE(gate.reached());
    gate.open();
    CHECK(inspector.cancel("q", id, "sold out") == CancelResult::requested);
    CHECK(has_died({"cancelled: a", "sold out: a"}));
    CHECK_FALSE(redis.exists(lock));
    CHECK(no_requests());
}

TEST_CASE_FIXTURE(Fixture, "behind a job of a key that is cancelled the next one comes") {
    KeyedJobProducer<Raw> producer(uri, "q");
    for (const char* const payload : {"a1", "a2"}) {
        producer.push("a", Raw{payload});
    }
    const auto first = job_of(redis.lrange("q").front());
    CHECK(inspector.cancel("q", first.id) == CancelResult::buried);
    CHECK(dead_jobs() == Texts{"cancelled: a1"});
    CHECK(jobs() == Texts{"a2"});
    const PlacedMessage buried = inspector.peek("q", Place::dead, 0, 1).at(0);
    CHECK(buried.job()->ticket.empty());
    CHECK(buried.job()->key == "a");
}

TEST_CASE_FIXTURE(Fixture, "a handler is told to stop, and its job buried without another try") {
    const std::string id = push_jobs({"a"});
    QueueOptions queue = much_later();
    SUBCASE("without a time limit") {}
    SUBCASE("with one") { queue.time_limit = 1h; }
    Worker worker(uri, options());
    worker.handle<Raw>("q", until_stopped(), queue);
    const Running running(worker);
    REQUIRE(gate.reached());
    gate.open();
    CHECK(inspector.cancel("q", id, "not wanted") == CancelResult::requested);
    CHECK(has_died({"not wanted: a"}));
    CHECK(stopped == 1);
    CHECK(diary.count(WorkerEventKind::failed) == 0);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::died) == 1; }));
    CHECK(diary.of(WorkerEventKind::died).at(0).detail == "not wanted");
    CHECK(no_requests());
    CHECK(eventually([&] { return held_jobs().empty(); }));
    CHECK(put_off().empty());
}

TEST_CASE_FIXTURE(Fixture, "a handler that returns all the same has its job done") {
    const std::string id = push_jobs({"a"});
    Worker worker(uri, options());
    std::optional<std::string> reason;
    worker.handle<Raw>("q", [&](JobContext<Raw>& job) {
        CHECK_FALSE(job.cancelled());
        const std::stop_token token = job.stop_token();
        gate.pass();
        CHECK(eventually([&] { return token.stop_requested(); }));
        reason = job.cancelled();
    });
    const Running running(worker);
    REQUIRE(gate.reached());
    gate.open();
    CHECK(inspector.cancel("q", id, "not wanted") == CancelResult::requested);
    CHECK(eventually([&] { return diary.count(WorkerEventKind::succeeded) == 1; }));
    CHECK(reason == "not wanted");
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::cancelled_too_late) == 1; }));
    CHECK(diary.of(WorkerEventKind::cancelled_too_late).at(0).job_id == id);
    CHECK(nothing_left());
    CHECK(no_requests());
}

TEST_CASE_FIXTURE(Fixture, "a job in flight is cancelled as well") {
    const std::string id = push_jobs({"a"});
    push_jobs({"b"});
    Kept kept;
    std::atomic<bool> told{false};
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", [&](JobContext<Raw>& job, JobDone done) {
        const std::stop_token token = job.stop_token();
        const bool is_first = job->payload.bytes == "a";
        if (is_first) {
            std::thread([&, token] {
                CHECK(eventually([&] { return token.stop_requested(); }));
                told = true;
            }).detach();
        }
        kept.add(job->payload.bytes, std::move(done));
    });
    const Running running(worker);
    REQUIRE(kept.has(2));
    CHECK(inspector.cancel("q", id) == CancelResult::requested);
    REQUIRE(eventually([&] { return told.load(); }));
    CHECK(dead_jobs().empty());
    SUBCASE("it fails") { kept.take("a")(std::make_exception_ptr(std::runtime_error("stopped"))); }
    SUBCASE("it is left undone") { kept.take("a").requeue(); }
    CHECK(has_died({"cancelled: a"}));
    CHECK(held_jobs() == Texts{"b"});
    kept.take("b")();
}

TEST_CASE_FIXTURE(Fixture, "a job that is cancelled before its handler begins does not run") {
    const Texts payloads{"a", "b"};
    const std::string id = push_jobs(payloads);
    Worker worker(uri, options());
    worker.handle<Raw>("q",
                       [&](const Raw& payload) {
                           handled.add(payload.bytes);
                           gate.pass();
                       },
                       {.prefetch = 10});
    const Running running(worker);
    REQUIRE(gate.reached());
    REQUIRE(eventually([&] { return held_jobs() == payloads; }));
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(inspector.cancel("q", id) == CancelResult::requested);
    CHECK(eventually([&] { return runs_of("hgetall") >= 2; })); // the first one is known
    const auto expires = redis.command({"PTTL", cancelled}).integer;
    CHECK(expires > 300'000);
    CHECK(expires <= 600'000);
    gate.open();
    CHECK(has_died({"cancelled: b"}));
    CHECK(handled.all() == Texts{"a"});
    CHECK(no_requests());
}

TEST_CASE_FIXTURE(Fixture, "a job of a batch is not cancelled") {
    const std::string id = push_jobs({"a"});
    Worker worker(uri, options());
    worker.handle_batch<Raw>("q", [&](JobBatch<Raw>) { gate.pass(); }, {.size = 1, .time = 1ms});
    const Running running(worker);
    REQUIRE(gate.reached());
    SUBCASE("once its worker has reported") {
        REQUIRE(eventually([&] {
            const std::vector<WorkerReport> reports = inspector.workers("q");
            return reports.size() == 1 && reports[0].in_batches;
        }));
        try {
            static_cast<void>(inspector.cancel("q", id));
            FAIL("it was not refused");
        } catch (const std::invalid_argument& error) {
            CHECK(std::string(error.what()) == "job '" + id +
                                                   "' of queue 'q' cannot be cancelled: its worker "
                                                   "handles it in a batch");
        }
        CHECK_FALSE(redis.exists(cancelled));
    }
    SUBCASE("nor when the request comes first") {
        redis.command({"HSET", cancelled, id, "99999999999999 x"});
        CHECK(eventually([&] { return diary.count(WorkerEventKind::cancelled_too_late) == 1; }));
        CHECK(no_requests());
    }
    gate.open();
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "more requests than all workers may read are refused") {
    const std::string id = push_jobs({"a"});
    orizuru::Consumer<Raw> consumer(uri, "q");
    const auto guard = consumer.next(1s);
    for (int i = 0; i < 100; ++i) {
        redis.command({"HSET", cancelled, std::to_string(i), "99999999999999 x"});
    }
    try {
        static_cast<void>(inspector.cancel("q", id));
        FAIL("it was not refused");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "MANY");
    }
    CHECK(redis.command({"HLEN", cancelled}).integer == 100);
    redis.command({"HSET", cancelled, "7", "5 x"}); // that is over
    CHECK(inspector.cancel("q", id) == CancelResult::requested);
    CHECK(inspector.cancel("q", id) == CancelResult::requested);
    CHECK(redis.command({"HLEN", cancelled}).integer == 100);
    CHECK(redis.command({"HEXISTS", cancelled, "7"}).integer == 0);
}

TEST_CASE_FIXTURE(Fixture, "a request ends with its job, and only that request") {
    const std::string id = push_jobs({"a"});
    redis.command({"HSET", cancelled, id, "5 x"}); // long over
    redis.command({"HSET", cancelled, "other", "99999999999999 y"});
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    CHECK(has_handled({"a"}));
    // The same id again, cancelled before it is seen: what is newer than the look stays.
    orizuru::detail::Cancellations known;
    known.replace({{id, {"99999999999999 first"}}});
    CHECK(known.reason_of(id) == "first");
    known.end(id);
    CHECK_FALSE(known.reason_of(id));
    known.replace({{id, {"99999999999999 first"}}});
    CHECK_FALSE(known.reason_of(id));
    known.replace({{id, {"99999999999999 second"}}});
    CHECK(known.reason_of(id) == "second");
    known.forget({{id, {"99999999999999 second"}}});
    CHECK(known.ended().size() == 1);
    known.forget({{id, {"99999999999999 first"}}});
    CHECK(known.ended().empty());
    redis.command({"EVAL", std::string(orizuru::detail::forget_cancels_script()), "1", cancelled,
                   id, "4 x", "other", "99999999999999 y"});
    CHECK(redis.command({"HGET", cancelled, id}).text == "5 x");
    CHECK(redis.command({"HLEN", cancelled}).integer == 1);
}

TEST_CASE_FIXTURE(Fixture, "one sees which jobs run, since when, and where") {
    const JobTime before = orizuru::job_time();
    const std::string id = push_jobs({"a"});
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", [&](const Raw&) { gate.pass(); });
    const Running running(worker);
    REQUIRE(gate.reached());
    std::vector<WorkerReport> reports;
    REQUIRE(eventually([&] {
        reports = inspector.workers("q");
        return reports.size() == 1 && !reports[0].runs.empty();
    }));
    CHECK_FALSE(reports[0].in_batches);
    REQUIRE(reports[0].runs.size() == 1);
    CHECK(reports[0].runs[0].id == id);
    const JobTime since = reports[0].runs[0].since;
    CHECK(since >= before - 100ms);
    CHECK(since <= orizuru::job_time() + 100ms);
    for (const auto& found :
         {inspector.peek("q", Place::held, 0, 10), inspector.find("q", id, 10)}) {
        REQUIRE(found.size() == 1);
        CHECK(found[0].running_since == since);
    }
    gate.open();
}

TEST_CASE_FIXTURE(Fixture,
                  "a worker without the right to requests sees pauses, and cancels elsewhere") {
    add_user_without_requests();
    SUBCASE("to its key") {}
    SUBCASE("to the command") {
        redis.command({"ACL", "SETUSER", "old", "%RW~orizuru:{q}:*", "-hgetall"});
        redis.command({"HSET", cancelled, "nobody", "99999999999999 x"});
    }
    Worker worker("unix://old:open-sesame@" + server().socket_path(), options(2));
    worker.handle<Raw>("q", write_down()).handle<Raw>("r", until_stopped());
    const Running running(worker);
    push_jobs({"a"});
    REQUIRE(has_handled({"a"}));
    const std::string id = push_jobs({"b"}, "r");
    REQUIRE(gate.reached());
    gate.open();
    CHECK(inspector.cancel("r", id) == CancelResult::requested);
    if (diary.of(WorkerEventKind::upkeep_failed).at(0).detail.find("HGETALL") ==
        std::string::npos) {
        CHECK(eventually([&] { return redis.llen("orizuru:{r}:dead") == 1; }));
    }
    redis.command({"SET", "orizuru:{q}:paused", "1"});
    redis.command({"SET", "orizuru:{r}:paused", "1"});
    CHECK(eventually([&] { return info("clients", "blocked_clients") == 0; }));
    redis.del("orizuru:{q}:paused");
    push_jobs({"c"});
    CHECK(has_handled({"a", "c"}));
    CHECK(diary.of(WorkerEventKind::upkeep_failed).at(0).queue == "q");
    redis.command({"ACL", "DELUSER", "old"});
}

TEST_CASE_FIXTURE(Fixture, "one command asks for the requests of all queues, also where the user "
                           "may not see those of one") {
    add_user_without_requests();
    Worker worker("unix://old:open-sesame@" + server().socket_path(), options(1));
    worker.handle<Raw>("q", write_down()).handle<Raw>("r", write_down());
    const Running running(worker);
    redis.command({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
    CHECK(eventually([&] {
        return was_sent(
            {"EXISTS", "orizuru:{q}:paused", "orizuru:{r}:paused", "orizuru:{r}:cancelled"});
    }));
    redis.command({"CONFIG", "SET", "slowlog-log-slower-than", "10000"});
    redis.command({"ACL", "DELUSER", "old"});
}

} // namespace worker_cancel_test
