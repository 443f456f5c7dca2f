// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a consumer's Codec would refuse, every way to push refuses; what it accepts comes back.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/sharded.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace unreadable_pushes_test {

using namespace std::chrono_literals;
using orizuru::BufferedProducer;
using orizuru::Consumer;
using orizuru::Cron;
using orizuru::EncodeError;
using orizuru::Job;
using orizuru::JobProducer;
using orizuru::JobTime;
using orizuru::Overflow;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::Recurring;
using orizuru::ShardedProducer;
using orizuru::test::contains;
using orizuru::test::message_of;
using orizuru::test::QueueFixture;

struct Tree {
    std::vector<Tree> children;
    MSGPACK_DEFINE(children)
};

/// Each takes two levels of msgpack.
Tree tree_of(int trees) {
    Tree tree;
    for (int i = 1; i < trees; ++i) {
        Tree parent;
        parent.children.push_back(std::move(tree));
        tree = std::move(parent);
    }
    return tree;
}

int trees_in(const Tree& tree) {
    return tree.children.empty() ? 1 : 1 + trees_in(tree.children.front());
}

using Pairs = std::vector<std::pair<int, int>>;
constexpr std::size_t most_values = std::size_t{4} << 20;
constexpr std::size_t most_pairs = (most_values - 1) / 3;

template <class T>
T round_trip(const std::string& uri, const T& message) {
    Producer<T>(uri, "q").push(message);
    Consumer<T> consumer(uri, "q");
    auto guard = consumer.next(20s);
    REQUIRE(guard);
    T read = guard->take();
    CHECK(guard->ack());
    return read;
}

struct Fixture : QueueFixture {
    /// `push` throws an EncodeError that says why, and writes nothing.
    template <class Push>
    void refuses(const char* why, Push push) {
        const auto writes = [this] { return info("persistence", "rdb_changes_since_last_save"); };
        const std::int64_t before = writes();
        CHECK(contains(message_of<EncodeError>(push), why));
        CHECK(writes() == before);
    }
};

TEST_CASE_FIXTURE(Fixture, "a flat array of numbers comes back, whatever its length") {
    CHECK(round_trip(uri, std::vector<float>(most_values + 1)).size() == most_values + 1);
    CHECK(round_trip(uri, std::vector<int>(1'000'000, 70'000)) ==
          std::vector<int>(1'000'000, 70'000));
}

TEST_CASE_FIXTURE(Fixture, "a tree of 64 levels comes back, a deeper one is refused by push") {
    CHECK(trees_in(round_trip(uri, tree_of(32))) == 32);
    Producer<Tree> producer(uri, "q");
    refuses("more than 64 levels", [&] { producer.push(tree_of(33)); });
    refuses("more than 64 levels", [&] { producer.push_all({tree_of(33)}); });
}

TEST_CASE_FIXTURE(Fixture, "4 Mi values come back, more are refused by push") {
    CHECK(round_trip(uri, Pairs(most_pairs)).size() == most_pairs);
    Producer<Pairs> producer(uri, "q");
    refuses("more than 4194304 values", [&] { producer.push(Pairs(most_pairs + 1)); });
}

TEST_CASE_FIXTURE(Fixture, "what no consumer could read is refused by all that push") {
    const Tree deep = tree_of(33);
    const char* const why = "more than 64 levels";

    Producer<Tree> producer(uri, "q");
    refuses(why, [&] { push_after(producer, 1h, deep); });
    refuses(why, [&] { static_cast<void>(push_bounded(producer, deep, {.max_length = 5})); });

    Producer<Job<Tree>> jobs(uri, "q");
    refuses(why, [&] { push_unique(jobs, "once", orizuru::make_job(deep)); });
    JobProducer<Tree> job_producer(uri, "q");
    refuses(why, [&] { job_producer.push(deep); });
    refuses(why, [&] { job_producer.push(deep, {.delay = 1h}); });
    refuses(why, [&] { job_producer.push_all({deep}); });

    BufferedProducer<Tree> buffered(uri, "q");
    refuses(why, [&] { buffered.push(deep); });
    CHECK(buffered.unconfirmed() == 0);

    Recurring<Tree> recurring(uri, "q",
                              {{.name = "tick",
                                .cron = Cron("* * * * * *"),
                                .message = [&](auto) { return deep; },
                                .catch_up = 60}});
    CHECK(orizuru::test::eventually([&] {
        try {
            recurring.push_due(); // the first begins
        } catch (const EncodeError& error) {
            return contains(error.what(), why);
        }
        return false;
    }));
    CHECK(redis.llen("q") == 0);

    push({"\x91\x90"});
    Consumer<Tree> consumer(uri, "q");
    auto guard = consumer.next(5s);
    REQUIRE(guard);
    refuses(why, [&] { guard->push("next", deep); });
    refuses(why, [&] { push_after(*guard, 1h, {.replacement = &deep}); });
    CHECK_FALSE(guard->settled());
    CHECK(guard->ack());
}

TEST_CASE_FIXTURE(Fixture, "the producer of a queue over many shards refuses them, too") {
    orizuru::create_shards(uri, "many", 2);
    ShardedProducer<Tree> producer(uri, "many");
    refuses("more than 64 levels", [&] { producer.push(tree_of(33)); });
    refuses("more than 64 levels", [&] { producer.push_all(std::vector{tree_of(33)}); });
}

} // namespace unreadable_pushes_test
