// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker as a part of its process: what signals do, and a fork before it runs.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/serving_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"
#include "support/stderr_pipe.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/job_log.hpp>

#include <doctest/doctest.h>

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>

namespace worker_process_test {

using namespace std::chrono_literals;
using orizuru::JobContext;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEvent;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::Child;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::RedisClient;
using orizuru::test::ServingFixture;
using orizuru::test::ShortPipe;
using orizuru::test::StderrInto;
using orizuru::test::Texts;

std::atomic<int> handled_by_user{0};
std::atomic<Worker*> stopped_by_user{nullptr};

/// A process that runs a worker.
struct Process : ServingFixture {
    /// Its handler runs until the worker is told to stop.
    int run(std::chrono::milliseconds after_stop = 0ms, int concurrency = 1) {
        return serve(
            [after_stop](JobContext<Raw>& context, RedisClient& own) {
                own.lpush("started", context.id());
                while (!context.stop_token().stop_requested()) {
                    std::this_thread::sleep_for(1ms);
                }
                own.lpush("stopping", "x");
                std::this_thread::sleep_for(after_stop);
            },
            concurrency);
    }
    /// Returns when the first job is being handled.
    bool works() {
        return eventually([this] { return redis.llen("started") == 1; });
    }
};

TEST_CASE_FIXTURE(Process, "SIGTERM and SIGINT stop a worker's process, which gives back nothing "
                           "that it has done") {
    push_jobs({"a", "b"});
    int number = SIGTERM;
    SUBCASE("SIGTERM") {}
    SUBCASE("SIGINT") { number = SIGINT; }
    Child child([this] { return run(); });
    REQUIRE(works());
    child.signal(number);
    CHECK(child.status() == 0);
    CHECK(jobs() == Texts{"b"});
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Process, "a worker whose stderr nobody reads handles its jobs and ends in time; "
                           "once somebody reads, it says how many lines it has dropped") {
    constexpr int count = 200;
    const ShortPipe pipe;
    Child child([&] {
        const StderrInto here(pipe);
        WorkerOptions chosen = options(4);
        chosen.signal_handling = orizuru::SignalHandling::worker;
        chosen.on_event = WorkerOptions().on_event;
        chosen.observers = {orizuru::log_jobs()};
        Worker worker(uri, chosen);
        worker.handle<Raw>(
            "q", [](const Raw&) { throw std::runtime_error("busy"); }, much_later());
        return worker.run();
    });
    push_jobs(Texts(count, "x"));
    CHECK(eventually([&] { return put_off().size() == count; }));
    std::string text = pipe.drain();
    CHECK(contains(text, "orizuru: started\n"));
    CHECK(contains(text, " retry_in=3600000ms busy\n"));
    SUBCASE("until it ends") {
        pipe.fill();
        push_jobs({"one more"});
        CHECK(eventually([&] { return put_off().size() == count + 1; }));
    }
    SUBCASE("until it goes on") {
        push_jobs({"one more"});
        text.clear();
        CHECK(eventually([&] {
            text += pipe.drain();
            return contains(text, " lines were dropped: stderr had no room\n");
        }));
    }
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
}

TEST_CASE_FIXTURE(Process, "a second signal ends the process at once") {
    push_jobs({"a", "b"});
    Child child([this] { return run(1h); });
    REQUIRE(works());
    SUBCASE("after a while") {
        child.signal(SIGTERM);
        REQUIRE(eventually([this] { return redis.llen("stopping") == 1; }));
        child.signal(SIGINT);
        CHECK(child.status() == 128 + SIGINT);
    }
    SUBCASE("together with the first") {
        child.signal(SIGSTOP);
        child.signal(SIGTERM);
        child.signal(SIGINT);
        child.signal(SIGCONT);
        CHECK(child.status() > 128);
    }
    CHECK(jobs() == Texts{"b"});
    CHECK(held_jobs() == Texts{"a"});
}

TEST_CASE_FIXTURE(Process, "after SIGTSTP a process takes no more jobs") {
    push_jobs({"a"});
    Child child([this] { return run(0ms, 2); });
    REQUIRE(works());
    REQUIRE(so_many_wait(1));
    child.signal(SIGTSTP);
    child.signal(SIGTTIN); // answered after the signal before it
    REQUIRE(eventually([this] { return redis.llen("reports") == 1; }));
    REQUIRE(so_many_wait(0)); // what comes while the wait ends may still be taken
    push_jobs({"b"});
    CHECK_FALSE(eventually([this] { return redis.llen("started") == 2; }, 50ms));
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
    CHECK(jobs() == Texts{"b"});
}

TEST_CASE_FIXTURE(Process, "at SIGTTIN a process reports what its threads do") {
    const std::string id = push_jobs({"a"});
    Child child([this] { return run(); });
    REQUIRE(works());
    child.signal(SIGTTIN);
    REQUIRE(eventually([this] { return redis.llen("reports") == 1; }));
    const std::string report = redis.lrange("reports").front();
    CHECK(contains(report, "thread 0: job " + id + " of 'q', attempt 1, for "));
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
}

TEST_CASE_FIXTURE(Process, "signals that are not the worker's are left alone, and its own come to "
                           "the program, too, while it runs and behind it") {
    push_jobs({"a"});
    Child child([this] {
        struct sigaction own {};
        own.sa_handler = [](int) { ++handled_by_user; };
        for (const int number : {SIGTERM, SIGINT, SIGTSTP, SIGTTIN, SIGUSR1, SIGHUP}) {
            ::sigaction(number, &own, nullptr);
        }
        const int left = run();
        if (left != 0 || handled_by_user != 3) {
            return 10 + handled_by_user;
        }
        for (const int number : {SIGTERM, SIGINT, SIGTSTP, SIGTTIN}) {
            ::raise(number);
        }
        return handled_by_user == 7 ? 0 : 20;
    });
    REQUIRE(works());
    child.signal(SIGUSR1);
    child.signal(SIGHUP);
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
    CHECK(jobs().empty());
}

TEST_CASE_FIXTURE(Process, "a signal that is ignored when a worker begins to run stays so") {
    push_jobs({"a"});
    Child child([this] {
        ::signal(SIGINT, SIG_IGN); // as a shell does for background processes
        return run();
    });
    REQUIRE(works());
    child.signal(SIGINT);
    child.signal(SIGTTIN); // answered after the signal before it would have been
    REQUIRE(eventually([this] { return redis.llen("reports") == 1; }));
    CHECK_FALSE(eventually([this] { return redis.llen("stopping") == 1; }, 50ms));
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
}

TEST_CASE_FIXTURE(Process, "processes that were forked with a worker that none had run stop each "
                           "by itself") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    stopped_by_user = &worker;
    constexpr int count = 6;
    std::deque<Child> children;
    for (int i = 0; i < count; ++i) {
        children.emplace_back([&] {
            ::signal(SIGUSR1, [](int) { stopped_by_user.load()->stop(); });
            return worker.run();
        });
    }
    REQUIRE(so_many_wait(count));
    for (Child& child : children) {
        child.signal(SIGUSR1);
        CHECK(child.status() == 0);
    }
}

TEST_CASE_FIXTURE(Process, "a handler whose thread is ended under it ends the process, and its job "
                           "stays leased; a cancellation that it keeps off does nothing") {
    push_jobs({"a"});
    void (*end_thread)() = [] { ::pthread_exit(nullptr); };
    int status = -1;
    SUBCASE("by pthread_exit") {}
    SUBCASE("by its cancellation") {
        end_thread = [] {
            ::pthread_cancel(::pthread_self());
            ::pthread_testcancel();
        };
    }
    SUBCASE("by a cancellation that is disabled") {
        status = 0;
        end_thread = [] {
            ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
            ::pthread_cancel(::pthread_self());
            ::pthread_testcancel();
        };
    }
    Child child([&] {
        ::signal(SIGABRT, SIG_DFL); // the test's own would report a crash
        return serve([=](JobContext<Raw>&, RedisClient& own) {
            own.lpush("started", "x");
            end_thread();
        });
    });
    REQUIRE(works());
    if (status == 0) {
        CHECK(eventually([this] { return nothing_left(); }));
        child.signal(SIGTERM);
    }
    CHECK(child.status() == status);
    CHECK(held_jobs().size() == (status == 0 ? 0 : 1));
}

} // namespace worker_process_test
