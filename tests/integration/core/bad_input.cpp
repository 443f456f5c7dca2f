// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Bad addresses, keys, payloads and codecs: each gets its error, nothing is lost, and the consumer
// lives on.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/scheduled_list.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bad_input_test {

using orizuru::ConnectionError;
using orizuru::Consumer;
using orizuru::DeadList;
using orizuru::DecodeError;
using orizuru::Endpoint;
using orizuru::EventKind;
using orizuru::GarbageCollector;
using orizuru::MessageGuard;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::ScheduledList;
using orizuru::Scheduler;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::Fd;
using orizuru::test::is_dead_entry_of;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::RedisServer;
using orizuru::test::server;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;

/// Constructs each of the three classes with an address, and passes its exception to `check`.
template <class Check>
void each_class(const std::string& address, Check check) {
    check([&] { Producer<Raw>(address, "q"); });
    check([&] { Consumer<Raw>(address, "q"); });
    check([&] { GarbageCollector(address, "q"); });
}

/// A port of 127.0.0.1 that is bound and does not listen: no other process can take it meanwhile.
struct DeafPort {
    DeafPort() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
        REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
        number = std::to_string(ntohs(address.sin_port));
    }
    Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::string number;
};

/// Bytes that every decoder must refuse.
const std::vector<std::string> hostile{
    "",     // nothing
    "\xc1", // a byte that is never used
    "\xa5"
    "abc",                                        // a string that ends early
    std::string("\xdd\x10\x00\x00\x00", 5),       // an array of 2^28 elements
    std::string("\xdd\xff\xff\xff\xff", 5),       // an array of 2^32 - 1
    std::string("\xdf\xff\xff\xff\xff", 5),       // a map of 2^32 - 1
    std::string("\xdb\xff\xff\xff\xff", 5) + "x", // a string of 4 GiB
    std::string("\xc6\xff\xff\xff\xff", 5) + "x", // bytes of 4 GiB
    std::string("\xc9\xff\xff\xff\xff\x01", 6),   // an extension of 4 GiB
    std::string(100, '\x91') + "\x01",            // nested 100 deep
    std::string(100'000, '\x91'),                 // nested 100,000 deep, open
    std::string(2'000'000, '\x91'),               // nested 2,000,000 deep
    std::string("\xdd\x00\x4c\x4b\x40", 5) + std::string(5'000'000, '\xc0'), // 5,000,000 nils
    std::string("\xdd\x00\x1e\x84\x80", 5) + std::string(2'000'000, '\x80'), // 2,000,000 maps
    std::string("\x91\x01\x00", 3),                  // a byte behind the value
    std::string("\x91\x01\x91\x01", 4),              // a value behind the value
    "\x81\xa1x\x01",                                 // a map where an array should be
    "\x91\xa1x",                                     // a string where a number should be
    std::string("\x91\xcb\x3f\xf8\0\0\0\0\0\0", 10), // 1.5 where an integer should be
    std::string("\x91\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 10), // a number out of range
    "\x91\xc0",                                                  // nil where a number should be
};
const std::string hostile_40_levels = [] {
    std::string bytes; // 40 nested arrays of 2^26 elements each
    for (int level = 0; level < 40; ++level) {
        bytes += std::string("\xdd\x04\x00\x00\x00", 5);
    }
    return bytes;
}();

struct Tree {
    std::vector<Tree> branches;
    MSGPACK_DEFINE(branches)
};

TEST_CASE_FIXTURE(QueueFixture,
                  "where nothing listens: ConnectionError with the address, at once") {
    const DeafPort port;
    const std::string missing = server().socket_path() + ".missing";
    for (const std::string& address : {"redis://127.0.0.1:" + port.number, "unix://" + missing}) {
        CAPTURE(address);
        each_class(address, [&](auto make) {
            std::string text;
            bool in_doubt = true;
            const auto waited = time_of([&] {
                try {
                    make();
                    FAIL_CHECK("no exception");
                } catch (const ConnectionError& error) {
                    text = error.what();
                    in_doubt = error.in_doubt();
                }
            });
            CHECK(waited < milliseconds(2500));
            CHECK(contains(text, address));
            CHECK((contains(text, "refused") || contains(text, "No such file")));
            CHECK_FALSE(in_doubt);
        });
    }
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a socket that nobody accepts on is given up within connect_timeout") {
    const orizuru::test::TempDir folder;
    const std::string path = folder.path() + "/deaf.sock";
    const Fd listener = orizuru::test::listen_unix(path);
    each_class("unix://" + path + "?connect_timeout=80", [&](auto make) {
        std::string text;
        const auto waited = time_of([&] {
            try {
                make();
                // A producer and a collector send nothing before their first command.
            } catch (const ConnectionError& error) {
                text = error.what();
            }
        });
        CHECK(waited < milliseconds(2500));
        CHECK((text.empty() || contains(text, path)));
    });
    CHECK_THROWS_AS(Consumer<Raw>("unix://" + path + "?connect_timeout=80", "q"), ConnectionError);
}

TEST_CASE("a wrong password is a ReplyError with the address and without the password") {
    const RedisServer guarded({"--requirepass", "open-sesame"}, RedisServer::Listen::tcp);
    const std::string place = guarded.uri().substr(8);
    for (const std::string user : {"", "somebody"}) {
        const std::string address = "redis://" + user + ":swordfish@" + place;
        each_class(address, [&](auto make) {
            try {
                make();
                FAIL_CHECK("no exception");
            } catch (const ReplyError& error) {
                CHECK(error.code() == "WRONGPASS");
                CHECK(contains(error.what(), place));
                CHECK_FALSE(contains(error.what(), "swordfish"));
            }
        });
    }
    SUBCASE("no password where one is needed") {
        each_class(guarded.uri(), [&](auto make) {
            try {
                make();
                FAIL_CHECK("no exception");
            } catch (const ReplyError& error) {
                CHECK(error.code() == "NOAUTH");
                CHECK(contains(error.what(), place));
            }
        });
    }
    SUBCASE("the right password") {
        const std::string address = "redis://:open-sesame@" + place;
        Producer<Raw> producer(address, "q");
        CHECK(producer.push({"a"}) == 1);
        Consumer<Raw> consumer(address, "q");
        CHECK(consumer.next()->ack());
        // A reconnection knows it too.
        orizuru::test::RedisClient redis(guarded.uri());
        redis.command({"AUTH", "open-sesame"});
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        CHECK(producer.push({"b"}) == 1);
        CHECK(consumer.next()->ack());
    }
}

TEST_CASE_FIXTURE(QueueFixture, "a database that does not exist is a ReplyError with the address") {
    each_class(uri + "?db=99", [&](auto make) {
        const std::string text = message_of<ReplyError>(make);
        CHECK(contains(text, server().socket_path()));
    });
}

TEST_CASE_FIXTURE(QueueFixture, "an impossible queue name is refused before anything is sent") {
    for (const std::string name :
         {"", "{", "}", "a{b", "a}b", "{}", "{}a", "orizuru:", "orizuru:x", "orizuru:{q}:unack"}) {
        CAPTURE(name);
        CHECK_THROWS_AS(Producer<Raw>(uri, name), std::invalid_argument);
        CHECK_THROWS_AS(Consumer<Raw>(uri, name), std::invalid_argument);
        CHECK_THROWS_AS(GarbageCollector(uri, name), std::invalid_argument);
        CHECK_THROWS_AS(Producer<Raw>("unix:///nowhere", name), std::invalid_argument);
        CHECK_THROWS_AS(Consumer<Raw>("unix:///nowhere", name), std::invalid_argument);
        CHECK_THROWS_AS(GarbageCollector("unix:///nowhere", name), std::invalid_argument);
        CHECK_THROWS_AS(Scheduler("unix:///nowhere", name), std::invalid_argument);
        CHECK_THROWS_AS(DeadList("unix:///nowhere", name), std::invalid_argument);
        CHECK_THROWS_AS(ScheduledList("unix:///nowhere", name), std::invalid_argument);
    }
    CHECK(redis.keys().empty());
}

TEST_CASE_FIXTURE(QueueFixture, "a source of the wrong type: ReplyError that names it, and on") {
    for (const int prefetch : {1, 5}) {
        CAPTURE(prefetch);
        redis.flushall();
        redis.set("q", "a string");
        Consumer<Raw> consumer(uri, "q", {.prefetch = prefetch});
        const std::string id = consumer.name();
        const auto check = [](auto take) {
            try {
                take();
                FAIL_CHECK("no exception");
            } catch (const ReplyError& error) {
                CHECK(error.code() == "WRONGTYPE");
                CHECK(contains(error.what(), "'q'"));
            }
        };
        check([&] { static_cast<void>(consumer.next()); });
        check([&] { static_cast<void>(consumer.next(milliseconds(0))); });
        check([&] { static_cast<void>(consumer.next(milliseconds(1000))); });
        check([&] { static_cast<void>(consumer.size()); });
        check([&] {
            for ([[maybe_unused]] auto& guard : consumer) {
                FAIL_CHECK("a message came from nowhere");
            }
        });
        CHECK(redis.command({"GET", "q"}).text == "a string");
        redis.del("q");
        push({"a", "b"});
        auto guard = consumer.next();
        REQUIRE(guard);
        CHECK((*guard)->bytes == "a");
        CHECK(guard->ack());
        CHECK(consumer.next()->ack());
        CHECK(nobody_left() == false);
        CHECK(ids().size() == 1);
    }
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a source that gets the wrong type: acks go on, deferred ones too") {
    for (const orizuru::AckMode mode : {orizuru::AckMode::immediate, orizuru::AckMode::deferred}) {
        redis.flushall();
        Consumer<Raw> consumer(uri, "q", {.prefetch = 3, .ack = mode});
        push({"a", "b", "c"});
        auto first = *consumer.next();
        auto second = *consumer.next();
        auto third = *consumer.next();
        CHECK(first.ack());
        redis.set("q", "a string");
        CHECK_THROWS_AS(static_cast<void>(consumer.next()), ReplyError);
        CHECK(held() == Texts{"b", "c"});
        CHECK(third.ack());
        CHECK(consumer.flush() == 0);
        CHECK(held() == Texts{"b"});
        try {
            second.release();
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK(error.code() == "WRONGTYPE");
            CHECK(contains(error.what(), "q is a string"));
        }
        CHECK_FALSE(second.settled());
        CHECK(held() == Texts{"b"});
        CHECK(second.reject());
        CHECK(rejected() == Texts{"b"});
    }
}

TEST_CASE_FIXTURE(QueueFixture,
                  "messages that cannot go back to their source stay for a collector") {
    {
        Consumer<Raw> consumer(uri, "q", {.prefetch = 3});
        push({"a", "b", "c"});
        CHECK(consumer.next()->ack());
        redis.set("q", "a string");
    }
    CHECK(held() == Texts{"b", "c"});
    CHECK(redis.command({"GET", "q"}).text == "a string");
    redis.del("q");
    redis.del(heartbeat(only_id()));
    GarbageCollector collector(uri, "q", {.grace = milliseconds(0)});
    CHECK(collector.collect().reclaimed == 2);
    CHECK(waiting() == Texts{"b", "c"});
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a target of the wrong type: ReplyError that names it, nothing lost") {
    Consumer<Raw> consumer(uri, "q");
    for (const std::string& wrong : {std::string("other"), unack, dead}) {
        CAPTURE(wrong);
        push({"a"});
        redis.command({"SADD", wrong, "x"});
        auto guard = *consumer.next();
        const std::string before = header(consumer.name());
        try {
            wrong == dead ? guard.bury("why") : wrong == unack ? guard.reject() : guard.push(wrong);
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK(error.code() == "WRONGTYPE");
            CHECK(contains(error.what(), wrong));
        }
        CHECK_FALSE(guard.settled());
        CHECK(held() == Texts{"a"});
        CHECK(header(consumer.name()) == before);
        CHECK(redis.command({"SCARD", wrong}).integer == 1);
        redis.del(wrong);
        CHECK((wrong == dead    ? guard.bury("why")
               : wrong == unack ? guard.reject()
                                : guard.push(wrong)));
        CHECK(held().empty());
        CHECK(redis.llen(wrong) == 1);
    }
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a rejection that a destructor could not do is done later, and told") {
    const Diary diary;
    Consumer<Raw> consumer(uri, "q", {.lease = milliseconds(300), .on_event = diary.pen()});
    push({"a", "b"});
    redis.set(unack, "a string");
    { const auto guard = consumer.next(); }
    CHECK(held() == Texts{"a"});
    CHECK(consumer.next()->ack());
    REQUIRE(eventually([&] { return diary.count(EventKind::settlement_refused) >= 1; }));
    const auto refused = diary.of(EventKind::settlement_refused).front();
    CHECK(refused.payload == "a");
    CHECK(contains(refused.detail, unack));
    redis.del(unack);
    CHECK(eventually([this] { return rejected() == Texts{"a"}; }));
    REQUIRE(eventually([&] { return diary.count(EventKind::late_settlement) == 1; }));
    CHECK(diary.of(EventKind::late_settlement).front().payload == "a");
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(QueueFixture,
                  "while the dead list has the wrong type an undecodable message stays") {
    const Diary diary;
    Consumer<int> consumer(uri, "q", {.on_event = diary.pen()});
    push({"\xc1", "\x01"});
    redis.set(dead, "a string");
    for (int i = 0; i < 3; ++i) {
        try {
            static_cast<void>(consumer.next());
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK(error.code() == "WRONGTYPE");
            CHECK(contains(error.what(), dead));
        }
        CHECK(held() == Texts{"\xc1"});
    }
    CHECK(diary.size() == 0);
    redis.del(dead);
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), DecodeError);
    CHECK(is_dead_entry_of(redis.lrange(dead).front(), "\xc1"));
    CHECK(**consumer.next() == 1);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a registry or unack list of the wrong type: the consumer is refused") {
    redis.set(consumers, "a string");
    try {
        const Consumer<Raw> consumer(uri, "q");
        FAIL_CHECK("no exception");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "WRONGTYPE");
        CHECK(contains(error.what(), consumers));
    }
    CHECK(redis.keys() == Texts{consumers});
}

TEST_CASE_FIXTURE(QueueFixture, "hostile bytes go to the dead list, and the consumer lives on") {
    std::vector<std::string> payloads = hostile;
    payloads.push_back(hostile_40_levels);
    const auto check = [&]<class T>(std::type_identity<T>, int prefetch) {
        CAPTURE(prefetch);
        redis.flushall();
        const Diary diary;
        Consumer<T> consumer(uri, "q", {.prefetch = prefetch, .on_event = diary.pen()});
        std::string name = consumer.name();
        for (std::size_t i = 0; i < payloads.size(); ++i) {
            CAPTURE(i);
            push({payloads[i]});
            try {
                const auto guard = consumer.next();
                FAIL_CHECK("it was decoded");
            } catch (const DecodeError& error) {
                CHECK(error.payload() == payloads[i]);
                CHECK(std::string_view(error.what()).size() < 300);
            }
            CHECK(redis.llen(dead) == static_cast<std::int64_t>(i) + 1);
            CHECK(is_dead_entry_of(redis.lrange(dead, 0, 0).front(), payloads[i]));
            CHECK(held().empty());
        }
        CHECK(diary.count(EventKind::decode_failed) == payloads.size());
        push({"\x91\x01"});
        CHECK(consumer.next(patience).has_value() == std::is_same_v<T, std::vector<int>>);
        CHECK(consumer.name() == name);
    };
    for (const int prefetch : {1, 10}) {
        check(std::type_identity<std::vector<int>>(), prefetch);
    }
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a type that contains itself is read 64 levels deep, and not deeper") {
    Consumer<Tree> consumer(uri, "q");
    const auto nested = [](std::size_t depth) {
        std::string bytes;
        for (std::size_t i = 1; i < depth; ++i) {
            bytes += "\x91\x91";
        }
        return bytes + "\x91\x90";
    };
    push({nested(30), nested(40), nested(50'000), nested(5)});
    CHECK(consumer.next()->ack());
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), DecodeError);
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), DecodeError);
    CHECK(consumer.next()->ack());
    CHECK(redis.llen(dead) == 2);
}

TEST_CASE_FIXTURE(QueueFixture, "4 Mi values are read, one more is not") {
    Consumer<std::vector<std::optional<int>>> consumer(uri, "q");
    constexpr std::size_t most = std::size_t{4} << 20;
    // The array is a value too.
    push({std::string("\xdd\x00\x3f\xff\xff", 5) + std::string(most - 1, '\x01'),
          std::string("\xdd\x00\x40\x00\x00", 5) + std::string(most, '\x01')});
    const auto guard = consumer.next();
    REQUIRE(guard);
    CHECK((*guard)->size() == most - 1);
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), DecodeError);
}

TEST_CASE_FIXTURE(QueueFixture, "a dead entry says why: the reason begins with undecodable") {
    Consumer<int> consumer(uri, "q");
    push({"\xa1x"});
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), DecodeError);
    const std::string entry = redis.lrange(dead).front();
    CHECK(is_dead_entry_of(entry, "\xa1x"));
    CHECK(contains(entry, "undecodable: "));
}

/// Its decoder does what the bytes say.
struct Moody {
    std::string text;
};

} // namespace bad_input_test

template <>
struct orizuru::Codec<bad_input_test::Moody> {
    static bad_input_test::Moody decode(std::string_view bytes) {
        if (bytes == "exception") {
            throw std::runtime_error("not today");
        }
        if (bytes == "number") {
            throw 7;
        }
        if (bytes == "text") {
            throw "not today either";
        }
        if (bytes == "pointer") {
            throw std::make_shared<int>(7);
        }
        if (bytes == "too long") {
            throw std::length_error("too long");
        }
        if (bytes == "ours") {
            throw orizuru::ConnectionError("a Codec that asks elsewhere");
        }
        if (bytes == "decode error") {
            throw orizuru::DecodeError("thrown by the user", "other bytes");
        }
        return {std::string(bytes)};
    }
};

namespace bad_input_test {

TEST_CASE_FIXTURE(QueueFixture, "whatever a Codec throws, the message goes to the dead list") {
    const Diary diary;
    Consumer<Moody> consumer(uri, "q", {.on_event = diary.pen()});
    const Texts moods{"exception", "number", "text", "pointer", "too long", "ours", "decode error"};
    for (const std::string& mood : moods) {
        CAPTURE(mood);
        push({mood, "fine"});
        try {
            static_cast<void>(consumer.next());
            FAIL_CHECK("no exception");
        } catch (const DecodeError& error) {
            CHECK(error.payload() == mood);
        }
        CHECK(is_dead_entry_of(redis.lrange(dead).front(), mood));
        auto guard = consumer.next();
        REQUIRE(guard);
        CHECK((*guard)->text == "fine");
        CHECK(guard->ack());
    }
    CHECK(redis.llen(dead) == static_cast<std::int64_t>(moods.size()));
    CHECK(diary.count(EventKind::decode_failed) == moods.size());
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(QueueFixture, "an undecodable message whose lease was lost is not buried") {

    Consumer<Moody> consumer(uri, "q");
    push({"exception"});
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), DecodeError);
    CHECK(redis.llen(dead) == 1);
    // The message was fetched ahead and lost: next must not bury it, since another consumer has it
    // now.
    redis.flushall();
    Consumer<Moody> ahead(uri, "q", {.prefetch = 2});
    push({"fine", "number"});
    auto guard = ahead.next();
    forget_heartbeat(ahead.name());
    GarbageCollector collector(uri, "q", {.grace = milliseconds(0)});
    REQUIRE(collector.collect().reclaimed == 2);
    redis.command({"RENAME", "q", "elsewhere"});
    CHECK_FALSE(ahead.next(milliseconds(0)));
    CHECK_FALSE(redis.exists(dead));
    CHECK(redis.llen("elsewhere") == 2);
    CHECK_FALSE(guard->ack());
}

TEST_CASE("a server that closes a connection before it is greeted has said why") {
    const orizuru::test::TempDir folder;
    const std::string path = folder.path() + "/socket";
    const Fd listener = orizuru::test::listen_unix(path);
    orizuru::detail::Stream stream("unix://" + path, orizuru::detail::deadline_in(patience),
                                   nullptr);
    {
        const Fd peer = orizuru::test::accept_on(listener); // as Redis does at maxclients
        const std::string_view reason = "-ERR max number of clients reached\r\n";
        REQUIRE(::write(peer.get(), reason.data(), reason.size()) == std::ssize(reason));
    }
    CHECK_THROWS_WITH_AS(stream.greet(), doctest::Contains("max number of clients"),
                         ConnectionError);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a client is told that Redis takes no more clients, and gets in when "
                  "it does again") {
    Producer<Raw> producer(uri, "q");
    const std::string most = redis.command({"CONFIG", "GET", "maxclients"}).elements.at(1).text;
    redis.command({"CONFIG", "SET", "maxclients", "1"});
    for (int i = 0; i < 20; ++i) { // Redis closes the connection before or behind the greeting
        CHECK(contains(message_of<ConnectionError>([&] { orizuru::Connection{uri}; }),
                       "max number of clients"));
    }
    CHECK(contains(message_of<ConnectionError>([&] { Consumer<Raw>(uri, "q"); }),
                   "max number of clients"));
    CHECK_NOTHROW(producer.push(Raw{"a"})); // who is connected stays
    redis.command({"CONFIG", "SET", "maxclients", most});
    Consumer<Raw> consumer(uri, "q");
    CHECK(consumer.next(patience)->ack());
}

} // namespace bad_input_test
