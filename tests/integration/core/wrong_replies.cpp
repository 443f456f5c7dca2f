// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The server is not Redis, or not always: it answers with wrong types, garbage, impossible sizes,
// silence, or the end of the connection. Constructors throw in time; a running consumer recovers
// and loses nothing.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/proxy.hpp"

#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wrong_replies_test {

using namespace std::chrono_literals;
using orizuru::ConnectionError;
using orizuru::GarbageCollector;
using orizuru::Producer;
using orizuru::ProtocolError;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::OwnServer;
using orizuru::test::patience;
using orizuru::test::Proxy;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Texts;
using orizuru::test::time_of;
using Cut = Proxy::Cut;
using Direction = Proxy::Direction;
using std::chrono::milliseconds;

using Answer = std::optional<std::string>;

const Answer silence = "";
const Answer end_of_connection = std::nullopt;

// None of these is a valid answer to any of the commands below.
const std::vector<Answer> wrong_at_once{
    "+FINE\r\n",
    "*1\r\n:5\r\n",
    "*2\r\n$1\r\nx\r\n:5\r\n",
    "-ERR strange\r\n",
    "-ERR\r\n",
    "?!\r\n",
    "$abc\r\n",
    "*-7\r\n",
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "%1\r\n+key\r\n+value\r\n",
    end_of_connection};
// These end by a time-out.
const std::vector<Answer> wrong_at_length{silence, "$536870912\r\n", "*2147483647\r\n",
                                          "$10\r\nabc"};

std::string name_of(const Answer& answer) { return answer ? "'" + *answer + "'" : "an end"; }

using Matches = bool (*)(const Texts& argv);

/// A server in front of the real one. When told to, it gives a wrong answer to the next command of
/// a kind; the real server has run that command before, or never sees it.
class Liar {
  public:
    explicit Liar(const RedisServer& real)
        : m_real(real.uri()),
          m_server([this](const Texts& argv) { return answer(argv); }, real.socket_path()) {}

    void lie_once(Matches matches, Answer lie, bool is_run) {
        m_matches = matches;
        m_lie = std::move(lie);
        m_is_run = is_run;
        m_armed = true;
    }
    [[nodiscard]] bool has_lied() const { return !m_armed; }
    [[nodiscard]] std::string uri() const {
        return m_server.uri() + "?command_timeout=200&connect_timeout=5000";
    }

  private:
    Answer answer(const Texts& argv) {
        if (!m_armed || !m_matches(argv)) {
            return FakeServer::pass;
        }
        // A wait would block all connections.
        if (m_is_run && !(argv.at(0) == "BLMOVE" && m_real.llen("q") == 0)) {
            m_real.try_command(argv);
        }
        const Answer lie = m_lie;
        m_armed = false;
        return lie;
    }

    RedisClient m_real;
    Matches m_matches = nullptr;
    Answer m_lie;
    bool m_is_run = false;
    std::atomic<bool> m_armed{false}; ///< guards the members before it
    FakeServer m_server;
};

struct Kind {
    std::string name;
    Matches matches;
};

const std::vector<Kind> kinds{
    {"a script of the chain", [](const Texts& argv) { return argv.at(0) == "EVALSHA"; }},
    {"the blocking fetch", [](const Texts& argv) { return argv.at(0) == "BLMOVE"; }},
    {"the end of a wait",
     [](const Texts& argv) { return argv.at(0) == "CLIENT" && argv.at(1) == "UNBLOCK"; }},
    {"the number of a connection",
     [](const Texts& argv) { return argv.at(0) == "CLIENT" && argv.at(1) == "ID"; }},
    {"the greeting", [](const Texts& argv) { return argv.at(0) == "PING"; }},
    {"an adoption",
     [](const Texts& argv) { return argv.at(0) == "EVAL" && contains(argv.at(1), "adopted "); }},
    {"a beat", [](const Texts& argv) {
         return argv.at(0) == "EVAL" && contains(argv.at(1), "gap_of(ARGV[2]), true");
     }}};

struct Lies : OwnServer {
    /// An error with an unknown code reaches the user once, and next can be called again.
    static std::optional<RawGuard> next_of(RawConsumer& consumer, milliseconds timeout = patience) {
        try {
            return consumer.next(timeout);
        } catch (const ReplyError& error) {
            CHECK(error.code().starts_with("ERR"));
            return consumer.next(timeout);
        }
    }

    /// A consumer's ordinary life, in which it sends every kind of command.
    void live_through(const Kind& kind, const Answer& lie, bool is_run) {
        CAPTURE(kind.name);
        CAPTURE(name_of(lie));
        CAPTURE(is_run);
        redis.flushall();
        Liar liar{server};
        // A settlement is repeated until the lease ends, and a wrong answer that lasts uses up that
        // time.
        RawConsumer consumer{liar.uri(), "q", {.lease = 2s, .prefetch = 2}};
        const auto handle = [&](const std::string& expected) {
            auto guard = next_of(consumer);
            REQUIRE(guard);
            CHECK((*guard)->bytes == expected);
            CHECK(guard->ack());
        };
        push({"a", "b", "c", "d"});
        handle("a");
        liar.lie_once(kind.matches, lie, is_run);
        handle("b");
        auto third = take(consumer);
        CHECK(third.push("other"));
        handle("d");
        CHECK_FALSE(next_of(consumer, 1ms));
        auto next = std::async(std::launch::async, [&] { return next_of(consumer); });
        REQUIRE(somebody_waits());
        // Now the list must be adopted.
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        push({"e"});
        auto fifth = next.get();
        REQUIRE(fifth);
        CHECK((*fifth)->bytes == "e");
        CHECK(fifth->ack());
        push({"f"});
        handle("f");
        // A slow machine may be late before it waits at all: then there is no wait to end.
        CHECK(eventually([&] {
            CHECK_FALSE(next_of(consumer, 10ms));
            return liar.has_lied();
        }));
        push({"g"});
        handle("g");
        CHECK_FALSE(next_of(consumer, 1ms));
        CHECK(everywhere({"other"}) == Texts{"c"});
        CHECK(redis.llen(dead) == 0);
    }
};

/// Gives the same answer to every command.
FakeServer always(const Answer& answer) {
    return FakeServer([answer](const Texts&) { return answer; });
}

template <class Action>
bool throws_error(Action action) {
    try {
        action();
    } catch (const orizuru::Error&) {
        return true;
    }
    return false;
}

TEST_CASE("constructors throw in time when what answers is not Redis") {
    for (const auto* answers : {&wrong_at_once, &wrong_at_length}) {
        for (const Answer& answer : *answers) {
            if (answer && answer->starts_with("+")) {
                continue; // to a PING any status will do
            }
            CAPTURE(name_of(answer));
            const FakeServer server = always(answer);
            const std::string uri = server.uri() + "?connect_timeout=50&command_timeout=50";
            const auto waited = time_of([&] {
                CHECK(throws_error([&] { Producer<Raw>(uri, "q"); }));
                CHECK(throws_error([&] { RawConsumer(uri, "q"); }));
                CHECK(throws_error([&] { GarbageCollector(uri, "q"); }));
            });
            CHECK(waited < 2s);
        }
    }
}

TEST_CASE_FIXTURE(OwnServer, "a consumer whose registration is answered wrongly throws in time") {
    for (const auto* answers : {&wrong_at_once, &wrong_at_length}) {
        for (const Answer& answer : *answers) {
            CAPTURE(name_of(answer));
            const FakeServer fake{[&](const Texts& argv) -> Answer {
                                      return argv.at(0) == "EVAL" ? answer : FakeServer::pass;
                                  },
                                  server.socket_path()};
            const auto waited = time_of([&] {
                CHECK(throws_error([&] {
                    RawConsumer(fake.uri() + "?connect_timeout=50&command_timeout=50", "q");
                }));
            });
            CHECK(waited < 1s);
        }
    }
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(OwnServer, "a producer's wrong reply is an error, and the next push works") {
    for (const auto* answers : {&wrong_at_once, &wrong_at_length}) {
        for (const Answer& answer : *answers) {
            CAPTURE(name_of(answer));
            redis.flushall();
            Liar liar{server};
            Producer<Raw> producer{liar.uri(), "q"};
            const Matches is_push = [](const Texts& argv) { return argv.at(0) == "LPUSH"; };
            liar.lie_once(is_push, answer, true);
            CHECK(throws_error([&] { producer.push({"a"}); }));
            CHECK(liar.has_lied());
            CHECK(producer.push({"b"}) == 2);
            CHECK(producer.size() == 2);
            CHECK(redis.lrange("q") == Texts{"b", "a"});
        }
    }
}

TEST_CASE_FIXTURE(OwnServer, "a connection that answered by the wrong type is not used again") {
    std::atomic<int> greetings{0};
    std::atomic<bool> lies{false};
    const FakeServer fake(
        [&](const Texts& argv) -> std::string {
            greetings += argv.at(0) == "PING" ? 1 : 0;
            return argv.at(0) == "LLEN" && lies.exchange(false) ? "+FINE\r\n" : FakeServer::pass;
        },
        server.socket_path());
    RawConsumer consumer{fake.uri(), "q"};
    const int before = greetings;
    lies = true;
    CHECK_THROWS_AS(consumer.size(), orizuru::ProtocolError);
    CHECK(consumer.size() == 0);
    CHECK(greetings == before + 1);
}

TEST_CASE_FIXTURE(OwnServer, "a reply of the wrong type is a ProtocolError") {
    Liar liar{server};
    Producer<Raw> producer{liar.uri(), "q"};
    const Matches is_length = [](const Texts& argv) { return argv.at(0) == "LLEN"; };
    for (const std::string lie : {"+FINE\r\n", "$-1\r\n", "*0\r\n", "?!\r\n"}) {
        CAPTURE(lie);
        liar.lie_once(is_length, lie, false);
        CHECK_THROWS_AS(producer.size(), ProtocolError);
        RawConsumer consumer{liar.uri(), "q"};
        liar.lie_once(is_length, lie, false);
        CHECK(throws_error([&] { consumer.size(); }));
        push({"a"});
        CHECK(take(consumer).ack());
    }
    liar.lie_once(is_length, "-ERR strange\r\n", false);
    CHECK_THROWS_AS(producer.size(), ReplyError);
    liar.lie_once(is_length, silence, false);
    CHECK_THROWS_AS(producer.size(), ConnectionError);
    CHECK(producer.size() == 0);
}

TEST_CASE_FIXTURE(OwnServer, "an impossible count is a ProtocolError") {
    Liar liar{server};
    Producer<Raw> producer{liar.uri(), "q"};
    liar.lie_once([](const Texts& argv) { return argv.at(0) == "LPUSH"; }, ":0\r\n", true);
    CHECK_THROWS_AS(producer.push({"a"}), ProtocolError);
    const Matches is_length = [](const Texts& argv) { return argv.at(0) == "LLEN"; };
    liar.lie_once(is_length, ":-1\r\n", false);
    CHECK_THROWS_AS(producer.size(), ProtocolError);
    CHECK(producer.size() == 1);
    RawConsumer consumer{liar.uri(), "q"};
    liar.lie_once(is_length, ":-1\r\n", false);
    CHECK(throws_error([&] { consumer.size(); }));
    CHECK(take(consumer).ack());
}

TEST_CASE_FIXTURE(OwnServer, "a collector accepts no result that its scripts cannot give") {
    redis.lpush(unack, {"a", "b"});
    redis.command({"SADD", "orizuru:{q}:consumers", "dead"});
    Liar liar{server};
    GarbageCollector collector{liar.uri(), "q", {.grace = 0ms}};
    const auto lie = [&](Matches matches, const std::vector<std::string>& lies) {
        for (const std::string& text : lies) {
            CAPTURE(text);
            liar.lie_once(matches, text, false);
            CHECK_THROWS_AS(collector.collect(), ProtocolError);
            CHECK(liar.has_lied());
        }
    };
    lie([](const Texts& argv) { return argv.at(0) == "SMEMBERS"; },
        {"+FINE\r\n", "*1\r\n:1\r\n", "*1\r\n$-1\r\n"});
    lie([](const Texts& argv) { return argv.at(0) == "MGET"; },
        {"+FINE\r\n", "*0\r\n", "*2\r\n$-1\r\n$-1\r\n", "*1\r\n:1\r\n"});
    lie(
        [](const Texts& argv) {
            return argv.at(0) == "EVALSHA" &&
                   argv.at(1) == std::string_view(orizuru::detail::reap_script.sha1());
        },
        {"+FINE\r\n", "*0\r\n", "*1\r\n:0\r\n", "*2\r\n:-5\r\n:0\r\n", "*3\r\n:-3\r\n:-1\r\n:1\r\n",
         "*3\r\n:-3\r\n:1\r\n$1\r\n1\r\n", "*3\r\n:-4\r\n:1\r\n:1\r\n", "*2\r\n:1\r\n:1\r\n",
         "*2\r\n$1\r\n1\r\n:0\r\n", "*3\r\n:1\r\n:0\r\n$1\r\na\r\n", "*3\r\n:1\r\n:1\r\n:1\r\n",
         "*3\r\n:1\r\n:2\r\n$1\r\na\r\n", "*4\r\n:1\r\n:2\r\n$1\r\na\r\n:1\r\n",
         "*3\r\n:1\r\n:0\r\n:1\r\n", "*4\r\n:0\r\n:0\r\n:1\r\n:1\r\n",
         "*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n:1\r\n", "*5\r\n:0\r\n:1\r\n:0\r\n$1\r\na\r\n:1\r\n",
         "*5\r\n:1\r\n:1\r\n:0\r\n$1\r\na\r\n$1\r\n1\r\n"});
    lie([](const Texts& argv) { return argv.at(0) == "LLEN"; }, {"+FINE\r\n", ":-1\r\n"});
    lie(
        [](const Texts& argv) {
            return argv.at(0) == "EVALSHA" &&
                   argv.at(1) == std::string_view(orizuru::detail::refill_script.sha1());
        },
        {"+FINE\r\n", ":-1\r\n", ":3\r\n"});
    CHECK(collector.collect() == orizuru::Collected{.unacked = 2});
}

TEST_CASE_FIXTURE(OwnServer, "a collector's scan accepts no invalid reply and no strange key") {
    Liar liar{server};
    const Matches is_scan = [](const Texts& argv) { return argv.at(0) == "SCAN"; };
    for (const std::string lie : {"+FINE\r\n", "*1\r\n$1\r\n0\r\n", "*2\r\n:0\r\n*0\r\n",
                                  "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n"}) {
        CAPTURE(lie);
        GarbageCollector collector{liar.uri(), "q", {.grace = 0ms}};
        liar.lie_once(is_scan, lie, false);
        CHECK_THROWS_AS(collector.collect(), ProtocolError);
    }
    GarbageCollector collector{liar.uri(), "q", {.grace = 0ms}};
    liar.lie_once(is_scan, "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n", false);
    CHECK(collector.collect() == orizuru::Collected{});
    CHECK(liar.has_lied());
}

TEST_CASE_FIXTURE(Lies, "a consumer gets over a wrong reply to each of its commands") {
    for (const Kind& kind : kinds) {
        // All of them for all commands would take long, and the parser is tested elsewhere.
        for (const Answer& lie :
             {Answer("+FINE\r\n"), Answer("*1\r\n:5\r\n"), Answer("-ERR strange\r\n"),
              Answer("?!\r\n"), end_of_connection}) {
            const bool is_greeting = kind.name == "the greeting";
            if (is_greeting && lie && lie->starts_with("+")) {
                continue;
            }
            live_through(kind, lie, false);
            if (!is_greeting) {
                live_through(kind, lie, true);
            }
        }
    }
}

TEST_CASE_FIXTURE(Lies, "a consumer gets over a reply that does not come or does not end") {
    for (const Kind& kind : kinds) {
        if (kind.name == "the blocking fetch" || kind.name == "the greeting" ||
            kind.name == "the number of a connection") {
            continue; // noticed after 5 s and connect_timeout; outages.cpp has these
        }
        for (const Answer& lie : wrong_at_length) {
            live_through(kind, lie, true);
        }
    }
}

TEST_CASE_FIXTURE(OwnServer, "a failed fetch throws an error with a code") {
    const FakeServer liar{[](const Texts& argv) -> Answer {
                              // In the script that settles and fetches, the source follows the
                              // list.
                              const bool fetches = argv.at(0) == "BLMOVE" ||
                                                   (argv.at(0).starts_with("EVAL") &&
                                                    argv.at(2) == "2" && argv.at(4) == "q");
                              return fetches ? Answer("+FINE\r\n") : FakeServer::pass;
                          },
                          server.socket_path()};
    for (const int prefetch : {1, 10}) {
        CAPTURE(prefetch);
        RawConsumer consumer{liar.uri(), "q", {.prefetch = prefetch}};
        try {
            static_cast<void>(consumer.next(patience));
            FAIL_CHECK("nothing was thrown");
        } catch (const ReplyError& error) {
            CHECK(error.code() == "ERR");
            CHECK(contains(error.what(), "a reply of the wrong type"));
        }
    }
}

TEST_CASE_FIXTURE(OwnServer, "no SIGPIPE is raised when the peer closes while we write") {
    // Its default action would end this process, whatever started it.
    struct sigaction standard {};
    struct sigaction before {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGPIPE, &standard, &before);
    Proxy proxy{server.socket_path()};
    const std::string large(4'000'000, 'x');
    {
        Producer<Raw> producer{proxy.uri(), "q"};
        for (const Cut cut : {Cut::fin, Cut::rst}) {
            for (const std::uint64_t bytes : {0U, 1'000U, 300'000U}) {
                CHECK(producer.size() == 0);
                const std::size_t connection = proxy.accepted() - 1;
                proxy.cut_after(Direction::to_server,
                                proxy.bytes(connection, Direction::to_server) + bytes, cut,
                                connection);
                CHECK_THROWS_AS(producer.push({large}), ConnectionError);
            }
        }
        RawConsumer consumer{proxy.uri(), "q", {.lease = 150ms}};
        push({"a", "b"});
        for (int i = 0; i < 2; ++i) {
            auto guard = take(consumer);
            proxy.break_all(Cut::rst);
            CHECK(guard.push("other", {large}));
        }
        CHECK(redis.llen("other") == 2);
    }
    server.kill();
    ::sigaction(SIGPIPE, &before, nullptr);
}

} // namespace wrong_replies_test
