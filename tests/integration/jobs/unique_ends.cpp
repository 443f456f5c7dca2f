// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The locks of unique jobs that end without an ack of theirs.

#include "integration/core/queue_fixture.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace unique_ends_test {

using namespace std::chrono_literals;
using orizuru::BoundedPush;
using orizuru::Consumer;
using orizuru::DeadList;
using orizuru::Job;
using orizuru::JobProducer;
using orizuru::Keys;
using orizuru::Overflow;
using orizuru::Producer;
using orizuru::push_bounded;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::UniqueRelease;
using orizuru::test::contains;
using orizuru::test::message_of;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Texts;

/// The bytes of a unique job.
std::string job_of(const std::string& id, const std::string& unique_id,
                   const std::string& unique_queue = "") {
    Job<Raw> job = orizuru::make_job(Raw{"payload"});
    job.id = id;
    job.unique_id = unique_id;
    job.unique_queue = unique_queue;
    std::string bytes;
    orizuru::Codec<Job<Raw>>::encode(job, bytes);
    return bytes;
}

/// The bytes of a unique job whose lock is of a queue that cannot be.
std::string job_of_no_queue() {
    std::string bytes = job_of("0", "nowhere", "XXXXXXXXX");
    return bytes.replace(bytes.find("XXXXXXXXX"), 9, "orizuru:{");
}

struct Fixture : QueueFixture {
    Producer<Raw> producer{uri, "q"};
    DeadList list{uri, "q"};

    static std::string lock(const std::string& id, const std::string& queue = "q") {
        return Keys(queue).unique(id);
    }
    void lock(const std::string& id, const std::string& value, const std::string& queue) {
        redis.set(lock(id, queue), value);
    }
    /// Jobs, the oldest first, that hold their locks or do not, and messages that are no jobs.
    void push_all() {
        const std::string long_id(300, 'u');
        lock("held", "ack 1", "q");
        lock(long_id, "ack 2", "q");
        lock("elsewhere", "ack 3", "r");
        lock("tagged", "ack 4", "{q}:s");
        lock("named", "ack 5", "q");
        lock("taken by a later job", "ack later", "q");
        lock("once", "never 7", "q");
        lock("expires", "expiry 8", "q");
        redis.lpush("orizuru:{q}:unique:of another type", "ack 9");
        push({"", "x", std::string("\x9a\x01", 2), job_of("1", "held"), job_of("2", long_id),
              job_of("3", "elsewhere", "r"), job_of("4", "tagged", "{q}:s"),
              job_of("5", "named", "q"), job_of("6", "taken by a later job"), job_of("7", "once"),
              job_of("8", "expires"), job_of("9", "of another type"), job_of("10", "has expired"),
              job_of_no_queue(), job_of("12", "")});
    }
    /// The names of all locks that are left, without their prefixes.
    Texts locks() {
        Texts found;
        for (const std::string& key : redis.keys("orizuru:*:unique:*")) {
            found.push_back(key.substr(key.find("unique:") + 7));
        }
        std::ranges::sort(found);
        return found;
    }
    const Texts left{"expires", "of another type", "once", "taken by a later job"};
    /// Buries all that waits, and one more.
    std::size_t bury_all() {
        push({"the newest"});
        const auto count = static_cast<std::size_t>(redis.llen("q"));
        Consumer<Raw> consumer(uri, "q");
        for (std::size_t i = 0; i < count; ++i) {
            consumer.next()->bury("why");
        }
        return count;
    }
    /// Somebody has died with this message in hand.
    void die_with(const std::string& message) {
        redis.command({"RPUSH", Keys("q").processing("dead"), message, "orz:n:0"});
        redis.command({"SADD", Keys("q").consumers(), "dead"});
    }
    std::int64_t scripts_run() { return info("commandstats", "cmdstat_eval:calls"); }
};

TEST_CASE_FIXTURE(Fixture, "a unique job that is dropped for a new one releases the lock that is "
                           "its own, in the same step") {
    push_all();
    const auto count = static_cast<std::uint64_t>(redis.llen("q"));
    SUBCASE("with others") {
        CHECK(push_bounded(producer, {"new"}, {1, Overflow::drop_oldest}) ==
              BoundedPush{true, count, 1});
    }
    SUBCASE("one by one") {
        redis.command({"CONFIG", "RESETSTAT"});
        for (std::uint64_t i = 0; i < count; ++i) {
            CHECK(push_bounded(producer, {"new"},
                               {static_cast<std::int64_t>(count), Overflow::drop_oldest}) ==
                  BoundedPush{true, 1, count});
        }
        CHECK(info("commandstats", "cmdstat_evalsha:calls") == static_cast<std::int64_t>(count));
        CHECK(scripts_run() <= 1); // if Redis did not know the script
    }
    CHECK(locks() == left);
}

TEST_CASE_FIXTURE(Fixture, "a push that is refused by its bound releases no lock") {
    push_all();
    const Texts before = locks();
    CHECK_FALSE(push_bounded(producer, {"new"}, {.max_length = 1}).pushed);
    CHECK(locks() == before);
}

TEST_CASE_FIXTURE(Fixture, "unique jobs that leave the dead list release the locks that are their "
                           "own, and the rest stays") {
    push_all();
    const Texts before = locks();
    const std::size_t count = bury_all();
    CHECK(locks() == before); // a redrive brings them back
    SUBCASE("purged, all of them") { CHECK(list.purge() == count); }
    SUBCASE("purged by their age") { CHECK(list.purge(0ms) == count); }
    SUBCASE("trimmed by their number") {
        CHECK(list.trim({.most = 1, .oldest = 0ms}) == count - 1);
    }
    SUBCASE("trimmed by their age") {
        CHECK(orizuru::test::eventually([&] {
            list.trim({.most = 0, .oldest = 1ms});
            return list.size() == 0;
        }));
    }
    SUBCASE("for what a collector buries") {
        die_with("newer");
        orizuru::GarbageCollector collector(uri, "q",
                                            {.max_recoveries = 0, .grace = 0ms, .dead_limit = 1});
        CHECK(collector.collect().buried == 1);
        CHECK(redis.llen(dead) == 1);
    }
    CHECK(locks() == left);
}

TEST_CASE_FIXTURE(Fixture, "a unique job that a collector buries and drops at once releases its "
                           "lock") {
    lock("held", "ack 1", "q");
    lock("stays", "ack 2", "q");
    redis.command({"RPUSH", Keys("q").processing("dead"), job_of("2", "stays"), job_of("1", "held"),
                   "orz:n:0"}); // the newest first
    redis.command({"SADD", Keys("q").consumers(), "dead"});
    orizuru::GarbageCollector collector(
        uri, "q", {.max_recoveries = 0, .grace = 0ms, .dead_limit = 1, .blamed = 2});
    CHECK(collector.collect().buried == 2);
    CHECK(redis.llen(dead) == 1);
    CHECK(locks() == Texts{"stays"});
}

TEST_CASE_FIXTURE(Fixture, "jobs that go back to their queue keep their locks") {
    push_all();
    const Texts before = locks();
    const std::size_t count = bury_all();
    CHECK(list.redrive_all().redriven == count);
    CHECK(locks() == before);
}

TEST_CASE_FIXTURE(Fixture, "a step that drops jobs looks at a thousand, or at 4 MiB of them, at "
                           "most") {
    Texts many(2'500, job_of("1", "held"));
    lock("held", "ack 1", "q");
    SUBCASE("of a queue") {
        redis.lpush("q", many);
        CHECK(push_bounded(producer, {"new"}, {1, Overflow::drop_oldest}) ==
              BoundedPush{true, 1'000, 1'501});
        CHECK(push_bounded(producer, {"new"}, {1, Overflow::drop_oldest}) ==
              BoundedPush{true, 1'000, 502});
        CHECK(push_bounded(producer, {"new"}, {1, Overflow::drop_oldest}) ==
              BoundedPush{true, 502, 1});
    }
    SUBCASE("of a queue, by their size") {
        redis.lpush("q", Texts(10, std::string(1 << 20, 'x')));
        CHECK(push_bounded(producer, {"new"}, {1, Overflow::drop_oldest}) ==
              BoundedPush{true, 4, 7});
        redis.lpush("q", many.front());
        CHECK(push_bounded(producer, {"new"}, {1, Overflow::drop_oldest}) ==
              BoundedPush{true, 4, 5});
        CHECK(push_bounded(producer, {"new"}, {1, Overflow::drop_oldest}) ==
              BoundedPush{true, 5, 1});
    }
    SUBCASE("of the dead") {
        redis.lpush(dead, many);
        redis.command({"CONFIG", "RESETSTAT"});
        CHECK(list.trim({.most = 1, .oldest = 0ms}) == 2'499);
        CHECK(scripts_run() == 3);
        CHECK(list.purge() == 1);
        CHECK(scripts_run() == 4);
        // They are no entries: nobody knows what is in them.
        CHECK(locks() == Texts{"held"});
        return;
    }
    SUBCASE("of the dead, by their size") {
        for (int i = 0; i < 9; ++i) {
            push({std::string(1 << 20, 'x')});
        }
        bury_all();
        redis.command({"CONFIG", "RESETSTAT"});
        CHECK(list.purge() == 10);
        CHECK(scripts_run() == 3);
        return;
    }
    CHECK(locks().empty());
}

TEST_CASE_FIXTURE(Fixture, "a user without a right to a queue's own locks drops no unique job, and "
                           "another queue's lock stays without one") {
    const std::string as_clerk = "unix://clerk:open-sesame@" + server().socket_path();
    const auto allow = [&](const Texts& more) {
        Texts words{"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "+@all"};
        words.insert(words.end(), more.begin(), more.end());
        redis.command(words);
    };
    Texts rights{"~q", "~orizuru:{q}:*"};
    std::string missing;
    SUBCASE("as it should be") {}
    SUBCASE("without GET") { missing = "GET"; }
    SUBCASE("without DEL") { missing = "DEL"; }
    if (!missing.empty()) {
        rights.push_back("-" + missing);
    }
    allow(rights);
    push_all();
    Texts before = locks();
    Producer<Raw> own(as_clerk, "q");
    DeadList dead_list(as_clerk, "q");
    const auto drop = [&] {
        static_cast<void>(push_bounded(own, {"new"}, {1, Overflow::drop_oldest}));
    };
    const Texts waits = waiting();
    if (missing.empty()) {
        drop();
        Texts expected = left;
        expected.insert(expected.begin(), "elsewhere");
        CHECK(locks() == expected);
    } else {
        CHECK(contains(message_of<ReplyError>(drop), "NOPERM this user may not run " + missing));
        CHECK(waiting() == waits);
        const std::size_t count = bury_all();
        const auto purge = [&] { dead_list.purge(); };
        CHECK(contains(message_of<ReplyError>(purge), "NOPERM this user may not run " + missing));
        CHECK(redis.llen(dead) == static_cast<std::int64_t>(count));
        CHECK(locks() == before);
    }
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE("in a Cluster the locks in a queue's slot are released, and those in others stay") {
    orizuru::test::Cluster cluster(2);
    orizuru::test::RedisClient redis = cluster.client_of("a");
    std::string neighbour = "c"; // in another slot of this node
    while (cluster.owner(neighbour) != cluster.owner("a")) {
        neighbour += "c";
    }
    const Texts queues{"a", "{a}too", neighbour, "b"};
    REQUIRE(cluster.owner("b") != cluster.owner("a"));
    const auto fill = [&] {
        for (const std::string& queue : queues) {
            cluster.client_of(queue).set(Keys(queue).unique("u"), "ack " + queue);
            redis.lpush("a", job_of(queue, "u", queue));
        }
    };
    const auto locked = [&] {
        Texts found;
        std::ranges::copy_if(queues, std::back_inserter(found), [&](const std::string& queue) {
            return cluster.client_of(queue).exists(Keys(queue).unique("u"));
        });
        return found;
    };
    const Texts others{neighbour, "b"};
    fill();
    Producer<Raw> producer(cluster.uri(), "a");
    CHECK(push_bounded(producer, {"new"}, {1, Overflow::drop_oldest}) == BoundedPush{true, 4, 1});
    CHECK(locked() == others);
    fill();
    Consumer<Raw> consumer(cluster.uri(), "a");
    for (int i = 0; i < 5; ++i) {
        consumer.next()->bury("why");
    }
    CHECK(locked() == queues);
    CHECK(DeadList(cluster.uri(), "a").purge() == 5);
    CHECK(locked() == others);
}

TEST_CASE("while a slot of a Cluster moves no job is dropped without its lock") {
    orizuru::test::Cluster cluster(2);
    const std::size_t from = cluster.owner("a");
    cluster.client(from).set(Keys("a").unique("u"), "ack 1");
    const std::string one = job_of("1", "u");
    cluster.client(from).lpush("a", one);
    Producer<Raw> producer(cluster.uri({0, 1}), "a");
    const auto drop = [&] { return push_bounded(producer, {"new"}, {1, Overflow::drop_oldest}); };
    bool moved = false;
    cluster.migrate("a", 1 - from, [&] {
        orizuru::test::RedisClient source = cluster.client(from);
        if (!std::exchange(moved, true)) {
            // The lock moves first.
            source.command({"MIGRATE", "127.0.0.1", std::to_string(cluster.node(1 - from).port()),
                            Keys("a").unique("u"), "0", "5000"});
            CHECK(contains(message_of<ReplyError>(drop), "TRYAGAIN"));
            CHECK(source.lrange("a") == Texts{one});
        }
    });
    CHECK(drop() == BoundedPush{true, 1, 1});
    CHECK(cluster.client_of("a").lrange("a") == Texts{"new"});
    CHECK_FALSE(cluster.client_of("a").exists(Keys("a").unique("u")));
}

} // namespace unique_ends_test
