// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The shards of a queue are created, grown and shrunk, and no message is left behind.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/detail/shards/shard_registry.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/sharded.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace shards_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Consumer;
using orizuru::Endpoint;
using orizuru::Keys;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ShardedProducer;

const std::string layout_key = "orizuru:{orders}:shards";

struct Shards : QueueFixture {
    Endpoint endpoint{server().uri()};

    Texts read() { return orizuru::shards(endpoint, "orders"); }
    /// Without the number of the change.
    std::string layout() {
        const std::string text = redis.command({"GET", layout_key}).text;
        return text.substr(0, text.find(" @"));
    }
    /// Those of the first that are not among the second.
    static Texts without(Texts first, const Texts& second) {
        std::erase_if(first, [&](const std::string& name) {
            return std::ranges::find(second, name) != second.end();
        });
        return first;
    }
    void create(std::size_t count) { orizuru::create_shards(endpoint, "orders", count); }
    void add(std::size_t count) { orizuru::add_shards(endpoint, "orders", count); }
    void use(std::size_t count) { orizuru::use_shards(endpoint, "orders", count); }
    Texts retire() { return orizuru::retire_shards(endpoint, "orders"); }
    /// 12 to 4, and the shards that nobody pushes to any more.
    Texts shrunk() {
        create(12);
        const Texts before = read();
        add(4);
        use(4);
        const Texts leaving = without(before, orizuru::detail::shard_names("orders", 4));
        REQUIRE_FALSE(leaving.empty());
        return leaving;
    }
};

TEST_CASE_FIXTURE(Shards, "shards are created once, and the same number again changes nothing") {
    create(6);
    CHECK(layout() == "6");
    CHECK(read().size() == 6);
    create(6);
    CHECK(layout() == "6");
    CHECK(redis.keys() == Texts{layout_key});
    CHECK_THROWS_WITH_AS(create(8), "queue 'orders' has 6 shards, not 8", std::logic_error);
    CHECK(layout() == "6");
}

TEST_CASE_FIXTURE(Shards, "a queue grows: consumers read first, then producers push") {
    create(3);
    const Texts few = read();
    ShardedProducer<Raw> old(endpoint, "orders");
    add(6);
    CHECK(layout() == "3 6");
    const Texts many = read();
    CHECK(without(few, many).empty());
    CHECK(many.size() > few.size());
    add(6);
    CHECK(layout() == "3 6");

    const auto push_to_all = [&](ShardedProducer<Raw>& producer) {
        for (int i = 0; i < 6; ++i) {
            producer.push({"message"});
        }
    };
    push_to_all(old);
    for (const std::string& name : without(many, few)) {
        CHECK(redis.llen(name) == 0);
    }
    use(6);
    CHECK(layout() == "6 3");
    ShardedProducer<Raw> fresh(endpoint, "orders");
    push_to_all(fresh);
    old.reload();
    push_to_all(old);
    for (const std::string& name : without(many, few)) {
        CHECK(redis.llen(name) == 2);
    }
    CHECK(retire().empty()); // six contain the three
    CHECK(layout() == "6");
}

TEST_CASE_FIXTURE(Shards,
                  "an empty shard retires: it is no more read, and refuses what is pushed") {
    const Texts leaving = shrunk();
    ShardedProducer<Raw> producer(endpoint, "orders");
    Texts retired = retire();
    std::ranges::sort(retired);
    Texts expected = leaving;
    std::ranges::sort(expected);
    CHECK(retired == expected);
    CHECK(layout() == "4");
    CHECK(read().size() == 4);
    for (const std::string& name : leaving) {
        CHECK(redis.try_command({"LPUSH", name, "x"}).text.starts_with("WRONGTYPE"));
    }
    CHECK(retire().empty());
    // They come back.
    add(12);
    for (const std::string& name : leaving) {
        CHECK_FALSE(redis.exists(name));
    }
    CHECK(layout() == "4 12");
}

TEST_CASE_FIXTURE(Shards,
                  "a producer that has missed the retirement pushes to a shard that is read") {
    create(12);
    ShardedProducer<Raw> in_turn(endpoint, "orders");
    ShardedProducer<Raw> batches(endpoint, "orders");
    ShardedProducer<Raw> by_key(endpoint, "orders");
    add(4);
    use(4);
    const Texts leaving = retire();
    REQUIRE_FALSE(leaving.empty());
    for (int i = 0; i < 12; ++i) {
        in_turn.push({"turn"});
        by_key.push(std::to_string(i), {"key"});
    }
    const std::vector<Raw> many(12'000, Raw{"batch"});
    CHECK(batches.push_all(many) == many.size());
    std::int64_t sum = 0;
    for (const std::string& name : read()) {
        sum += redis.llen(name);
    }
    CHECK(sum == 24 + 12'000);
    for (const std::string& name : leaving) {
        CHECK(redis.type(name) == "string");
    }
}

TEST_CASE_FIXTURE(Shards,
                  "a shard with a message anywhere does not retire, and nothing has changed") {
    const Texts leaving = shrunk();
    const Keys keys(leaving.back());
    const std::string& shard = keys.source();
    std::optional<Consumer<Raw>> consumer;
    std::optional<orizuru::MessageGuard<Raw>> guard;
    std::string found;
    SUBCASE("waiting") {
        redis.lpush(shard, "x");
        found = "1 waiting";
    }
    SUBCASE("held") {
        redis.lpush(shard, "x");
        consumer.emplace(endpoint, shard);
        guard = consumer->next();
        found = "1 held";
    }
    SUBCASE("scheduled") {
        redis.command({"ZADD", keys.scheduled(), "1", "x"});
        found = "1 scheduled";
    }
    SUBCASE("rejected") {
        redis.lpush(keys.unack(), "x", "y");
        found = "2 rejected";
    }
    SUBCASE("suspected") {
        redis.lpush(keys.suspects(), "x");
        found = "1 suspected";
    }
    SUBCASE("dead") {
        redis.lpush(keys.dead(), "x");
        found = "1 dead";
    }
    const auto dump = [&] {
        Texts all{layout()};
        for (const std::string& key : redis.keys()) {
            if (key != layout_key) {
                all.push_back(key + redis.type(key) + redis.command({"DUMP", key}).text);
            }
        }
        return all;
    };
    const Texts before = dump();
    const std::string expected = "'" + shard + "': NOTEMPTY it has messages: " + found;
    CHECK_THROWS_WITH_AS(retire(), doctest::Contains(expected.c_str()), orizuru::ReplyError);
    CHECK(dump() == before);
}

TEST_CASE_FIXTURE(Shards, "a consumer that holds nothing does not keep a shard") {
    const Texts leaving = shrunk();
    Consumer<Raw> consumer(endpoint, leaving.front());
    CHECK(retire().size() == leaving.size());
    CHECK_THROWS_AS(static_cast<void>(consumer.next(200ms)), orizuru::ReplyError);
}

TEST_CASE_FIXTURE(Shards, "wrong use is refused by a sentence, and changes nothing") {
    const auto refused = [&](const std::function<void()>& use, const char* sentence) {
        const Texts before = redis.keys();
        CHECK_THROWS_WITH(use(), doctest::Contains(sentence));
        CHECK(redis.keys() == before);
    };
    refused([&] { read(); }, "queue 'orders' has no shards; create_shards makes them");
    refused([&] { add(2); }, "queue 'orders' has no shards");
    refused([&] { use(2); }, "queue 'orders' has no shards");
    refused([&] { retire(); }, "queue 'orders' has no shards");
    refused([&] { ShardedProducer<Raw>(endpoint, "orders"); }, "queue 'orders' has no shards");
    refused([&] { create(0); }, "must be 1 to 1024");
    refused([&] { create(1025); }, "must be 1 to 1024");
    refused([&] { orizuru::create_shards(endpoint, "{a}b", 2); },
            "queue '{a}b' has a hash tag, which puts all of its shards into one slot");
    refused([&] { orizuru::create_shards(endpoint, "", 2); }, "the queue name is empty");
    create(2);
    refused([&] { use(3); }, "queue 'orders': its consumers do not read 3 shards; add_shards");
    CHECK(layout() == "2");
    redis.set(layout_key, "many");
    refused([&] { read(); }, "queue 'orders': 'many' in Redis are no numbers of shards");
    redis.del(layout_key);
    redis.lpush(layout_key, "x");
    refused([&] { read(); }, "WRONGTYPE");
    refused([&] { create(2); }, "WRONGTYPE");
}

TEST_CASE_FIXTURE(Shards, "a text of the user's own at a shard's name stays") {
    create(4);
    const std::string name = read().front();
    redis.set(name, "mine");
    add(4);
    use(4);
    create(4);
    CHECK(redis.command({"GET", name}).text == "mine");
}

TEST_CASE_FIXTURE(Shards, "a change that another one has overtaken is made anew") {
    create(4);
    orizuru::detail::ShardRegistry registry(endpoint, "orders");
    int times = 0;
    registry.change([&](orizuru::detail::ShardLayout& changed) {
        if (++times == 1) {
            add(7);
        }
        changed.read(9);
    });
    CHECK(times == 2);
    CHECK(layout() == "4 7 9");
    CHECK_FALSE(registry.replace("4 @1", "5 @2"));
    CHECK(layout() == "4 7 9");
}

TEST_CASE_FIXTURE(Shards, "what an operator does late undoes no later retirement") {
    const Texts leaving = shrunk(); // 4, and 12 are read
    orizuru::detail::ShardRegistry registry(endpoint, "orders");
    const auto all_refuse = [&] {
        return std::ranges::all_of(leaving, [&](const std::string& name) {
            return redis.try_command({"LPUSH", name, "x"}).text.starts_with("WRONGTYPE");
        });
    };
    // As add_shards(12) does, with all of retire_shards between its two steps.
    const auto read = registry.change([](orizuru::detail::ShardLayout& next) { next.read(12); });
    CHECK(retire().size() == leaving.size());
    registry.open(leaving, read);
    CHECK(all_refuse());
    CHECK(layout() == "4");
    // The other way round: the retirement is the one that is overtaken.
    bool first = true;
    add(12);
    registry.change([&](orizuru::detail::ShardLayout& next) {
        next.read_written();
        registry.close(leaving, next);
        if (std::exchange(first, false)) {
            add(12);
            CHECK_FALSE(all_refuse()); // pushed by the check itself
            for (const std::string& name : leaving) {
                redis.del(name);
            }
        }
    });
    CHECK(all_refuse());
    CHECK_THROWS_AS(use(12), std::logic_error);
    CHECK(all_refuse());
}

TEST_CASE_FIXTURE(Shards, "while the shards change all the time, each message arrives once") {
    create(4);
    std::atomic<int> pushed = 0;
    std::atomic<int> refused = 0;
    std::set<std::string> all; // all shards that there ever are
    for (const std::size_t count : {3, 4, 6, 7}) {
        for (std::string& name : orizuru::detail::shard_names("orders", count)) {
            all.insert(std::move(name));
        }
    }
    std::multiset<std::string> seen;
    {
        std::vector<std::jthread> changing;
        for (const int own : {0, 1}) {
            changing.emplace_back([&, own](const std::stop_token& stop) {
                for (int i = own; !stop.stop_requested(); ++i) {
                    const std::size_t count = std::vector<std::size_t>{3, 4, 6, 7}[i % 4];
                    try {
                        add(count);
                        use(count);
                        retire();
                    } catch (const orizuru::ReplyError& error) {
                        CHECK(error.code() == "NOTEMPTY");
                    } catch (const std::logic_error&) { // NOLINT(bugprone-empty-catch)
                        // The other one has retired what this one has added.
                    }
                }
            });
        }
        std::vector<std::jthread> pushing;
        for (int own = 0; own < 2; ++own) {
            pushing.emplace_back([&, own] {
                ShardedProducer<Raw> producer(endpoint, "orders");
                for (int i = 0; i < 3'000; ++i) {
                    const std::string message = std::to_string(own) + "." + std::to_string(i);
                    try {
                        own == 0 ? producer.push({message}) : producer.push(message, {message});
                        ++pushed;
                    } catch (const orizuru::ReplyError& error) {
                        // Between two changes, a shard that nobody reads yet.
                        CHECK(error.code() == "WRONGTYPE");
                        ++refused;
                    }
                }
            });
        }
        std::jthread consuming([&](const std::stop_token& stop) {
            RedisClient own(server().uri());
            while (!stop.stop_requested()) {
                for (const std::string& name : read()) {
                    // A list that nobody reads may hold nothing, so only these are looked at.
                    const Answer taken = own.try_command({"RPOP", name});
                    if (taken.kind == Answer::Kind::text) {
                        seen.insert(taken.text);
                    }
                }
            }
        });
        pushing.clear();
        CHECK(eventually([&] {
            return std::ranges::all_of(
                all, [&](const std::string& name) { return redis.type(name) != "list"; });
        }));
        changing.clear();
        consuming.request_stop();
    }
    CHECK(std::set<std::string>(seen.begin(), seen.end()).size() == seen.size());
    CHECK(static_cast<int>(seen.size()) == pushed);
    CHECK(pushed + refused == 6'000);
    CHECK(pushed > 1'000);
    MESSAGE(pushed.load() << " pushed, " << refused.load() << " refused");
}

} // namespace shards_test
