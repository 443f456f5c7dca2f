// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Putting messages on a queue, one or many.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <list>
#include <ranges>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace producer_test {

using orizuru::EncodeError;
using orizuru::Error;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::Making;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;

struct Order {
    int number = 0;
    std::string what;
    MSGPACK_DEFINE(number, what)
};

/// Its codec does what its text says: it returns a payload, or throws.
struct Fickle {
    std::string text;
};

std::vector<Raw> raws(const Texts& texts) {
    std::vector<Raw> result;
    for (const std::string& text : texts) {
        result.push_back({text});
    }
    return result;
}

Texts numbered(std::size_t count) {
    Texts texts;
    for (std::size_t i = 0; i < count; ++i) {
        texts.push_back(std::to_string(i));
    }
    return texts;
}

} // namespace producer_test

template <>
struct orizuru::Codec<producer_test::Fickle> {
    static std::string encode(const producer_test::Fickle& fickle) {
        if (fickle.text == "exception") {
            throw std::range_error("nothing to write with");
        }
        if (fickle.text == "number") {
            throw 7;
        }
        return fickle.text;
    }
};

namespace producer_test {

TEST_CASE_FIXTURE(QueueFixture, "push puts the message left and returns the queue's length") {
    Producer<Raw> producer(uri, "q");
    CHECK(producer.push({"a"}) == 1);
    CHECK(producer.push({"b"}) == 2);
    CHECK(redis.lrange("q") == Texts{"b", "a"});
    CHECK(redis.keys() == Texts{"q"});
}

TEST_CASE_FIXTURE(QueueFixture, "a pushed struct is a msgpack array of its members") {
    Producer<Order> producer(uri, "q");
    producer.push({7, "nuts"});
    CHECK(waiting() == Texts{"\x92\x07\xa4nuts"});
}

TEST_CASE_FIXTURE(QueueFixture, "any bytes are pushed unchanged, the empty message too") {
    Producer<Raw> producer(uri, "q");
    const Texts texts{std::string("\0\r\n%s*3\r\n$", 10), "", std::string(5'000'000, '\n')};
    for (const std::string& text : texts) {
        producer.push({text});
    }
    CHECK(waiting() == texts);
}

TEST_CASE_FIXTURE(QueueFixture, "size is the queue's length, or an exception") {
    Producer<Raw> producer(uri, "q");
    CHECK(producer.size() == 0);
    push({"a", "b", "c"});
    CHECK(producer.size() == 3);
    redis.del("q");
    redis.set("q", "a string");
    const std::string text =
        orizuru::test::message_of<ReplyError>([&] { static_cast<void>(producer.size()); });
    CHECK(contains(text, "WRONGTYPE"));
    CHECK(contains(text, "'q'"));
    redis.del("q");
    CHECK(producer.size() == 0);
}

TEST_CASE_FIXTURE(QueueFixture, "push_all takes any range and keeps its order") {
    Producer<Raw> producer(uri, "q");
    const std::vector<Raw> vector = raws({"a", "b", "c"});
    const Texts expected{"a", "b", "c"};
    SUBCASE("a vector") { CHECK(producer.push_all(vector) == 3); }
    SUBCASE("a list") {
        CHECK(producer.push_all(std::list<Raw>(vector.begin(), vector.end())) == 3);
    }
    SUBCASE("an array") {
        CHECK(producer.push_all(std::array{vector[0], vector[1], vector[2]}) == 3);
    }
    SUBCASE("a span") { CHECK(producer.push_all(std::span(vector)) == 3); }
    SUBCASE("an initializer list") { CHECK(producer.push_all({{"a"}, {"b"}, {"c"}}) == 3); }
    SUBCASE("a range that makes its elements") {
        CHECK(producer.push_all(Making(3, [](std::size_t i) {
            return Raw{std::string(1, static_cast<char>('a' + i))};
        })) == 3);
    }
    SUBCASE("a range that can be read once only") {
        std::istringstream words("a b c");
        const Making read(3, [&words](std::size_t) {
            Raw word;
            words >> word.bytes;
            return word;
        });
        static_assert(!std::ranges::forward_range<decltype(read)>);
        CHECK(producer.push_all(read) == 3);
    }
    CHECK(waiting() == expected);
}

TEST_CASE_FIXTURE(QueueFixture, "push_all of what converts to the message pushes the message") {
    Producer<std::string> producer(uri, "q");
    CHECK(producer.push_all(std::vector<const char*>{"a", "b"}) == 2);
    CHECK(producer.push_all({"c", "d"}) == 4);
    CHECK(waiting() == Texts{"\xa1"
                             "a",
                             "\xa1"
                             "b",
                             "\xa1"
                             "c",
                             "\xa1"
                             "d"});
    Producer<bool> bools(uri, "bools");
    CHECK(bools.push_all(std::vector<bool>{true, false}) == 2); // a range of proxies
    CHECK(redis.lrange("bools") == Texts{"\xc2", "\xc3"});
}

TEST_CASE_FIXTURE(QueueFixture, "push_all of nothing returns the length and pushes nothing") {
    Producer<Raw> producer(uri, "q");
    CHECK(producer.push_all(std::vector<Raw>()) == 0);
    CHECK_FALSE(redis.exists("q"));
    push({"a", "b"});
    CHECK(producer.push_all(std::vector<Raw>()) == 2);
}

TEST_CASE_FIXTURE(QueueFixture, "push_all sends many messages in few commands, in order") {
    Producer<Raw> producer(uri, "q");
    for (const std::size_t count : {999U, 1000U, 1001U, 2500U}) {
        redis.flushall();
        redis.command({"CONFIG", "RESETSTAT"});
        const Texts texts = numbered(count);
        CHECK(producer.push_all(raws(texts)) == count);
        CHECK(waiting() == texts);
        CHECK(info("commandstats", "cmdstat_lpush:calls") ==
              (static_cast<int>(count) + 999) / 1000);
    }
}

TEST_CASE_FIXTURE(QueueFixture, "push_all of more than a mebibyte goes in parts") {
    Producer<Raw> producer(uri, "q");
    redis.command({"CONFIG", "RESETSTAT"});
    Texts texts;
    for (int i = 0; i < 40; ++i) {
        texts.push_back(std::string(100'000, static_cast<char>('0' + i)));
    }
    CHECK(producer.push_all(raws(texts)) == 40);
    CHECK(waiting() == texts);
    CHECK(info("commandstats", "cmdstat_lpush:calls") == 4); // 11 of them pass the mebibyte
}

TEST_CASE_FIXTURE(QueueFixture, "a payload over the cap is refused before anything is sent") {
    Producer<Raw> producer(uri, "q", {.max_payload = 1000});
    CHECK(producer.push({std::string(1000, 'x')}) == 1);
    redis.command({"CONFIG", "RESETSTAT"});
    const std::string text =
        orizuru::test::message_of<EncodeError>([&] { producer.push({std::string(1001, 'x')}); });
    CHECK(contains(text, "1001"));
    CHECK(contains(text, "1000"));
    CHECK_FALSE(contains(text, "xxx"));
    CHECK(info("commandstats", "cmdstat_lpush:calls") == 0);
    CHECK(redis.llen("q") == 1);
    CHECK(producer.push({"b"}) == 2);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "an exception of a Codec becomes EncodeError and the producer lives on") {
    Producer<Fickle> producer(uri, "q");
    const std::string text =
        orizuru::test::message_of<EncodeError>([&] { producer.push({"exception"}); });
    CHECK(contains(text, "nothing to write with"));
    CHECK_THROWS_AS(producer.push({"number"}), EncodeError);
    CHECK(producer.push({"fine"}) == 1);
    CHECK(waiting() == Texts{"fine"});
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a push_all that fails says how many were pushed, and they are there") {
    Texts texts = numbered(2600);
    SUBCASE("because a payload is over the cap") {
        Producer<Raw> producer(uri, "q", {.max_payload = 1000});
        for (const std::size_t at : {0U, 999U, 1000U, 2100U, 2599U}) {
            redis.flushall();
            std::vector<Raw> messages = raws(texts);
            messages[at].bytes = std::string(1001, 'x');
            try {
                producer.push_all(messages);
                FAIL_CHECK("no exception");
            } catch (const EncodeError& error) {
                CHECK(error.pushed() <= at);
                CHECK(error.pushed() == at / 1000 * 1000);
                const Texts there(texts.begin(),
                                  texts.begin() + static_cast<std::ptrdiff_t>(error.pushed()));
                CHECK(waiting() == there);
            }
        }
        // Nothing of the failed call is pushed later.
        redis.flushall();
        CHECK(producer.push({"next"}) == 1);
        CHECK(producer.push_all(raws({"b", "c"})) == 3);
        CHECK(waiting() == Texts{"next", "b", "c"});
    }
    SUBCASE("because a Codec throws") {
        Producer<Fickle> producer(uri, "q");
        std::vector<Fickle> messages(1500, Fickle{"a"});
        messages[1200].text = "number";
        try {
            producer.push_all(messages);
            FAIL_CHECK("no exception");
        } catch (const EncodeError& error) {
            CHECK(error.pushed() == 1000);
        }
        CHECK(redis.llen("q") == 1000);
    }
    SUBCASE("because the key has the wrong type") {
        redis.set("q", "a string");
        Producer<Raw> producer(uri, "q");
        try {
            producer.push_all(raws(texts));
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK(error.code() == "WRONGTYPE");
            CHECK(error.pushed() == 0);
            CHECK(contains(error.what(), "'q'"));
        }
        CHECK(redis.command({"GET", "q"}).text == "a string");
    }
    SUBCASE("because the key gets the wrong type on the way") {
        Producer<Raw> producer(uri, "q");
        const Making messages(texts.size(), [&](std::size_t index) {
            if (index == 1700) {
                redis.command({"RENAME", "q", "before"});
                redis.set("q", "a string");
            }
            return Raw{texts[index]};
        });
        try {
            producer.push_all(messages);
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK(error.code() == "WRONGTYPE");
            CHECK(error.pushed() == 1000);
        }
        CHECK(redis.llen("before") == 1000);
    }
}

TEST_CASE_FIXTURE(QueueFixture, "an exception of the range passes through push_all unchanged") {
    Producer<Raw> producer(uri, "q");
    const Making messages(1500, [](std::size_t index) {
        if (index == 1100) {
            throw std::out_of_range("the range ended badly");
        }
        return Raw{std::to_string(index)};
    });
    CHECK_THROWS_AS(producer.push_all(messages), std::out_of_range);
    CHECK(redis.llen("q") == 1000);
    CHECK(producer.push({"next"}) == 1001);
    CHECK(redis.lrange("q", 0, 1) == Texts{"next", "999"});
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a push to a key of the wrong type is a ReplyError that names the key") {
    Producer<Raw> producer(uri, "q");
    redis.command({"SADD", "q", "x"});
    try {
        producer.push({"a"});
        FAIL_CHECK("no exception");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "WRONGTYPE");
        CHECK(contains(error.what(), "'q'"));
        CHECK(error.pushed() == 0);
    }
    redis.del("q");
    CHECK(producer.push({"a"}) == 1);
}

TEST_CASE_FIXTURE(QueueFixture, "a producer whose connection was closed meanwhile pushes once") {
    Producer<Raw> producer(uri, "q");
    CHECK(producer.push({"a"}) == 1);
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    CHECK(producer.push({"b"}) == 2);
    CHECK(waiting() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a producer speaks to the database and by the name that its address has") {
    Producer<Raw> producer(uri + "?db=3&client_name=mill", "q");
    producer.push({"a"});
    CHECK_FALSE(redis.exists("q"));
    CHECK(contains(redis.command({"CLIENT", "LIST"}).text, "name=mill "));
    redis.command({"SELECT", "3"});
    CHECK(waiting() == Texts{"a"});
}

TEST_CASE_FIXTURE(QueueFixture, "a producer can be moved, and goes on") {
    static_assert(std::is_nothrow_move_constructible_v<Producer<Raw>>);
    static_assert(std::is_nothrow_move_assignable_v<Producer<Raw>>);
    static_assert(!std::is_copy_constructible_v<Producer<Raw>>);
    Producer<Raw> first(uri, "q");
    first.push({"a"});
    Producer<Raw> second(std::move(first));
    CHECK(second.push_all({{"b"}, {"c"}}) == 3);
    Producer<Raw> third(uri, "other");
    third = std::move(second);
    CHECK(third.push({"d"}) == 4);
    CHECK(waiting() == Texts{"a", "b", "c", "d"});
}

TEST_CASE_FIXTURE(QueueFixture, "an impossible cap is refused") {
    for (const std::int64_t cap :
         {std::int64_t{0}, std::int64_t{-1}, (std::int64_t{512} << 20) + 1}) {
        CHECK_THROWS_AS(Producer<Raw>(uri, "q", {.max_payload = cap}), std::invalid_argument);
    }
    CHECK_NOTHROW(Producer<Raw>(uri, "q", {.max_payload = std::int64_t{512} << 20}));
}

} // namespace producer_test
