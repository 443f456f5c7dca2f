// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Effects once in a worker's handlers, and claims that last as long as their consumer's beats.

#include "integration/once/once_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/retry.hpp>
#include <orizuru/once.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace once_worker_test {

using namespace std::chrono_literals;
using orizuru::Claim;
using orizuru::Consumer;
using orizuru::JobContext;
using orizuru::Once;
using orizuru::OnceOutcome;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::OnceFixture;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;
using State = Claim::State;

struct Fixture : WorkerFixture {
    Once once{uri, "q"};
    std::atomic<int> effects{0};

    /// A handler that runs each payload's effect once.
    auto run_once() {
        return [this](const Raw& payload, JobContext<Raw>& job) {
            const auto run = once.run(payload.bytes, [this] { ++effects; });
            if (run.outcome == OnceOutcome::busy) {
                push_after(*job.guard(), run.busy_for);
            }
        };
    }
};

TEST_CASE_FIXTURE(Fixture, "a worker calls on_beat after each confirmed beat of its queue") {
    std::atomic<int> beats{0};
    Worker worker(uri, options());
    worker.handle<Raw>("q", [](const Raw&) {}, {.lease = 150ms, .on_beat = [&] { ++beats; }});
    const Running running(worker);
    CHECK(eventually([&] { return beats >= 3; }));
}

TEST_CASE_FIXTURE(Fixture, "jobs of one id run their effect once, in any worker and order") {
    Worker worker(uri, options(4));
    worker.handle<Raw>("q", run_once());
    Texts payloads;
    for (int i = 0; i < 200; ++i) {
        payloads.push_back(std::to_string(i % 20));
    }
    push_jobs(payloads);
    Running running(worker);
    REQUIRE(eventually([&] { return redis.llen("q") == 0 && held_jobs().empty(); }));
    CHECK(running.stop() == 0);
    // Jobs whose id was busy wait for a scheduler.
    CHECK(effects == 20);
    CHECK(worker.statistics().failed == 0);
    CHECK(worker.statistics().succeeded + put_off().size() == 200);
}

TEST_CASE_FIXTURE(Fixture,
                  "a job whose effect throws is tried again by its policy, with a claim of "
                  "its own") {
    Worker worker(uri, options());
    std::atomic<int> tries{0};
    worker.handle<Raw>("q",
                       [&](const Raw& payload) {
                           const auto run = once.run(payload.bytes, [&] {
                               if (++tries < 3) {
                                   throw std::runtime_error("no luck");
                               }
                           });
                           CHECK(run.outcome == OnceOutcome::ran);
                       },
                       {.retry = {.backoff = orizuru::backoff::fixed(0ms)}});
    push_jobs({"id"});
    const Running running(worker);
    CHECK(eventually([&] { return nothing_left() && tries == 3; }));
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(once.claim("id").state == State::done);
}

TEST_CASE_FIXTURE(Fixture,
                  "a claim lasts for three of its leases while its worker is heard, and its "
                  "effect runs once") {
    constexpr std::chrono::milliseconds lease = 1500ms;
    Once brief(uri, "q", {.lease = lease});
    const Gate gate;
    Worker worker(uri, options());
    worker.handle<Raw>("q",
                       [&](const Raw& payload) {
                           const auto run = brief.run(payload.bytes, [&] {
                               ++effects;
                               gate.pass();
                           });
                           CHECK(run.outcome == OnceOutcome::ran);
                       },
                       {.lease = lease, .on_beat = [&] { brief.renew(); }});
    push_jobs({"id"});
    const Running running(worker);
    REQUIRE(gate.reached());
    const auto end = std::chrono::steady_clock::now() + 3 * lease;
    bool busy = true;
    while (busy && std::chrono::steady_clock::now() < end) {
        busy = once.claim("id").state == State::busy;
        std::this_thread::sleep_for(5ms);
    }
    gate.open();
    CHECK(busy);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(once.claim("id").state == State::done);
    CHECK(effects == 1);
}

TEST_CASE_FIXTURE(OnceFixture, "a claim that a consumer's beats renew lasts longer than its lease, "
                               "and one that nobody renews does not") {
    Once kept(uri, "q", {.lease = 1500ms});
    Once left(uri, "q", {.lease = 1500ms});
    std::atomic<int> beats{0};
    const Consumer<Raw> consumer(uri, "q", {.lease = 1500ms, .on_beat = [&] {
                                                kept.renew();
                                                ++beats;
                                            }});
    claimed(kept, "kept");
    claimed(left, "left");
    CHECK(eventually([&] { return once.claim("left").state == State::claimed; }));
    CHECK(once.claim("kept").state == State::busy);
    CHECK(beats > 0);
}

} // namespace once_worker_test
