// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The DeadList: which entries it shows, brings back and removes.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace dead_list_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using orizuru::Consumer;
using orizuru::DeadEntry;
using orizuru::DeadList;
using orizuru::Raw;
using orizuru::Redriven;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::message_of;
using orizuru::test::msgpack_str;
using orizuru::test::msgpack_u64;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Texts;

/// Raw bytes of 0 to 65,535 as msgpack's bin.
std::string msgpack_bin(const std::string& bytes) {
    if (bytes.size() < 256) {
        return {"\xc4"s + static_cast<char>(bytes.size()) + bytes};
    }
    return "\xc5"s + static_cast<char>(bytes.size() >> 8) + static_cast<char>(bytes.size()) + bytes;
}

struct Fixture : QueueFixture {
    DeadList list{uri, "q"};

    static std::string entry(const std::string& payload, std::int64_t ms = 1,
                             const std::string& reason = "why") {
        return "\x94\x01" + msgpack_str(payload) + msgpack_str(reason) +
               msgpack_u64(static_cast<std::uint64_t>(ms));
    }
    /// The oldest first.
    void die(const Texts& payloads, std::int64_t ms = 1) {
        for (const std::string& payload : payloads) {
            redis.lpush(dead, entry(payload, ms));
        }
    }
    /// `count` entries, 0 the oldest, each a millisecond apart, the last one now.
    void die_in_turn(int count) {
        const std::string script = R"lua(
for i = 0, ARGV[1] - 1 do
    redis.call('LPUSH', KEYS[1], cmsgpack.pack({1, tostring(i), '', ARGV[2] - ARGV[1] + 1 + i}))
end
)lua";
        redis.command(
            {"EVAL", script, "1", dead, std::to_string(count), std::to_string(server_ms())});
    }
    Texts payloads() {
        Texts found;
        for (const DeadEntry& element : list.list(0, 1'000'000)) {
            found.push_back(element.payload);
        }
        return found;
    }
    std::int64_t scripts_run() { return info("commandstats", "cmdstat_eval:calls"); }
};

/// Lets Redis allocate nothing more, until the end of the scope.
class FullMemory {
  public:
    FullMemory() { m_redis.command({"CONFIG", "SET", "maxmemory", "1"}); }
    FullMemory(const FullMemory&) = delete;
    FullMemory& operator=(const FullMemory&) = delete;
    ~FullMemory() { m_redis.command({"CONFIG", "SET", "maxmemory", "0"}); }

  private:
    orizuru::test::RedisClient m_redis{server().uri()};
};

TEST_CASE_FIXTURE(Fixture, "a dead list may use a connection that others use, too") {
    die({"a"});
    const auto connection = std::make_shared<orizuru::Connection>(uri);
    DeadList shared(connection, "q");
    REQUIRE(shared.size() == 1);
    CHECK(shared.redrive(shared.list(0, 1).at(0)));
    CHECK(connection->command("q", "LLEN", "q").integer == 1);
    CHECK(connection.use_count() == 2);
    CHECK_THROWS_WITH_AS(DeadList(std::shared_ptr<orizuru::Connection>(), "q"),
                         "the connection must not be null", std::invalid_argument);
    CHECK_THROWS_AS(DeadList(connection, ""), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "entries are listed with reason and time, the newest first") {
    Consumer<Raw> consumer(uri, "q");
    const std::string bytes("\0\r\n\xff", 4);
    const std::string large(70'000, 'x');
    const std::int64_t since = server_ms();
    for (const std::string& payload : {"a"s, bytes, large}) {
        push({payload});
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK(guard->bury("because of " + std::to_string(payload.size())));
    }
    CHECK(list.size() == 3);
    const auto entries = list.list(0, 10);
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].payload == large);
    CHECK(entries[1].payload == bytes);
    CHECK(entries[2].payload == "a");
    CHECK(entries[0].reason == "because of 70000");
    CHECK(entries[2].reason == "because of 1");
    for (const DeadEntry& element : entries) {
        CHECK(element.readable);
        CHECK(element.time.time_since_epoch().count() >= since);
        CHECK(element.time.time_since_epoch().count() <= server_ms());
    }
    CHECK(Texts{entries[0].bytes, entries[1].bytes, entries[2].bytes} == redis.lrange(dead));
}

TEST_CASE_FIXTURE(Fixture, "a part of the list has the entries that were asked for") {
    die({"a", "b", "c", "d"});
    const auto payloads_of = [this](std::int64_t first, std::int64_t count) {
        Texts found;
        for (const DeadEntry& element : list.list(first, count)) {
            found.push_back(element.payload);
        }
        return found;
    };
    CHECK(payloads_of(0, 2) == Texts{"d", "c"});
    CHECK(payloads_of(1, 2) == Texts{"c", "b"});
    CHECK(payloads_of(3, 2) == Texts{"a"});
    CHECK(payloads_of(4, 2).empty());
    CHECK(payloads_of(0, 0).empty());
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    CHECK(payloads_of(2, end) == Texts{"b", "a"});
    CHECK(payloads_of(end, end).empty());
    CHECK_THROWS_AS(list.list(-1, 2), std::invalid_argument);
    CHECK_THROWS_AS(list.list(0, -1), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "a payload and a reason may be str or bin of any size") {
    for (const int size : {0, 1, 31, 32, 255, 256, 65'535}) {
        CAPTURE(size);
        const std::string text(static_cast<std::size_t>(size), 't');
        redis.flushall();
        redis.lpush(dead, "\x94\x01" + msgpack_bin(text) + msgpack_str(text) + msgpack_u64(7));
        redis.lpush(dead, "\x94\x01" + msgpack_str(text) + msgpack_bin(text) + "\x07");
        redis.lpush(dead, "\x94\x01\xc6"s + '\0' + '\0' + static_cast<char>(size >> 8) +
                              static_cast<char>(size) + text + msgpack_str(text) + "\xcd\x01\x02");
        const auto entries = list.list(0, 3);
        REQUIRE(entries.size() == 3);
        for (const DeadEntry& element : entries) {
            CHECK(element.readable);
            CHECK(element.payload == text);
            CHECK(element.reason == text);
        }
        CHECK(entries[0].time.time_since_epoch() == 258ms);
        CHECK(entries[1].time.time_since_epoch() == 7ms);
        CHECK(entries[2].time.time_since_epoch() == 7ms);
        CHECK(list.redrive_all() == Redriven{3, 0});
        CHECK(waiting() == Texts{text, text, text});
    }
}

TEST_CASE_FIXTURE(Fixture, "entries of the next version are read beside those of this one") {
    const auto bin32 = [](const std::string& bytes) {
        return "\xc6"s + '\0' + '\0' + '\0' + static_cast<char>(bytes.size()) + bytes;
    };
    for (const std::string payload : {"a", "\xff\xfe", ""}) {
        redis.lpush(dead, "\x94\x02" + bin32(payload) + bin32("why") + msgpack_u64(7));
    }
    die({"old"}, 8);
    const auto entries = list.list(0, 10);
    REQUIRE(entries.size() == 4);
    CHECK(payloads() == Texts{"old", "", "\xff\xfe", "a"});
    for (const DeadEntry& element : entries) {
        CHECK(element.readable);
        CHECK(element.reason == "why");
    }
    CHECK(entries[2].time.time_since_epoch() == 7ms);
    CHECK(list.redrive(entries[2]));
    CHECK(list.redrive_all() == Redriven{3, 0});
    CHECK(waiting() == Texts{"\xff\xfe", "a", "", "old"});
}

TEST_CASE_FIXTURE(Fixture, "an element that is no entry is shown as such, stays, and is counted") {
    const std::string whole = entry("payload");
    Texts others{"x",
                 "\x80",
                 "\x94\x03\xa0\xa0\x01",
                 "\x93\x01\xa0\xa0",
                 "\x94\x01\xa0\xa0\xff",
                 "\x94\x01\xa0\xa0\xa1x",
                 "\x94\x01\xdb\xff\xff\xff\xff\xa0\x01",
                 whole + "\xc0",
                 "\x94\x01\xa0\xa0\xcf\xff" + std::string(7, '\xff'),
                 "\x94\x01\xa0\xa0\xcd\x01",
                 "\x94\x01\x05\xa0\x01",
                 "\x94\x01\xa0\xa0" + std::string(20'000, '\x91'),
                 "\x94\x01\xa0\xa0\xcb\x7f\xf8"s + std::string(6, '\0')};
    for (std::size_t size = 0; size < whole.size(); ++size) {
        others.push_back(whole.substr(0, size));
    }
    for (const std::string& other : others) {
        redis.lpush(dead, other);
        redis.lpush(dead, whole);
    }
    const auto count = others.size();
    std::size_t readable = 0;
    for (const DeadEntry& element : list.list(0, 1000)) {
        readable += element.readable ? 1 : 0;
        CHECK(element.readable == (element.bytes == whole));
        CHECK(element.payload == (element.readable ? "payload" : ""));
    }
    CHECK(readable == count);
    CHECK_THROWS_AS(list.redrive(list.list(1, 1).front()), std::invalid_argument);
    CHECK(list.redrive_all() == Redriven{count, count});
    CHECK(waiting() == Texts(count, "payload"));
    CHECK(oldest_first(dead) == others);
    CHECK(list.redrive_all() == Redriven{0, count});
    CHECK(list.purge(0ms) == 0);
    CHECK(list.purge() == count);
}

TEST_CASE_FIXTURE(Fixture, "an entry goes back behind all messages in the queue, once") {
    push({"first"});
    die({"a", "b", "c"});
    const DeadEntry b = list.list(1, 1).front();
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(list.redrive(b));
    CHECK(scripts_run() == 1);
    CHECK(waiting() == Texts{"first", "b"});
    CHECK(payloads() == Texts{"c", "a"});
    CHECK_FALSE(list.redrive(b));
    CHECK(waiting() == Texts{"first", "b"});
}

TEST_CASE_FIXTURE(Fixture, "an element is removed once, readable or not, and nothing else goes") {
    push({"first"});
    die({"a", "b", "b", "c"});
    redis.lpush(dead, "no entry");
    const std::vector<DeadEntry> all = list.list(0, 10);
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(list.remove(all[2]));
    CHECK(scripts_run() == 1);
    CHECK(payloads() == Texts{"", "c", "b", "a"});
    CHECK(list.remove(all[0]));
    CHECK_FALSE(list.remove(all[0]));
    CHECK(list.remove(all[2]));
    CHECK_FALSE(list.remove(all[2]));
    CHECK(payloads() == Texts{"c", "a"});
    CHECK(waiting() == Texts{"first"});
}

TEST_CASE_FIXTURE(Fixture, "a removed job releases the lock that is its own, and no other") {
    orizuru::JobProducer<Raw> jobs(uri, "q");
    const auto bury_next = [&] {
        Consumer<Raw> consumer(uri, "q");
        consumer.next()->bury("bad");
    };
    const std::string lock = "orizuru:{q}:unique:u";
    jobs.push({"a"}, {.unique = "u"});
    bury_next();
    REQUIRE(redis.exists(lock));
    SUBCASE("its own") {
        CHECK(list.remove(list.list(0, 1).front()));
        CHECK_FALSE(redis.exists(lock));
    }
    SUBCASE("that of a later job") {
        redis.del(lock);
        jobs.push({"b"}, {.unique = "u"});
        CHECK(list.remove(list.list(0, 1).front()));
        CHECK(redis.exists(lock));
    }
    SUBCASE("none, if the entry has gone") {
        const DeadEntry gone = list.list(0, 1).front();
        redis.del(dead);
        CHECK_FALSE(list.remove(gone));
        CHECK(redis.exists(lock));
    }
}

TEST_CASE_FIXTURE(Fixture, "no entry is searched for in the middle of a long list") {
    die_in_turn(20'001);
    const auto entry_at = [&](std::int64_t index) { return list.list(index, 1).front(); };
    const DeadEntry middle = entry_at(10'000);
    CHECK_THROWS_WITH_AS(list.redrive(middle), doctest::Contains("FAR it is not among the 10000"),
                         ReplyError);
    CHECK_THROWS_WITH_AS(list.remove(middle), doctest::Contains("FAR it is not among the 10000"),
                         ReplyError);
    CHECK(list.size() == 20'001);
    CHECK(waiting().empty());
    CHECK(list.redrive(entry_at(9'999)));
    CHECK(list.remove(middle)); // by now the ends meet
    CHECK(list.redrive(entry_at(0)));
    CHECK(list.remove(entry_at(19'997)));
    CHECK_FALSE(list.remove(middle));
    CHECK(list.size() == 19'997);
}

TEST_CASE_FIXTURE(Fixture, "equal entries go one at a time") {
    die({"a", "a", "a"});
    const DeadEntry a = list.list(0, 1).front();
    CHECK(list.redrive(a));
    CHECK(list.size() == 2);
    CHECK(list.redrive_all(1) == Redriven{1, 0});
    CHECK(list.size() == 1);
    CHECK(list.redrive(a));
    CHECK_FALSE(list.redrive(a));
    CHECK(waiting() == Texts{"a", "a", "a"});
}

TEST_CASE_FIXTURE(Fixture, "all go back, the oldest first, in steps of a hundred") {
    die_in_turn(250);
    push({"first"});
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(list.redrive_all(120) == Redriven{120, 0});
    CHECK(scripts_run() == 2);
    CHECK(list.size() == 130);
    CHECK(list.redrive_all() == Redriven{130, 0});
    CHECK(scripts_run() == 4);
    CHECK(list.size() == 0);
    Texts expected{"first"};
    for (int i = 0; i < 250; ++i) {
        expected.push_back(std::to_string(i));
    }
    CHECK(waiting() == expected);
    CHECK(list.redrive_all() == Redriven{});
}

TEST_CASE_FIXTURE(Fixture, "a hundred unreadable elements do not hide what lies behind them") {
    for (int i = 0; i < 150; ++i) {
        redis.lpush(dead, std::to_string(i));
    }
    die({"a", "b"});
    CHECK(list.redrive_all(1) == Redriven{1, 150});
    CHECK(waiting() == Texts{"a"});
    CHECK(list.redrive_all() == Redriven{1, 150});
    CHECK(waiting() == Texts{"a", "b"});
    CHECK(list.size() == 150);
}

TEST_CASE_FIXTURE(Fixture, "several redrives at once bring each entry back once") {
    constexpr int count = 2000;
    die_in_turn(count);
    std::atomic<std::uint64_t> moved{0};
    {
        std::vector<std::jthread> threads;
        threads.reserve(6);
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back([&] { moved += DeadList(uri, "q").redrive_all().redriven; });
            threads.emplace_back([&] {
                DeadList own(uri, "q");
                for (const DeadEntry& element : own.list(0, 300)) {
                    moved += own.redrive(element) ? 1 : 0;
                }
            });
        }
    }
    CHECK(moved == count);
    CHECK(list.size() == 0);
    std::map<std::string, int> times;
    for (const std::string& payload : waiting()) {
        ++times[payload];
    }
    CHECK(times.size() == count);
    CHECK(redis.llen("q") == count);
}

TEST_CASE_FIXTURE(Fixture,
                  "a purge removes all entries, or those that are old enough by Redis' clock") {
    const std::int64_t now = server_ms();
    die({"a", "b"}, now - 3'600'000);
    die({"c"}, now - 1'800'000);
    die({"d"}, now + 3'600'000);
    CHECK(list.purge(2h) == 0);
    CHECK(list.purge(1h) == 2);
    CHECK(payloads() == Texts{"d", "c"});
    CHECK(list.purge(0ms) == 1);
    CHECK(payloads() == Texts{"d"});
    CHECK(list.purge() == 1);
    CHECK_FALSE(redis.exists(dead));
    CHECK(list.purge() == 0);
    CHECK(waiting().empty());
    CHECK_THROWS_AS(list.purge(-1ms), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "trimmed to 10,000, the list keeps the newest 10,000") {
    die_in_turn(12'345);
    CHECK(list.trim() == 2'345);
    CHECK(list.size() == 10'000);
    CHECK(list.list(0, 1).front().payload == "12344");
    CHECK(list.list(9'999, 1).front().payload == "2345");
    CHECK(list.trim() == 0);
    CHECK(list.trim({.most = 1}) == 9'999);
    CHECK(list.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "trimmed by age, nothing of 180 days or more stays, and the rest does") {
    const std::int64_t day = 86'400'000;
    const std::int64_t now = server_ms();
    die(Texts(150, "old"), now - 180 * day);
    die({"young"}, now - 180 * day + 60'000);
    CHECK(list.trim({.oldest = 0ms}) == 0);
    CHECK(list.trim() == 150);
    CHECK(payloads() == Texts{"young"});
    CHECK(list.trim({.most = 0, .oldest = 1ms}) == 1);
    CHECK_THROWS_AS(list.trim({.most = -1}), std::invalid_argument);
    CHECK_THROWS_AS(list.trim({.oldest = -1ms}), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "one too many goes, readable or not") {
    redis.lpush(dead, "x");
    die({"a", "b"}, server_ms());
    CHECK(list.trim({.most = 2}) == 1);
    CHECK(payloads() == Texts{"b", "a"});
}

TEST_CASE_FIXTURE(Fixture, "a key of the wrong type is named, and nothing is written") {
    die({"a"});
    const DeadEntry a = list.list(0, 1).front();
    redis.set("q", "x");
    CHECK(contains(message_of<ReplyError>([&] { list.redrive(a); }), "q is a string"));
    CHECK(contains(message_of<ReplyError>([&] { list.redrive_all(); }), "q is a string"));
    CHECK(payloads() == Texts{"a"});
    CHECK(redis.command({"GET", "q"}).text == "x");
    redis.flushall();
    redis.set(dead, "x");
    CHECK(contains(message_of<ReplyError>([&] { list.size(); }), dead));
    CHECK(contains(message_of<ReplyError>([&] { list.list(0, 1); }), dead));
    CHECK(contains(message_of<ReplyError>([&] { list.redrive(a); }), dead));
    CHECK(contains(message_of<ReplyError>([&] { list.redrive_all(); }), dead));
    CHECK(contains(message_of<ReplyError>([&] { list.purge(); }), dead));
    CHECK(contains(message_of<ReplyError>([&] { list.purge(1h); }), dead));
    CHECK(contains(message_of<ReplyError>([&] { list.trim(); }), dead));
    CHECK(redis.keys() == Texts{dead});
    CHECK(redis.command({"GET", dead}).text == "x");
}

TEST_CASE_FIXTURE(Fixture, "a user without a right that a redrive needs loses nothing by it") {
    const std::string clerk = "unix://clerk:open-sesame@" + server().socket_path();
    die({"a"});
    const DeadEntry a = list.list(0, 1).front();
    for (const std::string right : {"-lpush", "-lrem"}) {
        CAPTURE(right);
        redis.command(
            {"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "+@all", right});
        DeadList own(clerk, "q");
        CHECK(contains(message_of<ReplyError>([&] { own.redrive(a); }), "NOPERM"));
        CHECK(contains(message_of<ReplyError>([&] { own.redrive_all(); }), "NOPERM"));
        CHECK(payloads() == Texts{"a"});
        CHECK(waiting().empty());
    }
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture, "all operations work when memory is full") {
    die({"a", "b"}, server_ms() - 3'600'000);
    die({"c", "d", "e"}, server_ms());
    const FullMemory full;
    CHECK(list.list(0, 5).size() == 5);
    CHECK(list.purge(1h) == 2);
    CHECK(list.redrive(list.list(0, 1).front()));
    CHECK(list.redrive_all(1) == Redriven{1, 0});
    CHECK(waiting() == Texts{"e", "c"});
    CHECK(list.trim() == 0);
    CHECK(list.purge() == 1);
}

} // namespace dead_list_test
