// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Unique jobs, one at a time: which push gets the lock, and what releases it.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/jobs/unique.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace unique_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using orizuru::ack_unique;
using orizuru::Consumer;
using orizuru::EncodeError;
using orizuru::extend_unique;
using orizuru::Job;
using orizuru::job_time;
using orizuru::make_job;
using orizuru::MessageGuard;
using orizuru::Producer;
using orizuru::push_unique;
using orizuru::push_unique_after;
using orizuru::push_unique_at;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Scheduler;
using orizuru::UniqueRelease;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Texts;

using RawJob = Job<Raw>;

struct Fixture : QueueFixture {
    std::string lock = "orizuru:{q}:unique:id";
    std::string scheduled = "orizuru:{q}:scheduled";
    Producer<RawJob> producer{uri, "q"};

    /// The guard as a handler has it.
    static RawJob job(const std::string& bytes = "x") {
        auto made = make_job(Raw{bytes});
        made.unique_id = "id";
        return made;
    }
    static MessageGuard<RawJob> take(Consumer<RawJob>& consumer) {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        return std::move(*guard);
    }
    bool pushed(const RawJob& one, UniqueRelease release = UniqueRelease::on_ack) {
        return push_unique(producer, "id", one, {.release = release});
    }
    std::int64_t ttl() { return redis.command({"PTTL", lock}).integer; }
    bool lasts(std::chrono::milliseconds time) {
        return ttl() <= time.count() && ttl() > time.count() - 10'000;
    }
};

TEST_CASE_FIXTURE(Fixture, "while a job holds the lock of its id no other is pushed") {
    const RawJob first = job();
    CHECK(pushed(first));
    CHECK_FALSE(pushed(job()));
    CHECK_FALSE(pushed(first));
    CHECK(push_unique(producer, "other", job()));
    CHECK(redis.llen("q") == 2);
    CHECK(contains(redis.command({"GET", lock}).text, first.id));
    CHECK(lasts(24h));
}

TEST_CASE_FIXTURE(Fixture, "an ack releases the lock in the same step") {
    Consumer<RawJob> consumer(uri, "q");
    CHECK(pushed(job()));
    auto guard = take(consumer);
    CHECK_FALSE(pushed(job()));
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(ack_unique(guard));
    CHECK(info("commandstats", "cmdstat_del:calls") == 1);
    CHECK(info("commandstats", "cmdstat_evalsha:calls") +
              info("commandstats", "cmdstat_eval:calls") <=
          2); // the second is the body, when Redis did not know it
    CHECK_FALSE(redis.exists(lock));
    CHECK(held().empty());
    CHECK(pushed(job()));
    CHECK(redis.llen("q") == 1);
}

TEST_CASE_FIXTURE(Fixture, "a late ack of an older job leaves a newer one's lock") {
    Consumer<RawJob> consumer(uri, "q");
    CHECK(pushed(job("old")));
    auto old = take(consumer);
    CHECK(redis.del(lock) == 1); // as at the end of its ttl
    const RawJob newer = job("new");
    CHECK(pushed(newer));
    CHECK(ack_unique(old));
    CHECK(contains(redis.command({"GET", lock}).text, newer.id));
    CHECK_FALSE(pushed(job()));
    auto guard = take(consumer);
    CHECK(ack_unique(guard));
    CHECK_FALSE(redis.exists(lock));
}

TEST_CASE_FIXTURE(Fixture, "a job that was lost to another consumer does not release its lock") {
    Consumer<RawJob> consumer(uri, "q");
    CHECK(pushed(job()));
    auto guard = take(consumer);
    forget_heartbeat(only_id());
    orizuru::GarbageCollector(uri, "q", {.grace = 0ms}).collect();
    CHECK_FALSE(ack_unique(guard));
    CHECK(redis.exists(lock));
    CHECK(redis.llen("q") == 1);
}

TEST_CASE_FIXTURE(Fixture, "a lock that only expires outlives the ack, and one that never does "
                           "outlives all") {
    Consumer<RawJob> consumer(uri, "q");
    CHECK(pushed(job(), UniqueRelease::on_expiry));
    auto guard = take(consumer);
    CHECK(ack_unique(guard));
    CHECK_FALSE(pushed(job()));
    CHECK(lasts(24h));
    redis.del(lock);
    CHECK(pushed(job(), UniqueRelease::never));
    auto last = take(consumer);
    CHECK(ack_unique(last));
    CHECK(ttl() == -1);
    CHECK_FALSE(pushed(job()));
}

TEST_CASE_FIXTURE(Fixture, "when the ttl is over the next job is pushed") {
    CHECK(push_unique(producer, "id", job(), {.ttl = 20ms}));
    CHECK(eventually([this] { return pushed(job()); }));
    CHECK(redis.llen("q") == 2);
}

TEST_CASE_FIXTURE(Fixture, "when many push at once, one succeeds") {
    std::atomic<int> count{0};
    {
        std::vector<std::jthread> threads;
        threads.reserve(4);
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&] {
                Producer<RawJob> own(uri, "q");
                for (int n = 0; n < 100; ++n) {
                    count += push_unique(own, std::to_string(n), job()) ? 1 : 0;
                }
            });
        }
    }
    CHECK(count == 100);
    CHECK(redis.llen("q") == 100);
}

TEST_CASE_FIXTURE(Fixture, "a unique push is one command") {
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(pushed(job()));
    CHECK(info("commandstats", "cmdstat_eval:calls") == 1);
    CHECK(info("commandstats", "cmdstat_multi:calls") == 0);
}

TEST_CASE_FIXTURE(Fixture, "a job for later holds the lock while it waits, and its ttl from then") {
    CHECK(push_unique_after(producer, "id", 1h, job("later"), {.ttl = 10min}));
    CHECK(lasts(70min));
    CHECK_FALSE(pushed(job()));
    CHECK_FALSE(push_unique_after(producer, "id", 1h, job()));
    CHECK(redis.command({"ZCARD", scheduled}).integer == 1);
    CHECK(redis.llen("q") == 0);
    redis.flushall();
    CHECK(push_unique_at(producer, "id", job_time() + 2h, job(), {.ttl = 10min}));
    CHECK(lasts(130min));
    redis.flushall();
    CHECK(push_unique_at(producer, "id", job_time() - 2h, job(), {.ttl = 10min}));
    CHECK(lasts(10min));
    CHECK(redis.llen("q") == 1);
}

TEST_CASE_FIXTURE(Fixture, "a job keeps its lock from its schedule through its retries to the "
                           "ack") {
    CHECK(push_unique_after(producer, "id", 1ms, job()));
    Scheduler scheduler(uri, "q");
    Consumer<RawJob> consumer(uri, "q");
    CHECK(eventually([&] { return scheduler.move_due() == 1; }));
    auto first = take(consumer);
    RawJob again = *first;
    ++again.attempt;
    CHECK(orizuru::push_after(first, 1ms, {.replacement = &again}));
    CHECK_FALSE(pushed(job()));
    CHECK(eventually([&] { return scheduler.move_due() == 1; }));
    auto second = take(consumer);
    CHECK(second->attempt == 2);
    CHECK(ack_unique(second));
    CHECK_FALSE(redis.exists(lock));
}

TEST_CASE_FIXTURE(Fixture,
                  "a job that is tried again in another queue keeps its lock until its ack "
                  "there") {
    const orizuru::RetryPolicy policy{.backoff = orizuru::backoff::fixed(0ms),
                                      .retry_queue = "second"};
    Consumer<RawJob> consumer(uri, "q");
    CHECK(pushed(job()));
    auto first = take(consumer);
    retry(first, policy, "not here");
    CHECK_FALSE(pushed(job()));
    Consumer<RawJob> second(uri, "second");
    auto guard = take(second);
    retry(guard, {.backoff = orizuru::backoff::fixed(0ms), .retry_queue = "third"}, "not there");
    Producer<RawJob> there(uri, "third");
    Consumer<RawJob> third(uri, "third");
    auto last = take(third);
    CHECK_FALSE(pushed(job()));
    CHECK(extend_unique(there, *last, 48h));
    CHECK(lasts(48h));
    CHECK(ack_unique(last));
    CHECK_FALSE(redis.exists(lock));
    CHECK(pushed(job()));
}

TEST_CASE_FIXTURE(Fixture, "a lock is extended by its job alone, and never cut short") {
    const RawJob mine = job();
    CHECK(push_unique(producer, "id", mine, {.ttl = 1h}));
    CHECK(extend_unique(producer, mine, 3h));
    CHECK(lasts(3h));
    CHECK(extend_unique(producer, mine, 1h));
    CHECK(lasts(3h));
    CHECK_FALSE(extend_unique(producer, job(), 9h));
    CHECK(lasts(3h));
    redis.del(lock);
    CHECK_FALSE(extend_unique(producer, mine, 9h));
    CHECK_FALSE(redis.exists(lock));
    CHECK(pushed(mine, UniqueRelease::on_expiry));
    CHECK(extend_unique(producer, mine, 48h));
    CHECK(lasts(48h));
    redis.del(lock);
    CHECK(pushed(mine, UniqueRelease::never));
    CHECK(extend_unique(producer, mine, 1h));
    CHECK(ttl() == -1);
}

TEST_CASE_FIXTURE(Fixture, "impossible values are refused before anything is sent") {
    for (const std::string& id : {""s, std::string(513, 'x')}) {
        CHECK_THROWS_AS(push_unique(producer, id, job()), std::invalid_argument);
    }
    for (const auto time : {0ms, -1ms, std::chrono::milliseconds::max()}) {
        CHECK_THROWS_AS(push_unique(producer, "id", job(), {.ttl = time}), std::invalid_argument);
        CHECK_THROWS_AS(extend_unique(producer, job(), time), std::invalid_argument);
    }
    CHECK_THROWS_AS(push_unique(producer, "id", RawJob{}), EncodeError);
    CHECK(redis.keys().empty());
    const std::string bytes("\0{}*\xff", 5);
    CHECK(push_unique(producer, bytes, job()));
    CHECK(redis.exists("orizuru:{q}:unique:" + bytes));
    Consumer<RawJob> consumer(uri, "q");
    auto guard = take(consumer);
    CHECK(ack_unique(guard));
    CHECK_FALSE(redis.exists("orizuru:{q}:unique:" + bytes));
}

TEST_CASE_FIXTURE(Fixture, "a job that was pushed plainly has no lock to release or to extend") {
    const RawJob holder = job();
    CHECK(pushed(holder));
    RawJob plain = make_job(Raw{"y"});
    producer.push(plain);
    Consumer<RawJob> consumer(uri, "q");
    auto first = take(consumer);
    auto second = take(consumer);
    CHECK(second->id == plain.id);
    CHECK_FALSE(extend_unique(producer, *second, 1h));
    CHECK(ack_unique(second));
    CHECK(contains(redis.command({"GET", lock}).text, holder.id));
    CHECK(extend_unique(producer, *first, 1h));
    CHECK(ack_unique(first));
    CHECK_FALSE(redis.exists(lock));
}

TEST_CASE_FIXTURE(Fixture, "a key of the wrong type is named, and nothing is written") {
    for (const std::string& key : {"q"s, scheduled, lock}) {
        CAPTURE(key);
        redis.flushall();
        redis.command({"HSET", key, "x", "x"});
        const auto named = [&](auto action) {
            return contains(message_of<ReplyError>(action), key + " is a hash");
        };
        CHECK(named([&] { pushed(job()); }));
        CHECK(named([&] { push_unique_after(producer, "id", 1h, job()); }));
        CHECK(redis.keys() == Texts{key});
    }
    CHECK(contains(message_of<ReplyError>([&] { extend_unique(producer, job(), 1h); }),
                   lock + " is a hash"));
    Consumer<RawJob> consumer(uri, "q");
    producer.push(job());
    auto guard = take(consumer);
    CHECK(contains(message_of<ReplyError>([&] { ack_unique(guard); }), lock + " is a hash"));
    CHECK_FALSE(guard.settled());
    CHECK(held().size() == 1);
    CHECK(redis.type(lock) == "hash");
    redis.del(lock);
    CHECK(ack_unique(guard));
}

TEST_CASE_FIXTURE(Fixture, "a user who may not take or release the lock pushes and acks nothing") {
    const std::string clerk = "unix://clerk:open-sesame@" + server().socket_path();
    redis.command(
        {"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "&*", "+@all", "-set"});
    Producer<RawJob> own(clerk, "q");
    CHECK(contains(message_of<ReplyError>([&] { push_unique(own, "id", job()); }), "NOPERM"));
    CHECK(redis.keys().empty());
    redis.command({"ACL", "SETUSER", "clerk", "+set"});
    Consumer<RawJob> consumer(clerk, "q");
    CHECK(pushed(job()));
    auto guard = take(consumer);
    redis.command({"ACL", "SETUSER", "clerk", "-del"});
    CHECK(contains(message_of<ReplyError>([&] { ack_unique(guard); }), "NOPERM"));
    CHECK_FALSE(guard.settled());
    CHECK(held().size() == 1);
    redis.command({"ACL", "SETUSER", "clerk", "+del"});
    CHECK(ack_unique(guard));
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture, "when memory is full no job and no lock come, and an ack still works") {
    Consumer<RawJob> consumer(uri, "q");
    const RawJob mine = job();
    CHECK(pushed(mine));
    auto guard = take(consumer);
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    const std::string error =
        message_of<ReplyError>([&] { push_unique(producer, "other", job()); });
    const bool extended = extend_unique(producer, mine, 48h);
    const bool acked = ack_unique(guard);
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(contains(error, "OOM"));
    CHECK(extended);
    CHECK(acked);
    CHECK_FALSE(redis.exists(lock));
    CHECK_FALSE(redis.exists("orizuru:{q}:unique:other"));
    CHECK(redis.llen("q") == 0);
}

} // namespace unique_test
