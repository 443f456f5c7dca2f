// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The ScheduledList: which messages it shows, cancels and brings to the queue.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/scheduled_list.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/jobs/unique.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace scheduled_list_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using orizuru::Consumer;
using orizuru::Job;
using orizuru::job_time;
using orizuru::JobTime;
using orizuru::make_job;
using orizuru::Producer;
using orizuru::ProtocolError;
using orizuru::push_after;
using orizuru::push_at;
using orizuru::push_unique;
using orizuru::push_unique_after;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::ScheduledEntry;
using orizuru::ScheduledList;
using orizuru::Scheduler;
using orizuru::UniqueRelease;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Texts;

struct Fixture : QueueFixture {
    std::string scheduled = "orizuru:{q}:scheduled";
    std::string lock = "orizuru:{q}:unique:id";
    ScheduledList list{uri, "q"};
    Producer<Raw> producer{uri, "q"};
    Producer<Job<Raw>> jobs{uri, "q"};

    Texts payloads(std::int64_t first = 0, std::int64_t count = 100) {
        Texts found;
        for (const ScheduledEntry& entry : list.list(first, count)) {
            found.push_back(entry.payload);
        }
        return found;
    }
    ScheduledEntry only() {
        auto entries = list.list(0, 2);
        REQUIRE(entries.size() == 1);
        return std::move(entries.front());
    }
    std::int64_t scheduled_size() { return redis.command({"ZCARD", scheduled}).integer; }
};

TEST_CASE_FIXTURE(Fixture, "a scheduled list may use a connection that others use, too") {
    push_after(producer, 1h, Raw{"a"});
    const auto connection = std::make_shared<orizuru::Connection>(uri);
    ScheduledList shared(connection, "q");
    REQUIRE(shared.size() == 1);
    CHECK(shared.run_now(shared.list(0, 1).at(0)));
    CHECK(connection->command("q", "LLEN", "q").integer == 1);
    CHECK_THROWS_WITH_AS(ScheduledList(std::shared_ptr<orizuru::Connection>(), "q"),
                         "the connection must not be null", std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "messages are listed with their times, the first due first") {
    const JobTime time = job_time() + 1h;
    const std::string bytes("\0\r\n\xff", 4);
    push_at(producer, time + 2ms, Raw{"last"});
    for (const std::string& payload : {"b"s, "a"s, "b"s}) {
        push_at(producer, time, Raw{payload});
    }
    push_at(producer, time + 1ms, Raw{bytes});
    CHECK(list.size() == 5);
    const auto entries = list.list(0, 100);
    REQUIRE(entries.size() == 5);
    CHECK(payloads() == Texts{"b", "a", "b", bytes, "last"});
    CHECK(entries[0].due == time);
    CHECK(entries[3].due == time + 1ms);
    CHECK(entries[4].due == time + 2ms);
    for (const ScheduledEntry& entry : entries) {
        CHECK(entry.bytes.substr(8) == entry.payload);
        CHECK(redis.command({"ZSCORE", scheduled, entry.bytes}).text ==
              std::to_string(entry.due.time_since_epoch().count()));
    }
}

TEST_CASE_FIXTURE(Fixture, "a page has the messages that were asked for") {
    const JobTime time = job_time() + 1h;
    for (const std::string bytes : {"a", "b", "c", "d"}) {
        push_at(producer, time, Raw{bytes});
    }
    CHECK(payloads(0, 2) == Texts{"a", "b"});
    CHECK(payloads(1, 2) == Texts{"b", "c"});
    CHECK(payloads(3, 2) == Texts{"d"});
    CHECK(payloads(4, 2).empty());
    CHECK(payloads(0, 0).empty());
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    CHECK(payloads(2, end) == Texts{"c", "d"});
    CHECK(payloads(end, end).empty());
    CHECK_THROWS_AS(list.list(-1, 2), std::invalid_argument);
    CHECK_THROWS_AS(list.list(0, -1), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "an entry knows its job, and that other bytes are none") {
    const Job<Raw> job = make_job(Raw{"x"});
    push_after(jobs, 1h, job);
    const auto found = only().job();
    REQUIRE(found);
    CHECK(found->id == job.id);
    CHECK(found->payload.bytes == "x");
    // The last one has a time of more than 63 bits.
    for (
        const std::string& none :
        {""s, "hello"s, "\x92\x01\xa2id"s,
         "\x9b\x01\xa2id\x01\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x01\xc0\xc0\xa0\xa0\xa0\xc4\0"s}) {
        redis.flushall();
        push_after(producer, 1h, Raw{none});
        CHECK(only().payload == none);
        CHECK_FALSE(only().job());
    }
}

TEST_CASE_FIXTURE(Fixture, "what is cancelled has gone, once, and equal messages stay") {
    const JobTime time = job_time() + 1h;
    for (int i = 0; i < 3; ++i) {
        push_at(producer, time, Raw{"x"});
    }
    const auto entries = list.list(0, 3);
    REQUIRE(entries.size() == 3);
    CHECK(list.cancel(entries[1]));
    CHECK_FALSE(list.cancel(entries[1]));
    const auto left = list.list(0, 3);
    REQUIRE(left.size() == 2);
    CHECK(left[0].bytes == entries[0].bytes);
    CHECK(left[1].bytes == entries[2].bytes);
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(Fixture, "a unique job that is cancelled releases its lock in the same step") {
    CHECK(push_unique_after(jobs, "id", 1h, make_job(Raw{"x"})));
    CHECK(redis.exists(lock));
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(list.cancel(only()));
    CHECK(info("commandstats", "cmdstat_eval:calls") == 1);
    CHECK_FALSE(redis.exists(lock));
    CHECK(scheduled_size() == 0);
    CHECK(push_unique(jobs, "id", make_job(Raw{"x"})));
}

TEST_CASE_FIXTURE(Fixture,
                  "a lock that is not the cancelled job's, or that no ack releases, stays") {
    CHECK(push_unique_after(jobs, "id", 1h, make_job(Raw{"old"})));
    const ScheduledEntry old = only();
    CHECK(redis.del(lock) == 1); // as at the end of its ttl
    CHECK(push_unique(jobs, "id", make_job(Raw{"new"})));
    CHECK(list.cancel(old));
    CHECK(redis.exists(lock));
    for (const auto release : {UniqueRelease::on_expiry, UniqueRelease::never}) {
        redis.flushall();
        CHECK(push_unique_after(jobs, "id", 1h, make_job(Raw{"x"}), {.release = release}));
        CHECK(list.cancel(only()));
        CHECK(redis.exists(lock));
    }
}

TEST_CASE_FIXTURE(Fixture, "an entry that has gone to the queue is not cancelled, and keeps its "
                           "lock") {
    CHECK(push_unique_after(jobs, "id", 1ms, make_job(Raw{"x"})));
    const ScheduledEntry entry = only();
    Scheduler scheduler(uri, "q");
    CHECK(eventually([&] { return scheduler.move_due() == 1; }));
    CHECK_FALSE(list.cancel(entry));
    CHECK_FALSE(list.run_now(entry));
    CHECK(redis.exists(lock));
    CHECK(redis.llen("q") == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "a job that waits for its next try in another queue releases the lock of "
                  "its own queue when it is cancelled") {
    CHECK(push_unique(jobs, "id", make_job(Raw{"x"})));
    Consumer<Job<Raw>> consumer(uri, "q");
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    orizuru::retry(*guard, {.backoff = orizuru::backoff::fixed(1h), .retry_queue = "other"}, "why");
    ScheduledList other(uri, "other");
    const auto entries = other.list(0, 2);
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].job()->attempt == 2);
    CHECK(other.cancel(entries[0]));
    CHECK_FALSE(redis.exists(lock));
    CHECK(other.size() == 0);
}

TEST_CASE_FIXTURE(Fixture, "what is to run now goes behind what waits, keeps its lock, and wakes a "
                           "consumer") {
    push({"first"});
    CHECK(push_unique_after(jobs, "id", 1h, make_job(Raw{"x"})));
    const ScheduledEntry entry = only();
    CHECK(list.run_now(entry));
    CHECK_FALSE(list.run_now(entry));
    CHECK(waiting() == Texts{"first", entry.payload});
    CHECK(scheduled_size() == 0);
    CHECK(redis.exists(lock));
    redis.flushall();
    Consumer<Raw> consumer(uri, "q");
    push_after(producer, 1h, Raw{"y"});
    const std::jthread other([&] {
        CHECK(somebody_waits());
        CHECK(ScheduledList(uri, "q").run_now(only()));
    });
    const auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK((*guard)->bytes == "y");
}

TEST_CASE_FIXTURE(Fixture, "beside schedulers and each other, each message goes one way") {
    constexpr int count = 400;
    const JobTime now = job_time();
    for (int i = 0; i < count; ++i) {
        push_at(producer, now + std::chrono::milliseconds(i), Raw{std::to_string(i)});
    }
    std::atomic<std::int64_t> cancelled{0};
    {
        const std::jthread scheduling(
            [this](const std::stop_token& token) { Scheduler(uri, "q").run(token); });
        std::vector<std::jthread> cancelling;
        for (int i = 0; i < 2; ++i) {
            cancelling.emplace_back([&] {
                ScheduledList own(uri, "q");
                while (own.size() > 0) {
                    for (const ScheduledEntry& entry : own.list(0, 3)) {
                        cancelled += own.cancel(entry) ? 1 : 0;
                    }
                    std::this_thread::sleep_for(5ms);
                }
            });
        }
    }
    MESSAGE(cancelled.load(), " were cancelled");
    CHECK(redis.llen("q") + cancelled == count);
}

TEST_CASE_FIXTURE(Fixture, "what another program has put there is shown, and goes as a scheduler "
                           "would move it") {
    for (const auto& [score, bytes] :
         {std::pair{"-inf", "short"}, std::pair{"-1e300", ""}, std::pair{"1.5", "12345678x"},
          std::pair{"+inf", "1234567"}}) {
        redis.command({"ZADD", scheduled, score, bytes});
    }
    const auto entries = list.list(0, 10);
    REQUIRE(entries.size() == 4);
    CHECK(payloads() == Texts{"", "", "x", ""});
    CHECK(entries[0].due == JobTime(-253'402'300'799'999ms));
    CHECK(entries[1].due == JobTime(-253'402'300'799'999ms));
    CHECK(entries[2].due == JobTime(1ms));
    CHECK(entries[3].due == JobTime(253'402'300'799'999ms));
    CHECK(list.cancel(entries[0]));
    for (std::size_t i = 1; i < entries.size(); ++i) {
        CHECK(list.run_now(entries[i]));
    }
    CHECK(waiting() == Texts{"", "x", ""});
}

TEST_CASE_FIXTURE(Fixture, "when memory is full, all calls work") {
    push_after(producer, 1h, Raw{"a"});
    CHECK(push_unique_after(jobs, "id", 2h, make_job(Raw{"b"})));
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    const auto entries = list.list(0, 2);
    const bool ran = list.run_now(entries.at(0));
    const bool cancelled = list.cancel(entries.at(1));
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(ran);
    CHECK(cancelled);
    CHECK(waiting() == Texts{"a"});
    CHECK_FALSE(redis.exists(lock));
}

TEST_CASE_FIXTURE(Fixture, "a key of the wrong type is named, and nothing is written") {
    CHECK(push_unique_after(jobs, "id", 1h, make_job(Raw{"x"})));
    const ScheduledEntry entry = only();
    const auto named = [&](const std::string& key, auto action) {
        return contains(message_of<ReplyError>(action), key);
    };
    redis.del(lock);
    redis.command({"HSET", lock, "x", "x"});
    redis.command({"HSET", "q", "x", "x"});
    CHECK(named(lock + " is a hash", [&] { list.cancel(entry); }));
    CHECK(named("q is a hash", [&] { list.run_now(entry); }));
    CHECK(scheduled_size() == 1);
    redis.flushall();
    redis.command({"HSET", scheduled, "x", "x"});
    CHECK(named(scheduled + " is a hash", [&] { list.cancel(entry); }));
    CHECK(named(scheduled + " is a hash", [&] { list.run_now(entry); }));
    CHECK(named(scheduled, [&] { list.list(0, 1); }));
    CHECK(named(scheduled, [&] { list.size(); }));
    CHECK(redis.keys() == Texts{scheduled});
}

TEST_CASE_FIXTURE(Fixture, "replies that cannot be are refused") {
    std::string reply;
    const FakeServer fake(
        [&](const Texts& argv) -> std::optional<std::string> {
            return argv.at(0).starts_with("Z") || argv.at(0) == "EVAL" ? reply : FakeServer::pass;
        },
        server().socket_path());
    ScheduledList mistold(fake.uri(), "q");
    for (const std::string& bytes :
         {"+OK\r\n"s, ":-1\r\n"s, "*1\r\n$1\r\nx\r\n"s, "*2\r\n$1\r\nx\r\n$1\r\nx\r\n"s,
          "*2\r\n$1\r\nx\r\n$2\r\n1x\r\n"s, "*2\r\n$1\r\nx\r\n:1\r\n"s}) {
        CAPTURE(bytes);
        reply = bytes;
        CHECK_THROWS_AS(mistold.list(0, 1), ProtocolError);
        CHECK_THROWS_AS(mistold.size(), ProtocolError);
        CHECK_THROWS_AS(mistold.cancel({}), ProtocolError);
        CHECK_THROWS_AS(mistold.run_now({}), ProtocolError);
    }
}

} // namespace scheduled_list_test
