// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The signals of a worker whose handler forks.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/serving_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

namespace worker_forks_test {

using namespace std::chrono_literals;
using orizuru::JobContext;
using orizuru::Raw;
using orizuru::test::Child;
using orizuru::test::eventually;
using orizuru::test::RedisClient;
using orizuru::test::ServingFixture;
using orizuru::test::Texts;

TEST_CASE_FIXTURE(ServingFixture,
                  "a signal to a child that a handler forked does to it what it did "
                  "before the worker ran, and nothing to the worker") {
    void (*before)(int) = SIG_DFL;
    std::string status = "-1";
    SUBCASE("by default") {}
    SUBCASE("by a function of the user's") {
        before = [](int) { ::_exit(3); };
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

} // namespace worker_forks_test
