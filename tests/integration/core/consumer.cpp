// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Taking messages: the four forms of next, iteration, stopping, names and keys.

#include "integration/core/queue_fixture.hpp"
#include "support/hex.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace consumer_test {

using orizuru::Consumer;
using orizuru::EventKind;
using orizuru::GarbageCollector;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::is_hex;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;

struct Order {
    int number = 0;
    std::string what;
    std::vector<double> prices;
    MSGPACK_DEFINE(number, what, prices)
};

/// Long enough to tell it from Redis' own 5 s, whatever the machine does.
constexpr milliseconds soon{2500};

TEST_CASE_FIXTURE(QueueFixture, "a new consumer is registered, alive, and has a header") {
    const Consumer<Raw> consumer(uri, "q", {.name = "mill-7", .lease = milliseconds(20'000)});
    const std::string id = consumer.name();
    std::array<char, 256> host{};
    REQUIRE(::gethostname(host.data(), host.size() - 1) == 0);
    const std::string known =
        "mill-7:" + std::string(host.data()) + ":" + std::to_string(::getpid()) + ":";
    CHECK(id.starts_with(known));
    CHECK(is_hex(id.substr(known.size()), 16));
    CHECK(redis.keys() == Texts{"orizuru:{q}:consumers", "orizuru:{q}:heartbeat:" + id,
                                "orizuru:{q}:processing:" + id});
    CHECK(ids() == Texts{id});
    CHECK(redis.command({"GET", heartbeat(id)}).text == "1");
    const auto lease_ms = redis.command({"PTTL", heartbeat(id)}).integer;
    CHECK(lease_ms <= 20'000);
    CHECK(lease_ms > 10'000);
    CHECK(redis.llen(processing(id)) == 1);
    CHECK(is_header(header(id)));
    CHECK(version(id) == 0);
    CHECK_FALSE(contains(header(id), id.substr(known.size())));
}

TEST_CASE_FIXTURE(QueueFixture, "the keys of a queue with a hash tag lie in the tag's slot") {
    const std::string queue = "mill:{eu}:grain";
    std::string id;
    {
        Consumer<Raw> consumer(uri, queue);
        id = consumer.name();
        const std::string prefix = "orizuru:{eu}:mill:{eu}:grain:";
        CHECK(redis.keys() ==
              Texts{prefix + "consumers", prefix + "heartbeat:" + id, prefix + "processing:" + id});
        redis.lpush(queue, "a", "b", "c");
        CHECK(consumer.next()->reject());
        CHECK(consumer.next()->bury());
        CHECK(redis.lrange(prefix + "unack") == Texts{"a"});
        CHECK(redis.llen(prefix + "dead") == 1);
        const auto guard = consumer.next();
        CHECK(redis.lrange(prefix + "processing:" + id, 0, 0) == Texts{"c"});
        const auto slot = [this](const std::string& key) {
            return redis.command({"CLUSTER", "KEYSLOT", key}).integer;
        };
        for (const std::string& key : redis.keys()) {
            const auto answer = redis.try_command({"CLUSTER", "KEYSLOT", key});
            if (!answer.is_error()) { // a server that is no cluster may refuse to say
                CHECK(slot(key) == slot(queue));
            }
        }
    }
}

TEST_CASE_FIXTURE(QueueFixture,
                  "every name is one byte string: blanks, line ends, letters of any kind") {
    for (const std::string& queue :
         {std::string(" "), std::string("a b\r\n"), std::string("Mühle"), std::string("a\0b", 3),
          std::string(1000, 'n'), std::string("*?[x]\\")}) {
        redis.flushall();
        {
            Consumer<Raw> consumer(uri, queue);
            CHECK(redis.exists("orizuru:{" + queue + "}:consumers"));
            redis.lpush(queue, "a", "b");
            CHECK(consumer.next()->ack());
            CHECK(consumer.next()->reject());
        }
        CHECK(redis.lrange("orizuru:{" + queue + "}:unack") == Texts{"b"});
        CHECK(redis.llen(queue) == 0);
    }
}

TEST_CASE_FIXTURE(QueueFixture, "two consumers never have the same name") {
    const Consumer<Raw> first(uri, "q");
    const Consumer<Raw> second(uri, "q");
    CHECK(first.name() != second.name());
    CHECK(ids().size() == 2);
    CHECK(header(first.name()) != header(second.name()));
}

TEST_CASE_FIXTURE(QueueFixture, "next waits until there is a message") {
    Consumer<Raw> consumer(uri, "q");
    std::jthread producer([this] {
        CHECK(somebody_waits());
        push({"late"});
    });
    auto guard = consumer.next();
    REQUIRE(guard);
    CHECK((*guard)->bytes == "late");
}

TEST_CASE_FIXTURE(QueueFixture, "next takes messages in the order they were pushed") {
    Consumer<Raw> consumer(uri, "q");
    push({"a", "b"});
    push({"c"});
    Texts seen;
    for (int i = 0; i < 3; ++i) {
        auto guard = consumer.next();
        seen.push_back((*guard)->bytes);
        CHECK(guard->ack());
    }
    CHECK(seen == Texts{"a", "b", "c"});
}

TEST_CASE_FIXTURE(QueueFixture, "next with a time ends when it is over, not before") {
    for (const int prefetch : {1, 5}) {
        Consumer<Raw> consumer(uri, "q", {.prefetch = prefetch});
        for (const milliseconds timeout : {milliseconds(1), milliseconds(50), milliseconds(300)}) {
            CAPTURE(timeout.count());
            const auto waited = time_of([&] { CHECK_FALSE(consumer.next(timeout)); });
            CHECK(waited >= timeout);
            CHECK(waited < timeout + soon);
            CHECK_FALSE(consumer.stopped());
        }
        // No wait is left in Redis that would take this message away.
        push({"a"});
        CHECK(waiting() == Texts{"a"});
        CHECK(consumer.next()->ack());
    }
}

TEST_CASE_FIXTURE(QueueFixture, "next with a time takes a message that comes within it") {
    Consumer<Raw> consumer(uri, "q");
    std::jthread producer([this] {
        CHECK(somebody_waits());
        push({"a"});
    });
    const auto guard = consumer.next(milliseconds(60'000));
    REQUIRE(guard);
    CHECK((*guard)->bytes == "a");
}

TEST_CASE_FIXTURE(QueueFixture,
                  "next with a time of 0 takes a message that is there and does not wait") {
    for (const int prefetch : {1, 3}) {
        for (const milliseconds none : {milliseconds(0), milliseconds(-1), milliseconds(-10'000)}) {
            redis.flushall();
            Consumer<Raw> consumer(uri, "q", {.prefetch = prefetch});
            CHECK(time_of([&] { CHECK_FALSE(consumer.next(none)); }) < soon);
            push({"a", "b"});
            const auto first = consumer.next(none);
            REQUIRE(first);
            CHECK((*first)->bytes == "a");
            const auto second = consumer.next(none);
            REQUIRE(second);
            CHECK((*second)->bytes == "b");
            CHECK_FALSE(consumer.next(none));
        }
    }
}

TEST_CASE_FIXTURE(QueueFixture, "next with the longest possible time waits for a message") {
    Consumer<Raw> consumer(uri, "q");
    std::jthread producer([this] {
        somebody_waits();
        push({"a"});
    });
    const auto guard = consumer.next(milliseconds::max());
    REQUIRE(guard);
    CHECK((*guard)->bytes == "a");
}

TEST_CASE_FIXTURE(QueueFixture, "a stop_token ends one call of next, not the consumer") {
    Consumer<Raw> consumer(uri, "q");
    std::stop_source source;
    SUBCASE("before the call") {
        push({"a"});
        source.request_stop();
        CHECK_FALSE(consumer.next(source.get_token()));
        CHECK_FALSE(consumer.next(source.get_token(), milliseconds(60'000)));
        CHECK(waiting() == Texts{"a"});
    }
    SUBCASE("while it waits") {
        for (const bool timed : {false, true}) {
            std::stop_source once;
            std::jthread stopper([&] {
                CHECK(somebody_waits());
                once.request_stop();
            });
            const auto waited = time_of([&] {
                const auto none = timed ? consumer.next(once.get_token(), milliseconds(60'000))
                                        : consumer.next(once.get_token());
                CHECK_FALSE(none);
            });
            CHECK(waited < soon);
        }
        push({"a"});
    }
    CHECK_FALSE(consumer.stopped());
    const auto guard = consumer.next();
    REQUIRE(guard);
    CHECK((*guard)->bytes == "a");
}

TEST_CASE_FIXTURE(QueueFixture, "next with a stop_token and a time obeys both") {
    Consumer<Raw> consumer(uri, "q");
    const std::stop_source source;
    const auto waited =
        time_of([&] { CHECK_FALSE(consumer.next(source.get_token(), milliseconds(30))); });
    CHECK(waited >= milliseconds(30));
    push({"a"});
    const auto guard = consumer.next(source.get_token(), milliseconds(30));
    REQUIRE(guard);
    CHECK((*guard)->bytes == "a");
}

TEST_CASE_FIXTURE(QueueFixture, "a stopped consumer takes no more messages") {
    Consumer<Raw> consumer(uri, "q");
    CHECK_FALSE(consumer.stopped());
    push({"a"});
    consumer.stop();
    CHECK(consumer.stopped());
    CHECK_FALSE(consumer.next());
    CHECK_FALSE(consumer.next(milliseconds(60'000)));
    CHECK_FALSE(consumer.next(std::stop_token()));
    for ([[maybe_unused]] auto& guard : consumer) {
        FAIL("a stopped consumer was iterated");
    }
    consumer.stop();
    CHECK(consumer.stopped());
    CHECK(waiting() == Texts{"a"});
}

TEST_CASE_FIXTURE(QueueFixture, "a guard taken before the stop can be settled after it") {
    Consumer<Raw> consumer(uri, "q");
    push({"a", "b", "c"});
    auto first = consumer.next();
    auto second = consumer.next();
    consumer.stop();
    CHECK(first->ack());
    CHECK_FALSE(consumer.next());
    CHECK(second->reject());
    CHECK(rejected() == Texts{"b"});
    CHECK(waiting() == Texts{"c"});
    CHECK(eventually([this] { return held().empty(); }));
}

TEST_CASE_FIXTURE(QueueFixture, "a consumer that is destroyed leaves nothing but its fence") {
    std::string id;
    {
        const Consumer<Raw> consumer(uri, "q");
        id = consumer.name();
    }
    CHECK(redis.keys() == Texts{processing(id)});
    CHECK(redis.type(processing(id)) == "string");
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a consumer destroyed after a wait in Redis lets no message vanish") {
    for (int round = 0; round < 20; ++round) {
        {
            Consumer<Raw> consumer(uri, "q");
            CHECK_FALSE(consumer.next(milliseconds(1)));
        }
        push({"a"});
        CHECK(waiting() == Texts{"a"});
        redis.del("q");
    }
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(QueueFixture, "iteration goes on until the consumer is stopped") {
    Consumer<Raw> consumer(uri, "q");
    push({"a", "b", "c", "d"});
    Texts seen;
    for (auto& guard : consumer) {
        seen.push_back(guard->bytes);
        CHECK(guard.ack());
        if (seen.size() == 3) {
            consumer.stop();
        }
    }
    CHECK(seen == Texts{"a", "b", "c"});
    CHECK(waiting() == Texts{"d"});
}

TEST_CASE_FIXTURE(QueueFixture, "iteration rejects what a round left unsettled, before it waits") {
    Consumer<Raw> consumer(uri, "q");
    push({"a", "b", "c"});
    std::optional<MessageGuard<Raw>> kept;
    for (auto& guard : consumer) {
        if (guard->bytes == "b") {
            CHECK(rejected() == Texts{"a"});
            kept = std::move(guard);
        } else if (guard->bytes == "c") {
            break;
        }
    }
    CHECK(rejected() == Texts{"a", "c"});
    CHECK(held() == Texts{"b"});
    CHECK(kept->ack());
}

TEST_CASE_FIXTURE(QueueFixture, "a consumer's iterator is an input iterator") {
    using Iterator = Consumer<Raw>::Iterator;
    static_assert(std::input_iterator<Iterator>);
    static_assert(std::sentinel_for<std::default_sentinel_t, Iterator>);
    Consumer<Raw> consumer(uri, "q");
    push({"a", "b"});
    auto iterator = consumer.begin();
    CHECK(iterator != consumer.end());
    CHECK((*iterator)->bytes == "a");
    CHECK((*iterator).ack());
    ++iterator;
    CHECK((*iterator)->bytes == "b");
    CHECK((*iterator).ack());
    consumer.stop();
    iterator++;
    CHECK(iterator == consumer.end());
}

TEST_CASE_FIXTURE(QueueFixture, "iteration passes over undecodable messages and tells on_event") {
    const Diary diary;
    Consumer<int> consumer(uri, "q", {.on_event = diary.pen()});
    push({"\x01", "\xc1", "\x02", "",
          "\xa3"
          "abc",
          "\x03"});
    std::vector<int> seen;
    for (auto& guard : consumer) {
        seen.push_back(*guard);
        CHECK(guard.ack());
        if (*guard == 3) {
            break;
        }
    }
    CHECK(seen == std::vector{1, 2, 3});
    CHECK(redis.llen(dead) == 3);
    const auto told = diary.of(EventKind::decode_failed);
    REQUIRE(told.size() == 3);
    CHECK(told[0].payload == "\xc1");
    CHECK(told[1].payload.empty());
    CHECK(told[2].payload == "\xa3"
                             "abc");
    for (const auto& event : told) {
        CHECK(event.queue == "q");
        CHECK(event.consumer == consumer.name());
        CHECK_FALSE(event.detail.empty());
    }
}

TEST_CASE_FIXTURE(QueueFixture, "structs travel as msgpack arrays") {
    Consumer<Order> consumer(uri, "q");
    push({std::string("\x93\x07\xa4nuts\x92\xcb\x3f\xf8\0\0\0\0\0\0\x02", 18)});
    const auto guard = consumer.next();
    REQUIRE(guard);
    CHECK((*guard)->number == 7);
    CHECK((**guard).what == "nuts");
    CHECK((*guard)->prices == std::vector{1.5, 2.0});
}

TEST_CASE_FIXTURE(QueueFixture, "strings and containers are msgpack too") {
    Consumer<std::string> texts(uri, "q");
    push({"\xa5hello"});
    CHECK(**texts.next() == "hello");
    Consumer<std::map<std::string, std::vector<int>>> maps(uri, "maps");
    redis.lpush("maps", "\x81\xa1x\x92\x01\x02");
    CHECK(**maps.next() == std::map<std::string, std::vector<int>>{{"x", {1, 2}}});
}

TEST_CASE_FIXTURE(QueueFixture, "any bytes come unchanged, the empty message too") {
    std::string all;
    for (int byte = 0; byte < 256; ++byte) {
        all += static_cast<char>(byte);
    }
    const std::string large(3'000'000, '\r');
    Consumer<Raw> consumer(uri, "q");
    for (const int prefetch : {1, 3}) {
        Consumer<Raw> taker(uri, "q", {.prefetch = prefetch});
        push({all, "", large});
        for (const std::string& expected : {all, std::string(), large}) {
            auto guard = taker.next();
            REQUIRE(guard);
            CHECK((*guard)->bytes == expected);
            CHECK(guard->payload() == expected);
            CHECK(guard->ack());
        }
    }
}

TEST_CASE_FIXTURE(QueueFixture, "size is the length of the source") {
    Consumer<Raw> consumer(uri, "q");
    CHECK(consumer.size() == 0);
    push({"a", "b", "c"});
    CHECK(consumer.size() == 3);
    const auto guard = consumer.next();
    CHECK(consumer.size() == 2);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "several consumers share a queue, each message goes to one of them") {
    constexpr int messages = 300;
    std::vector<int> seen(messages, 0);
    std::mutex mutex;
    std::atomic<int> acked = 0;
    std::vector<std::jthread> threads;
    std::stop_source done;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&, i] {
            Consumer<int> consumer(uri, "q", {.prefetch = 1 + 4 * i});
            while (auto guard = consumer.next(done.get_token())) {
                {
                    const std::lock_guard lock(mutex);
                    ++seen.at(static_cast<std::size_t>(**guard));
                }
                CHECK(guard->ack());
                if (++acked == messages) {
                    done.request_stop();
                }
            }
        });
    }
    orizuru::Producer<int> producer(uri, "q");
    producer.push_all(orizuru::test::Making(
        messages, [](std::size_t number) { return static_cast<int>(number); }));
    threads.clear();
    CHECK(seen == std::vector<int>(messages, 1));
    CHECK(nobody_left());
    CHECK_FALSE(redis.exists("q"));
    CHECK_FALSE(redis.exists(unack));
}

TEST_CASE_FIXTURE(QueueFixture, "each confirmed beat renews the lease and calls on_beat") {
    std::atomic<int> beats = 0;
    const Consumer<Raw> consumer(uri, "q", {.lease = milliseconds(300), .on_beat = [&] {
                                                ++beats;
                                                throw std::runtime_error("swallowed");
                                            }});
    CHECK(eventually([&] { return beats >= 5; }));
    CHECK(ids() == Texts{consumer.name()});
    CHECK(eventually([&] { return redis.exists(heartbeat(consumer.name())); }));
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a beat that finds the lease lost makes a new incarnation and tells") {
    const Diary diary;
    Consumer<Raw> consumer(uri, "q", {.lease = milliseconds(900), .on_event = diary.pen()});
    push({"a"});
    auto guard = consumer.next();
    const std::string id = consumer.name();
    // Between two beats; a beat in between is one more try.
    GarbageCollector collector(uri, "q", {.grace = milliseconds(0)});
    CHECK(eventually([&] {
        redis.del(heartbeat(id));
        return collector.collect().consumers == 1;
    }));
    REQUIRE(eventually([&] { return diary.count(EventKind::lease_lost) == 1; }));
    const auto told = diary.of(EventKind::lease_lost).front();
    CHECK(told.queue == "q");
    CHECK(contains(told.detail, "1"));
    CHECK(eventually([&] { return consumer.name() != id; }));
    CHECK(eventually([&] { return ids() == Texts{consumer.name()}; }));
    CHECK_FALSE(guard->ack());
    const auto again = consumer.next();
    CHECK((*again)->bytes == "a");
}

TEST_CASE_FIXTURE(QueueFixture, "a consumer whose connections are killed goes on and says so") {
    const Diary diary;
    Consumer<Raw> consumer(uri, "q", {.on_event = diary.pen()});
    push({"a", "b"});
    auto first = consumer.next();
    CHECK(consumer.next()->reject());
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    CHECK(first->ack());
    push({"c"});
    const auto third = consumer.next();
    REQUIRE(third);
    CHECK((*third)->bytes == "c");
    CHECK(held() == Texts{"c"});
    CHECK(rejected() == Texts{"b"});
    REQUIRE(eventually([&] { return diary.count(EventKind::reconnected) >= 1; }));
    CHECK(diary.of(EventKind::reconnected).front().queue == "q");
    CHECK(ids() == Texts{consumer.name()});
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a message that Redis moved though its reply was lost is delivered") {
    const Diary diary;
    Consumer<Raw> consumer(uri, "q", {.on_event = diary.pen()});
    const std::string id = consumer.name();
    std::jthread hand([&] {
        CHECK(somebody_waits());
        // This is one step: a message arrives as if by BLMOVE, and its reply never comes.
        redis.command({"EVAL", "redis.call('LPUSH', KEYS[1], 'parked')", "1", processing(id)});
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    });
    auto guard = consumer.next();
    hand.join(); // it uses the same client
    REQUIRE(guard);
    CHECK((*guard)->bytes == "parked");
    REQUIRE(eventually([&] { return diary.count(EventKind::redelivered) == 1; }));
    CHECK(diary.of(EventKind::redelivered).front().payload == "parked");
    CHECK(guard->ack());
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(QueueFixture, "a policy that evicts keys is told once, noeviction is not") {
    const Diary quiet;
    { const Consumer<Raw> consumer(uri, "q", {.on_event = quiet.pen()}); }
    CHECK(quiet.size() == 0);

    const Diary diary;
    redis.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
    const Consumer<Raw> consumer(uri, "q", {.on_event = diary.pen()});
    redis.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
    REQUIRE(diary.count(EventKind::not_noeviction) == 1);
    CHECK(diary.of(EventKind::not_noeviction).front().detail == "allkeys-lru");
    CHECK(diary.size() == 1);
}

TEST_CASE_FIXTURE(QueueFixture, "exceptions of on_event are swallowed") {
    Consumer<int> consumer(uri, "q", {.on_event = [](const orizuru::Event&) { throw 7; }});
    push({"\xc1", "\x01"});
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), orizuru::DecodeError);
    CHECK(**consumer.next() == 1);
}

TEST_CASE_FIXTURE(QueueFixture, "on_event may use the consumer") {
    Consumer<int>* self = nullptr;
    std::string name;
    std::uint64_t size = 0;
    Consumer<int> consumer(uri, "q", {.on_event = [&](const orizuru::Event&) {
                               name = self->name();
                               size = self->size();
                               static_cast<void>(self->flush());
                           }});
    self = &consumer;
    push({"\xc1", "\x01"});
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), orizuru::DecodeError);
    CHECK(name == consumer.name());
    CHECK(size == 1);
}

TEST_CASE_FIXTURE(QueueFixture, "impossible options are refused before anything is done") {
    const auto refused = [this](orizuru::ConsumerOptions options) {
        CHECK_THROWS_AS(Consumer<Raw>(uri, "q", std::move(options)), std::invalid_argument);
    };
    refused({.name = ""});
    refused({.name = "a:b"});
    refused({.name = "a b"});
    refused({.name = std::string(101, 'x')});
    refused({.lease = milliseconds(99)});
    refused({.lease = milliseconds(0)});
    refused({.lease = std::chrono::hours(25)});
    refused({.prefetch = 0});
    refused({.prefetch = -1});
    refused({.prefetch = 1001});
    refused({.max_payload = 0});
    refused({.max_payload = (std::int64_t{512} << 20) + 1});
    CHECK(redis.keys().empty());
}

} // namespace consumer_test
