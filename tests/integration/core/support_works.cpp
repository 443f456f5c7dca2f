// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Tests the support that other tests use.

#include "support/child.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"
#include "support/proxy.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace support_works_test {

using orizuru::test::Answer;
using orizuru::test::as_expected;
using orizuru::test::connect_unix;
using orizuru::test::Elapsed;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::FaultOptions;
using orizuru::test::FaultReport;
using orizuru::test::Fd;
using orizuru::test::holds_within;
using orizuru::test::Proxy;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::status_of_child;
using orizuru::test::Stopwatch;
using orizuru::test::to_resp;
using Cut = Proxy::Cut;
using Direction = Proxy::Direction;
using Texts = std::vector<std::string>;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A plain socket: the test sends and receives its bytes.
class RawClient {
  public:
    explicit RawClient(const std::string& path) : m_fd(connect_unix(path)) {}

    void send(std::string_view bytes) {
        REQUIRE(::send(m_fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }

    /// Reads until the connection ends, the count is reached, or nothing has come for a while.
    std::string receive(std::size_t count, milliseconds patience = milliseconds{10'000}) {
        std::string bytes;
        while (bytes.size() < count) {
            pollfd state{m_fd.get(), POLLIN, 0};
            std::array<char, 4096> buffer;
            if (::poll(&state, 1, static_cast<int>(patience.count())) == 0) {
                m_end = "silence";
                break;
            }
            const auto size = ::recv(m_fd.get(), buffer.data(), buffer.size(), 0);
            if (size <= 0) {
                m_end = size == 0 ? "fin" : errno == ECONNRESET ? "rst" : "error";
                break;
            }
            bytes.append(buffer.data(), static_cast<std::size_t>(size));
        }
        return bytes;
    }

    /// "fin", "rst" or "silence", after a receive that did not get its count.
    [[nodiscard]] const std::string& end() const { return m_end; }

  private:
    Fd m_fd;
    std::string m_end;
};

bool is_running(pid_t pid) { return ::kill(pid, 0) == 0; }

struct CutAndEnd {
    Cut cut;
    std::string end; ///< RawClient's name for it
};
const std::array all_cuts{CutAndEnd{Cut::fin, "fin"}, CutAndEnd{Cut::rst, "rst"},
                          CutAndEnd{Cut::silence, "silence"}};

const std::string ping = to_resp({"PING"});
const std::string pong = "+PONG\r\n";

TEST_CASE("a condition that never holds is given up at the deadline") {
    const auto start = steady_clock::now();
    CHECK_FALSE(eventually([] { return false; }, milliseconds{20}));
    CHECK(steady_clock::now() - start >= milliseconds{20});
}

TEST_CASE("a bound from above does not count the time by which the machine was late") {
    const Elapsed elapsed(milliseconds(600), milliseconds(150));
    CHECK(elapsed < milliseconds(451));
    CHECK_FALSE(elapsed < milliseconds(450));
    CHECK(elapsed <= milliseconds(450));
    CHECK(elapsed >= milliseconds(600));
    CHECK_FALSE(elapsed > milliseconds(600));
}

TEST_CASE("what holds in time is told from what holds later or never") {
    CHECK(holds_within(milliseconds(0), [] { return true; }));
    CHECK_FALSE(holds_within(milliseconds(20), [] { return false; }));
    const Stopwatch stopwatch;
    CHECK(holds_within(milliseconds(10'000),
                       [&] { return stopwatch.elapsed() >= milliseconds(30); }));
}

TEST_CASE("a storm goes on until each kind of fault has come, if any comes at all") {
    std::string program = "storm";
    std::array arguments{program.data()};
    const FaultOptions options(1, arguments.data(), {});
    FaultReport report(options);
    const std::vector<std::string_view> kinds{"kill", "pause"};
    const auto all_came = [&] { return report.have_come(kinds); };
    CHECK(report.wants_more(4, 5, all_came));
    CHECK(report.wants_more(5, 5, all_came));
    report.came("kill", 2);
    report.came("pause", 0);
    CHECK(report.wants_more(99, 5, all_came));
    CHECK_FALSE(report.wants_more(100, 5, all_came));
    CHECK(report.finish(kinds) == EXIT_FAILURE);
    report.came("pause");
    CHECK_FALSE(report.wants_more(5, 5, all_came));
    CHECK(report.wants_more(4, 5, all_came));
    CHECK(report.finish(kinds) == EXIT_SUCCESS);
}

TEST_CASE("a stopwatch notices that its process did not run") {
    const int status = status_of_child([] {
        const pid_t self = ::getpid();
        const Stopwatch stopwatch;
        if (::fork() == 0) {
            // More than once: on a busy machine the first may come before the stop.
            do {
                std::this_thread::sleep_for(milliseconds(300));
            } while (::kill(self, SIGCONT) == 0);
            ::_exit(0);
        }
        ::raise(SIGSTOP);
        const Elapsed elapsed = stopwatch.elapsed();
        return elapsed < milliseconds(200) && elapsed >= milliseconds(290) ? as_expected : 9;
    });
    CHECK(status == as_expected);
}

TEST_CASE("a private redis-server answers and leaves nothing behind") {
    std::string folder;
    pid_t pid = 0;
    {
        const RedisServer server;
        RedisClient redis{server.uri()};
        CHECK(redis.command({"PING"}).text == "PONG");
        CHECK(redis.command({"CONFIG", "GET", "port"}).elements.at(1).text == "0");
        folder = std::filesystem::path(server.socket_path()).parent_path();
        pid = server.pid();
        CHECK(is_running(pid));
    }
    CHECK_FALSE(std::filesystem::exists(folder));
    CHECK_FALSE(is_running(pid));
}

TEST_CASE("a redis-server that cannot start says why") {
    std::string reason;
    try {
        const RedisServer server{{"--nonsense", "1"}};
    } catch (const std::runtime_error& error) {
        reason = error.what();
    }
    CHECK(reason.find("Bad directive") != std::string::npos);
}

TEST_CASE("a redis-server on TCP has a port of its own and keeps it over a restart") {
    RedisServer first{{}, RedisServer::Listen::tcp};
    const RedisServer second{{}, RedisServer::Listen::tcp};
    CHECK(first.uri() != second.uri());
    CHECK(first.uri().starts_with("redis://127.0.0.1:"));
    RedisClient redis{first.uri()};
    redis.set("key", "value");
    first.restart();
    CHECK_FALSE(redis.exists("key"));
}

TEST_CASE("the checker's helpers report the contents of Redis") {
    const RedisServer server;
    RedisClient redis{server.uri()};
    CHECK(redis.lpush("q", "a", "b") == 2);
    CHECK(redis.lpush("q", Texts{"c"}) == 3);
    CHECK(redis.llen("q") == 3);
    CHECK(redis.lrange("q") == Texts{"c", "b", "a"});
    CHECK(redis.lrange("q", 0, 0) == Texts{"c"});
    CHECK(redis.type("q") == "list");
    redis.set("binary", std::string("\0\r\n", 3));
    CHECK(redis.command({"GET", "binary"}).text == std::string("\0\r\n", 3));
    CHECK(redis.command({"GET", "nothing"}).kind == Answer::Kind::nil);
    CHECK(redis.keys() == Texts{"binary", "q"});
    CHECK(redis.keys("q*") == Texts{"q"});
    CHECK(redis.del("q") == 1);
    CHECK_FALSE(redis.exists("q"));
    redis.flushall();
    CHECK(redis.keys().empty());
}

TEST_CASE("an error reply is thrown with the command and the server's text unless asked for") {
    const RedisServer server;
    RedisClient redis{server.uri()};
    redis.set("key", "value");
    const Answer answer = redis.try_command({"LLEN", "key"});
    CHECK(answer.is_error());
    CHECK(answer.text.starts_with("WRONGTYPE"));
    std::string message;
    try {
        redis.llen("key");
    } catch (const std::runtime_error& error) {
        message = error.what();
    }
    CHECK(message == "LLEN key at " + server.uri() + ": " + answer.text);
    CHECK(redis.exists("key"));
}

TEST_CASE("a killed redis-server comes back on the same socket") {
    SUBCASE("empty without persistence") {
        RedisServer server;
        RedisClient redis{server.uri()};
        redis.set("key", "value");
        server.kill();
        CHECK_THROWS_AS(redis.exists("key"), std::runtime_error);
        server.restart();
        CHECK_FALSE(redis.exists("key"));
    }
    SUBCASE("with its data when it was started with appendonly") {
        RedisServer server{{"--appendonly", "yes", "--appendfsync", "always"}};
        RedisClient redis{server.uri()};
        redis.set("key", "value");
        server.kill();
        server.restart();
        CHECK(redis.command({"GET", "key"}).text == "value");
        server.stop();
        server.restart();
        CHECK(redis.command({"GET", "key"}).text == "value");
    }
}

TEST_CASE("a redis-server restarted by a thread outlives that thread") {
    RedisServer server;
    std::thread([&] { server.restart(); }).join();
    CHECK(RedisClient{server.uri()}.command({"PING"}).text == "PONG");
}

TEST_CASE("a paused redis-server accepts and says nothing until it is resumed") {
    RedisServer server;
    server.pause();
    RawClient client{server.socket_path()};
    client.send(ping);
    CHECK(client.receive(1, milliseconds{50}).empty());
    CHECK(client.end() == "silence");
    server.resume();
    CHECK(client.receive(pong.size()) == pong);
    server.kill();
    CHECK_THROWS_AS(server.pause(), std::logic_error);
}

TEST_CASE("a test process that is killed takes its redis-server and its folder along") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const Fd reader{ends[0]};
    const Fd writer{ends[1]};
    const pid_t child = ::fork();
    if (child == 0) {
        const RedisServer server;
        const std::string& path = server.socket_path();
        if (::write(writer.get(), path.data(), path.size()) < 0) {
            ::_exit(1);
        }
        ::pause();
    }
    std::array<char, 256> buffer;
    const auto size = ::read(reader.get(), buffer.data(), buffer.size());
    REQUIRE(size > 0);
    const std::filesystem::path path = std::string(buffer.data(), static_cast<std::size_t>(size));
    RawClient client{path};
    client.send(ping);
    CHECK(client.receive(pong.size()) == pong);

    ::kill(child, SIGKILL);
    orizuru::test::wait_for(child);
    CHECK(client.receive(1).empty());
    CHECK(client.end() == "fin");
    CHECK(eventually([&] { return !std::filesystem::exists(path.parent_path()); }));
}

TEST_CASE("a proxy passes commands and replies unchanged, and counts them") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    RawClient client{proxy.socket_path()};
    client.send(ping);
    CHECK(client.receive(pong.size()) == pong);
    CHECK(proxy.accepted() == 1);
    CHECK(proxy.bytes(0, Direction::to_server) == ping.size());
    CHECK(proxy.bytes(0, Direction::to_client) == pong.size());
    CHECK_THROWS_AS(std::ignore = proxy.bytes(1, Direction::to_client), std::out_of_range);

    RedisClient redis{proxy.uri()};
    const std::string large(8'000'000, 'x');
    for (int round = 0; round < 3; ++round) {
        redis.set("large", large);
        CHECK(redis.command({"GET", "large"}).text == large);
        CHECK(redis.command({"PING"}).text == "PONG");
    }
    CHECK(proxy.accepted() == 2);
    CHECK(proxy.cuts() == 0);
}

TEST_CASE("a reply is cut after exactly as many bytes as asked for") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    std::size_t connection = 0;
    for (const auto& [cut, end] : all_cuts) {
        for (std::size_t bytes = 0; bytes <= pong.size(); ++bytes) {
            CAPTURE(bytes);
            proxy.cut_after(Direction::to_client, bytes, cut);
            RawClient client{proxy.socket_path()};
            client.send(ping);
            CHECK(client.receive(bytes) == pong.substr(0, bytes));
            const milliseconds patience{cut == Cut::silence ? 10 : 10'000};
            CHECK(client.receive(1, patience).empty());
            CHECK(client.end() == end);
            // The proxy's threads may be late.
            CHECK(eventually([&] { return proxy.cuts() == connection + 1; }));
            CHECK(proxy.bytes(connection, Direction::to_server) == ping.size());
            CHECK(proxy.bytes(connection, Direction::to_client) == bytes);
            ++connection;
        }
    }
}

TEST_CASE("a command is cut after exactly as many bytes as asked for") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    RedisClient redis{server.uri()};
    const std::string push = to_resp({"LPUSH", "q", "a"});
    for (const auto& [cut, end] : all_cuts) {
        for (std::size_t bytes = 0; bytes <= push.size(); ++bytes) {
            CAPTURE(bytes);
            redis.flushall();
            const std::size_t connection = proxy.accepted();
            proxy.cut_after(Direction::to_server, bytes, cut);
            RawClient client{proxy.socket_path()};
            client.send(push);
            CHECK(eventually([&] { return proxy.was_cut(connection, Direction::to_server); }));
            CHECK(client.receive(1, milliseconds{cut == Cut::silence ? 10 : 10'000}).empty());
            CHECK(client.end() == end);
            CHECK(proxy.bytes(connection, Direction::to_server) == bytes);
            CHECK(proxy.bytes(connection, Direction::to_client) == 0);
            if (bytes == push.size()) {
                CHECK(eventually([&] { return redis.llen("q") == 1; }));
            } else {
                CHECK(redis.llen("q") == 0);
            }
        }
    }
}

TEST_CASE(
    "the bytes after a certain one can be delayed in either direction, and all of them arrive") {
    const RedisServer server;
    const milliseconds delay{50};
    Proxy proxy{server.socket_path(), delay};
    for (const Direction direction : {Direction::to_server, Direction::to_client}) {
        for (std::size_t bytes = 0; bytes < pong.size(); ++bytes) {
            CAPTURE(bytes);
            const std::size_t connection = proxy.accepted();
            proxy.cut_after(direction, bytes, Cut::delay);
            RawClient client{proxy.socket_path()};
            const auto start = steady_clock::now();
            client.send(ping);
            CHECK(client.receive(pong.size()) == pong);
            CHECK(steady_clock::now() - start >= delay);
            CHECK(proxy.was_cut(connection, direction));
            client.send(ping);
            CHECK(client.receive(pong.size()) == pong);
        }
    }
}

TEST_CASE("a delayed command reaches the server though its client has gone") {
    const RedisServer server;
    Proxy proxy{server.socket_path(), milliseconds{20}};
    RedisClient redis{server.uri()};
    const std::string push = to_resp({"LPUSH", "q", "a"});
    for (std::size_t i = 0; i < push.size(); ++i) {
        proxy.cut_after(Direction::to_server, i, Cut::delay, i);
        RawClient{proxy.socket_path()}.send(push);
    }
    CHECK(eventually([&] { return !proxy.in_use(); }));
    CHECK(proxy.cuts() == push.size());
    CHECK(redis.llen("q") == static_cast<std::int64_t>(push.size()));
}

TEST_CASE("a cut can be followed by another on the connection opened next") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    proxy.cut_after(Direction::to_client, 1, Cut::fin);
    proxy.then_cut_next_after(Direction::to_client, 2, Cut::rst);
    for (const auto& [arrives, end] : {std::pair{"+", "fin"}, std::pair{"+P", "rst"}}) {
        RawClient client{proxy.socket_path()};
        client.send(ping);
        CHECK(client.receive(pong.size()) == arrives);
        CHECK(client.end() == end);
    }
    RawClient third{proxy.socket_path()};
    third.send(ping);
    CHECK(third.receive(pong.size()) == pong);
}

TEST_CASE("a cut that was cancelled does not come") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    proxy.cut_after(Direction::to_client, 1, Cut::fin);
    proxy.cancel_cuts();
    RawClient client{proxy.socket_path()};
    client.send(ping);
    CHECK(client.receive(pong.size()) == pong);
    CHECK_FALSE(proxy.was_cut(0, Direction::to_client));
}

TEST_CASE("an open connection can be told to end later, by its number") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    RawClient first{proxy.socket_path()};
    RawClient second{proxy.socket_path()};
    first.send(ping);
    second.send(ping);
    CHECK(first.receive(pong.size()) == pong);
    CHECK(second.receive(pong.size()) == pong);
    proxy.cut_after(Direction::to_client, proxy.bytes(0, Direction::to_client) + 2, Cut::rst, 0);
    first.send(ping);
    second.send(ping);
    CHECK(first.receive(pong.size()) == "+P");
    CHECK(first.end() == "rst");
    CHECK(second.receive(pong.size()) == pong);
}

TEST_CASE("a frozen proxy passes nothing until it is thawed") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    RawClient client{proxy.socket_path()};
    client.send(ping);
    CHECK(client.receive(pong.size()) == pong);
    proxy.freeze();
    client.send(ping);
    RawClient late{proxy.socket_path()};
    late.send(ping);
    CHECK(eventually([&] { return proxy.accepted() == 2; }));
    CHECK(client.receive(1, milliseconds{20}).empty());
    CHECK(client.end() == "silence");
    CHECK(proxy.bytes(0, Direction::to_server) == ping.size());
    proxy.thaw();
    CHECK(client.receive(pong.size()) == pong);
    CHECK(late.receive(pong.size()) == pong);
}

TEST_CASE("a waiter whose end the proxy swallows stays blocked in Redis") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    RedisClient redis{server.uri()};
    const auto blocked_is = [&](const std::string& count) {
        return eventually([&] {
            const std::string info = redis.command({"INFO", "clients"}).text;
            return info.find("blocked_clients:" + count + "\r\n") != std::string::npos;
        });
    };
    const auto wait_and_leave = [&] {
        RawClient waiter{proxy.socket_path()};
        waiter.send(to_resp({"BLMOVE", "q", "held", "RIGHT", "LEFT", "0"}));
        REQUIRE(blocked_is("1"));
    };
    const auto waiters = [&] {
        return redis.command({"CLIENT", "LIST"}).text.find("cmd=blmove") != std::string::npos;
    };

    wait_and_leave();
    REQUIRE(blocked_is("0"));
    CHECK_FALSE(waiters());

    proxy.swallow_fin();
    wait_and_leave();
    // A connection that is not swallowed would be gone before one opened after it is answered.
    CHECK(RedisClient{proxy.uri()}.command({"PING"}).text == "PONG");
    CHECK(waiters());
    redis.lpush("q", "a");
    CHECK(redis.lrange("held") == Texts{"a"});

    proxy.break_all();
    CHECK(eventually([&] { return !waiters(); }));
}

TEST_CASE("a proxy loses its clients, and Redis goes on waiting for them") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    RedisClient redis{server.uri()};
    RawClient waiter{proxy.socket_path()};
    waiter.send(to_resp({"BLMOVE", "q", "held", "RIGHT", "LEFT", "0"}));
    REQUIRE(eventually([&] {
        const std::string info = redis.command({"INFO", "clients"}).text;
        return info.find("blocked_clients:1\r\n") != std::string::npos;
    }));

    proxy.lose_clients();
    CHECK(waiter.receive(1).empty());
    CHECK(waiter.end() == "fin");
    CHECK(RedisClient{proxy.uri()}.command({"PING"}).text == "PONG");
    redis.lpush("q", "a");
    CHECK(redis.lrange("held") == Texts{"a"});
}

TEST_CASE("a client that writes and leaves at once has written") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    RedisClient redis{server.uri()};
    for (int i = 1; i <= 100; ++i) {
        RawClient{proxy.socket_path()}.send(to_resp({"LPUSH", "q", "a"}));
    }
    CHECK(eventually([&] { return redis.llen("q") == 100; }));
}

TEST_CASE("a proxy breaks all its connections at once") {
    const RedisServer server;
    Proxy proxy{server.socket_path()};
    std::vector<RawClient> clients;
    for (int i = 0; i < 3; ++i) {
        clients.emplace_back(proxy.socket_path()).send(ping);
        CHECK(clients.back().receive(pong.size()) == pong);
    }
    SUBCASE("orderly") {
        proxy.break_all();
        for (RawClient& client : clients) {
            CHECK(client.receive(1).empty());
            CHECK(client.end() == "fin");
        }
    }
    SUBCASE("with a reset") {
        proxy.break_all(Cut::rst);
        for (RawClient& client : clients) {
            CHECK(client.receive(1).empty());
            CHECK(client.end() == "rst");
        }
    }
}

TEST_CASE("a proxy shows the death of the server, and serves its successor") {
    RedisServer server;
    Proxy proxy{server.socket_path()};
    RawClient client{proxy.socket_path()};
    client.send(ping);
    CHECK(client.receive(pong.size()) == pong);
    server.kill();
    CHECK(client.receive(1).empty());
    CHECK(client.end() == "fin");
    RawClient refused{proxy.socket_path()};
    CHECK(refused.receive(1).empty());
    CHECK(refused.end() == "fin");
    server.restart();
    RedisClient redis{proxy.uri()};
    CHECK(redis.command({"PING"}).text == "PONG");
}

TEST_CASE("a fake server answers what its handler says") {
    const FakeServer fake{[](const Texts& argv) -> std::optional<std::string> {
        if (argv == Texts{"GET", std::string("\0\r\n", 3)}) {
            return "$2\r\nhi\r\n";
        }
        if (argv.at(0) == "QUIET") {
            return "";
        }
        if (argv.at(0) == "GARBAGE") {
            return "?!";
        }
        return std::nullopt;
    }};
    RawClient client{fake.socket_path()};
    // Sends two commands and a half, then the rest.
    client.send(to_resp({"GET", std::string("\0\r\n", 3)}) + to_resp({"QUIET"}) +
                "*1\r\n$7\r\nGAR");
    CHECK(client.receive(8) == "$2\r\nhi\r\n");
    client.send("BAGE\r\n" + to_resp({"BYE"}));
    CHECK(client.receive(100) == "?!");
    CHECK(client.end() == "fin");

    RawClient stranger{fake.socket_path()};
    stranger.send("hello\r\n");
    CHECK(stranger.receive(1).empty());
    CHECK(stranger.end() == "fin");
}

TEST_CASE("a fake server passes commands to its backend and keeps the replies in order") {
    const RedisServer server;
    FakeServer fake{[](const Texts& argv) -> std::optional<std::string> {
                        return argv.at(0) == "MINE" ? "+mine\r\n" : FakeServer::pass;
                    },
                    server.socket_path()};
    RawClient client{fake.socket_path()};
    client.send(to_resp({"LPUSH", "q", "a", "b"}) + to_resp({"MINE"}) +
                to_resp({"LRANGE", "q", "0", "-1"}) +
                to_resp({"EVAL", "return {{1,'x'},{}}", "0"}) + to_resp({"MINE"}));
    const std::string replies = ":2\r\n+mine\r\n*2\r\n$1\r\nb\r\n$1\r\na\r\n"
                                "*2\r\n*2\r\n:1\r\n$1\r\nx\r\n*0\r\n+mine\r\n";
    CHECK(client.receive(replies.size()) == replies);

    RedisClient redis{fake.uri()};
    const std::string large(8'000'000, 'x');
    redis.set("large", large);
    CHECK(redis.command({"GET", "large"}).text == large);

    // A connection that waits in the backend does not delay another.
    client.send(to_resp({"BLPOP", "empty", "0"}));
    CHECK(redis.lpush("empty", "now") == 1);
    const std::string popped = "*2\r\n$5\r\nempty\r\n$3\r\nnow\r\n";
    CHECK(client.receive(popped.size()) == popped);
}

} // namespace support_works_test
