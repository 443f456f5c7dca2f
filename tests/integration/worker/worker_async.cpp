// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Handlers whose jobs end later, by JobDone.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/in_flight.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/unique.hpp>
#include <orizuru/ops/worker_metrics.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace worker_async_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::Guarantee;
using orizuru::HandleMiddlewareScope;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::JobDone;
using orizuru::JobProducer;
using orizuru::JobRun;
using orizuru::make_job;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::InFlightFixture;
using orizuru::test::message_of;
using orizuru::test::Running;
using orizuru::test::server;
using orizuru::test::status_of_child;
using orizuru::test::Texts;

struct Fixture : InFlightFixture {
    /// The worker waits for no job in Redis.
    bool paused() { return info("clients", "blocked_clients") == 0; }
};

TEST_CASE_FIXTURE(Fixture, "a job whose handler has returned is held without a thread, until its "
                           "JobDone is called") {
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", keep(), any_number());
    push_jobs({"a", "b", "c"});
    Running running(worker);
    REQUIRE(kept.has(3));
    CHECK(held_jobs() == Texts{"a", "b", "c"});
    CHECK(worker.running().size() == 3);
    for (const orizuru::RunningJob& job : worker.running()) {
        CHECK_FALSE(job.thread);
        CHECK(orizuru::test::contains(to_string(job), "in flight: job "));
    }
    const std::string metrics = prometheus(worker);
    CHECK(orizuru::test::contains(metrics, "orizuru_worker_jobs_in_flight 3\n"));
    CHECK(orizuru::test::contains(metrics, "orizuru_worker_threads{state=\"busy\"} 0\n"));
    kept.take("b")();
    CHECK(eventually([&] { return held_jobs() == Texts{"a", "c"}; }));
    kept.take("a")();
    kept.take("c")();
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(running.stop() == 0);
    CHECK(worker.statistics().succeeded == 3);
    CHECK(diary.count(WorkerEventKind::succeeded) == 3);
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fixture,
                  "a handler takes a JobDone behind each of the other lists of arguments") {
    Worker worker(uri, options());
    worker
        .handle<Raw>("q", "1",
                     [&](const Raw& payload, JobDone done) {
                         handled.add(payload.bytes);
                         done();
                     })
        .handle<Raw>("q", "2",
                     [&](const Raw& payload, JobContext<Raw>& job, JobDone done) {
                         handled.add(payload.bytes + job.kind());
                         done();
                     })
        .handle<Raw>("q", "3",
                     [&](const Job<Raw>& job, JobContext<Raw>& context, JobDone done) {
                         handled.add(job.payload.bytes + context.kind());
                         done();
                     })
        .handle<Raw>("q", "4",
                     [&](JobContext<Raw>& job, JobDone done) {
                         handled.add(job->payload.bytes);
                         done();
                     })
        .handle<Raw>("q", "5", [&](const Job<Raw>& job, JobDone&& done) {
            handled.add(job.payload.bytes);
            JobDone(std::move(done))();
        });
    for (const std::string kind : {"1", "2", "3", "4", "5"}) {
        JobProducer<Raw>(uri, "q", {.kind = kind}).push({"of " + kind});
    }
    const Running running(worker);
    CHECK(has_handled({"of 1", "of 22", "of 33", "of 4", "of 5"}));
    CHECK(eventually([&] { return worker.statistics().succeeded == 5; }));
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "as many jobs are in flight as the queue's concurrency says, and the "
                           "rest waits in Redis") {
    QueueOptions chosen = much_later();
    std::size_t most = 3;
    SUBCASE("that is chosen") {
        chosen.concurrency = 5;
        most = 5;
    }
    SUBCASE("or as many as there are threads") {}
    Worker worker(uri, options(3));
    worker.handle<Raw>("q", keep(), chosen);
    push_jobs(Texts(10, "x"));
    const Running running(worker);
    for (std::size_t ended = 0; ended < 10; ++ended) {
        const std::size_t left = 10 - ended;
        REQUIRE(kept.has(std::min(most, left)));
        CHECK(eventually([&] { return held_jobs().size() == std::min(most, left); }));
        CHECK(jobs().size() == left - std::min(most, left));
        kept.take("x")();
        CHECK(eventually([&] { return worker.statistics().succeeded == ended + 1; }));
    }
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a job fails with what its JobDone is given, and is put off") {
    Worker worker(uri, options());
    worker.handle<Raw>(
        "q",
        [kept = kept](JobContext<Raw>& job, JobDone done) {
            job.set_attribute("tenant", "7");
            if (job->payload.bytes == "says so") {
                job.fail("no such user");
            }
            kept.add(job->payload.bytes, std::move(done));
        },
        any_number());
    std::string payload = "x";
    std::string why = "no such user";
    std::exception_ptr error;
    SUBCASE("an exception") { error = std::make_exception_ptr(std::runtime_error(why)); }
    SUBCASE("one that is no std::exception") {
        error = std::make_exception_ptr(7);
        why = "an exception that is no std::exception";
    }
    SUBCASE("JobRun::fail") { payload = "says so"; }
    push_jobs({payload});
    const Running running(worker);
    REQUIRE(kept.has(1));
    kept.take(payload)(error);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(held_jobs().empty());
    CHECK(put_off().front().attempt == 2);
    CHECK(put_off().front().last_error == why);
    CHECK(put_off().front().attributes.at("tenant") == "7");
    CHECK(eventually([&] { return diary.count(WorkerEventKind::failed) == 1; }));
    CHECK(worker.statistics().failed == 1);
    CHECK(worker.statistics().succeeded == 0);
}

TEST_CASE_FIXTURE(Fixture, "DoNotRetry, Discard and RetryPolicy::decide have their meaning in a "
                           "JobDone") {
    Worker worker(uri, options());
    QueueOptions chosen = any_number();
    std::exception_ptr error;
    bool dies = true;
    SUBCASE("DoNotRetry") { error = std::make_exception_ptr(orizuru::DoNotRetry("no such user")); }
    SUBCASE("Discard") {
        error = std::make_exception_ptr(orizuru::Discard("no such user"));
        dies = false;
    }
    SUBCASE("decide") {
        error = std::make_exception_ptr(std::runtime_error("no such user"));
        chosen.retry.decide = [](const std::exception_ptr& thrown, int) {
            CHECK(message_of<std::runtime_error>([&] { std::rethrow_exception(thrown); }) ==
                  "no such user");
            return orizuru::RetryDecision{orizuru::RetryDecision::Action::bury};
        };
    }
    worker.handle<Raw>("q", keep(), chosen);
    push_jobs({"x"});
    const Running running(worker);
    REQUIRE(kept.has(1));
    kept.take("x")(error);
    CHECK(eventually([&] {
        return diary.count(dies ? WorkerEventKind::died : WorkerEventKind::discarded) == 1;
    }));
    CHECK(held_jobs().empty());
    CHECK(put_off().empty());
    CHECK(redis.llen(dead) == (dies ? 1 : 0));
}

TEST_CASE_FIXTURE(Fixture, "a run without a call of its JobDone has failed") {
    Worker worker(uri, options());
    std::string why = "the handler ended without JobDone";
    std::function<void(JobDone)> handler = [](const JobDone&) {};
    SUBCASE("dropped by its handler") {}
    SUBCASE("dropped later") {
        handler = [kept = kept](JobDone done) { kept.add("x", std::move(done)); };
    }
    SUBCASE("its handler throws") {
        why = "no such user";
        handler = [](const JobDone&) { throw std::runtime_error("no such user"); };
    }
    SUBCASE("its handler throws when it has moved it on, and then it is called") {
        why = "no such user";
        handler = [kept = kept](JobDone done) {
            kept.add("x", std::move(done));
            throw std::runtime_error("no such user");
        };
    }
    SUBCASE("its handler throws when it has called it") {
        why = "no such user";
        handler = [](JobDone done) {
            done();
            throw std::runtime_error("no such user");
        };
    }
    worker.handle<Raw>(
        "q", [&](const Raw&, JobDone done) { handler(std::move(done)); }, any_number());
    push_jobs({"x"});
    const Running running(worker);
    if (why != "no such user") {
        CHECK(eventually([&] { return kept.size() == 1 || put_off().size() == 1; }));
        static_cast<void>(kept.take_all());
    }
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    for (JobDone& done : kept.take_all()) {
        done();
    }
    CHECK(put_off().front().last_error == why);
    CHECK(put_off().front().attempt == 2);
    CHECK(held_jobs().empty());
    CHECK(eventually([&] { return worker.statistics().failed == 1; }));
    CHECK(worker.statistics().succeeded == 0);
}

TEST_CASE_FIXTURE(Fixture, "a JobDone ends one job, once") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", keep(), any_number());
    push_jobs({"x", "y"});
    const Running running(worker);
    REQUIRE(kept.has(2));
    const std::string refusal = "a JobDone is called that has ended its job, or was moved from";
    JobDone none;
    CHECK_FALSE(none);
    CHECK(message_of<std::logic_error>([&] { none(); }) == refusal);
    JobDone done = kept.take("x");
    CHECK(done);
    done();
    CHECK_FALSE(done);
    CHECK(message_of<std::logic_error>([&] { done(); }) == refusal);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    JobDone moved = kept.take("y");
    done = std::move(moved);
    CHECK(message_of<std::logic_error>([&] { moved(); }) == refusal); // NOLINT(*-use-after-move)
    CHECK(held_jobs() == Texts{"y"});
    SUBCASE("called") {
        done();
        CHECK(eventually([&] { return nothing_left(); }));
    }
    SUBCASE("replaced, which ends its own job first") {
        done = JobDone();
        CHECK(eventually([&] { return put_off().size() == 1; }));
    }
}

TEST_CASE_FIXTURE(Fixture, "a JobDone may leave its job undone, and the attempt does not count") {
    QueueOptions chosen = any_number();
    Worker worker(uri, options());
    SUBCASE("then it comes again") {
        worker.handle<Raw>("q", keep(), chosen);
        push_jobs({"x"});
        const Running running(worker);
        REQUIRE(kept.has(1));
        kept.take("x").requeue();
        REQUIRE(kept.has(1));
        CHECK(worker.running().at(0).attempt == 1);
        CHECK(eventually([&] { return worker.statistics().requeued == 1; }));
        kept.take("x")();
        CHECK(eventually([&] { return nothing_left(); }));
        CHECK(worker.statistics().failed == 0);
    }
    SUBCASE("at most once, it is gone, and this is told") {
        chosen.guarantee = Guarantee::at_most_once;
        worker.handle<Raw>("q", keep(), chosen);
        push_jobs({"x"});
        const Running running(worker);
        REQUIRE(kept.has(1));
        kept.take("x").requeue();
        REQUIRE(eventually([&] { return diary.count(WorkerEventKind::discarded) == 1; }));
        CHECK(diary.of(WorkerEventKind::discarded).front().detail == "left undone");
        CHECK(worker.statistics().succeeded == 0);
        CHECK(nothing_left());
    }
    SUBCASE("unless it has said that it fails") {
        worker.handle<Raw>(
            "q",
            [kept = kept](JobContext<Raw>& job, JobDone done) {
                job.fail("no such user");
                kept.add("x", std::move(done));
            },
            chosen);
        push_jobs({"x"});
        const Running running(worker);
        REQUIRE(kept.has(1));
        kept.take("x").requeue();
        REQUIRE(eventually([&] { return put_off().size() == 1; }));
        CHECK(put_off().front().last_error == "no such user");
    }
}

TEST_CASE_FIXTURE(Fixture,
                  "a job that has ended gives its place to others, whoever keeps a JobDone "
                  "that has no effect any more") {
    QueueOptions chosen = much_later();
    chosen.concurrency = 1;
    Worker worker(uri, options());
    worker.handle<Raw>(
        "q",
        [kept = kept](const Raw& raw, JobDone done) {
            kept.add(raw.bytes, std::move(done));
            if (raw.bytes == "x") {
                throw std::runtime_error("busy");
            }
        },
        chosen);
    push_jobs({"x", "y"});
    const Running running(worker);
    CHECK(kept.has(2));
    CHECK(eventually([&] { return put_off().size() == 1; }));
    CHECK(held_jobs() == Texts{"y"});
}

TEST_CASE_FIXTURE(Fixture, "a job is listed once while its handler is being called") {
    const Gate gate;
    Worker worker(uri, options());
    worker.handle<Raw>("q", [&](const Raw&, JobDone done) {
        gate.pass();
        done();
    });
    push_jobs({"x"});
    const Running running(worker);
    REQUIRE(gate.reached());
    CHECK(worker.running().size() == 1);
    CHECK(worker.running().at(0).thread == 0);
    gate.open();
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "beside a kind whose handler blocks, a fetch takes a job for each free "
                           "thread, and none while none is free") {
    const Gate gate;
    Worker worker(uri, options(2));
    worker.serve("q", any_number())
        .handle<Raw>("q", "later", keep())
        .handle<Raw>("q", "now", [&](const Raw&) { gate.pass(); });
    JobProducer<Raw>(uri, "q", {.kind = "now"}).push_all(std::vector<Raw>(20, Raw{"x"}));
    const Running running(worker);
    REQUIRE(gate.reached(2));
    CHECK(held_jobs().size() == 2);
    CHECK(jobs().size() == 18);
    gate.open();
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "jobs in flight of a queue that is paused meanwhile are acked at once") {
    QueueOptions chosen = any_number();
    chosen.lease = 24h; // else its beats would ack them
    Worker worker(uri, options());
    worker.handle<Raw>("q", keep(), chosen);
    push_jobs({"x", "y", "z"});
    const Running running(worker);
    REQUIRE(kept.has(3));
    orizuru::Pause(uri, "q").pause();
    REQUIRE(eventually([&] { return paused(); }));
    kept.take("y")();
    CHECK(eventually([&] { return held_jobs() == Texts{"x", "z"}; }));
    kept.take("z")(std::make_exception_ptr(std::runtime_error("busy")));
    CHECK(eventually([&] { return held_jobs() == Texts{"x"} && put_off().size() == 1; }));
    orizuru::Pause(uri, "q").resume();
    push_jobs({"v"});
    REQUIRE(kept.has(2));
    kept.take("x")();
    CHECK(eventually([&] { return held_jobs() == Texts{"v"}; }));
    kept.take("v")();
    CHECK(eventually([&] { return held_jobs().empty(); }));
    CHECK(diary.count(WorkerEventKind::lost) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a forked child cannot end a job, and does not by dropping what would") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", keep(), any_number());
    push_jobs({"x"});
    const Running running(worker);
    REQUIRE(kept.has(1));
    JobDone done = kept.take("x");
    CHECK(status_of_child([&] {
              JobDone dropped = std::move(done);
              try {
                  dropped();
              } catch (const std::logic_error& error) {
                  return std::string(error.what()) == "a JobDone is called in a forked child" ? 7
                                                                                              : 1;
              }
              return 2;
          }) == 7);
    CHECK(held_jobs() == Texts{"x"});
    done();
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a job in flight over its time limit is told, and has failed however "
                           "it ends") {
    Worker worker(uri, options());
    QueueOptions chosen = any_number();
    chosen.time_limit = 20ms;
    std::atomic<bool> told{false};
    worker.handle<Raw>(
        "q",
        [&](JobContext<Raw>& job, JobDone done) {
            std::thread([&told, token = job.stop_token(), done = std::move(done)]() mutable {
                told = eventually([&] { return token.stop_requested(); });
                done();
            }).detach();
        },
        chosen);
    push_jobs({"x"});
    const Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(told);
    CHECK(put_off().front().last_error == "the time limit of 20 ms is over");
}

TEST_CASE_FIXTURE(Fixture, "a job that ends in time has not failed, however late it is settled") {
    constexpr auto limit = 1s;
    QueueOptions chosen = any_number();
    chosen.time_limit = limit;
    // What is told of the first job holds up the thread that settles them.
    const Gate gate;
    WorkerOptions held_up = options();
    held_up.on_event = [&, pen = diary.pen()](const orizuru::WorkerEvent& event) {
        pen(event);
        if (event.kind == WorkerEventKind::succeeded) {
            gate.pass();
        }
    };
    Worker worker(uri, held_up);
    worker.handle<Raw>("q", keep(), chosen);
    const Running running(worker);
    push_jobs({"x"});
    REQUIRE(kept.has(1));
    kept.take("x")();
    REQUIRE(gate.reached());
    const auto begun = std::chrono::steady_clock::now();
    push_jobs({"y"});
    REQUIRE(kept.has(1));
    kept.take("y")();
    const bool in_time = std::chrono::steady_clock::now() < begun + limit;
    CHECK(eventually([&] { return std::chrono::steady_clock::now() > begun + 2 * limit; }));
    gate.open();
    CHECK(eventually([&] { return held_jobs().empty(); }));
    // A busy machine may have held up the test as well.
    CHECK((!in_time || eventually([&] { return worker.statistics().succeeded == 2; })));
}

TEST_CASE_FIXTURE(Fixture, "a job that was settled in flight is left alone") {
    Worker worker(uri, options());
    std::function<void(JobContext<Raw>&)> settle;
    std::size_t buried = 0;
    SUBCASE("acked") {
        settle = [](JobContext<Raw>& job) { job.guard()->ack(); };
    }
    SUBCASE("buried") {
        buried = 1;
        settle = [](JobContext<Raw>& job) { job.guard()->bury("no such user"); };
    }
    SUBCASE("moved out, and acked elsewhere") {
        settle = [](JobContext<Raw>& job) {
            auto mine = std::move(*job.guard());
            mine.ack();
        };
    }
    worker.handle<Raw>(
        "q",
        [&](JobContext<Raw>& job, JobDone done) {
            settle(job);
            kept.add("x", std::move(done));
        },
        any_number());
    push_jobs({"x"});
    Running running(worker);
    REQUIRE(kept.has(1));
    CHECK(held_jobs().empty());
    kept.take("x")();
    CHECK(eventually([&] { return worker.running().empty(); }));
    CHECK(running.stop() == 0);
    CHECK(worker.statistics().settled == 1);
    CHECK(worker.statistics().died == buried);
    CHECK(diary.count(WorkerEventKind::lost) == 0);
}

TEST_CASE_FIXTURE(Fixture, "the acks of jobs that end together are one script, and whoever is told "
                           "of a success finds it in Redis soon") {
    constexpr std::size_t count = 1000;
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", keep(), any_number());
    push_jobs(Texts(count, "x"));
    const Running running(worker);
    REQUIRE(kept.has(count));
    redis.command({"CONFIG", "RESETSTAT"});
    std::vector<JobDone> all = kept.take_all();
    std::shuffle(all.begin(), all.end(), std::minstd_rand(7)); // NOLINT(cert-msc51-cpp)
    {
        std::vector<std::jthread> threads;
        for (std::size_t part = 0; part < 4; ++part) {
            threads.emplace_back([&all, part] {
                for (std::size_t i = part; i < count; i += 4) {
                    all[i]();
                }
            });
        }
    }
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(eventually([&] { return worker.statistics().succeeded == count; }));
    CHECK(runs_of("evalsha") + runs_of("eval") < static_cast<std::int64_t>(count) / 4);
    CHECK(diary.count(WorkerEventKind::lost) == 0);
}

TEST_CASE_FIXTURE(Fixture, "jobs that end in flight keep their locks, guarantees and kinds") {
    Worker worker(uri, options(2));
    SUBCASE("a unique job releases its lock") {
        worker.handle<Raw>("q", keep(), any_number());
        orizuru::Producer<Job<Raw>> producer(uri, "q");
        REQUIRE(push_unique(producer, "u", make_job(Raw{"x"})));
        const Running running(worker);
        REQUIRE(kept.has(1));
        CHECK_FALSE(push_unique(producer, "u", make_job(Raw{"x"})));
        kept.take("x")();
        CHECK(eventually([&] { return nothing_left(); }));
        CHECK(push_unique(producer, "u", make_job(Raw{"y"})));
    }
    SUBCASE("at most once, it is acked before its handler") {
        QueueOptions chosen = any_number();
        chosen.guarantee = Guarantee::at_most_once;
        worker.handle<Raw>("q", keep(), chosen);
        push_jobs({"x"});
        Running running(worker);
        REQUIRE(kept.has(1));
        CHECK(held_jobs().empty());
        SUBCASE("and it succeeds") {
            kept.take("x")();
            CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
        }
        SUBCASE("and a failure is not retried") {
            kept.take("x")(std::make_exception_ptr(std::runtime_error("busy")));
            CHECK(eventually([&] { return worker.statistics().discarded == 1; }));
        }
        CHECK(eventually([&] { return nothing_left(); }));
    }
    SUBCASE("beside a kind whose handler blocks") {
        const Gate gate;
        worker.serve("q", any_number())
            .handle<Raw>("q", "later", keep())
            .handle<Raw>("q", "now", [&](const Raw&) { gate.pass(); });
        JobProducer<Raw>(uri, "q", {.kind = "now"}).push({"a"});
        JobProducer<Raw>(uri, "q", {.kind = "later"}).push_all(std::vector<Raw>(3, Raw{"b"}));
        const Running running(worker);
        REQUIRE(gate.reached());
        REQUIRE(kept.has(3));
        for (JobDone& done : kept.take_all()) {
            done();
        }
        CHECK(eventually([&] { return worker.statistics().succeeded == 3; }));
        CHECK(held_jobs() == Texts{"a"});
        gate.open();
        CHECK(eventually([&] { return nothing_left(); }));
    }
    SUBCASE("deferred acks go with the next fetch, or before the lease ends") {
        QueueOptions chosen = any_number();
        chosen.ack = AckMode::deferred;
        chosen.lease = 600ms;
        worker.handle<Raw>("q", keep(), chosen);
        push_jobs({"x"});
        const Running running(worker);
        REQUIRE(kept.has(1));
        kept.take("x")();
        CHECK(eventually([&] { return nothing_left(); }));
    }
}

TEST_CASE_FIXTURE(Fixture,
                  "no HandleMiddleware runs around a handler with a JobDone, which is said "
                  "at once") {
    std::atomic<int> around{0};
    WorkerOptions chosen = options();
    chosen.handle_middleware = {[&](JobRun&, const std::function<void()>& next) {
        ++around;
        next();
    }};
    SUBCASE("unless it is meant so") {
        chosen.handle_middleware_scope = HandleMiddlewareScope::blocking_handlers;
        Worker worker(uri, chosen);
        worker.serve("q", {})
            .handle<Raw>("q", "later", keep())
            .handle<Raw>("q", "now", write_down());
        JobProducer<Raw>(uri, "q", {.kind = "later"}).push({"a"});
        JobProducer<Raw>(uri, "q", {.kind = "now"}).push({"b"});
        const Running running(worker);
        REQUIRE(kept.has(1));
        kept.take("a")();
        CHECK(has_handled({"b"}));
        CHECK(eventually([&] { return worker.statistics().succeeded == 2; }));
        CHECK(around == 1);
        return;
    }
    Worker worker(uri, chosen);
    const std::string refusal =
        "queue 'q': no HandleMiddleware can run around a handler with a JobDone; use "
        "WorkerOptions::observers, or HandleMiddlewareScope::blocking_handlers if it need not";
    CHECK(message_of<std::invalid_argument>([&] { worker.handle<Raw>("q", keep()); }) == refusal);
    CHECK(message_of<std::invalid_argument>([&] { worker.handle<Raw>("q", "k", keep()); }) ==
          refusal);
    worker.handle<Raw>("q", write_down()); // nothing has changed
}

TEST_CASE_FIXTURE(Fixture, "a settlement that Redis refuses is repeated, and meanwhile nothing is "
                           "fetched from the queue") {
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", keep(), any_number());
    push_jobs({"x"});
    const Running running(worker);
    REQUIRE(kept.has(1));
    redis.command({"SET", "orizuru:{q}:scheduled", "no sorted set"});
    kept.take("x")(std::make_exception_ptr(std::runtime_error("busy")));
    // It has stopped fetching before it tries once more, and a wait of before has ended.
    CHECK(eventually([&] { return diary.count(WorkerEventKind::unsettled) > 1; }));
    REQUIRE(eventually([&] { return paused(); }));
    push_jobs({"y"});
    CHECK(held_jobs() == Texts{"x"});
    CHECK(kept.size() == 0);
    redis.command({"DEL", "orizuru:{q}:scheduled"});
    CHECK(eventually([&] { return put_off().size() == 1; }));
    CHECK(kept.has(1));
}

TEST_CASE_FIXTURE(Fixture, "an ack that Redis refuses is repeated") {
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "&*", "+@all"});
    Worker worker("unix://clerk:open-sesame@" + server().socket_path(), options(2));
    QueueOptions chosen = any_number();
    chosen.lease = 24h; // else its beats would repeat it
    worker.handle<Raw>("q", keep(), chosen);
    push_jobs({"x", "y"});
    const Running running(worker);
    REQUIRE(kept.has(2));
    redis.command({"ACL", "SETUSER", "clerk", "-evalsha"});
    kept.take("y")();
    CHECK(eventually([&] { return diary.count(WorkerEventKind::unsettled) > 0; }));
    CHECK(held_jobs() == Texts{"x", "y"});
    redis.command({"ACL", "SETUSER", "clerk", "+evalsha"});
    CHECK(eventually([&] { return held_jobs() == Texts{"x"}; }));
    kept.take("x")();
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "acks in flight that come too late are told as lost") {
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", keep(), any_number());
    push_jobs({"x"});
    const Running running(worker);
    REQUIRE(kept.has(1));
    redis.flushall();
    kept.take("x")();
    CHECK(eventually([&] { return diary.count(WorkerEventKind::lost) == 1; }));
}

} // namespace worker_async_test
