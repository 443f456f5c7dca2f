// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/testing/job_trial.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace job_trial_test {

using namespace std::chrono_literals;
using orizuru::Discard;
using orizuru::DoNotRetry;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::JobDone;
using orizuru::RetryDecision;
using orizuru::RetryPolicy;
using orizuru::testing::JobTrial;
using orizuru::testing::Outcome;
using Text = std::string;

[[noreturn]] void fail(const Text& /*text*/) { throw std::runtime_error("the bank is closed"); }

RetryPolicy twice() {
    return {.max_attempts = 2, .backoff = [](int attempt, auto) { return attempt * 10ms; }};
}

TEST_CASE("a handler that returns has its job acked, in each form that a worker takes") {
    Text got;
    CHECK(JobTrial<Text>("a").run([&](const Text& text) { got = text; }) == Outcome::acked);
    CHECK(JobTrial<Text>("b").run([&](const Job<Text>& job) { got += job.payload; }) ==
          Outcome::acked);
    CHECK(JobTrial<Text>("c").run([&](JobContext<Text>& job) { got += job->payload; }) ==
          Outcome::acked);
    CHECK(JobTrial<Text>("d").run([&](const Text& text, JobContext<Text>&) { got += text; }) ==
          Outcome::acked);
    CHECK(got == "abcd");
}

TEST_CASE("a failure is retried as the policy says, until it was the last try") {
    JobTrial<Text> trial("a");
    CHECK(trial.run(fail, twice()) == Outcome::retried);
    CHECK(trial.delay() == 10ms);
    CHECK(trial.reason() == "the bank is closed");
    CHECK(trial.attempt() == 2);
    CHECK(trial.run(fail, twice()) == Outcome::dead);
    CHECK(trial.delay() == 0ms);
    CHECK(trial.reason() == "the bank is closed");
    CHECK(trial.outcome() == Outcome::dead);
    CHECK_THROWS_AS(trial.run(fail), std::logic_error);
    CHECK(JobTrial<Text>("a", {.attempt = 2}).run(fail, twice()) == Outcome::dead);
    CHECK(JobTrial<Text>("a", {.max_attempts = 1}).run(fail, twice()) == Outcome::dead);
    RetryPolicy discarding = twice();
    discarding.exhausted = orizuru::Exhausted::discard;
    CHECK(JobTrial<Text>("a", {.attempt = 2}).run(fail, discarding) == Outcome::discarded);
}

TEST_CASE("what a handler throws, and what the policy decides of it, counts") {
    CHECK(JobTrial<Text>("a").run([](const Text&) { throw DoNotRetry("no such user"); }) ==
          Outcome::dead);
    CHECK(JobTrial<Text>("a").run([](const Text&) { throw Discard("nobody asks"); }) ==
          Outcome::discarded);
    RetryPolicy deciding;
    std::string asked;
    deciding.decide = [&](const std::exception_ptr& error, int attempt) {
        try {
            std::rethrow_exception(error);
        } catch (const std::exception& thrown) {
            asked += std::to_string(attempt) + thrown.what();
        }
        return RetryDecision{RetryDecision::Action::retry, 7s};
    };
    JobTrial<Text> trial("a", {.attempt = 3});
    CHECK(trial.run([](JobContext<Text>& job) { job.fail("empty"); }, deciding) ==
          Outcome::retried);
    CHECK(trial.delay() == 7s);
    CHECK(asked == "3empty");
    RetryPolicy by_tenant;
    by_tenant.decide = [](const std::exception_ptr&, const orizuru::FailedJob& job) {
        CHECK(job.kind == "charge");
        CHECK(job.attempt == 2);
        CHECK_FALSE(job.id.empty());
        const bool pays = job.attributes.at("tenant") == "pays";
        return RetryDecision{pays ? RetryDecision::Action::retry : RetryDecision::Action::discard};
    };
    for (const Text tenant : {"pays", "does not"}) {
        JobTrial<Text> charge(
            "a", {.attempt = 2, .attributes = {{"tenant", "unknown"}}, .kind = "charge"});
        const auto fails = [&](JobContext<Text>& job) {
            job.set_attribute("tenant", tenant);
            job.fail("no");
        };
        CHECK(charge.run(fails, by_tenant) ==
              (tenant == "pays" ? Outcome::retried : Outcome::discarded));
    }
    RetryPolicy broken;
    broken.backoff = [](auto...) -> std::chrono::milliseconds { throw std::range_error("a"); };
    JobTrial<Text> buried("a");
    CHECK(buried.run(fail, broken) == Outcome::dead);
    CHECK(buried.reason() == "the bank is closed; its backoff: a");
}

TEST_CASE("a handler sees the job that the test gives it, and the test what it tells") {
    JobTrial<Text> trial(
        "a", {.attempt = 3, .attributes = {{"tenant", "x"}}, .kind = "charge", .queue = "orders"});
    CHECK_THROWS_AS(static_cast<void>(trial.outcome()), std::logic_error);
    CHECK(trial.run([](const Text&, JobContext<Text>& job) {
        CHECK(job.attempt() == 3);
        CHECK(job.queue() == "orders");
        CHECK(job.kind() == "charge");
        REQUIRE(job.payload<Text>() != nullptr);
        CHECK(*job.payload<Text>() == "a");
        CHECK(job.attributes().at("tenant") == "x");
        CHECK(job.lease_valid());
        CHECK(job.progress(0.5, "half"));
        job.progress(1, "all", [](bool written) { CHECK(written); });
        CHECK_THROWS_AS(job.progress(2), std::invalid_argument);
        CHECK_FALSE(job.extend_unique(1s));
        job.set_attribute("step", "2");
        CHECK_THROWS_AS(job.guard()->ack(), std::logic_error);
        throw std::runtime_error("later");
    }) == Outcome::retried);
    REQUIRE(trial.progress().size() == 2);
    CHECK(trial.progress()[0].fraction == 0.5);
    CHECK(trial.progress()[1].note == "all");
    CHECK(trial.attributes().at("step") == "2");
    // The next try has them.
    CHECK(trial.run([](JobContext<Text>& job) {
        CHECK(job.attempt() == 4);
        CHECK(job.attributes().at("step") == "2");
        CHECK(job->last_error == "later");
        CHECK(job->first_failed_at.has_value());
    }) == Outcome::acked);
}

TEST_CASE("one that throws when it is to stop is requeued, one that returns is acked") {
    JobTrial<Text> trial("a");
    trial.request_stop();
    const auto stop = [](JobContext<Text>& job) {
        if (job.stop_token().stop_requested()) {
            job.set_attribute("done", "half");
            throw std::runtime_error("stopped");
        }
    };
    CHECK(trial.run(stop, twice()) == Outcome::requeued);
    CHECK(trial.attempt() == 1);
    CHECK(trial.run(
              [](JobContext<Text>& job) {
                  CHECK(job.attributes().at("done") == "half");
                  job.fail("no");
              },
              twice()) == Outcome::retried);
    CHECK(trial.run([](const Text&) {}) == Outcome::acked);
}

TEST_CASE("a handler with a JobDone ends when that is called, on whichever thread") {
    std::jthread elsewhere;
    const auto later = [&](JobContext<Text>& job, JobDone done) {
        elsewhere = std::jthread([&job, done = std::move(done)]() mutable {
            job.progress(0.1);
            job->payload == "good" ? done()
                                   : done(std::make_exception_ptr(std::runtime_error("bad")));
        });
    };
    CHECK(JobTrial<Text>("good").run(later) == Outcome::acked);
    JobTrial<Text> bad("bad");
    CHECK(bad.run(later, twice()) == Outcome::retried);
    CHECK(bad.reason() == "bad");
    CHECK(JobTrial<Text>("a").run([](const Text&, JobDone done) { done.requeue(); }) ==
          Outcome::requeued);
    JobTrial<Text> dropped("a");
    CHECK(dropped.run([](const Text&, JobDone) {}, twice()) == Outcome::retried);
    CHECK(dropped.reason() == "the handler ended without JobDone");
    JobTrial<Text> thrown("a");
    CHECK(thrown.run(
              [](const Text& text, JobDone done) {
                  done();
                  fail(text);
              },
              twice()) == Outcome::retried);
}

TEST_CASE("a handler that does not end is told of within the trial's patience") {
    JobDone kept;
    JobContext<Text>* job = nullptr;
    JobTrial<Text> trial("a", {.patience = 10ms});
    CHECK_THROWS_AS(trial.run([&](JobContext<Text>& context, JobDone done) {
        job = &context;
        kept = std::move(done);
    }),
                    std::runtime_error);
    CHECK((*job)->payload == "a"); // its context is there as long as its JobDone
    kept();
}

TEST_CASE("a job that cannot be is refused") {
    CHECK_THROWS_AS(JobTrial<Text>("a", {.attempt = 0}), orizuru::EncodeError);
    CHECK_THROWS_AS(JobTrial<Text>("a", {.attributes = {{"", "x"}}}), orizuru::EncodeError);
    CHECK_THROWS_AS(JobTrial<Text>("a", {.kind = std::string(101, 'k')}), orizuru::EncodeError);
}

} // namespace job_trial_test
