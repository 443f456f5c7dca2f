// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// JobProducer::push_all: many jobs, through the middleware, at once or for later.

#include "integration/core/queue_fixture.hpp"
#include "support/fake_server.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/jobs/scheduled_list.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bulk_push_test {

using namespace std::chrono_literals;
using orizuru::ConnectionError;
using orizuru::EncodeError;
using orizuru::Job;
using orizuru::job_time;
using orizuru::JobOptions;
using orizuru::JobProducer;
using orizuru::JobTime;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::ScheduledList;
using orizuru::Scheduler;
using orizuru::test::contains;
using orizuru::test::FakeServer;
using orizuru::test::Making;
using orizuru::test::message_of;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Texts;

using Next = std::function<void()>;

struct Fixture : QueueFixture {
    JobProducer<Raw> producer{uri, "q"};
    std::string scheduled = "orizuru:{q}:scheduled";

    static std::vector<Raw> numbers(std::size_t count) {
        std::vector<Raw> found;
        for (std::size_t i = 0; i < count; ++i) {
            found.push_back({std::to_string(i)});
        }
        return found;
    }
    static Job<Raw> job_of(std::string_view bytes) {
        orizuru::Scratch scratch;
        return orizuru::Codec<Job<Raw>>::decode(bytes, scratch);
    }
    /// The jobs of the queue, the next to be served first.
    std::vector<Job<Raw>> queued() {
        std::vector<Job<Raw>> jobs;
        for (const std::string& bytes : waiting()) {
            jobs.push_back(job_of(bytes));
        }
        return jobs;
    }
    /// Those that are scheduled, the first due first.
    std::vector<Job<Raw>> put_off() {
        std::vector<Job<Raw>> jobs;
        ScheduledList list(uri, "q");
        for (const auto& entry : list.list(0, std::numeric_limits<std::int64_t>::max())) {
            jobs.push_back(job_of(entry.payload));
        }
        return jobs;
    }
    static Texts ids_of(const std::vector<Job<Raw>>& jobs) {
        Texts ids;
        for (const Job<Raw>& job : jobs) {
            ids.push_back(job.id);
        }
        return ids;
    }
    static Texts payloads_of(const std::vector<Job<Raw>>& jobs) {
        Texts payloads;
        for (const Job<Raw>& job : jobs) {
            payloads.push_back(job.payload.bytes);
        }
        return payloads;
    }
    std::int64_t scripts_run() { return info("commandstats", "cmdstat_eval:calls"); }
    std::int64_t scheduled_size() { return redis.command({"ZCARD", scheduled}).integer; }
};

/// Answers the second script as the test says, and lets Redis answer all others.
struct SecondScript : Fixture {
    std::optional<std::string> answer;
    int scripts = 0;
    FakeServer fake{[this](const Texts& argv) -> std::optional<std::string> {
                        return argv.at(0) == "EVAL" && ++scripts == 2 ? answer : FakeServer::pass;
                    },
                    server().socket_path()};
    JobProducer<Raw> cut{fake.uri(), "q"};
};

TEST_CASE_FIXTURE(Fixture, "many jobs for later are scheduled in their order, a thousand in a "
                           "script") {
    const JobTime time = job_time() + 1h;
    redis.command({"CONFIG", "RESETSTAT"});
    const Texts ids = producer.push_all(numbers(2500), {.at = time});
    CHECK(scripts_run() == 3);
    CHECK(ids.size() == 2500);
    const auto jobs = put_off();
    CHECK(ids_of(jobs) == ids);
    CHECK(jobs.at(2499).payload.bytes == "2499");
    const auto entries = ScheduledList(uri, "q").list(0, 3000);
    CHECK(std::ranges::all_of(entries, [&](const auto& entry) { return entry.due == time; }));
    CHECK(redis.llen("q") == 0);
    CHECK(producer.push_all(numbers(3), {.delay = 2h}).size() == 3);
    CHECK(scheduled_size() == 2503);
}

TEST_CASE_FIXTURE(Fixture, "many jobs have a time each, and those of one time keep their order") {
    const JobTime time = job_time() + 1h;
    std::vector<orizuru::TimedJob<Raw>> jobs;
    for (int i = 0; i < 1'500; ++i) {
        jobs.push_back({time + std::chrono::minutes(i % 3), {std::to_string(i)}});
    }
    redis.command({"CONFIG", "RESETSTAT"});
    const Texts ids = producer.push_all_at(jobs, {.expires_after = 5s, .attributes = {{"a", "b"}}});
    CHECK(scripts_run() == 2);
    const auto entries = ScheduledList(uri, "q").list(0, 3000);
    REQUIRE(entries.size() == 1'500);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::size_t number = i % 500 * 3 + i / 500;
        const Job<Raw> job = job_of(entries[i].payload);
        REQUIRE(job.payload.bytes == std::to_string(number));
        REQUIRE(job.id == ids.at(number));
        REQUIRE(entries[i].due == jobs[number].at);
        REQUIRE(job.enqueued_at == jobs[number].at);
        REQUIRE(job.expires_at == jobs[number].at + 5s);
        REQUIRE(job.attributes.at("a") == "b");
    }
}

TEST_CASE_FIXTURE(Fixture, "of many jobs with a time each, those that are due go to the queue, and "
                           "the soonest of the others wakes the schedulers") {
    const JobTime now = job_time();
    const std::string wake = "orizuru:{q}:scheduled:wake";
    producer.push_all_at(
        {{now - 1h, {"late"}}, {now + 2h, {"c"}}, {now - 2h, {"later"}}, {now + 1h, {"b"}}});
    CHECK(payloads_of(queued()) == Texts{"late", "later"});
    CHECK(payloads_of(put_off()) == Texts{"b", "c"});
    CHECK(redis.command({"DEL", wake}).integer == 1);
    producer.push_all_at({{now + 3h, {"d"}}, {now - 1h, {"again"}}});
    CHECK(redis.command({"DEL", wake}).integer == 0);
    CHECK(producer.push_all_at(std::vector<orizuru::TimedJob<Raw>>()).empty());
    CHECK_THROWS_AS(producer.push_all_at({{now + 1h, {"e"}}, {JobTime::max(), {"f"}}}),
                    std::invalid_argument);
    CHECK_THROWS_AS(producer.push_all_at({{now, {"e"}}}, {.unique = "id"}), std::invalid_argument);
    CHECK_THROWS_AS(producer.push_all_at({{now, {"e"}}}, {.bound = orizuru::QueueBound{1}}),
                    std::invalid_argument);
    CHECK(scheduled_size() == 3);
    CHECK(redis.llen("q") == 3);
}

TEST_CASE_FIXTURE(Fixture, "a script has a mebibyte of jobs, and the last one of them whole") {
    redis.command({"CONFIG", "RESETSTAT"});
    std::vector<Raw> large;
    for (const std::size_t kilobytes : {600, 600, 2000, 1, 1}) {
        large.push_back({std::string(kilobytes * 1000, 'x')});
    }
    CHECK(producer.push_all(large, {.delay = 1h}).size() == 5);
    CHECK(scripts_run() == 3);
    CHECK(scheduled_size() == 5);
}

TEST_CASE_FIXTURE(Fixture, "many that are due already go to the queue, in their order") {
    const Texts ids = producer.push_all(numbers(1500), {.at = job_time() - 1h});
    CHECK(ids_of(queued()) == ids);
    CHECK(scheduled_size() == 0);
}

TEST_CASE_FIXTURE(Fixture, "no jobs are none, whatever is chosen, and a range is read once") {
    const std::vector<Raw> none;
    for (const JobOptions& options :
         {JobOptions{}, JobOptions{.delay = 1h}, JobOptions{.unique = "id"},
          JobOptions{.bound = orizuru::QueueBound{.max_length = 1}}}) {
        CHECK(producer.push_all(none, options).empty());
    }
    CHECK(redis.keys().empty());
    const auto once = [](std::size_t i) { return Raw{std::to_string(i)}; };
    CHECK(producer.push_all(Making(3, once), {.delay = 1h}).size() == 3);
    CHECK(producer.push_all(Making(2, once)).size() == 2);
    CHECK(payloads_of(put_off()) == Texts{"0", "1", "2"});
    CHECK(payloads_of(queued()) == Texts{"0", "1"});
}

TEST_CASE_FIXTURE(Fixture, "a job goes as it is when its middleware pushes it, and as often") {
    JobProducer<Raw> own(uri, "q", {.middleware = {[](Job<Raw>& job, const Next& push) {
                                        push();
                                        job.payload.bytes += " again";
                                        if (job.payload.bytes == "b again") {
                                            push();
                                        }
                                    }}});
    for (const std::chrono::milliseconds delay : {0ms, std::chrono::milliseconds(1h)}) {
        redis.flushall();
        const Texts ids = own.push_all({Raw{"a"}, Raw{"b"}}, {.delay = delay});
        REQUIRE(ids.size() == 3);
        CHECK(ids[1] == ids[2]);
        const auto jobs = delay > 0ms ? put_off() : queued();
        CHECK(payloads_of(jobs) == Texts{"a", "b", "b again"});
        CHECK(ids_of(jobs) == ids);
    }
}

TEST_CASE_FIXTURE(SecondScript, "when Redis refuses a script, the jobs before it are scheduled, "
                                "and are counted") {
    answer = "-OOM command not allowed\r\n";
    try {
        cut.push_all(numbers(2500), {.delay = 1h});
        FAIL("nothing was refused");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "OOM");
        CHECK(error.pushed() == 1000);
    }
    CHECK(scheduled_size() == 1000);
    CHECK(payloads_of(put_off()).back() == "999");
    CHECK(cut.push_all(numbers(1), {.delay = 1h}).size() == 1);
}

TEST_CASE_FIXTURE(SecondScript, "when a script's reply is lost, one script is in doubt") {
    answer = std::nullopt;
    try {
        cut.push_all(numbers(2500), {.delay = 1h});
        FAIL("nothing was lost");
    } catch (const ConnectionError& error) {
        CHECK(error.in_doubt());
        CHECK(error.pushed() == 1000);
    }
    CHECK(scheduled_size() == 1000);
}

TEST_CASE_FIXTURE(SecondScript, "a unique push that fails is counted with those that were refused "
                                "before it") {
    answer = "-OOM command not allowed\r\n";
    redis.set("orizuru:{q}:unique:id", "ack another");
    try {
        cut.push_all(numbers(3), {.unique = "id"});
        FAIL("nothing was refused");
    } catch (const ReplyError& error) {
        CHECK(error.pushed() == 1);
    }
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(Fixture, "a job that is too large leaves those of full scripts, and is counted") {
    JobProducer<Raw> small(uri, "q", {.max_payload = 1000});
    auto payloads = numbers(1500);
    payloads.back().bytes = std::string(1000, 'x');
    try {
        small.push_all(payloads, {.delay = 1h});
        FAIL("nothing was refused");
    } catch (const EncodeError& error) {
        CHECK(error.pushed() == 1000);
    }
    CHECK(scheduled_size() == 1000);
}

TEST_CASE_FIXTURE(Fixture, "many that cannot be scheduled leave nothing") {
    CHECK_THROWS_AS(producer.push_all(numbers(2), {.at = JobTime::max()}), std::invalid_argument);
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    const std::string full =
        message_of<ReplyError>([&] { producer.push_all(numbers(2), {.delay = 1h}); });
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(contains(full, "OOM"));
    CHECK(redis.keys().empty());
    for (const std::string key : {"q", "orizuru:{q}:scheduled", "orizuru:{q}:scheduled:wake"}) {
        redis.flushall();
        redis.command({"HSET", key, "x", "x"});
        CHECK(
            contains(message_of<ReplyError>([&] { producer.push_all(numbers(2), {.delay = 1h}); }),
                     key + " is a hash"));
        CHECK(redis.keys() == Texts{key});
    }
}

TEST_CASE_FIXTURE(Fixture,
                  "bounded jobs fill the queue one after the other, and unique ones of one "
                  "id leave one") {
    const orizuru::QueueBound two{.max_length = 2};
    CHECK(producer.push_all(numbers(4), {.bound = two}).size() == 2);
    CHECK(payloads_of(queued()) == Texts{"0", "1"});
    const orizuru::QueueBound newest{.max_length = 2, .overflow = orizuru::Overflow::drop_oldest};
    CHECK(producer.push_all(numbers(4), {.bound = newest}).size() == 4);
    CHECK(payloads_of(queued()) == Texts{"2", "3"});
    const JobTime time = job_time() + 1h;
    const Texts ids = producer.push_all(numbers(3), {.at = time, .unique = "id"});
    const auto jobs = put_off();
    REQUIRE(ids.size() == 1);
    CHECK(ids_of(jobs) == ids);
    CHECK(jobs.front().unique_id == "id");
    CHECK(redis.command({"GET", "orizuru:{q}:unique:id"}).text == "ack " + ids.front());
    CHECK(redis.command({"PTTL", "orizuru:{q}:unique:id"}).integer > 24 * 3'600'000);
}

TEST_CASE_FIXTURE(Fixture, "a unique id of no bytes, of too many, or with a ttl that cannot be is "
                           "refused before anything is sent") {
    const std::string long_id(513, 'x');
    for (const JobOptions& options :
         {JobOptions{.unique = ""}, JobOptions{.delay = 1h, .unique = long_id},
          JobOptions{.unique = "id", .unique_options = {.ttl = 0ms}}}) {
        CHECK_THROWS_AS(producer.push(Raw{"x"}, options), std::invalid_argument);
        CHECK_THROWS_AS(producer.push_all(numbers(2), options), std::invalid_argument);
    }
    CHECK(redis.keys().empty());
}

} // namespace bulk_push_test
