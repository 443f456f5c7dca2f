// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// push_all has two LPUSHes in flight: its error and the queue when one of them fails.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/proxy.hpp"
#include "support/redis_client.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace push_all_test {

using namespace std::chrono_literals;
using orizuru::ConnectionError;
using orizuru::EncodeError;
using orizuru::Error;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::DurableServer;
using orizuru::test::eventually;
using orizuru::test::Fd;
using orizuru::test::Making;
using orizuru::test::message_of;
using orizuru::test::OwnServer;
using orizuru::test::Proxy;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::TempDir;
using orizuru::test::Texts;

/// Its Codec does what `use` says before it encodes.
struct Using {
    std::function<void()> use;
};

} // namespace push_all_test

template <>
struct orizuru::Codec<push_all_test::Using> {
    static std::string encode(const push_all_test::Using& value) {
        value.use();
        return "encoded";
    }
    static push_all_test::Using decode(std::string_view /*bytes*/) { return {}; }
};

namespace push_all_test {

constexpr std::size_t in_a_chunk = 1000;

Texts numbered(std::size_t first, std::size_t end) {
    Texts texts;
    for (std::size_t i = first; i < end; ++i) {
        texts.push_back(std::to_string(i));
    }
    return texts;
}

/// Messages 0, 1, 2, …; `at` is called before its message is made.
auto numbers(std::size_t first, std::size_t end, std::size_t at, std::function<void()> action) {
    return Making(end - first, [=](std::size_t index) {
        if (first + index == at) {
            action();
        }
        return Raw{std::to_string(first + index)};
    });
}
auto numbers(std::size_t first, std::size_t end) {
    return numbers(first, end, end, [] {});
}

Texts oldest_first(RedisClient& redis) {
    Texts list = redis.lrange("q");
    std::ranges::reverse(list);
    return list;
}

/// The exception of push_all.
template <class Exception, class Range>
Exception failure_of(Producer<Raw>& producer, const Range& messages) {
    try {
        producer.push_all(messages);
    } catch (const Exception& error) {
        return error;
    }
    throw std::runtime_error("push_all has not failed");
}

struct Pushing : QueueFixture {
    Producer<Raw> producer{uri, "q"};

    Pushing() { redis.command({"CONFIG", "RESETSTAT"}); }

    /// Waits until Redis has answered this many LPUSHes.
    void wait_for_pushes(int count) {
        REQUIRE(eventually([&] { return info("commandstats", "cmdstat_lpush:calls") >= count; }));
    }
};

/// Serves one connection after the other in a thread: calls `serve` with the socket of each after
/// the greeting.
class BareServer {
  public:
    explicit BareServer(std::vector<std::function<void(int)>> lives)
        : m_thread([this, lives = std::move(lives)] {
              for (const auto& live : lives) {
                  if (!accept()) {
                      return;
                  }
                  live(m_clients.back().get());
              }
          }) {}

    [[nodiscard]] std::string uri() const { return "unix://" + m_path; }

    /// Reads until a message ends with its mark.
    static void read_marked(int fd, std::string& rest) {
        std::array<char, 65536> buffer;
        while (rest.find("!\r\n") == std::string::npos) {
            const auto size = ::recv(fd, buffer.data(), buffer.size(), 0);
            if (size <= 0) {
                return;
            }
            rest.append(buffer.data(), static_cast<std::size_t>(size));
        }
        rest.erase(0, rest.find("!\r\n") + 3);
    }

    static void write(int fd, std::string_view bytes) {
        while (!bytes.empty()) {
            const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return;
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }

  private:
    bool accept() {
        Fd client;
        if (!eventually([&] {
                client = orizuru::test::accept_on(m_listener);
                return static_cast<bool>(client);
            })) {
            return false;
        }
        ::fcntl(client.get(), F_SETFL, 0);
        std::array<char, 100> ping;
        ::recv(client.get(), ping.data(), ping.size(), 0);
        write(client.get(), "+PONG\r\n");
        m_clients.push_back(std::move(client));
        return true;
    }

    TempDir m_folder;
    std::string m_path = m_folder.path() + "/bare.sock";
    Fd m_listener = orizuru::test::listen_unix(m_path);
    std::vector<Fd> m_clients;
    std::jthread m_thread;
};

/// Messages too long for any socket, each with a mark at its end.
std::vector<Raw> large_messages(std::size_t count) {
    return std::vector<Raw>(count, Raw{std::string(4 << 20, '.') + "!"});
}

TEST_CASE_FIXTURE(Pushing, "while Redis works on one LPUSH, the range is read for the next") {
    // If the first were not done, the range would wait here for ever.
    CHECK(producer.push_all(numbers(0, 2500, 1999, [this] { wait_for_pushes(1); })) == 2500);
    CHECK(waiting() == numbered(0, 2500));
}

TEST_CASE_FIXTURE(Pushing, "an LPUSH behind a refused one may be done: the error counts what is in "
                           "front, says so, and resuming there loses nothing") {
    redis.set("q", "a string");
    const auto error = failure_of<ReplyError>(producer, numbers(0, 3500, in_a_chunk + 500, [this] {
                                                  wait_for_pushes(1);
                                                  redis.del("q");
                                              }));
    CHECK(error.code() == "WRONGTYPE");
    CHECK(error.pushed() == 0);
    CHECK(contains(error.what(), "the 1000 messages behind those refused were pushed"));
    CHECK(waiting() == numbered(in_a_chunk, 2 * in_a_chunk));
    CHECK(producer.push_all(numbers(error.pushed(), 3500)) == 4500);
    Texts all = numbered(in_a_chunk, 2 * in_a_chunk);
    std::ranges::copy(numbered(0, 3500), std::back_inserter(all));
    CHECK(waiting() == all);
}

TEST_CASE_FIXTURE(Pushing, "a refused LPUSH between done ones ends the count") {
    const auto error = failure_of<ReplyError>(producer, Making(5000, [this](std::size_t index) {
                                                  // The second LPUSH is sent when message 1999 has
                                                  // been made, the third with 2999.
                                                  if (index == 1500) {
                                                      wait_for_pushes(1);
                                                      redis.command({"RENAME", "q", "first"});
                                                      redis.set("q", "a string");
                                                  } else if (index == 2500) {
                                                      wait_for_pushes(2);
                                                      redis.del("q");
                                                  }
                                                  return Raw{std::to_string(index)};
                                              }));
    CHECK(error.pushed() == 1000);
    CHECK(contains(error.what(), "the 1000 messages behind those refused were pushed"));
    CHECK(Pushing::oldest_first("first") == numbered(0, 1000));
    CHECK(waiting() == numbered(2000, 3000));
}

TEST_CASE_FIXTURE(Pushing, "when Redis refuses both LPUSHes in flight, nothing is said to be in "
                           "the queue") {
    redis.set("q", "a string");
    const auto error = failure_of<ReplyError>(producer, numbers(0, 5000));
    CHECK(error.pushed() == 0);
    CHECK_FALSE(contains(error.what(), "pushed"));
    CHECK(info("commandstats", "cmdstat_lpush:calls") == 2);
    redis.del("q");
    CHECK(producer.push({"next"}) == 1);
    CHECK(waiting() == Texts{"next"});
}

TEST_CASE_FIXTURE(Pushing,
                  "when the range fails behind an LPUSH that Redis has refused, the refusal "
                  "is told") {
    redis.set("q", "a string");
    const auto fail = [] { throw std::out_of_range("the range ended badly"); };
    CHECK(failure_of<ReplyError>(producer, numbers(0, 5000, 1700, fail)).pushed() == 0);
    redis.del("q");
    CHECK_THROWS_AS(producer.push_all(numbers(0, 5000, 1700, fail)), std::out_of_range);
    CHECK(waiting() == numbered(0, 1000));
    // Nothing is sent before an LPUSH is full.
    CHECK_THROWS_AS(producer.push_all(numbers(0, 5000, 999, fail)), std::out_of_range);
    CHECK(producer.push({"next"}) == 1001);
}

TEST_CASE_FIXTURE(Pushing, "a range that uses the producer that reads it is refused") {
    const std::vector<std::function<void()>> uses{[this] { producer.push({"x"}); },
                                                  [this] { static_cast<void>(producer.size()); },
                                                  [this] { producer.push_all({Raw{"x"}}); }};
    for (const auto& use : uses) {
        redis.flushall();
        CHECK_THROWS_AS(producer.push_all(numbers(0, 3000, 2500, use)), std::logic_error);
        CHECK(waiting() == numbered(0, 2000));
        CHECK(producer.push({"next"}) == 2001);
    }
}

TEST_CASE_FIXTURE(Pushing, "a Codec that uses the producer it encodes for is refused") {
    Producer<Using> user(uri, "q");
    const Using good{[] {}};
    const std::vector<std::function<void()>> uses{[&] { user.push(good); },
                                                  [&] { user.push_all({good}); },
                                                  [&] { static_cast<void>(user.size()); }};
    for (const auto& use : uses) {
        CHECK(contains(message_of<EncodeError>([&] { user.push({use}); }), "is used"));
        CHECK(contains(message_of<EncodeError>([&] { user.push_all({{use}}); }), "is used"));
    }
    user.push(good);
    CHECK(waiting() == Texts{"encoded"});
}

TEST_CASE_FIXTURE(Pushing, "an LPUSH that was answered before its connection ended is counted, and "
                           "resuming loses and repeats nothing") {
    const auto error = failure_of<ConnectionError>(
        producer, numbers(0, 6000, 3500, [this] {
            wait_for_pushes(3);
            redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        }));
    CHECK_FALSE(error.in_doubt());
    CHECK(error.pushed() == 3000);
    CHECK(waiting() == numbered(0, 3000));
    CHECK(producer.push_all(numbers(error.pushed(), 6000)) == 6000);
}

TEST_CASE_FIXTURE(DurableServer, "a server killed in the middle of push_all loses nothing of what "
                                 "was counted, and what is resumed arrives in order") {
    Producer<Raw> producer{server.uri(), "q"};
    for (const std::size_t at : {std::size_t{1001}, std::size_t{2300}, std::size_t{7999}}) {
        CAPTURE(at);
        const auto error = failure_of<ConnectionError>(
            producer, numbers(0, 10'000, at, [this] { server.kill(); }));
        CHECK(error.pushed() % in_a_chunk == 0);
        CHECK(error.pushed() + 2 * in_a_chunk >= at / in_a_chunk * in_a_chunk);
        server.restart();
        Texts there = oldest_first(redis);
        REQUIRE(there.size() >= error.pushed());
        CHECK(there.size() <= error.pushed() + (error.in_doubt() ? 2 * in_a_chunk : 0));
        CHECK(there == numbered(0, there.size()));
        redis.command({"LTRIM", "q", std::to_string(there.size() - error.pushed()), "-1"});
        CHECK(producer.push_all(numbers(error.pushed(), 10'000)) == 10'000);
        there = oldest_first(redis);
        CHECK(there == numbered(0, 10'000));
        redis.del("q");
    }
}

TEST_CASE_FIXTURE(OwnServer,
                  "push_all through a cut connection counts what is in the queue without a "
                  "gap, and resuming there loses nothing") {
    constexpr std::size_t count = 3500;
    Proxy proxy(server.socket_path());
    std::size_t failures = 0;
    const auto try_cut = [&](Proxy::Direction direction, std::uint64_t bytes, Proxy::Cut cut) {
        CAPTURE(bytes);
        CAPTURE(static_cast<int>(direction));
        redis.del("q");
        const std::size_t connection = proxy.accepted();
        Producer<Raw> producer{proxy.uri(), "q"};
        proxy.cut_after(direction, proxy.bytes(connection, direction) + bytes, cut, connection);
        try {
            producer.push_all(numbers(0, count));
        } catch (const ConnectionError& error) {
            ++failures;
            const Texts there = oldest_first(redis);
            CHECK(there.size() >= error.pushed());
            CHECK(there.size() <= error.pushed() + (error.in_doubt() ? 2 * in_a_chunk : 0));
            CHECK(there == numbered(0, there.size()));
            producer.push_all(numbers(error.pushed(), count));
        }
        const Texts there = oldest_first(redis);
        const std::set<std::string> different(there.begin(), there.end());
        CHECK(different.size() == count);
        CHECK(there.back() == std::to_string(count - 1));
    };
    // An LPUSH has some 9,000 bytes, an answer 7.
    for (const std::uint64_t bytes :
         {0U, 1U, 30U, 5000U, 8000U, 9000U, 10'000U, 25'000U, 30'000U}) {
        try_cut(Proxy::Direction::to_server, bytes, Proxy::Cut::fin);
        try_cut(Proxy::Direction::to_server, bytes, Proxy::Cut::rst);
    }
    for (const std::uint64_t bytes : {0U, 1U, 6U, 7U, 8U, 14U, 20U, 21U, 27U}) {
        try_cut(Proxy::Direction::to_client, bytes, Proxy::Cut::fin);
        try_cut(Proxy::Direction::to_client, bytes, Proxy::Cut::rst);
    }
    CHECK(failures >= 30);
}

TEST_CASE_FIXTURE(OwnServer, "a server that does not answer ends push_all at command_timeout, with "
                             "both LPUSHes in doubt") {
    Producer<Raw> producer{uri(100ms), "q"};
    const auto error =
        failure_of<ConnectionError>(producer, numbers(0, 5000, 500, [this] { server.pause(); }));
    server.resume();
    CHECK(error.in_doubt());
    CHECK(error.pushed() == 0);
    CHECK(contains(error.what(), "no reply in time"));
    CHECK(eventually([this] { return redis.llen("q") == 2000; }));
    CHECK(producer.push({"next"}) == 2001);
}

TEST_CASE("replies are read while a large LPUSH is being sent: neither side waits for the other") {
    const BareServer server({[](int fd) {
        std::string rest;
        BareServer::read_marked(fd, rest);
        // Longer than any socket's buffer: nothing more is read before the peer has taken it.
        BareServer::write(fd, "-ERR " + std::string(8 << 20, 'x') + "\r\n");
        BareServer::read_marked(fd, rest);
        BareServer::write(fd, ":1\r\n");
    }});
    Producer<Raw> producer{server.uri(), "q"};
    const auto error = failure_of<ReplyError>(producer, large_messages(2));
    CHECK(error.code() == "ERR");
    CHECK(std::string_view(error.what()).size() > 8 << 20);
    CHECK(contains(error.what(), "the 1 messages behind those refused were pushed"));
}

TEST_CASE("an LPUSH that is refused before it has been read is not sent on: the next one goes by a "
          "new connection") {
    const BareServer server({[](int fd) {
                                 std::array<char, 10> some;
                                 ::recv(fd, some.data(), some.size(), 0);
                                 BareServer::write(fd, "-ERR Protocol error: no\r\n");
                             },
                             [](int fd) {
                                 std::string rest;
                                 BareServer::read_marked(fd, rest);
                                 BareServer::write(fd, ":17\r\n");
                             }});
    Producer<Raw> producer{server.uri(), "q"};
    CHECK(failure_of<ReplyError>(producer, large_messages(3)).pushed() == 0);
    CHECK(producer.push({"next!"}) == 17);
}

TEST_CASE("a command that is answered before it has gone out whole ends its connection") {
    const BareServer server({[](int fd) {
                                 std::array<char, 10> some;
                                 ::recv(fd, some.data(), some.size(), 0);
                                 BareServer::write(fd, ":16\r\n");
                             },
                             [](int fd) {
                                 std::string rest;
                                 BareServer::read_marked(fd, rest);
                                 BareServer::write(fd, ":17\r\n");
                             }});
    orizuru::Connection connection{server.uri()};
    CHECK(connection.command("", "SET", "key", std::string(3 << 20, 'x')).integer == 16);
    CHECK(connection.command("", "GET", "next!").integer == 17);
}

TEST_CASE_FIXTURE(Pushing, "large messages go in their order") {
    std::vector<Raw> messages;
    Texts texts;
    for (std::size_t i = 0; i < 60; ++i) {
        texts.push_back(std::string(i % 3 == 0 ? 3 << 20 : i * 1000, static_cast<char>('0' + i)));
        messages.push_back({texts.back()});
    }
    CHECK(producer.push_all(messages) == 60);
    CHECK(waiting() == texts);
}

} // namespace push_all_test
