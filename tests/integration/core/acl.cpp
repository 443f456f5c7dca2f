// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Users without some right: they are refused before anything is fetched, or get an error, and
// nothing is lost.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace acl_test {

using orizuru::BackgroundCollector;
using orizuru::Consumer;
using orizuru::ConsumerOptions;
using orizuru::GarbageCollector;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Texts;
using std::chrono::milliseconds;

struct Restricted : QueueFixture {
    Restricted() { redis.try_command({"ACL", "DELUSER", "clerk"}); }
    ~Restricted() { redis.try_command({"ACL", "DELUSER", "clerk"}); }

    std::string clerk = "unix://clerk:open-sesame@" + server().socket_path();

    /// A user who may do everything except what these rules take away.
    void allow_all_but(const Texts& rules) {
        Texts words{"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "&*", "+@all"};
        words.insert(words.end(), rules.begin(), rules.end());
        redis.command(words);
    }
    /// A user who may do only this.
    void allow(const Texts& rules) {
        Texts words{"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame"};
        words.insert(words.end(), rules.begin(), rules.end());
        redis.command(words);
    }
    void change(const Texts& rules) {
        Texts words{"ACL", "SETUSER", "clerk"};
        words.insert(words.end(), rules.begin(), rules.end());
        redis.command(words);
    }

    template <class Action>
    static void check_refused(Action action) {
        try {
            action();
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK_MESSAGE(error.code() == "NOPERM", error.what());
            CHECK(contains(error.what(), server().socket_path()));
            CHECK_FALSE(contains(error.what(), "sesame"));
        }
    }
};

TEST_CASE_FIXTURE(Restricted, "a user who lacks one right that consuming needs must not start") {
    for (const std::string command :
         {"-lset",  "-lrem",   "-ltrim",  "-lrange", "-lindex", "-llen",    "-lpush",
          "-rpush", "-rpop",   "-blmove", "-set",    "-get",    "-del",     "-sadd",
          "-srem",  "-exists", "-rename", "-type",   "-eval",   "-evalsha", "-time"}) {
        CAPTURE(command);
        redis.flushall();
        push({"a", "b"});
        allow_all_but({command});
        check_refused([this] { const Consumer<Raw> consumer(clerk, "q"); });
        CHECK(waiting() == Texts{"a", "b"});
        CHECK(redis.keys() == Texts{"q"});
    }
}

TEST_CASE_FIXTURE(Restricted, "a user who lacks the right to one kind of key must not start") {
    const std::vector<Texts> rights{
        {"~orizuru:*", "+@all"},               // not the source
        {"~q", "+@all"},                       // none of the library's keys
        {"~q", "~orizuru:{q}:[^p]*", "+@all"}, // no processing list
        {"~q", "~orizuru:{q}:[^h]*", "+@all"}, // no heartbeat
        {"~q", "~orizuru:{q}:[^c]*", "+@all"}, // no registry
        {"~q", "~orizuru:{q}:[^u]*", "+@all"}, // no unack list
        {"~q", "~orizuru:{q}:[^d]*", "+@all"}, // no dead list
        {"%R~q", "~orizuru:*", "+@all"},       // may only read the source
        {"~q", "%R~orizuru:*", "+@all"},       // may only read the rest
    };
    for (const Texts& rules : rights) {
        CAPTURE(rules.front());
        CAPTURE(rules[1]);
        redis.flushall();
        push({"a"});
        allow(rules);
        check_refused([this] { const Consumer<Raw> consumer(clerk, "q"); });
        CHECK(waiting() == Texts{"a"});
        CHECK(redis.keys() == Texts{"q"});
    }
}

TEST_CASE_FIXTURE(Restricted, "a user with the rights that are needed, and no other, consumes") {
    allow({"~q",      "~other",  "~orizuru:{q}:*", "+lset",  "+lrem",    "+ltrim",
           "+lrange", "+lindex", "+llen",          "+lpush", "+rpush",   "+rpop",
           "+blmove", "+set",    "+get",           "+del",   "+sadd",    "+srem",
           "+exists", "+rename", "+type",          "+eval",  "+evalsha", "+time"});
    for (const orizuru::AckMode mode : {orizuru::AckMode::immediate, orizuru::AckMode::deferred}) {
        for (const int prefetch : {1, 3}) {
            redis.flushall();
            {
                Consumer<Raw> consumer(clerk, "q", {.prefetch = prefetch, .ack = mode});
                push({"a", "b", "c", "d", "e", "f", "g"});
                CHECK(consumer.next()->ack());
                CHECK(consumer.next()->reject());
                CHECK(consumer.next()->push("other"));
                CHECK(consumer.next()->bury());
                CHECK(consumer.next()->release());
                CHECK(consumer.flush() == 0);
                // Without the right to end it, a wait in Redis ends by itself, and loses nothing.
                CHECK(consumer.next()->ack());
                CHECK(consumer.flush() == 0);
            }
            CHECK(nobody_left());
            CHECK(redis.llen("q") == 2);
            CHECK(rejected() == Texts{"b"});
            CHECK(redis.lrange("other") == Texts{"c"});
            CHECK(redis.llen(dead) == 1);
        }
    }
}

TEST_CASE_FIXTURE(Restricted, "without the right to end its wait a consumer's time still ends") {
    allow_all_but({"-client|unblock"});
    Consumer<Raw> consumer(clerk, "q");
    CHECK_FALSE(consumer.next(milliseconds(50)));
    CHECK_FALSE(consumer.next(milliseconds(50)));
    push({"a"});
    const auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK((*guard)->bytes == "a");
    CHECK(held() == Texts{"a"});
}

TEST_CASE_FIXTURE(Restricted,
                  "a consumer without the right to end its wait stops and loses nothing") {
    for (const std::string right : {"-client|unblock", "-client|id", "-client"}) {
        CAPTURE(right);
        redis.flushall();
        allow_all_but({right});
        {
            Consumer<Raw> consumer(clerk, "q");
            CHECK_FALSE(consumer.next(milliseconds(20)));
            consumer.stop();
            CHECK_FALSE(consumer.next());
        }
        CHECK(nobody_left());
        push({"a"});
        CHECK(orizuru::test::eventually([this] { return waiting() == Texts{"a"}; }));
    }
}

TEST_CASE_FIXTURE(Restricted, "a consumer's name is that of its connections, where the user may "
                              "set it and the address has none") {
    const auto named = [this](const std::string& name) {
        std::istringstream clients(redis.command({"CLIENT", "LIST"}).text);
        int count = 0;
        for (std::string line; std::getline(clients, line);) {
            count += contains(line, " name=" + name + " ") ? 1 : 0;
        }
        return count;
    };
    /// Returns true if so many connections have this name while there are such a consumer and a
    /// collector of that address.
    const auto named_by = [&](const std::string& address, const std::string& name,
                              const std::string& expected, int count) {
        Consumer<Raw> consumer(address, "q", {.name = name});
        const BackgroundCollector collecting(address, "q", milliseconds(10));
        push({"a"});
        CHECK(consumer.next()->ack());
        CHECK_FALSE(consumer.next(milliseconds(10))); // waits on a connection of its own
        CHECK(orizuru::test::eventually([&] { return redis.exists("orizuru:{q}:collected"); }));
        return orizuru::test::eventually([&] { return named(expected) == count; });
    };
    SUBCASE("every one of its connections has it") {
        CHECK(named_by(uri, "billing", "billing", 2));
    }
    SUBCASE("the address' own name precedes it") {
        CHECK(named_by(uri + "?client_name=mill", "billing", "mill", 3));
    }
    SUBCASE("the default names nothing") {
        CHECK(named_by(uri, ConsumerOptions().name, "consumer", 0));
    }
    SUBCASE("without the right to it") {
        allow_all_but({"-client|setname"});
        CHECK(named_by(clerk, "billing", "billing", 0));
        check_refused([this] { const Consumer<Raw> other(clerk + "?client_name=mill", "q"); });
        change({"off"});
        CHECK_THROWS_AS(Consumer<Raw>(clerk, "q", {.name = "billing"}), ReplyError);
    }
    SUBCASE("a server that wants a password is heard") {
        const orizuru::test::RedisServer guarded({"--requirepass", "open-sesame"});
        CHECK(contains(orizuru::test::message_of<ReplyError>([&] {
                           const Consumer<Raw> other(guarded.uri(), "q", {.name = "billing"});
                       }),
                       "NOAUTH"));
    }
}

TEST_CASE_FIXTURE(Restricted, "a user who may not ask about memory only gets no warning") {
    const orizuru::test::Diary diary;
    allow_all_but({"-info"});
    redis.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
    { const Consumer<Raw> consumer(clerk, "q", {.on_event = diary.pen()}); }
    redis.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
    CHECK(diary.size() == 0);
}

TEST_CASE_FIXTURE(Restricted,
                  "a right taken away from a consumer: ReplyError, nothing lost, and on") {
    for (const int prefetch : {1, 3}) {
        CAPTURE(prefetch);
        redis.flushall();
        allow_all_but({});
        Consumer<Raw> consumer(clerk, "q", {.prefetch = prefetch});
        push({"a", "b", "c", "d", "e", "f", "g"});
        auto guard = *consumer.next();
        // One batch in hand, another fetched ahead.
        const int fetched = prefetch == 1 ? 1 : 2 * prefetch;
        CHECK(orizuru::test::eventually([&] { return std::ssize(held()) == fetched; }));
        SUBCASE("to fetch") {
            change({"-blmove", "-rpop"});
            for (int i = 1; i < fetched; ++i) {
                CHECK(consumer.next()->ack());
            }
            for (int i = 0; i < 2; ++i) {
                CHECK_THROWS_AS(static_cast<void>(consumer.next()), ReplyError);
                CHECK_THROWS_AS(static_cast<void>(consumer.next(milliseconds(1000))), ReplyError);
            }
            CHECK(held() == Texts{"a"});
            CHECK(redis.llen("q") == 7 - fetched);
            change({"+blmove", "+rpop"});
            CHECK(consumer.next()->ack());
            CHECK(guard.ack());
        }
        SUBCASE("to settle") {
            change({"-lset", "-lrem", "-ltrim"});
            CHECK_THROWS_AS(guard.ack(), ReplyError);
            CHECK_FALSE(guard.settled());
            CHECK_THROWS_AS(guard.reject(), ReplyError);
            CHECK_FALSE(guard.settled());
            CHECK_FALSE(redis.exists(unack));
            change({"+lset", "+lrem", "+ltrim"});
            CHECK(held().front() == "a");
            CHECK(guard.ack());
            CHECK((*consumer.next())->bytes == "b");
        }
        SUBCASE("to run scripts at all") {
            change({"-evalsha", "-eval"});
            CHECK_THROWS_AS(guard.ack(), ReplyError);
            CHECK_FALSE(guard.settled());
            change({"+evalsha", "+eval"});
            CHECK(guard.ack());
        }
        SUBCASE("to the target of a push") {
            change({"resetkeys", "~q", "~orizuru:*"});
            check_refused([&] { guard.push("other"); });
            CHECK_FALSE(guard.settled());
            CHECK(held().front() == "a");
            change({"~other"});
            CHECK(guard.push("other"));
            CHECK(redis.lrange("other") == Texts{"a"});
        }
    }
}

TEST_CASE_FIXTURE(Restricted,
                  "a message is neither lost nor doubled when its script lacks a right") {
    allow_all_but({});
    Consumer<Raw> consumer(clerk, "q");
    for (const std::string right : {"lset", "lrem", "lindex", "llen", "lpush"}) {
        CAPTURE(right);
        push({right});
        auto guard = *consumer.next();
        change({"-" + right});
        if (right == "lindex" || right == "llen") {
            CHECK_THROWS_AS(guard.push("other"), ReplyError);
        } else {
            // The script checks the right before it does anything: no doubt, no new incarnation.
            const std::string id = consumer.name();
            check_refused([&] { guard.push("other"); });
            CHECK(consumer.name() == id);
        }
        CHECK_FALSE(guard.settled());
        change({"+" + right});
        CHECK_FALSE(redis.exists("other"));
        CHECK(held() == Texts{right});
        CHECK(guard.ack());
        CHECK(held().empty());
    }
}

TEST_CASE_FIXTURE(Restricted, "a producer may have the right to push and nothing else") {
    allow({"~q", "+lpush"});
    Producer<Raw> producer(clerk, "q");
    CHECK(producer.push({"a"}) == 1);
    check_refused([&] { static_cast<void>(producer.size()); });
    CHECK(producer.push_all({{"b"}, {"c"}}) == 3);
    change({"-lpush"});
    check_refused([&] { producer.push({"d"}); });
    CHECK(waiting() == Texts{"a", "b", "c"});
    change({"+lpush"});
    CHECK(producer.push({"d"}) == 4);
}

TEST_CASE_FIXTURE(Restricted, "a collector without a right says so and loses nothing") {
    for (const std::string right :
         {"-lrange", "-rpush", "-set", "-del", "-srem", "-hget", "-hincrby", "-expire", "-hdel",
          "-lpush", "-ltrim", "-eval", "-smembers"}) {
        CAPTURE(right);
        redis.flushall();
        add_dead_consumer("id", {"a", "b"});
        redis.lpush(unack, "c");
        allow_all_but({right});
        GarbageCollector collector(clerk, "q", {.grace = milliseconds(0)});
        CHECK_THROWS_AS(collector.collect(), ReplyError);
        Texts found = waiting();
        const auto add = [&found](const Texts& more) {
            found.insert(found.end(), more.begin(), more.end());
        };
        if (redis.type(processing("id")) == "list") {
            add(held("id"));
        }
        add(rejected());
        std::ranges::sort(found);
        // A message that was copied before a right was missing may be there twice, but none is
        // missing.
        found.erase(std::unique(found.begin(), found.end()), found.end());
        CHECK(found == Texts{"a", "b", "c"});
    }
}

} // namespace acl_test
