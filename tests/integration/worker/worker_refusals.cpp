// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a worker does with jobs whose settlement Redis refuses, until the cause is removed.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

namespace worker_refusals_test {

using namespace std::chrono_literals;
using orizuru::Guarantee;
using orizuru::Job;
using orizuru::job_time;
using orizuru::JobBatch;
using orizuru::JobContext;
using orizuru::Keys;
using orizuru::make_job;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEvent;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Record;
using orizuru::test::Running;
using orizuru::test::server;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

/// A queue `bad`, where Redis refuses the settlements of jobs, and a more urgent one, `good`.
struct Fixture : WorkerFixture {
    ~Fixture() { redis.try_command({"ACL", "DELUSER", "clerk"}); }

    Record<std::string> tried;

    /// Makes Redis refuse to put any job off.
    static QueueOptions refused() {
        QueueOptions chosen = much_later();
        chosen.retry.retry_queue = "elsewhere";
        return chosen;
    }
    void refuse() { redis.set("elsewhere", "a string"); }
    void mend() { redis.del("elsewhere"); }

    [[nodiscard]] auto fail() const {
        return [record = tried](const Raw& payload) {
            record.add(payload.bytes);
            throw std::runtime_error("no such user");
        };
    }
    [[nodiscard]] bool has_refused(std::size_t times) const {
        return eventually([=, this] { return diary.count(WorkerEventKind::unsettled) >= times; });
    }
    Texts sorted(Texts texts) {
        std::ranges::sort(texts);
        return texts;
    }
    [[nodiscard]] Texts put_off_elsewhere() {
        Texts payloads;
        for (const Job<Raw>& job : put_off("elsewhere")) {
            payloads.push_back(job.payload.bytes);
        }
        return sorted(payloads);
    }
    /// Pushes a job whose ack is refused as long as its lock is no string.
    void push_locked(const std::string& payload, Job<Raw> job) {
        job.payload.bytes = payload;
        job.unique_id = "lock";
        redis.lpush("bad", bytes_of(job));
        redis.lpush(lock, "no string");
    }
    std::string lock = Keys("bad").unique("lock");

    /// A user whose rights can be taken, as a URI.
    std::string clerk(const Texts& rules = {}) {
        Texts words{"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "&*", "+@all"};
        words.insert(words.end(), rules.begin(), rules.end());
        redis.command(words);
        return "unix://clerk:open-sesame@" + server().socket_path();
    }
};

TEST_CASE_FIXTURE(Fixture, "a queue whose retries are refused does not delay another one") {
    refuse();
    Worker worker(uri, options(4));
    worker.handle<Raw>("good", write_down()).handle<Raw>("bad", fail(), refused());
    const Texts bad{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    push_jobs(bad, "bad");
    Running running(worker);
    REQUIRE(has_refused(8));
    const Texts good{"1", "2", "3", "4", "5", "6"};
    push_jobs(good, "good");
    REQUIRE(eventually([&] { return sorted(handled.all()) == good; }));
    CHECK_FALSE(held_jobs("bad").empty());
    CHECK(held_jobs("bad").size() <= 8); // a fetch may have been under way
    CHECK(redis.llen("bad") >= 4);
    mend();
    CHECK(eventually([&] { return put_off_elsewhere() == bad; }));
    CHECK(eventually([&] { return held_jobs("bad").empty(); }));
    CHECK(sorted(tried.all()) == bad);
    CHECK(running.stop() == 0);
    CHECK(worker.statistics().failed == bad.size());
    CHECK(redis.llen("bad") == 0);
}

TEST_CASE_FIXTURE(Fixture, "a missing right that only failures need does not delay another queue") {
    Worker worker(clerk({"-hget"}), options());
    worker.handle<Raw>("good", write_down()).handle<Raw>("bad", fail(), much_later());
    push_jobs({"a", "b"}, "bad");
    const Running running(worker);
    REQUIRE(has_refused(2));
    push_jobs({"1", "2", "3"}, "good");
    CHECK(has_handled({"1", "2", "3"}));
    CHECK(tried.all() == Texts{"a"});
    redis.command({"ACL", "SETUSER", "clerk", "+hget"});
    CHECK(eventually([&] { return put_off("bad").size() == 2; }));
    CHECK(tried.all() == Texts{"a", "b"});
    CHECK(eventually([&] { return held_jobs("bad").empty(); }));
}

TEST_CASE_FIXTURE(Fixture, "a queue is served again as soon as no settlement of it is refused") {
    refuse();
    Worker worker(uri, options(2));
    worker.handle<Raw>(
        "bad",
        [this](const Raw& payload) {
            payload.bytes == "a" ? fail()(payload) : write_down()(payload);
        },
        refused());
    push_jobs({"a"}, "bad");
    const Running running(worker);
    REQUIRE(has_refused(2));
    push_jobs({"b", "c"}, "bad");
    mend();
    CHECK(eventually([&] { return sorted(handled.all()) == Texts{"b", "c"}; }));
    CHECK(eventually([&] { return put_off_elsewhere() == Texts{"a"}; }));
}

TEST_CASE_FIXTURE(Fixture, "a stop requeues refused jobs, and burns no attempt") {
    refuse();
    const Texts bad{"a", "b", "c"};
    const Gate gate;
    int handlers = 0;
    Worker worker(uri, options(3));
    SUBCASE("jobs") {
        handlers = 3;
        worker.handle<Raw>(
            "bad",
            [=, this](const Raw& payload) {
                gate.pass();
                fail()(payload);
            },
            refused());
    }
    SUBCASE("batches") {
        handlers = 1;
        worker.handle_batch<Raw>(
            "bad",
            [=](JobBatch<Raw>) {
                gate.pass();
                throw std::runtime_error("no such user");
            },
            {.size = 3}, refused());
    }
    push_jobs(bad, "bad");
    push_jobs({"d"}, "bad");
    Running running(worker);
    REQUIRE(gate.reached(handlers)); // after the first refusal the queue is served no more
    gate.open();
    REQUIRE(has_refused(6));
    CHECK(running.stop() == 0);
    CHECK(worker.statistics().requeued >= 3); // one job of the next batch is there already
    CHECK(sorted(jobs("bad")) == Texts{"a", "b", "c", "d"});
    CHECK(jobs("bad").back() == "d");
    for (const std::string& bytes : oldest_first("bad")) {
        CHECK(job_of(bytes).attempt == 1);
    }
    CHECK(redis.command({"SCARD", "orizuru:{bad}:consumers"}).integer == 0);
    CHECK(redis.llen("orizuru:{bad}:unack") == 0);
}

TEST_CASE_FIXTURE(Fixture, "jobs that were fetched before one of them is refused go on") {
    refuse();
    Worker worker(uri, options(1));
    QueueOptions chosen = refused();
    chosen.prefetch = 20;
    worker.handle<Raw>("bad", fail(), chosen);
    push_jobs({"a", "b", "c", "d", "e", "f", "g", "h"}, "bad"); // one fetch
    const Running running(worker);
    CHECK(eventually([&] { return tried.size() == 8; })); // threads share four at a time
    CHECK(has_refused(8));
    push_jobs({"i"}, "bad");
    mend();
    CHECK(eventually([&] { return tried.size() == 9; }));
    CHECK(eventually([&] { return put_off_elsewhere().size() == 9; }));
}

TEST_CASE_FIXTURE(Fixture, "each job of a batch is refused on its own") {
    refuse();
    Worker worker(uri, options());
    worker.handle<Raw>("good", write_down())
        .handle_batch<Raw>(
            "bad",
            [](JobBatch<Raw> batch) {
                batch[1].fail("no such user");
                batch[3].fail("no such user");
            },
            {.size = 4}, refused());
    push_jobs({"a", "b", "c", "d"}, "bad");
    const Running running(worker);
    REQUIRE(has_refused(4));
    push_jobs({"1"}, "good");
    CHECK(has_handled({"1"}));
    CHECK(eventually([&] { return held_jobs("bad") == Texts{"b", "d"}; }));
    CHECK(eventually([&] { return worker.statistics().succeeded == 3; }));
    mend();
    CHECK(eventually([&] { return put_off_elsewhere() == Texts{"b", "d"}; }));
    CHECK(eventually([&] { return held_jobs("bad").empty(); }));
    CHECK(eventually([&] { return worker.statistics().failed == 2; }));
}

TEST_CASE_FIXTURE(Fixture, "a refused ack does not delay another queue") {
    Worker worker(uri, options());
    worker.handle<Raw>("good", write_down());
    const auto handle = [record = tried](const Raw& payload) { record.add(payload.bytes); };
    Texts expected{"a"};
    Job<Raw> job = make_job(Raw{});
    SUBCASE("behind the handler") { worker.handle<Raw>("bad", handle); }
    SUBCASE("of a job in a batch") {
        worker.handle_batch<Raw>("bad", [=](JobBatch<Raw> batch) { handle(batch[0]->payload); },
                                 {.size = 1});
    }
    SUBCASE("before the handler") {
        worker.handle<Raw>("bad", handle, {.guarantee = Guarantee::at_most_once});
    }
    SUBCASE("of a job that has expired") {
        worker.handle<Raw>("bad", handle);
        job.expires_at = job_time() - 1s;
        expected.clear();
    }
    push_locked("a", job);
    const Running running(worker);
    REQUIRE(has_refused(1));
    push_jobs({"1"}, "good");
    CHECK(has_handled({"1"}));
    CHECK(held_jobs("bad").size() + redis.llen("bad") == 1);
    redis.del(lock);
    CHECK(eventually([&] { return worker.statistics().expired == 1 - expected.size(); }));
    CHECK(eventually([&] { return tried.all() == expected; }));
    CHECK(eventually([&] { return redis.llen("bad") == 0 && held_jobs("bad").empty(); }));
    CHECK(eventually([&] { return worker.statistics().succeeded == 1 + expected.size(); }));
}

TEST_CASE_FIXTURE(Fixture, "refused acks of a batch do not delay another queue") {
    Worker worker(clerk(), options());
    worker.handle<Raw>("good", write_down())
        .handle_batch<Raw>("bad",
                           [this](JobBatch<Raw> batch) {
                               tried.add(batch[0]->payload.bytes);
                               redis.command({"ACL", "SETUSER", "clerk", "resetkeys", "~good*",
                                              "~orizuru:{good}*"});
                           },
                           {.size = 2});
    push_jobs({"a", "b"}, "bad");
    const Running running(worker);
    REQUIRE(has_refused(2));
    push_jobs({"1"}, "good");
    CHECK(has_handled({"1"}));
    CHECK(held_jobs("bad") == Texts{"a", "b"});
    redis.command({"ACL", "SETUSER", "clerk", "~*"});
    CHECK(eventually([&] { return held_jobs("bad").empty(); }));
    CHECK(tried.all() == Texts{"a"});
    CHECK(redis.llen("bad") == 0);
}

TEST_CASE_FIXTURE(Fixture, "at most once: the acks of a batch are awaited, also when its queue is "
                           "paused meanwhile") {
    WorkerOptions chosen = options(2);
    chosen.on_event = [this, tell = chosen.on_event](const WorkerEvent& event) {
        if (event.kind == WorkerEventKind::expired) { // one job of the first batch is not acked yet
            CHECK(eventually([this] { return redis.llen("bad") == 0; }));
            redis.set("orizuru:{bad}:paused", "1");
            CHECK(eventually([this] { return jobs("bad") == Texts{"c", "d"}; })); // requeued
            redis.command({"ACL", "SETUSER", "clerk", "resetkeys"});
        }
        tell(event);
    };
    Worker worker(clerk(), chosen);
    worker.handle_batch<Raw>("bad",
                             [this](JobBatch<Raw> batch) {
                                 for (const JobContext<Raw>& job : batch) {
                                     tried.add(job->payload.bytes);
                                 }
                             },
                             {.size = 3, .time = 1h}, {.guarantee = Guarantee::at_most_once});
    Job<Raw> late = make_job(Raw{"late"});
    late.expires_at = job_time() - 1s;
    redis.lpush("bad", bytes_of(make_job(Raw{"a"})), bytes_of(late), bytes_of(make_job(Raw{"b"})),
                bytes_of(make_job(Raw{"c"})), bytes_of(make_job(Raw{"d"})));
    const Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::expired) == 1; }));
    CHECK(has_refused(2));
    CHECK(tried.all().empty());
    redis.command({"ACL", "SETUSER", "clerk", "~*"});
    CHECK(eventually([&] { return tried.all() == Texts{"a", "b"}; }));
    CHECK(eventually([&] { return held_jobs("bad").empty(); }));
}

} // namespace worker_refusals_test
