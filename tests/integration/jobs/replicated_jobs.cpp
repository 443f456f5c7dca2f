// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs that wait for replicas, on whichever way they are pushed: JobProducerOptions::replicas.

#include "integration/core/replicated_fixture.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace replicated_jobs_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::JobOptions;
using orizuru::JobProducer;
using orizuru::Raw;

orizuru::JobProducerOptions<Raw> waiting(std::chrono::milliseconds within) {
    orizuru::JobProducerOptions<Raw> options;
    options.replicas = {.count = 1, .within = within};
    return options;
}

struct Jobs : Replicated {
    [[nodiscard]] JobProducer<Raw> producer(std::chrono::milliseconds within) const {
        return JobProducer<Raw>(server.uri(), "q", waiting(within));
    }
    static std::vector<std::pair<std::string, JobOptions>> ways() {
        return {{"LPUSH", {}},
                {"EVAL", {.delay = 1h}},
                {"EVAL", {.unique = "order 7"}},
                {"EVAL", {.bound = orizuru::QueueBound{1000}}}};
    }
    static long jobs(RedisClient& of) {
        return of.llen("q") + of.command({"ZCARD", "orizuru:{q}:scheduled"}).integer;
    }
};

TEST_CASE_FIXTURE(Jobs, "a job that is pushed is on the replica, on whichever way") {
    auto jobs_of = producer(20s);
    for (int i = 0; i < 20; ++i) {
        for (const auto& [command, options] : ways()) {
            jobs_of.push({"a"}, options);
            CHECK(jobs(copy) == jobs(redis));
            jobs_of.push_all({{"b"}, {"c"}}, options);
            CHECK(jobs(copy) == jobs(redis));
        }
    }
    CHECK(jobs(copy) == 20 * (3 + 3 + 3) + 1);
}

TEST_CASE_FIXTURE(Jobs, "a job that too few replicas confirm is in doubt, and is there") {
    auto jobs_of = producer(50ms);
    replica.pause();
    long there = 0;
    for (const auto& [command, options] : ways()) {
        CAPTURE(there);
        const auto is_expected = [&, &name = command](const std::string& doubt) {
            return contains(doubt, name) && // EVALSHA, too
                   contains(doubt, " 'q': done, but only 0 of 1 replicas have it");
        };
        CHECK(is_expected(doubt_of([&, &with = options] { jobs_of.push({"a"}, with); })));
        CHECK(jobs(redis) == ++there);
        if (!options.unique) {
            CHECK(is_expected(doubt_of([&, &with = options] { jobs_of.push_all({{"b"}}, with); })));
            CHECK(jobs(redis) == ++there);
        }
    }
    replica.resume();
    REQUIRE(caught_up());
    auto patient = producer(20s);
    CHECK(patient.push({"a"}));
    CHECK_FALSE(patient.push({"a"}, {.unique = "order 7"})); // the job in doubt has the lock
    CHECK(jobs(copy) == there + 1);
}

TEST_CASE_FIXTURE(Jobs, "a refused script leaves no reply to its WAIT behind") {
    auto jobs_of = producer(20s);
    redis.command({"SET", "q", "x"});
    for (const auto& [command, options] : ways()) {
        CHECK_THROWS_AS(jobs_of.push({"a"}, options), orizuru::ReplyError);
    }
    redis.command({"DEL", "q"});
    CHECK(jobs_of.push({"a"}));
    CHECK(jobs_of.push({"a"}, {.unique = "order 7"}));
    CHECK(copy.llen("q") == 2);
}

TEST_CASE("a JobProducer refuses replicas that cannot be") {
    CHECK_THROWS_AS(JobProducer<Raw>("redis://127.0.0.1:1", "q", waiting(0ms)),
                    std::invalid_argument);
}

} // namespace replicated_jobs_test
