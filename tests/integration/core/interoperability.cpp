// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages to and from a Python program that uses nothing but redis and msgpack
// (interoperability.py): the same values, the same bytes.

#include "support/eventually.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace interoperability_test {

using namespace std::string_literals;
using orizuru::test::patience;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;

struct Crane {
    std::string name;
    std::vector<std::int64_t> numbers;
    std::map<std::string, int> counts;
    MSGPACK_DEFINE(name, numbers, counts)
    friend bool operator==(const Crane&, const Crane&) = default;
};

struct Everything {
    std::int64_t signed_number = 0;
    std::uint64_t unsigned_number = 0;
    double floating = 0;
    bool flag = false;
    std::string text;
    std::vector<char> binary;
    std::optional<std::string> optional;
    Crane crane;
    std::vector<Crane> flock;
    MSGPACK_DEFINE(signed_number, unsigned_number, floating, flag, text, binary, optional, crane,
                   flock)
    friend bool operator==(const Everything&, const Everything&) = default;
};

enum class Colour { white, red };

/// One of each kind of type that README.md names.
struct Kinds {
    int number = 0;
    double floating = 0;
    Colour colour = Colour::white;
    std::chrono::milliseconds lasts{};
    std::chrono::sys_seconds at{};
    std::string text;
    std::vector<char> bytes;
    std::set<int> set;
    std::map<std::string, int> map;
    std::pair<int, std::string> pair;
    std::tuple<bool, double> tuple;
    std::optional<int> nothing = 9;
    std::shared_ptr<int> pointer;
    MSGPACK_DEFINE(number, floating, colour, lasts, at, text, bytes, set, map, pair, tuple, nothing,
                   pointer)
};

template <class T>
constexpr T least = std::numeric_limits<T>::min();
template <class T>
constexpr T most = std::numeric_limits<T>::max();

/// The MESSAGES of interoperability.py.
std::vector<Everything> messages() {
    const Crane crane{"鶴 \U0001f9a2 \0 é"s,
                      {least<std::int64_t>, -1, 0, most<std::int64_t>},
                      {{"a", 1}, {"b", -1}}};
    std::vector<char> all_bytes(256);
    std::iota(all_bytes.begin(), all_bytes.end(), '\0');
    std::vector<Everything> result{
        {least<std::int64_t>, most<std::uint64_t>, 0.1, true, "", {}, std::nullopt, crane, {}},
        {most<std::int64_t>,
         0,
         -1.5e300,
         false,
         std::string(70'000, 'x'),
         all_bytes,
         "",
         crane,
         {crane, crane}}};
    for (const std::int64_t border :
         {0LL, 1LL << 5, 1LL << 7, 1LL << 8, 1LL << 15, 1LL << 16, 1LL << 31, 1LL << 32}) {
        for (const std::int64_t number :
             {-border - 1, -border, -border + 1, border - 1, border, border + 1}) {
            result.push_back({number,
                              static_cast<std::uint64_t>(std::abs(number)),
                              static_cast<double>(number) + 0.5,
                              true,
                              "n",
                              {'\xff'},
                              "o",
                              crane,
                              {crane}});
        }
    }
    return result;
}

class PythonFixture {
  public:
    PythonFixture() { m_redis.flushall(); }

  protected:
    [[nodiscard]] static std::string uri() { return server().uri(); }
    RedisClient& redis() { return m_redis; }

    static bool python(const std::string& mode) {
        const std::string command =
            PYTHON " '" INTEROPERABILITY_PY "' " + mode + " " + server().socket_path() + " cranes";
        return std::system(command.c_str()) == 0; // NOLINT(cert-env33-c): our own words only
    }

  private:
    static RedisServer& server() {
        static RedisServer instance;
        return instance;
    }
    RedisClient m_redis{server().uri()};
};

constexpr std::chrono::milliseconds at_once{0};

/// The Order of README.md.
struct Order {
    std::uint64_t id = 0;
    std::vector<std::string> items;
    MSGPACK_DEFINE(id, items)
};

TEST_CASE_FIXTURE(PythonFixture, "C++ consumes the messages that Python pushes") {
    REQUIRE(python("push"));
    orizuru::Consumer<Everything> consumer(uri(), "cranes");
    std::size_t number = 0;
    for (const Everything& expected : messages()) {
        CAPTURE(number++);
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK((**guard == expected));
        CHECK(guard->ack());
    }
    CHECK_FALSE(consumer.next(at_once));
    CHECK_FALSE(redis().exists(orizuru::Keys("cranes").dead()));
}

TEST_CASE_FIXTURE(PythonFixture, "Python pops the messages that C++ pushes, to the byte") {
    orizuru::Producer<Everything> producer(uri(), "cranes");
    CHECK(producer.push_all(messages()) == messages().size());
    CHECK(python("pop"));
}

TEST_CASE_FIXTURE(PythonFixture, "Python pops the message that a guard pushes on") {
    orizuru::Producer<Everything>(uri(), "incoming").push_all(messages());
    orizuru::Consumer<Everything> consumer(uri(), "incoming");
    bool replace = false;
    for (std::size_t left = messages().size(); left > 0; --left) {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK((replace ? guard->push("cranes", **guard) : guard->push("cranes")));
        replace = !replace;
    }
    CHECK(python("pop"));
}

TEST_CASE_FIXTURE(PythonFixture, "each kind of type comes from Python and goes to it") {
    REQUIRE(python("push_kinds"));
    orizuru::Consumer<Kinds> consumer(uri(), "cranes");
    for (const std::string& bytes : {"\0\xff"s, "\0é"s}) {
        auto kinds = *consumer.next(patience);
        CHECK(kinds->number == -7);
        CHECK(kinds->floating == 2);
        CHECK(kinds->colour == Colour::red);
        CHECK(kinds->lasts.count() == 1500);
        CHECK(kinds->at.time_since_epoch().count() == 1'700'000'000);
        CHECK(kinds->text == "text");
        CHECK(std::string(kinds->bytes.begin(), kinds->bytes.end()) == bytes);
        CHECK(kinds->set == std::set{1, 2});
        CHECK(kinds->map == std::map<std::string, int>{{"one", 1}});
        CHECK(kinds->pair == std::pair{3, "x"s});
        CHECK(kinds->tuple == std::tuple{true, 0.5});
        CHECK_FALSE(kinds->nothing);
        CHECK((kinds->pointer && *kinds->pointer == 5));
        CHECK(kinds.push("seen", *kinds));
    }
    auto missing = *consumer.next(patience);
    CHECK(missing->number == 0);
    CHECK(missing->nothing == 9);
    CHECK(missing.ack());
    auto more = *consumer.next(patience);
    CHECK((more->pointer && *more->pointer == 5));
    CHECK(more.ack());
    CHECK_THROWS_AS((void)consumer.next(patience), orizuru::DecodeError); // bytes as numbers
    redis().command({"LMOVE", "seen", "cranes", "RIGHT", "LEFT"});
    CHECK(python("pop_kinds"));
}

TEST_CASE_FIXTURE(PythonFixture, "Python reads the dead list") {
    orizuru::Producer<orizuru::Raw>(uri(), "cranes").push({"\xc1\xff\0no msgpack"s});
    orizuru::Producer<Everything>(uri(), "cranes").push(messages()[1]);
    orizuru::Consumer<Everything> consumer(uri(), "cranes");
    CHECK_THROWS_AS((void)consumer.next(patience), orizuru::DecodeError);
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK(guard->bury("too heavy for a 鶴"));
    CHECK(python("dead"));
}

TEST_CASE_FIXTURE(PythonFixture, "a whole float is written as an integer and read back") {
    orizuru::Producer<double>(uri(), "cranes").push(1.0);
    CHECK(redis().lrange("cranes") == std::vector<std::string>{"\x01"});
    orizuru::Consumer<double> consumer(uri(), "cranes");
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK(**guard == 1.0);
    CHECK(guard->ack());
}

TEST_CASE_FIXTURE(PythonFixture, "a Python payload of another shape goes to the dead list") {
    redis().lpush("cranes", "\x93\x01\x02\x03"s); // [1, 2, 3]
    orizuru::Consumer<Crane> consumer(uri(), "cranes");
    CHECK_THROWS_AS((void)consumer.next(patience), orizuru::DecodeError);
    CHECK(redis().llen(orizuru::Keys("cranes").dead()) == 1);
}

TEST_CASE_FIXTURE(PythonFixture,
                  "Python writes and reads the envelope of a job as job.hpp has it") {
    REQUIRE(python("push_job"));
    orizuru::Consumer<orizuru::Job<Everything>> consumer(uri(), "cranes");
    auto job = consumer.next(patience);
    REQUIRE(job);
    CHECK(job->payload().size() > 1000);
    CHECK((*job)->version == 2);
    CHECK((*job)->id == "job 鶴");
    CHECK((*job)->attempt == 3);
    CHECK((*job)->first_enqueued_at.time_since_epoch() ==
          std::chrono::milliseconds(1'700'000'000'000));
    CHECK_FALSE((*job)->expires_at);
    CHECK((*job)->last_error == "no luck");
    CHECK((*job)->unique_id == "u");
    CHECK((*job)->unique_queue == "lair");
    CHECK(((*job)->payload == messages()[1]));
    CHECK((*job)->attributes == orizuru::JobAttributes{{"trace", "0af7 鶴"}});
    CHECK((*job)->kind == "crane");
    CHECK((*job)->max_attempts == 9);
    CHECK((*job)->key == "lake 鶴");
    CHECK((*job)->ticket.empty());
    CHECK((*job)->group == "flock 鶴");
    orizuru::retry(*job, {.backoff = orizuru::backoff::fixed(std::chrono::hours(1))},
                   "failed in C++");
    orizuru::Producer<orizuru::Job<Everything>>(uri(), "cranes")
        .push(orizuru::make_job(messages()[0], std::chrono::hours(1)));
    CHECK(python("pop_job"));
}

TEST_CASE_FIXTURE(PythonFixture,
                  "what the documented Python pushes is a message for a consumer, and a "
                  "job for a worker; its redis-cli pushes text for a consumer of Raw") {
    REQUIRE(python("readme"));
    orizuru::Consumer<Order> orders(uri(), "orders");
    auto order = orders.next(patience);
    REQUIRE(order);
    CHECK((*order)->id == 7);
    CHECK((*order)->items == std::vector{"tea"s});
    CHECK(order->ack());
    orizuru::Consumer<orizuru::Job<Order>> jobs(uri(), "jobs");
    auto job = jobs.next(patience);
    REQUIRE(job);
    CHECK((*job)->id.size() == 32);
    CHECK((*job)->attempt == 1);
    CHECK((*job)->payload.id == 7);
    CHECK((*job)->payload.items == std::vector{"tea"s});
    CHECK(job->ack());
    orizuru::Consumer<orizuru::Raw> lines(uri(), "lines");
    auto line = lines.next(patience);
    REQUIRE(line);
    CHECK((*line)->bytes == "any text");
    CHECK(line->ack());
    // A consumer of msgpack buries such a text.
    redis().command({"LPUSH", "greetings", "any text"});
    orizuru::Consumer<std::string> greetings(uri(), "greetings");
    CHECK_THROWS_AS((void)greetings.next(patience), orizuru::DecodeError);
}

} // namespace interoperability_test
