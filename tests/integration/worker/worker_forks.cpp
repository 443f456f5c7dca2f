// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker whose handler forks: its signals, and children that come back from what forked them.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/serving_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/stderr_pipe.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_batch.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace worker_forks_test {

using namespace std::chrono_literals;
using orizuru::JobContext;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEvent;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::Child;
using orizuru::test::eventually;
using orizuru::test::RedisClient;
using orizuru::test::ServingFixture;
using orizuru::test::ShortPipe;
using orizuru::test::StderrInto;
using orizuru::test::Texts;

TEST_CASE_FIXTURE(ServingFixture,
                  "a signal to a child that a handler forked does to it what it did "
                  "before the worker ran, and nothing to the worker") {
    void (*before)(int) = SIG_DFL;
    std::string status = "-1";
    SUBCASE("by default") {}
    SUBCASE("by a function of the user's") {
        before = [](int) { // called behind the worker's in its process, too
            if (::getppid() != orizuru::test::test_process) {
                ::_exit(3);
            }
        };
        status = "3";
    }
    push_jobs({"a", "b"});
    Child child([this, before] {
        ::signal(SIGTERM, before);
        return serve([](JobContext<Raw>&, RedisClient& own) {
            Child forked([]() -> int {
                ::alarm(30); // it may outlive the process that would end it
                while (true) {
                    ::pause();
                }
            });
            forked.signal(SIGTERM);
            own.lpush("statuses", std::to_string(forked.status()));
        });
    });
    REQUIRE(eventually([this] { return redis.llen("statuses") == 2; }));
    CHECK(redis.lrange("statuses") == Texts(2, status));
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
}

TEST_CASE_FIXTURE(ServingFixture,
                  "a worker in a child that a handler forked has signals of its own") {
    push_jobs({"a", "b"});
    push_jobs({"c"}, "of child");
    Child child([this] {
        ::signal(SIGTERM, SIG_DFL);
        return serve([this](JobContext<Raw>& context, RedisClient& own) {
            if (context->payload.bytes == "b") {
                own.lpush("started", "b");
                return;
            }
            Child forked([this] {
                ::alarm(30);
                const int left = serve(
                    [](JobContext<Raw>&, RedisClient& client) { client.lpush("started", "c"); }, 1,
                    "of child");
                struct sigaction after {};
                ::sigaction(SIGTERM, nullptr, &after);
                return after.sa_handler == SIG_DFL ? left : 20;
            });
            REQUIRE(eventually([&] { return own.llen("started") == 1; }));
            forked.signal(SIGTERM);
            own.lpush("statuses", std::to_string(forked.status()));
        });
    });
    REQUIRE(eventually([this] { return redis.llen("started") == 2; }));
    CHECK(redis.lrange("statuses") == Texts{"0"});
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
    CHECK(nobody_left());
}

struct Forking : ServingFixture {
    /// Forks, the first time. The parent waits for the child's end and writes its exit status down;
    /// true in the child.
    bool in_child() {
        if (forked.exchange(true)) {
            return false;
        }
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::alarm(20); // -1
            return true;
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        RedisClient(uri).lpush("statuses",
                               std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1));
        return false;
    }

    std::atomic<bool> forked{false};
};

TEST_CASE_FIXTURE(Forking, "a child that a handler forks and that comes back from it ends at once, "
                           "with a line on stderr, and the worker goes on as before") {
    enum class From { handler, kind, batch, before, behind, fetching, event, decision, beat };
    auto from = From::handler;
    bool by_exception = false;
    QueueOptions of_queue;
    SUBCASE("by a return") {}
    SUBCASE("by an exception") { by_exception = true; }
    SUBCASE("by a return, with a time limit") { of_queue.time_limit = 1h; }
    SUBCASE("by a return, acked before") { of_queue.guarantee = orizuru::Guarantee::at_most_once; }
    SUBCASE("by a return, fetched with others") {
        of_queue.prefetch = 5;
        of_queue.ack = orizuru::AckMode::deferred;
    }
    SUBCASE("by a return, from a kind's") { from = From::kind; }
    SUBCASE("by a return, from a batch's") { from = From::batch; }
    SUBCASE("by an exception, from a batch's") {
        from = From::batch;
        by_exception = true;
    }
    SUBCASE("by a return, from a middleware before it") { from = From::before; }
    SUBCASE("by an exception, from a middleware before it") {
        from = From::before;
        by_exception = true;
    }
    SUBCASE("by a return, from a middleware behind it") { from = From::behind; }
    SUBCASE("by a return, from a middleware of fetching") { from = From::fetching; }
    SUBCASE("by an exception, from a middleware of fetching") {
        from = From::fetching;
        by_exception = true;
    }
    SUBCASE("by a return, from on_event") { from = From::event; }
    SUBCASE("by a return, from the policy of retries") { from = From::decision; }
    SUBCASE("by a return, from on_beat") {
        from = From::beat;
        of_queue.lease = 3s; // a beat after a second
    }
    const auto come_back = [&](From here) {
        const bool comes = here == from && in_child();
        if (comes && by_exception) {
            throw std::runtime_error("exec has failed");
        }
        return comes;
    };
    const ShortPipe pipe;
    Child child([&] {
        const StderrInto here(pipe);
        WorkerOptions chosen = options(2);
        chosen.signal_handling = orizuru::SignalHandling::worker;
        chosen.handle_middleware = {[&](orizuru::JobRun&, const std::function<void()>& next) {
            if (come_back(From::before)) {
                return;
            }
            next();
            come_back(From::behind);
        }};
        chosen.fetch_middleware = {[&](std::string_view, const std::function<bool()>& fetch) {
            return !come_back(From::fetching) && fetch();
        }};
        chosen.on_event = [&](const WorkerEvent& event) {
            if (event.kind == WorkerEventKind::succeeded) {
                come_back(From::event);
            }
        };
        of_queue.retry.decide = [&](const std::exception_ptr&, int) {
            come_back(From::decision);
            return orizuru::RetryDecision{orizuru::RetryDecision::Action::discard};
        };
        of_queue.on_beat = [&] { come_back(From::beat); };
        Worker worker(uri, chosen);
        const auto handle = [&](const Raw& payload) {
            if (come_back(from == From::kind ? From::kind : From::handler)) {
                return;
            }
            RedisClient(uri).lpush("handled", payload.bytes);
            if (from == From::decision) {
                throw std::runtime_error("asks");
            }
        };
        if (from == From::batch) {
            worker.handle_batch<Raw>(
                "q",
                [&](const orizuru::JobBatch<Raw>& jobs) {
                    if (come_back(From::batch)) {
                        return;
                    }
                    for (std::size_t i = 0; i < jobs.size(); ++i) {
                        RedisClient(uri).lpush("handled", jobs[i]->payload.bytes);
                    }
                },
                {.size = 1}, of_queue);
        } else if (from == From::kind) {
            worker.serve("q", of_queue).handle<Raw>("q", "k", handle);
        } else {
            worker.handle<Raw>("q", handle, of_queue);
        }
        return worker.run();
    });
    const auto push = [&](const std::string& payload) {
        orizuru::Job<Raw> job = orizuru::make_job(Raw{payload});
        job.kind = from == From::kind ? "k" : "";
        redis.lpush("q", bytes_of(job));
    };
    push("a");
    REQUIRE(eventually([&] { return redis.llen("statuses") == 1; }, 25s));
    CHECK(redis.lrange("statuses") == Texts{"70"});
    const Texts before = ids();
    push("b");
    push("c");
    CHECK(eventually([&] { return redis.llen("handled") == 3; }));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(ids() == before);
    child.signal(SIGTERM);
    CHECK(child.status() == 0);
    Texts handled = redis.lrange("handled");
    std::ranges::sort(handled);
    CHECK(handled == Texts{"a", "b", "c"});
    CHECK(nobody_left());
    CHECK(pipe.drain() == "orizuru: a forked child came back from a handler or callback: it ends; "
                          "let a child end by exec or _exit\n");
}

TEST_CASE_FIXTURE(Forking, "in a child of a Consumer's loop the next message is refused by "
                           "std::logic_error, and the parent goes on") {
    push_jobs({"a", "b", "c"});
    orizuru::Consumer<Raw> consumer{uri, "q", {.prefetch = 2}};
    const std::string id = consumer.name();
    int handled = 0;
    try {
        for (auto& guard : consumer) {
            if (in_child()) {
                continue;
            }
            CHECK(guard.ack());
            if (++handled == 3) {
                break;
            }
        }
    } catch (const std::logic_error&) {
        ::_exit(handled == 0 ? 3 : 4);
    } catch (...) {
        ::_exit(5);
    }
    CHECK(redis.lrange("statuses") == Texts{"3"});
    CHECK(handled == 3);
    CHECK(consumer.name() == id);
}

} // namespace worker_forks_test
