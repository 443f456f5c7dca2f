// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Bursts: jobs of a key that a thread handles one behind another and settles together. What is
// where in Redis while one runs and behind it, and what becomes of the others when one fails.

#include "integration/keyed/keyed_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/limit.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bursts_test {

using namespace std::chrono_literals;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::JobDone;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::Child;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Keyed;
using orizuru::test::message_of;
using orizuru::test::Record;
using orizuru::test::RedisClient;
using orizuru::test::Running;
using orizuru::test::Texts;

struct Bursts : Keyed {
    const std::string mark = "orizuru:{q}:burst:a";

    /// Turns of keys that have ended since then: a script ends each by one LPOP.
    std::int64_t turns() { return runs_of("lpop"); }
    void count_turns() { redis.command({"CONFIG", "RESETSTAT"}); }
    std::string turn_of_a() { return redis.lrange(order("a")).front(); }
    /// Writes each job down, and then does this.
    auto handler(std::function<void(JobContext<Raw>&)> then) {
        return [record = handled, then = std::move(then)](JobContext<Raw>& job) {
            record.add(job->payload.bytes);
            then(job);
        };
    }
    void begin(Worker& worker, const std::function<void(JobContext<Raw>&)>& then,
               orizuru::QueueOptions chosen = {}, int burst = 10) {
        worker.handle_keyed<Raw>("q", handler(then), std::move(chosen), {.burst = burst});
    }
    /// Does this in the job with this payload.
    void begin_in(const std::string& payload, Worker& worker,
                  const std::function<void(JobContext<Raw>&)>& then,
                  orizuru::QueueOptions chosen = {}) {
        const auto then_in = [=](JobContext<Raw>& job) {
            if (job->payload.bytes == payload) {
                then(job);
            }
        };
        begin(worker, then_in, std::move(chosen));
    }
};

TEST_CASE_FIXTURE(Bursts, "jobs of one key are handled in their order, and settled together") {
    push("a", {"a1", "a2", "a3", "a4", "a5", "a6", "a7"});
    count_turns();
    serve({}, 1, {.burst = 3});
    CHECK(handled.all() == Texts{"a1", "a2", "a3", "a4", "a5", "a6", "a7"});
    CHECK(turns() == 3);
    CHECK(redis.keys(mark).empty());
    CHECK(diary.count(WorkerEventKind::succeeded) == 7);
}

TEST_CASE_FIXTURE(Bursts, "a key has a thread for one burst, and then another key has it") {
    push("a", {"a1", "a2", "a3", "a4", "a5"});
    push("b", {"b1", "b2"});
    serve({}, 1, {.burst = 2});
    CHECK(handled.all() == Texts{"a1", "a2", "b1", "b2", "a3", "a4", "a5"});
}

TEST_CASE_FIXTURE(Bursts,
                  "while it runs, its first job is held, and the others are in their list") {
    push("a", {"a1", "a2", "a3"});
    const std::string turn = turn_of_a();
    const Gate gate;
    Worker worker(uri, options(2));
    begin_in("a2", worker, [&](JobContext<Raw>& job) {
        CHECK(job.lease_valid());
        gate.pass();
    });
    const Running running(worker);
    REQUIRE(gate.reached());
    push("a", {"a4"}); // is not of this burst
    CHECK(held_jobs() == Texts{"a1"});
    CHECK(jobs().empty());
    CHECK(turn_of_a() == turn);
    CHECK(behind("a") == Texts{"a2", "a3", "a4"});
    CHECK(counted() == Texts{"", "-3", "a", "3"});
    CHECK(redis.command({"GET", mark}).text == turn + " 2");
    CHECK(redis.command({"PTTL", mark}).integer > 0);
    CHECK(worker.running().size() == 1);
    CHECK(worker.running()[0].job_id == job_of(redis.lrange(order("a"))[1].substr(16)).id);
    gate.open();
    CHECK(has_handled({"a1", "a2", "a3", "a4"}));
    CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
    CHECK(redis.keys(mark).empty());
}

TEST_CASE_FIXTURE(Bursts, "what somebody has put in the place of its jobs is not ended with them") {
    push("a", {"a1", "a2", "a3"});
    const std::string third = redis.lrange(order("a")).back();
    const Gate gate;
    bool fails = false;
    SUBCASE("when all are done") {}
    SUBCASE("when the last one fails") { fails = true; }
    Worker worker(uri, options());
    begin_in("a3", worker, [&](auto&) {
        gate.pass();
        if (fails) {
            throw std::runtime_error("not now");
        }
    });
    const Running running(worker);
    REQUIRE(gate.reached());
    redis.command({"LREM", order("a"), "1", third}); // as a Redis has that forgot a push
    push("a", {"a4", "a5"});
    gate.open();
    REQUIRE(has_handled({"a1", "a2", "a3", "a2", "a4", "a5"}));
    CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
}

TEST_CASE_FIXTURE(Bursts,
                  "a burst takes no more than a mebibyte, whatever the first of its jobs is") {
    push("a", {"a1", "a2"});
    const std::string large(300'000, 'x');
    push("a", {large, large, large, large, large, large});
    Record<std::size_t> sizes;
    count_turns();
    Worker worker(uri, options());
    worker.handle_keyed<Raw>("q", [=](const Raw& payload) { sizes.add(payload.bytes.size()); }, {},
                             {.burst = 100});
    const Running running(worker);
    CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
    CHECK(sizes.size() == 8);
    CHECK(turns() == 2); // the two small ones and four others, and the rest
}

TEST_CASE_FIXTURE(Bursts,
                  "a job that fails in it gets the turn: those before it are done, and those "
                  "behind it wait") {
    push("a", {"a1", "a2", "a3", "a4"});
    const std::string second = redis.lrange(order("a"))[1].substr(0, 16);
    Worker worker(uri, options());
    begin(
        worker,
        [](JobContext<Raw>& job) {
            job.set_attribute("seen", "yes");
            if (job->payload.bytes == "a2") {
                throw std::runtime_error("not yet");
            }
        },
        much_later());
    const Running running(worker);
    REQUIRE(eventually([this] { return put_off().size() == 1; }));
    CHECK(put_off()[0].payload.bytes == "a2");
    CHECK(put_off()[0].attempt == 2);
    CHECK(put_off()[0].attributes.at("seen") == "yes");
    CHECK(put_off()[0].ticket == "orz-key:" + second + ":q");
    CHECK(turn_of_a() == second);
    CHECK(behind("a") == Texts{"a3", "a4"});
    CHECK(counted() == Texts{"", "-2", "a", "2"});
    CHECK(held_jobs().empty());
    CHECK(jobs().empty());
    CHECK(redis.keys(mark).empty());
    CHECK(diary.count(WorkerEventKind::succeeded) == 1);
    CHECK(eventually([this] { return diary.count(WorkerEventKind::failed) == 1; }));
    CHECK(handled.all() == Texts{"a1", "a2"});
}

TEST_CASE_FIXTURE(Bursts, "failures hold up their key alone, and it keeps its order") {
    push("a", {"a1", "a2", "a3", "a4", "a5"});
    push("b", {"b1", "b2", "b3"});
    Worker worker(uri, with_scheduler(2));
    begin(worker,
          [](JobContext<Raw>& job) {
              const std::string& name = job->payload.bytes;
              if (job.attempt() == 1 && (name == "a2" || name == "a4")) {
                  throw std::runtime_error("not yet");
              }
          },
          {.retry = {.backoff = orizuru::backoff::fixed(20ms)}});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 8; }));
    Texts of_a = handled.all();
    std::erase_if(of_a, [](const std::string& job) { return job[0] == 'b'; });
    CHECK(of_a == Texts{"a1", "a2", "a2", "a3", "a4", "a4", "a5"});
    CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
}

TEST_CASE_FIXTURE(Bursts, "one that is buried, discarded or expired in it ends alone, and the next "
                          "ones follow") {
    push("a", {"a1", "bury", "a3", "discard", "a5"});
    producer.push("a", Raw{"expired"}, {.expires_after = 1ms});
    push("a", {"a7"});
    const std::int64_t now = server_ms();
    REQUIRE(eventually([&] { return server_ms() > now + 5; }));
    Worker worker(uri, options());
    begin(worker, [](JobContext<Raw>& job) {
        if (job->payload.bytes == "bury") {
            throw orizuru::DoNotRetry("no");
        }
        if (job->payload.bytes == "discard") {
            throw orizuru::Discard("no");
        }
    });
    const Running running(worker);
    CHECK(has_handled({"a1", "bury", "a3", "discard", "a5", "a7"}));
    CHECK(eventually([this] { return no_order_left(); }));
    CHECK(diary.count(WorkerEventKind::expired) == 1);
    CHECK(diary.count(WorkerEventKind::discarded) == 1);
    const auto entries = orizuru::DeadList(uri, "q").list(0, 10);
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].reason == "no");
    CHECK(job_of(entries[0].payload).payload.bytes == "bury");
    CHECK(job_of(entries[0].payload).ticket.empty());
    CHECK(redis.keys(mark).empty());
}

TEST_CASE_FIXTURE(Bursts, "a worker that stops settles what is done, and leaves the rest") {
    push("a", {"a1", "a2", "a3"});
    const std::string second = redis.lrange(order("a"))[1].substr(0, 16);
    const Gate gate;
    auto chosen = options();
    Worker worker(uri, chosen);
    // The second one goes on once it has heard of the stop.
    const auto begin_until_stop = [&](Worker& one, const std::function<void()>& then) {
        begin_in("a2", one, [&, then](JobContext<Raw>& job) {
            job.set_attribute("half", "done");
            gate.pass();
            CHECK(eventually([&] { return job.stop_token().stop_requested(); }));
            then();
        });
    };
    const auto second_is_back = [&] {
        REQUIRE(jobs() == Texts{"a2"});
        CHECK(job_of(waiting().at(0)).attributes["half"] == "done");
        CHECK(turn_of_a() == second);
        CHECK(behind("a") == Texts{"a3"});
    };
    SUBCASE("a handler that returns") {
        begin_until_stop(worker, [] {});
        Running running(worker);
        REQUIRE(gate.reached());
        gate.open();
        running.stop();
        CHECK(jobs() == Texts{"a3"});
        CHECK(behind("a").empty());
    }
    SUBCASE("a handler that throws") {
        begin_until_stop(worker, [] { throw std::runtime_error("stopped"); });
        Running running(worker);
        REQUIRE(gate.reached());
        gate.open();
        running.stop();
        CHECK(diary.count(WorkerEventKind::requeued) == 1);
        second_is_back();
    }
    SUBCASE("a handler that does not end in time") {
        chosen.stop_timeout = 100ms;
        Worker hasty(uri, chosen);
        std::atomic<bool> over{false};
        begin_until_stop(hasty, [&] { over = true; });
        Running running(hasty);
        REQUIRE(gate.reached());
        hasty.stop();
        CHECK(eventually([&] { return diary.count(WorkerEventKind::requeued) == 1; }));
        second_is_back();
        gate.open();
        CHECK(eventually([&] { return over.load(); }));
        running.left();
        second_is_back();
    }
    CHECK(handled.all() == Texts{"a1", "a2"});
    CHECK(held_jobs().empty());
    CHECK(redis.keys(mark).empty());
}

TEST_CASE_FIXTURE(Bursts,
                  "its first job can be cancelled while that runs, and is too late behind it") {
    push("a", {"a1", "a2", "a3"});
    const std::string id = job_of(waiting().front()).id;
    const std::string behind_it = job_of(redis.lrange(order("a"))[1].substr(16)).id;
    orizuru::Inspector inspector(uri);
    const Gate gate;
    Worker worker(uri, options());
    SUBCASE("while it runs") {
        begin_in("a1", worker, [&](JobContext<Raw>& job) {
            gate.pass();
            CHECK(eventually([&] { return job.cancelled().has_value(); }));
            throw std::runtime_error("cancelled");
        });
        const Running running(worker);
        REQUIRE(gate.reached());
        CHECK(inspector.cancel("q", id, "sold out") == orizuru::CancelResult::requested);
        gate.open();
        CHECK(has_handled({"a1", "a2", "a3"}));
        CHECK(eventually([this] { return no_order_left(); }));
        const auto entries = orizuru::DeadList(uri, "q").list(0, 10);
        REQUIRE(entries.size() == 1);
        CHECK(entries[0].reason == "sold out");
        CHECK(job_of(entries[0].payload).payload.bytes == "a1");
    }
    SUBCASE("behind it") {
        begin_in("a2", worker, [&](auto&) { gate.pass(); });
        const Running running(worker);
        REQUIRE(gate.reached());
        CHECK(inspector.cancel("q", id, "sold out") == orizuru::CancelResult::requested);
        CHECK(inspector.cancel("q", behind_it) == orizuru::CancelResult::not_found);
        CHECK(eventually([&] { return diary.count(WorkerEventKind::cancelled_too_late) == 1; }));
        gate.open();
        CHECK(has_handled({"a1", "a2", "a3"}));
        CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
    }
}

TEST_CASE_FIXTURE(Bursts, "one whose turn was given away only removes its first job") {
    push("a", {"a1", "a2", "a3"});
    const Gate gate;
    Worker worker(uri, options());
    bool fails = false;
    std::string last = "a2";
    SUBCASE("where all succeed") {}
    SUBCASE("where one fails") { fails = true; }
    SUBCASE("before others have followed it") { last = "a1"; }
    begin_in(last, worker, [&](auto&) {
        gate.pass();
        if (fails) {
            throw std::runtime_error("no");
        }
    });
    const Running running(worker);
    REQUIRE(gate.reached());
    redis.command({"LSET", order("a"), "0", "0123456789abcdef"}); // another one's turn
    gate.open();
    CHECK(eventually([&] { return held_jobs().empty() && worker.running().empty(); }));
    CHECK(handled.all().back() == (last == "a1" ? "a1" : fails ? "a2" : "a3"));
    CHECK(turn_of_a() == "0123456789abcdef");
    CHECK(behind("a") == Texts{"a2", "a3"});
    CHECK(jobs().empty());
    CHECK(put_off().empty());
}

TEST_CASE_FIXTURE(Bursts, "behind one that was not settled each of its jobs is handled alone") {
    push("a", {"a1", "a2", "a3", "a4", "a5"});
    redis.command({"SET", mark, "0123456789abcdef 3"}); // the one that was out, and three behind it
    count_turns();
    serve({}, 1, {.burst = 10});
    CHECK(handled.all() == Texts{"a1", "a2", "a3", "a4", "a5"});
    CHECK(turns() == 3); // a1, a2, the others
    CHECK(redis.keys(mark).empty());
}

TEST_CASE_FIXTURE(Bursts, "a job that was blamed for a death leads none") {
    push("a", {"a1", "a2", "a3"});
    redis.command({"HSET", "orizuru:{q}:recoveries", "job " + job_of(waiting().front()).id, "1"});
    redis.command({"LMOVE", "q", "orizuru:{q}:suspects", "RIGHT", "LEFT"});
    redis.command({"SET", "orizuru:{q}:suspects:asked", "", "PX", "600000"});
    count_turns();
    serve({.lease = 300ms}, 1, {.burst = 10});
    CHECK(handled.all() == Texts{"a1", "a2", "a3"});
    CHECK(turns() == 2); // a1, the others
    CHECK(redis.keys("orizuru:{q}:recoveries").empty());
}

TEST_CASE_FIXTURE(Bursts, "a death delivers its jobs once more, in their order, and what kills its "
                          "worker is buried alone, after one death more than outside a burst") {
    push("a", {"a1", "a2", "a3", "a4", "killer", "a6", "a7"});
    const auto live = [&] {
        orizuru::WorkerOptions chosen = options();
        chosen.collect_interval = 50ms;
        Worker worker(uri, chosen);
        worker.handle_keyed<Raw>("q",
                                 [&](const Raw& job) {
                                     RedisClient(uri).command({"RPUSH", "runs", job.bytes});
                                     if (job.bytes == "killer") {
                                         ::raise(SIGKILL);
                                     }
                                 },
                                 {.lease = 300ms}, {.burst = 10});
        const Running running(worker);
        RedisClient client(uri);
        return eventually([&] { return client.keys("orizuru:{q}:key:*").empty(); }) ? 0 : 1;
    };
    int deaths = 0;
    int status = -1;
    for (; status == -1 && deaths < 10; ++deaths) {
        Child child(live);
        status = child.status();
    }
    CHECK(status == 0);
    CHECK(deaths - 1 == 5);
    CHECK(redis.lrange("runs") == Texts{"a1", "a2", "a3", "a4", "killer", "a1", "a2", "a3", "a4",
                                        "killer", "killer", "killer", "killer", "a6", "a7"});
    const auto entries = orizuru::DeadList(uri, "q").list(0, 10);
    REQUIRE(entries.size() == 1);
    CHECK(job_of(entries[0].payload).payload.bytes == "killer");
    CHECK(no_order_left());
}

TEST_CASE_FIXTURE(Bursts, "it ends before a job of another kind, and behind a mebibyte") {
    Texts payloads;
    SUBCASE("kind") {
        payloads = {"a1", "a2", "other", "a4", "a5"};
        push("a", {"a1", "a2"});
        orizuru::KeyedJobProducer<Raw>(uri, "q", {.kind = "other"}).push("a", Raw{"other"});
        push("a", {"a4", "a5"});
        count_turns();
    }
    SUBCASE("size") {
        for (char name = '1'; name <= '5'; ++name) {
            payloads.push_back(std::string(600 * 1024, name));
        }
        push("a", payloads);
        count_turns();
    }
    const bool sized = payloads[0].size() > 2;
    Worker worker(uri, options());
    begin(worker, [](JobContext<Raw>&) {});
    worker.handle<Raw>("q", "other", write_down());
    const Running running(worker);
    CHECK(has_handled(payloads));
    CHECK(eventually([this] { return no_order_left(); }));
    CHECK(turns() == (sized ? 2 : 3));
}

TEST_CASE_FIXTURE(Bursts,
                  "where Redis refuses to begin one, the jobs go one by one, and it is told") {
    push("a", {"a1", "a2", "a3"});
    redis.command({"HSET", mark, "a", "hash"});
    count_turns();
    serve({}, 1, {.burst = 10});
    CHECK(handled.all() == Texts{"a1", "a2", "a3"});
    CHECK(turns() == 3);
    const auto told = diary.of(WorkerEventKind::upkeep_failed);
    REQUIRE(told.size() == 3);
    CHECK(contains(told[0].detail, "beginning a burst: "));
    CHECK(contains(told[0].detail, "WRONGTYPE " + mark));
}

TEST_CASE_FIXTURE(Bursts, "a handler has no guard there") {
    push("a", {"a1", "a2"});
    Texts refusals;
    Worker worker(uri, options());
    begin(worker, [&](JobContext<Raw>& job) {
        refusals.push_back(message_of<std::logic_error>([&] { static_cast<void>(job.guard()); }));
        refusals.push_back(
            message_of<std::logic_error>([&] { static_cast<void>(job.guard_within(1s)); }));
    });
    const Running running(worker);
    CHECK(eventually([this] { return nothing_left() && no_order_left(); }));
    CHECK(refusals == Texts(4, "the jobs of a burst are settled together, and none by a guard of "
                               "its own: let its handler return or throw"));
    CHECK(eventually([&] { return worker.statistics().succeeded == 2; })); // behind the settlement
}

TEST_CASE_FIXTURE(Bursts, "a lost lease ends it, and the jobs of it that were done come again") {
    push("a", {"a1", "a2", "a3"});
    const Gate gate;
    Worker worker(uri, options());
    begin_in("a2", worker, [&](auto&) { gate.pass(); }, {.lease = 300ms});
    const Running running(worker);
    REQUIRE(gate.reached());
    // As a collector does, for which the worker is dead.
    const std::string list = redis.keys("orizuru:{q}:processing:*").at(0);
    const std::string first = redis.lrange(list).at(0);
    redis.command({"MULTI"});
    redis.command({"SET", list, "reaped"});
    redis.command({"RPUSH", "q", first});
    redis.command({"EXEC"});
    REQUIRE(eventually([this] { return diary.has_lease_lost(); }));
    gate.open();
    CHECK(has_handled({"a1", "a2", "a1", "a2", "a3"}));
    CHECK(eventually([this] { return no_order_left(); }));
    const auto lost = diary.of(WorkerEventKind::lost);
    REQUIRE(lost.size() == 1);
    CHECK(lost[0].detail == "and those of its burst before it: 1");
}

TEST_CASE_FIXTURE(Bursts, "bad options are refused") {
    Worker worker(uri, options());
    const auto refused = [&](int burst) {
        return message_of<std::invalid_argument>(
            [&] { worker.handle_keyed<Raw>("q", write_down(), {}, {.burst = burst}); });
    };
    CHECK(refused(0) == "burst must be 1 to 1000");
    CHECK(refused(1001) == "burst must be 1 to 1000");
    const auto later = [](const Raw&, JobDone done) { done(); }; // NOLINT(performance-*)
    CHECK(message_of<std::invalid_argument>([&] {
              worker.handle_keyed<Raw>("q", later, {}, {.burst = 2});
          }) == "queue 'q': with bursts, its handler must end a job by its return");
    worker.handle_keyed<Raw>("q", later, {}, {.burst = 1});
    Worker limited(uri, options());
    begin(limited, [](JobContext<Raw>&) {});
    CHECK(message_of<std::invalid_argument>([&] {
              limited.limit("q", {.rate = orizuru::Rate{.most = 10, .per = 1s}});
          }) == "queue 'q': bursts take no rate");
}

} // namespace bursts_test
