// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The HTTP server of a Dashboard serves browsers, whatever other clients do meanwhile.

#include "integration/core/queue_fixture.hpp"
#include "support/child.hpp"
#include "support/posix.hpp"

#include <orizuru/ops/dashboard.hpp>
#include <orizuru/ops/serve.hpp>

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace serve_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Dashboard;
using orizuru::serve;
using orizuru::ServeOptions;

constexpr const char* token = "a.token-of_the.tests";

/// Serves in a thread of its own.
class Serving {
  public:
    explicit Serving(std::string address, ServeOptions options = {}, Texts hosts = {})
        : m_dashboard(server().uri(), {.token = token, .hosts = std::move(hosts)}) {
        options.on_listening = [this](const std::string& where) { m_listening.set_value(where); };
        m_thread = std::jthread(
            [this, address = std::move(address), options](const std::stop_token& stop) {
                try {
                    serve(m_dashboard, address, stop, options);
                } catch (...) {
                    m_listening.set_exception(std::current_exception());
                }
            });
        m_origin = m_listening.get_future().get();
    }
    [[nodiscard]] const std::string& origin() const noexcept { return m_origin; }
    [[nodiscard]] std::uint16_t port() const {
        return static_cast<std::uint16_t>(std::stoi(m_origin.substr(m_origin.rfind(':') + 1)));
    }
    void stop() { m_thread = {}; }

  private:
    Dashboard m_dashboard;
    std::promise<std::string> m_listening;
    std::string m_origin;
    std::jthread m_thread;
};

void send_all(const Fd& socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return; // the other side has closed it
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}
/// All that comes until the connection ends.
std::string rest_of(const Fd& socket) {
    std::string all;
    std::array<char, 4096> some{};
    pollfd ready{.fd = socket.get(), .events = POLLIN, .revents = 0};
    while (::poll(&ready, 1, 10'000) == 1) {
        const auto size = ::recv(socket.get(), some.data(), some.size(), 0);
        if (size <= 0) {
            return all;
        }
        all.append(some.data(), static_cast<std::size_t>(size));
    }
    FAIL_CHECK("the connection has not ended within 10 s");
    return all;
}
std::string answer(const Fd& socket, const std::string& bytes) {
    send_all(socket, bytes);
    return rest_of(socket);
}
std::string head(const std::string& line, const std::string& more = "") {
    return line + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token + "\r\n" + more +
           "\r\n";
}
bool is_ok(const std::string& response) { return response.starts_with("HTTP/1.1 200 OK\r\n"); }

TEST_CASE("the page, its data and its steps come over TCP and over a Unix socket") {
    const TempDir folder;
    const std::string path = folder.path() + "/web.sock";
    Serving tcp("127.0.0.1:0");
    Serving local("unix://" + path);
    CHECK(tcp.origin() == "http://127.0.0.1:" + std::to_string(tcp.port()));
    CHECK(local.origin() == "http://localhost");
    struct stat file {};
    REQUIRE(::stat(path.c_str(), &file) == 0);
    CHECK((file.st_mode & 0777U) == 0600U);
    for (const bool over_tcp : {true, false}) {
        const auto ask = [&](const std::string& bytes) {
            return answer(over_tcp ? connect_tcp(tcp.port()) : connect_unix(path), bytes);
        };
        const std::string page = ask(head("GET /"));
        CHECK(is_ok(page));
        CHECK(contains(page, "<!doctype html>"));
        CHECK(contains(page, "Content-Security-Policy: default-src 'none'"));
        CHECK(contains(page, "Connection: close"));
        CHECK(contains(ask(head("GET /api/queues?x=1")), "\"queues\":"));
        CHECK(is_ok(ask(head("POST /api/pause?queue=served",
                             "X-Orizuru: 1\r\nSec-Fetch-Site: same-origin\r\n"))));
        RedisClient redis(server().uri());
        CHECK(redis.del("orizuru:{served}:paused") == 1);
        CHECK(contains(ask("GET /api/queues HTTP/1.1\r\nHost: localhost\r\n\r\n"), "401"));
        CHECK(contains(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "403"));
    }
    local.stop();
    CHECK(::stat(path.c_str(), &file) != 0);
}

TEST_CASE("what is no request of ours is refused, and all others are served") {
    Serving serving("127.0.0.1:0");
    const auto ask = [&](const std::string& bytes) {
        return answer(connect_tcp(serving.port()), bytes);
    };
    CHECK(contains(ask(head("POST /api/pause?queue=q", "Content-Length: 5\r\n") + "hello"), "413"));
    CHECK(
        contains(ask(head("POST /", "Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n"), "413"));
    CHECK(contains(ask(head("POST /", "Content-Length: 99999999999\r\n")), "413"));
    const std::string large(9000, 'x');
    CHECK(contains(ask(head("GET /", "X: " + large + "\r\n")), "431"));
    CHECK(contains(ask("GET /" + large + " HTTP/1.1\r\n\r\n"), "431"));
    CHECK(contains(ask("GET /" + large), "431")); // and no end of line
    CHECK(contains(ask(std::string(300'000, '\n')), "400"));
    CHECK(contains(ask("no HTTP at all\r\n\r\n"), "400"));
    CHECK(contains(ask(std::string("\x16\x03\x01\x02\x00\x01\xff", 7)), "400")); // TLS
    CHECK(contains(ask("GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n"), "400"));
    CHECK(contains(ask("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: x\r\n\r\n"), "403"));
    CHECK(contains(ask("GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), "404"));
    CHECK(contains(ask("GET /api/message?id=%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), "401"));
    // One request for each connection: the second one is nobody's.
    const std::string two = ask(head("GET /") + head("GET /"));
    CHECK(is_ok(two));
    CHECK(two.find("HTTP/1.1", 1) == std::string::npos);
    CHECK(is_ok(ask(head("GET /"))));
}

TEST_CASE("slow clients are ended by the clock, and others are served meanwhile") {
    Serving serving("127.0.0.1:0", {.request_timeout = 300ms});
    const auto begin = std::chrono::steady_clock::now();
    const auto late = [&] { return std::chrono::steady_clock::now() - begin; };
    const std::string bytes = head("GET /");
    const Fd silent = connect_tcp(serving.port());
    std::vector<Fd> dripping;
    for (int i = 0; i < 20; ++i) {
        dripping.push_back(connect_tcp(serving.port()));
    }
    Stopwatch stopwatch;
    std::size_t at = 0;
    const auto ended = [](const Fd& socket) {
        pollfd ready{.fd = socket.get(), .events = POLLIN, .revents = 0};
        return ::poll(&ready, 1, 0) == 1;
    };
    int served = 0;
    while (!ended(dripping.back()) && late() < 10s) {
        for (const Fd& socket : dripping) {
            send_all(socket, bytes.substr(at % 40, 1)); // of one line that does not end
        }
        ++at;
        served += is_ok(answer(connect_tcp(serving.port()), bytes)) ? 1 : 0;
        std::this_thread::sleep_for(5ms);
    }
    CHECK(stopwatch.elapsed() < 1s);
    CHECK(late() >= 290ms);
    CHECK(served >= 5);
    CHECK(rest_of(silent).empty());
    // One who asks and then does not read the end is ended as well.
    const Fd idle = connect_tcp(serving.port());
    const Stopwatch reading;
    CHECK(is_ok(answer(idle, bytes)));
    CHECK(eventually([&] { return ::send(idle.get(), "x", 1, MSG_NOSIGNAL) < 0; }));
    CHECK(reading.elapsed() < 1s);
}

TEST_CASE("of too many connections the further ones are closed, until there is room") {
    Serving serving("127.0.0.1:0", {.request_timeout = 500ms});
    std::vector<Fd> held;
    for (int i = 0; i < 64; ++i) {
        held.push_back(connect_tcp(serving.port()));
    }
    // They are accepted in their order.
    CHECK_FALSE(is_ok(answer(connect_tcp(serving.port()), head("GET /"))));
    CHECK(is_ok(answer(held.front(), head("GET /"))));
    held.clear();
    CHECK(eventually([&] { return is_ok(answer(connect_tcp(serving.port()), head("GET /"))); }));
}

TEST_CASE("an address is refused when it cannot be, or when others could reach it") {
    const auto refusal = [](const std::string& address, ServeOptions options = {}) {
        return message_of<std::invalid_argument>([&] { const Serving serving(address, options); });
    };
    for (const std::string address :
         {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "::1:80",
          "queues.example:80", "web.sock"}) {
        CAPTURE(address);
        CHECK(contains(refusal(address), "'" + address + "'"));
    }
    CHECK(contains(refusal("/" + std::string(107, 'x')), "107 bytes"));
    CHECK(contains(refusal("0.0.0.0:0"), "expose"));
    CHECK(contains(refusal("[::]:0"), "expose"));
    CHECK(contains(refusal("127.0.0.1:0", {.request_timeout = 1ms}), "request_timeout"));
    CHECK(contains(refusal("127.0.0.1:0", {.connections = 0}), "connections"));
    for (const std::string address : {"0.0.0.0:0", "[::]:0"}) {
        const std::string told = refusal(address, {.expose = true});
        CHECK(contains(told, "DashboardOptions::hosts"));
        CHECK(contains(told, "--host"));
    }
    for (const std::string address : {"redis://:s3cret@host", "redis://:s3cret@host:1",
                                      ":s3cret@host:1", "unix://:s3cret@/x"}) {
        const std::string told = refusal(address);
        CAPTURE(told);
        CHECK_FALSE(contains(told, "s3cret"));
        CHECK(contains(told, "cannot serve at '"));
    }
    CHECK(is_ok(answer(connect_tcp(Serving("localhost:0").port()), head("GET /"))));
}

TEST_CASE("the page goes by the name in its link, and by no other address") {
    const auto status = [](Serving& serving, const std::string& host, const Fd& socket) {
        const std::string told = answer(socket, "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
        CAPTURE(serving.origin());
        REQUIRE(told.size() > 12);
        return told.substr(9, 3);
    };
    const auto connect = [](const Serving& serving) { return connect_tcp(serving.port()); };
    Serving second("127.0.0.2:0");
    const std::string port = ":" + std::to_string(second.port());
    CHECK(second.origin() == "http://127.0.0.2" + port);
    const auto there = [&] {
        Fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        sockaddr_in address = loopback(second.port());
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
        REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                          sizeof address) == 0);
        return socket;
    };
    CHECK(status(second, "127.0.0.2" + port, there()) == "200");
    CHECK(status(second, "127.0.0.3" + port, there()) == "403");
    CHECK(status(second, "evil.example" + port, there()) == "403");
    Serving first("127.0.0.1:0");
    CHECK(status(first, "127.0.0.2", connect(first)) == "403");
    Serving all("0.0.0.0:0", {.expose = true}, {"Queues.example", "other.example"});
    CHECK(all.origin() == "http://Queues.example:" + std::to_string(all.port()));
    CHECK(status(all, "queues.example:" + std::to_string(all.port()), connect(all)) == "200");
    CHECK(status(all, "other.example", connect(all)) == "200");
    CHECK(status(all, "0.0.0.0", connect(all)) == "403");
}

TEST_CASE("an address in use is told, and a socket that nobody serves is replaced") {
    const TempDir folder;
    const std::string path = folder.path() + "/web.sock";
    { const Fd left = listen_unix(path); }
    struct stat file {};
    REQUIRE(::stat(path.c_str(), &file) == 0);
    Serving serving(path);
    CHECK(is_ok(answer(connect_unix(path), head("GET /"))));
    const std::string told = message_of<std::system_error>([&] { const Serving second(path); });
    CHECK(contains(told, path));
    CHECK(contains(told, "in use"));
    CHECK(is_ok(answer(connect_unix(path), head("GET /"))));
    Serving tcp("127.0.0.1:0");
    message_of<std::system_error>(
        [&] { const Serving second("127.0.0.1:" + std::to_string(tcp.port())); });
}

TEST_CASE("a stop is heeded at once, whoever is connected") {
    Serving serving("127.0.0.1:0");
    const Fd silent = connect_tcp(serving.port());
    CHECK(is_ok(answer(connect_tcp(serving.port()), head("GET /"))));
    const Stopwatch stopwatch;
    serving.stop();
    CHECK(stopwatch.elapsed() < 1s);
    CHECK(rest_of(silent).empty());
}

TEST_CASE("what is closed when it serves never becomes a listener or a connection") {
    const std::string redis = server().uri();
    CHECK(status_of_child([&redis] {
              for (const int fd : {0, 1, 2}) {
                  ::close(fd);
              }
              bool closed = true;
              Dashboard dashboard(redis, {.token = token});
              std::stop_source stop;
              serve(dashboard, "127.0.0.1:0", stop.get_token(),
                    {.on_listening = [&](const std::string&) {
                        for (const int fd : {0, 1, 2}) {
                            closed &= ::write(fd, "text", 4) == -1 && errno == EBADF;
                        }
                        stop.request_stop();
                    }});
              return closed ? as_expected : not_as_expected;
          }) == as_expected);
}

} // namespace serve_test
