// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer spreads its messages over the shards, and goes on to another one when it may.

#include "integration/core/queue_fixture.hpp"
#include "support/cluster.hpp"
#include "support/fake_server.hpp"

#include <orizuru/orizuru.hpp>
#include <orizuru/sharded.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace sharded_producer_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Endpoint;
using orizuru::Raw;
using orizuru::ShardedProducer;

struct SixShards : QueueFixture {
    Endpoint endpoint{server().uri()};
    Texts names =
        (orizuru::create_shards(endpoint, "orders", 6), orizuru::shards(endpoint, "orders"));
    ShardedProducer<Raw> producer{endpoint, "orders"};

    std::int64_t waiting() {
        std::int64_t sum = 0;
        for (const std::string& name : names) {
            sum += redis.type(name) == "list" ? redis.llen(name) : 0;
        }
        return sum;
    }
};

std::vector<Raw> numbered(int count) {
    std::vector<Raw> messages;
    for (int i = 0; i < count; ++i) {
        messages.push_back({std::to_string(i)});
    }
    return messages;
}

TEST_CASE_FIXTURE(SixShards,
                  "a push that too few replicas of its shard confirm is in doubt, and no "
                  "other shard gets it") {
    ShardedProducer<Raw> waiting_for(endpoint, "orders", {.replicas = {.count = 1, .within = 1ms}});
    for (const auto& push : std::vector<std::function<void()>>{
             [&] { waiting_for.push({"a"}); }, [&] { waiting_for.push("key", {"b"}); },
             [&] { waiting_for.push_all(numbered(10)); }}) {
        try {
            push();
            FAIL_CHECK("it was confirmed");
        } catch (const orizuru::ConnectionError& error) {
            CHECK(error.in_doubt());
            CHECK(contains(error.what(), "done, but only 0 of 1 replicas"));
        }
    }
    CHECK(waiting() == 12);
    CHECK_THROWS_AS(ShardedProducer<Raw>("redis://127.0.0.1:1", "orders", {.replicas = {-1}}),
                    std::invalid_argument);
}

TEST_CASE_FIXTURE(SixShards, "messages without a key go to the shards in turn") {
    std::map<std::uint64_t, int> lengths;
    for (int i = 0; i < 1'200; ++i) {
        ++lengths[producer.push({"message"})];
    }
    for (const std::string& name : names) {
        CHECK(redis.llen(name) == 200);
    }
    CHECK(lengths.size() == 200); // each is told for each shard
    CHECK(lengths[200] == 6);
}

TEST_CASE_FIXTURE(SixShards, "shares are within 5 % also of producers that push little each") {
    for (int i = 0; i < 100; ++i) {
        ShardedProducer<Raw> own(endpoint, "orders");
        for (int j = 0; j < 61; ++j) {
            own.push({"message"});
        }
    }
    for (const std::string& name : names) {
        CHECK(redis.llen(name) >= 966); // of 6,100, one sixth is 1,017
        CHECK(redis.llen(name) <= 1'068);
    }
}

TEST_CASE_FIXTURE(SixShards, "messages with the same key are in one shard and in order") {
    std::set<std::string> used;
    for (const std::string key : {"a", "b", "customer 4711", ""}) {
        for (int i = 0; i < 10; ++i) {
            producer.push(key, {key + std::to_string(i)});
        }
        const std::string& shard = producer.shard_of(key);
        used.insert(shard);
        Texts found = redis.lrange(shard);
        std::erase_if(found, [&](const std::string& message) {
            return message.size() != key.size() + 1 || !message.starts_with(key);
        });
        Texts expected;
        for (int i = 9; i >= 0; --i) {
            expected.push_back(key + std::to_string(i));
        }
        CHECK(found == expected);
    }
    CHECK(used.size() > 1);
    CHECK(producer.shard_of("123456789") == names[0x31c3 * 6 / 16384]);
}

TEST_CASE_FIXTURE(SixShards, "push_all sends whole LPUSHes to the shards in turn") {
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(producer.push_all(numbered(7'500)) == 7'500);
    CHECK(redis.command({"INFO", "commandstats"}).text.find("cmdstat_lpush:calls=8,") !=
          std::string::npos);
    std::multiset<std::int64_t> lengths;
    for (const std::string& name : names) {
        lengths.insert(redis.llen(name));
        Texts found = redis.lrange(name);
        std::ranges::reverse(found);
        CHECK(std::ranges::is_sorted(found, {},
                                     [](const std::string& text) { return std::stoi(text); }));
    }
    CHECK(lengths == std::multiset<std::int64_t>{1000, 1000, 1000, 1000, 1500, 2000});
    CHECK(producer.push_all(std::vector<Raw>()) == 0);
    CHECK(producer.push_all({Raw{"one"}, Raw{"two"}}) == 2);
}

TEST_CASE_FIXTURE(SixShards, "an LPUSH of push_all ends at 1 MiB, and comes in one piece") {
    redis.command({"CONFIG", "RESETSTAT"});
    const std::vector<Raw> messages(5, Raw{std::string(std::size_t{500} << 10, 'x')});
    CHECK(producer.push_all(messages) == 5);
    CHECK(redis.command({"INFO", "commandstats"}).text.find("cmdstat_lpush:calls=2,") !=
          std::string::npos);
    std::multiset<std::int64_t> lengths;
    for (const std::string& name : names) {
        lengths.insert(redis.llen(name));
    }
    CHECK(lengths == std::multiset<std::int64_t>{0, 0, 0, 0, 2, 3});
}

TEST_CASE_FIXTURE(SixShards, "when one shard refuses, the others get what has no key") {
    redis.set(names[2], "no list");
    for (int i = 0; i < 60; ++i) {
        CHECK_NOTHROW(producer.push({"message"}));
    }
    CHECK(producer.push_all(numbered(6'000)) == 6'000);
    CHECK(waiting() == 6'060);
    std::string key;
    for (int i = 0; producer.shard_of(key) != names[2]; ++i) {
        key = std::to_string(i);
    }
    CHECK_THROWS_WITH_AS(producer.push(key, {"x"}), doctest::Contains(names[2].c_str()),
                         orizuru::ReplyError);
    CHECK(waiting() == 6'060);
}

TEST_CASE_FIXTURE(SixShards, "when all shards refuse, the push throws and nothing is pushed") {
    for (const std::string& name : names) {
        redis.set(name, "no list");
    }
    CHECK_THROWS_AS(producer.push({"message"}), orizuru::ReplyError);
    for (const std::string& name : names) {
        redis.del(name);
    }
    CHECK_NOTHROW(producer.push({"message"})); // though all rest
    CHECK(waiting() == 1);
}

TEST_CASE_FIXTURE(SixShards, "push_all says how many messages are certainly in the queue") {
    std::vector<Raw> messages = numbered(3'500);
    messages[2'500].bytes = std::string(std::size_t{17} << 20, 'x'); // over max_payload
    try {
        producer.push_all(messages);
        FAIL("it has thrown nothing");
    } catch (const orizuru::EncodeError& error) {
        CHECK(error.pushed() == 2'000);
    }
    CHECK(waiting() == 2'000);
    CHECK(producer.push_all(numbered(10)) == 10); // of the failed batch, nothing is left
    CHECK(waiting() == 2'010);
}

TEST_CASE("a shard that has failed rests while others are well") {
    std::atomic<int> refused = 0;
    const std::string failing = orizuru::detail::shard_names("orders", 4)[1];
    FakeServer fake([&](const std::vector<std::string>& argv) -> std::optional<std::string> {
        if (argv[0] == "GET") {
            return "$4\r\n4 @1\r\n";
        }
        if (argv[0] == "LPUSH" && argv[1] == failing) {
            ++refused;
            return "-OOM its memory is full\r\n";
        }
        return argv[0] == "LPUSH" ? ":1\r\n" : "+OK\r\n";
    });
    ShardedProducer<Raw> producer(fake.uri(), "orders");
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 400; ++i) {
        producer.push({"message"});
    }
    CHECK(refused >= 1);
    CHECK(refused <= 1 + (std::chrono::steady_clock::now() - begin) / 1s);
    CHECK(eventually([&] {
        producer.push({"message"});
        return refused >= 2;
    }));
}

TEST_CASE("a push tries every shard, also those that rest") {
    // Of three shards, two refuse from the second push on; the third has refused before.
    const Texts names = orizuru::detail::shard_names("orders", 3);
    std::atomic<int> phase = 0;
    FakeServer fake([&](const std::vector<std::string>& argv) -> std::optional<std::string> {
        if (argv[0] == "GET") {
            return "$4\r\n3 @1\r\n";
        }
        const bool first = argv[0] == "LPUSH" && argv[1] == names[0];
        if (argv[0] == "LPUSH" && first == (phase == 0)) {
            return "-OOM its memory is full\r\n";
        }
        return argv[0] == "LPUSH" ? ":1\r\n" : "+OK\r\n";
    });
    ShardedProducer<Raw> producer(fake.uri(), "orders");
    for (int i = 0; i < 3; ++i) {
        producer.push({"message"}); // the first shard rests from now on
    }
    phase = 1;
    CHECK_NOTHROW(producer.push({"message"}));
}

TEST_CASE("a push that was refused is not in doubt, though the shards cannot be read anew") {
    std::atomic<int> gets = 0;
    FakeServer fake([&](const std::vector<std::string>& argv) -> std::optional<std::string> {
        if (argv[0] == "GET") {
            return gets++ == 0 ? std::optional<std::string>("$4\r\n1 @1\r\n") : std::nullopt;
        }
        return argv[0] == "LPUSH" ? "-WRONGTYPE it has retired\r\n" : "+OK\r\n";
    });
    ShardedProducer<Raw> producer(fake.uri(), "orders");
    CHECK_THROWS_AS(producer.push({"message"}), orizuru::ReplyError);
    CHECK_THROWS_AS(producer.push("key", {"message"}), orizuru::ReplyError);
    CHECK(gets == 3);
}

TEST_CASE("a push in doubt is not repeated on another shard") {
    std::atomic<int> pushes = 0;
    FakeServer fake([&](const std::vector<std::string>& argv) -> std::optional<std::string> {
        if (argv[0] == "GET") {
            return "$4\r\n4 @1\r\n";
        }
        if (argv[0] == "LPUSH") {
            ++pushes;
            return std::nullopt;
        }
        return "+OK\r\n";
    });
    ShardedProducer<Raw> producer(fake.uri(), "orders");
    try {
        producer.push({"message"});
        FAIL("it has thrown nothing");
    } catch (const orizuru::ConnectionError& error) {
        CHECK(error.in_doubt());
    }
    CHECK(pushes == 1);
    try {
        producer.push_all(numbered(1'500));
        FAIL("it has thrown nothing");
    } catch (const orizuru::ConnectionError& error) {
        CHECK(error.in_doubt());
        CHECK(error.pushed() == 0);
    }
    CHECK(pushes == 2);
}

TEST_CASE("in a Cluster the shards are spread evenly, and a dead node stops its shards only") {
    Cluster cluster(3);
    const Endpoint endpoint(cluster.uri({0, 1, 2}) + "?connect_timeout=500");
    orizuru::create_shards(endpoint, "orders", 12);
    const Texts names = orizuru::shards(endpoint, "orders");
    std::map<std::size_t, int> shares;
    for (const std::string& name : names) {
        ++shares[cluster.owner(name)];
    }
    CHECK(shares == std::map<std::size_t, int>{{0, 4}, {1, 4}, {2, 4}});

    for (std::size_t i = 0; i < cluster.size(); ++i) {
        cluster.client(i).command({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
    }
    ShardedProducer<Raw> producer(endpoint, "orders");
    producer.push_all(numbered(12'000));
    const std::size_t down = cluster.owner(orizuru::Keys("orders").shards()) == 1 ? 2 : 1;
    std::map<std::string, std::size_t> owners;
    for (const std::string& name : names) {
        owners[name] = cluster.owner(name);
    }
    bool dead = false;
    SUBCASE("dead") {
        cluster.node(down).kill();
        dead = true;
    }
    SUBCASE("silent") { cluster.node(down).pause(); }
    int pushed = 0;
    int in_doubt = 0;
    for (int i = 0; i < 1'200; ++i) {
        try {
            producer.push({"message"});
            ++pushed;
        } catch (const orizuru::ConnectionError& error) {
            CHECK(error.in_doubt()); // a node that hangs may have it
            ++in_doubt;
        }
        if (!dead && in_doubt == 1) {
            break; // each costs command_timeout
        }
    }
    CHECK(in_doubt <= (dead ? 4 : 1));
    std::int64_t sum = 0;
    for (const auto& [name, owner] : owners) {
        sum += owner == down ? 0 : cluster.client(owner).llen(name);
    }
    CHECK(sum == 8'000 + pushed);
    if (!dead) {
        cluster.node(down).resume();
    }
}

} // namespace sharded_producer_test
