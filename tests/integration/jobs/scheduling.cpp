// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages for later: how they are scheduled, and how a scheduler moves them to the queue.

#include "integration/core/queue_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"

#include <orizuru/jobs/bounded_push.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace scheduling_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using orizuru::Consumer;
using orizuru::ConsumerOptions;
using orizuru::job_time;
using orizuru::JobTime;
using orizuru::MessageGuard;
using orizuru::Producer;
using orizuru::ProducerOptions;
using orizuru::push_after;
using orizuru::push_at;
using orizuru::push_bounded;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Scheduler;
using orizuru::SchedulerOptions;
using orizuru::test::Answer;
using orizuru::test::contains;
using orizuru::test::Elapsed;
using orizuru::test::eventually;
using orizuru::test::holds_within;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Stopwatch;
using orizuru::test::Texts;
using orizuru::test::time_of;

struct Fixture : QueueFixture {
    std::string scheduled = "orizuru:{q}:scheduled";
    Producer<Raw> producer{uri, "q"};

    /// The messages that wait, the first due first.
    Texts later() {
        Texts messages;
        for (const Answer& element : redis.command({"ZRANGE", scheduled, "0", "-1"}).elements) {
            REQUIRE(element.text.size() >= 8);
            messages.push_back(element.text.substr(8));
        }
        return messages;
    }
    std::int64_t due(const std::string& message) {
        const auto parts = redis.command({"ZRANGE", scheduled, "0", "-1", "WITHSCORES"}).elements;
        for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
            if (parts[i].text.substr(8) == message) {
                return std::stoll(parts[i + 1].text);
            }
        }
        FAIL("not scheduled");
        return 0;
    }
    /// All that wait become due this much earlier.
    void bring_forward(std::chrono::milliseconds by) {
        redis.command({"EVAL",
                       "local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES') "
                       "for i = 1, #all, 2 do redis.call('ZADD', KEYS[1], all[i + 1] - ARGV[1], "
                       "all[i]) end",
                       "1", scheduled, std::to_string(by.count())});
    }
    MessageGuard<Raw> take(Consumer<Raw>& consumer) {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        return std::move(*guard);
    }
};

/// Schedulers, each running in a thread of its own until the end of the scope.
class Running {
  public:
    explicit Running(const std::string& uri, int count = 1, SchedulerOptions options = {}) {
        for (int i = 0; i < count; ++i) {
            m_threads.emplace_back(
                [=](const std::stop_token& token) { Scheduler(uri, "q", options).run(token); });
        }
    }

  private:
    std::vector<std::jthread> m_threads;
};

TEST_CASE_FIXTURE(Fixture,
                  "a message for later waits in a sorted set, and one for now in the queue") {
    push_after(producer, 1h, Raw{"later"});
    push_after(producer, 0ms, Raw{"now"});
    push_after(producer, -1h, Raw{"before"});
    push_at(producer, job_time() - 1s, Raw{"past"});
    CHECK(later() == Texts{"later"});
    CHECK(waiting() == Texts{"now", "before", "past"});
    const std::int64_t left = due("later") - server_ms();
    CHECK(left <= 3'600'000);
    CHECK(left > 3'590'000);
}

TEST_CASE_FIXTURE(Fixture,
                  "what a message is made of can be pushed for later as well as a message") {
    Producer<std::string> texts(uri, "q");
    push_after(texts, 5s, "text");
    push_at(texts, job_time() + 1h, "more");
    CHECK(push_bounded(texts, "now", {.max_length = 1}).pushed);
    CHECK(later() == Texts{"\xa4text", "\xa4more"});
    CHECK(waiting() == Texts{"\xa3now"});
}

TEST_CASE_FIXTURE(Fixture,
                  "equal messages stay two, and messages of the same time keep their order") {
    const JobTime time = job_time() + 1h;
    for (const std::string bytes : {"b", "a", "b", "c"}) {
        push_at(producer, time, Raw{bytes});
    }
    push_at(producer, time - 1ms, Raw{"first"});
    CHECK(later() == Texts{"first", "b", "a", "b", "c"});
    // Redis has come back with the messages, but without the number.
    redis.del("orizuru:{q}:scheduled:sequence");
    push_at(producer, time, Raw{"b"});
    CHECK(redis.command({"ZCARD", scheduled}).integer == 6);
}

TEST_CASE_FIXTURE(Fixture, "due messages go to the queue in due order, and no others do") {
    const JobTime now = job_time();
    push_at(producer, now + 3h, Raw{"later"});
    push_at(producer, now + 1h + 3ms, Raw{"third"});
    push_at(producer, now + 1h + 1ms, Raw{"first"});
    push_at(producer, now + 1h + 2ms, Raw{"second"});
    bring_forward(1h);
    Scheduler scheduler(uri, "q");
    std::uint64_t moved = 0;
    CHECK(eventually([&] { return (moved += scheduler.move_due()) == 3; }));
    CHECK(waiting() == Texts{"first", "second", "third"});
    CHECK(later() == Texts{"later"});
    CHECK(scheduler.move_due() == 0);
}

TEST_CASE_FIXTURE(Fixture, "a thousand that are due together all go, in their order") {
    const JobTime time = job_time() + 1h;
    Texts expected;
    for (int i = 0; i < 1000; ++i) {
        expected.push_back(std::to_string(i));
        push_at(producer, time, Raw{expected.back()});
    }
    bring_forward(1h);
    Scheduler scheduler(uri, "q");
    std::uint64_t moved = 0;
    CHECK(eventually([&] { return (moved += scheduler.move_due()) == 1000; }));
    CHECK(waiting() == expected);
}

TEST_CASE_FIXTURE(Fixture,
                  "a message that a scheduler may not push stays scheduled: it moves in one step") {
    redis.command(
        {"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "+@all", "-lpush"});
    Scheduler scheduler("unix://clerk:open-sesame@" + server().socket_path(), "q");
    push_after(producer, 1ms, Raw{"x"});
    CHECK(eventually([&] { return server_ms() > due("x"); }));
    CHECK_THROWS_AS(scheduler.move_due(), ReplyError);
    CHECK(later() == Texts{"x"});
    redis.command({"ACL", "SETUSER", "clerk", "+lpush"});
    CHECK(scheduler.move_due() == 1);
    CHECK(waiting() == Texts{"x"});
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture, "a delay runs from when Redis has it, and ends by Redis' clock") {
    // The caller has read its own clock before.
    redis.command({"CLIENT", "PAUSE", "200", "WRITE"});
    push_after(producer, 100ms, Raw{"x"});
    CHECK(waiting().empty());
    CHECK(later() == Texts{"x"});
    Scheduler scheduler(uri, "q");
    redis.command({"CLIENT", "PAUSE", "200", "WRITE"});
    CHECK(scheduler.move_due() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a step moves a mebibyte of messages, or one that is larger") {
    const JobTime time = job_time() + 1h;
    for (const std::size_t kilobytes : {600, 600, 2000, 300, 300, 300, 2000, 1}) {
        push_at(producer, time, Raw{std::string(kilobytes * 1000, 'x')});
    }
    bring_forward(1h);
    redis.command({"CONFIG", "RESETSTAT"});
    Scheduler scheduler(uri, "q");
    CHECK(scheduler.move_due() == 8);
    CHECK(info("commandstats", "cmdstat_eval:calls") == 6);
    std::vector<std::size_t> sizes;
    for (const std::string& message : waiting()) {
        sizes.push_back(message.size() / 1000);
    }
    CHECK(sizes == std::vector<std::size_t>{600, 600, 2000, 300, 300, 300, 2000, 1});
}

TEST_CASE_FIXTURE(Fixture, "a running scheduler moves a message when it is due, not before") {
    const Running running(uri);
    Consumer<Raw> consumer(uri, "q");
    for (const auto delay : {200ms, 20ms, 100ms}) {
        const Stopwatch stopwatch;
        push_after(producer, delay, Raw{"x"});
        const auto guard = take(consumer);
        const Elapsed took = stopwatch.elapsed();
        CHECK(took >= delay - 1ms);
        CHECK(took < delay + 500ms);
    }
}

TEST_CASE_FIXTURE(Fixture, "scheduling an earlier message wakes a waiting scheduler") {
    push_after(producer, 1h, Raw{"later"});
    const Running running(uri, 1, {.poll = 24h});
    CHECK(eventually([this] { return info("clients", "blocked_clients") == 1; }));
    push_after(producer, 50ms, Raw{"soon"});
    // By itself it would check again when its wait in Redis ends, after 5 s.
    CHECK(holds_within(3s, [this] { return waiting() == Texts{"soon"}; }));
    CHECK(later() == Texts{"later"});
}

TEST_CASE_FIXTURE(Fixture, "several schedulers at once move each message once") {
    const Running running(uri, 3);
    const JobTime now = job_time();
    Texts expected;
    for (int i = 0; i < 600; ++i) {
        expected.push_back(std::to_string(i));
        push_at(producer, now + std::chrono::milliseconds(i), Raw{expected.back()});
    }
    CHECK(eventually([&] { return redis.llen("q") == 600; }));
    CHECK(redis.command({"ZCARD", scheduled}).integer == 0);
    Texts there = waiting();
    std::ranges::sort(there);
    std::ranges::sort(expected);
    CHECK(there == expected);
}

TEST_CASE_FIXTURE(Fixture, "a scheduler that is told to stop does so at once") {
    std::stop_source stop;
    std::jthread thread([&] { Scheduler(uri, "q").run(stop.get_token()); });
    CHECK(eventually([this] { return info("clients", "blocked_clients") == 1; }));
    CHECK(time_of([&] {
              stop.request_stop();
              thread.join();
          }) < 1s);
}

TEST_CASE_FIXTURE(Fixture, "a scheduler waits out an outage") {
    const Running running(uri);
    // It has connected: a constructor does not wait out an outage.
    REQUIRE(eventually([this] { return redis.exists("orizuru:{q}:schedulers"); }));
    push_after(producer, 100ms, Raw{"x"});
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    CHECK(eventually([this] { return waiting() == Texts{"x"}; }));
}

TEST_CASE_FIXTURE(Fixture, "a key of the wrong type is named, and nothing is written") {
    for (const std::string& key : {"q"s, scheduled, "orizuru:{q}:scheduled:wake"s}) {
        redis.flushall();
        redis.command({"SET", key, "x"});
        const auto error = [&](auto delay) {
            return message_of<ReplyError>([&] { push_after(producer, delay, Raw{"x"}); });
        };
        CHECK(contains(error(0ms), key + " is a string"));
        CHECK(contains(error(1h), key + " is a string"));
        CHECK(redis.keys("*") == Texts{key});
    }
    redis.flushall();
    push_after(producer, 1ms, Raw{"x"});
    redis.command({"SET", "q", "x"});
    Scheduler scheduler(uri, "q");
    CHECK(eventually([&] { return server_ms() > due("x"); }));
    CHECK(contains(message_of<ReplyError>([&] { scheduler.move_due(); }), "q is a string"));
    CHECK(later() == Texts{"x"});
}

TEST_CASE_FIXTURE(Fixture, "a time beyond the year 9999 is refused before anything is sent") {
    const JobTime end(std::chrono::milliseconds(253'402'300'799'999));
    push_at(producer, end, Raw{"last"});
    CHECK_THROWS_AS(push_at(producer, end + 1ms, Raw{"x"}), std::invalid_argument);
    CHECK_THROWS_AS(push_after(producer, std::chrono::hours(24 * 365 * 9000), Raw{"x"}),
                    std::invalid_argument);
    CHECK(later() == Texts{"last"});
    CHECK_THROWS_AS(Scheduler(uri, "q", {.poll = 99ms}), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "a settled message comes again later, as it is or as another, here or "
                           "elsewhere") {
    Consumer<Raw> consumer(uri, "q");
    push({"a", "b", "c"});
    auto a = take(consumer);
    CHECK(push_after(a, 1h));
    auto b = take(consumer);
    const Raw other{"other"};
    CHECK(push_at(b, job_time() + 2h, {.replacement = &other}));
    auto c = take(consumer);
    CHECK(push_after(c, 1h, {.queue = "elsewhere"}));
    CHECK(later() == Texts{"a", "other"});
    CHECK(held().empty());
    const auto there = redis.command({"ZRANGE", "orizuru:{elsewhere}:scheduled", "0", "-1"});
    REQUIRE(there.elements.size() == 1);
    CHECK(there.elements[0].text.substr(8) == "c");
}

TEST_CASE_FIXTURE(Fixture, "a message put off after the lease was lost stays where it is") {
    Consumer<Raw> consumer(uri, "q");
    push({"a"});
    auto guard = take(consumer);
    forget_heartbeat(only_id());
    orizuru::GarbageCollector(uri, "q", {.grace = 0ms}).collect();
    CHECK_FALSE(push_after(guard, 1h));
    CHECK(later().empty());
    CHECK(waiting() == Texts{"a"});
}

TEST_CASE_FIXTURE(Fixture, "a message that cannot be put off stays with its guard") {
    Consumer<Raw> consumer(uri, "q");
    push({"a"});
    auto guard = take(consumer);
    redis.command({"SET", scheduled, "x"});
    CHECK(contains(message_of<ReplyError>([&] { push_after(guard, 1h); }), scheduled));
    CHECK_FALSE(guard.settled());
    CHECK(held() == Texts{"a"});
    CHECK_THROWS_AS(push_at(guard, JobTime::max()), std::invalid_argument);
    redis.del(scheduled);
    CHECK(push_after(guard, 1h));
    CHECK(later() == Texts{"a"});
}

TEST_CASE_FIXTURE(Fixture, "with 100,000 messages waiting, due messages come within 20 ms") {
    redis.command({"EVAL",
                   "for i = 1, 100000 do redis.call('ZADD', KEYS[1], ARGV[1] + i, "
                   "struct.pack('>I8', i) .. 'far away') end",
                   "1", scheduled, std::to_string(server_ms() + 3'600'000)});
    redis.command({"SET", "orizuru:{q}:scheduled:sequence", "100000"});
    const Running running(uri);
    Consumer<Raw> consumer(uri, "q", {.prefetch = 100});
    const auto median_of_a_hundred = [&] {
        constexpr int count = 100;
        const std::jthread pushing([this] {
            Producer<Raw> own(uri, "q");
            for (int i = 0; i < count; ++i) {
                const JobTime time = job_time() + 20ms;
                push_at(own, time, Raw{std::to_string(time.time_since_epoch().count())});
                std::this_thread::sleep_for(2ms);
            }
        });
        std::vector<std::int64_t> late;
        while (std::ssize(late) < count) {
            auto guard = take(consumer);
            late.push_back(job_time().time_since_epoch().count() - std::stoll((*guard).bytes));
            guard.ack();
        }
        std::ranges::sort(late);
        MESSAGE("late, p50 ", late[count / 2], " ms, p99 ", late[count * 99 / 100], " ms");
        CHECK(late.front() >= 0);
        return late[count / 2];
    };
    // On a busy machine some hundreds measure only the machine.
    CHECK(eventually([&] { return median_of_a_hundred() < 20; }));
}

} // namespace scheduling_test
