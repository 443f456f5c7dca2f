// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// All parts of the library work over TLS as they do without it.

#include "integration/core/queue_fixture.hpp"
#include "support/certificates.hpp"
#include "support/child.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/sentinels.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/tls.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace tls_queue_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Connection;
using orizuru::Consumer;
using orizuru::Endpoint;
using orizuru::Producer;
using orizuru::Raw;

/// A redis-server with TLS alone, but for the plain client's Unix socket.
struct TlsFixture {
    RedisServer server = tls_server();
    RedisClient redis{"unix://" + server.socket_path()};
    Endpoint endpoint = orizuru::tls_endpoint(server.uri() + Certificates::made().trusting());

    /// The connections over TLS.
    std::vector<std::string> clients() {
        std::vector<std::string> ids;
        std::istringstream lines(redis.command({"CLIENT", "LIST", "TYPE", "NORMAL"}).text);
        for (std::string line; std::getline(lines, line);) {
            if (line.find(" laddr=127.0.0.1:") != std::string::npos) {
                ids.push_back(line.substr(3, line.find(' ') - 3));
            }
        }
        return ids;
    }
    void kill_clients() {
        for (const std::string& id : clients()) {
            redis.command({"CLIENT", "KILL", "ID", id});
        }
    }
};

TEST_CASE_FIXTURE(TlsFixture, "a message is pushed, handed out, rejected, collected and acked") {
    Producer<Raw> producer(endpoint, "q");
    CHECK(producer.push(Raw{"one"}) == 1);
    Consumer<Raw> consumer(endpoint, "q");
    CHECK(consumer.next(patience).value().reject());
    CHECK(orizuru::GarbageCollector(endpoint, "q", {.grace = 0ms}).collect().unacked == 1);
    auto again = consumer.next(patience);
    REQUIRE(again);
    CHECK((*again)->bytes == "one");
    CHECK(again->ack());
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(TlsFixture, "messages of many records pass whole, in batches and in order") {
    std::vector<Raw> sent;
    for (int i = 0; i < 300; ++i) {
        sent.push_back({std::string(static_cast<std::size_t>(i) * 800, static_cast<char>(i))});
    }
    sent.push_back({std::string(std::size_t{12} << 20, 'x')});
    Producer<Raw> producer(endpoint, "q");
    producer.push_all(sent);
    Consumer<Raw> consumer(endpoint, "q", {.prefetch = 50, .ack = orizuru::AckMode::deferred});
    for (const Raw& raw : sent) {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK((*guard)->bytes == raw.bytes);
        CHECK(guard->ack());
    }
    CHECK(consumer.flush() == 0);
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(TlsFixture, "a consumer that waits gets the next message, and hears a stop") {
    Consumer<Raw> consumer(endpoint, "q");
    std::jthread pusher([&] {
        CHECK(eventually([&] {
            return redis.command({"CLIENT", "LIST"}).text.find("cmd=blmove") != std::string::npos;
        }));
        redis.command({"LPUSH", "q", "late"});
    });
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK((*guard)->bytes == "late");
    CHECK(guard->ack());
    pusher.join(); // the plain client is one thread's at a time

    std::stop_source stop;
    std::jthread stopper([&] {
        CHECK(eventually([&] {
            return redis.command({"CLIENT", "LIST"}).text.find("cmd=blmove") != std::string::npos;
        }));
        stop.request_stop();
    });
    const Stopwatch watch;
    CHECK_FALSE(consumer.next(stop.get_token()));
    CHECK(watch.elapsed() < 5s);
}

TEST_CASE_FIXTURE(TlsFixture, "a message is kept beyond the lease, by heartbeats") {
    redis.command({"LPUSH", "q", "kept"});
    Consumer<Raw> consumer(endpoint, "q", {.lease = 300ms});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    orizuru::GarbageCollector collector(endpoint, "q", {.grace = 0ms});
    const Stopwatch watch;
    while (watch.elapsed() < 900ms) {
        CHECK(collector.collect().consumers == 0);
        std::this_thread::sleep_for(50ms);
    }
    CHECK(guard->ack());
}

TEST_CASE_FIXTURE(TlsFixture, "a connection stays, though the server sends tickets of its own") {
    Connection connection(endpoint);
    const auto id = connection.command("", "CLIENT", "ID").integer;
    for (int i = 0; i < 10; ++i) {
        CHECK(connection.command("", "CLIENT", "ID").integer == id);
    }
}

TEST_CASE_FIXTURE(TlsFixture, "connections that the server ends are made anew") {
    Producer<Raw> producer(endpoint, "q");
    producer.push(Raw{"1"});
    Consumer<Raw> consumer(endpoint, "q");
    auto first = consumer.next(patience);
    REQUIRE(first);
    kill_clients();
    producer.push(Raw{"2"}); // the end was seen before anything was sent: no error, no doubt
    CHECK(first->ack());
    auto second = consumer.next(patience);
    REQUIRE(second);
    CHECK((*second)->bytes == "2");
    CHECK(second->ack());
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(TlsFixture, "a server that goes and comes is waited for") {
    Producer<Raw> producer(endpoint, "q");
    Consumer<Raw> consumer(endpoint, "q");
    server.kill();
    for (int i = 0; i < 3; ++i) {
        CHECK_THROWS_AS(producer.push(Raw{std::string(100'000, 'x')}), orizuru::ConnectionError);
    }
    server.restart();
    producer.push(Raw{"back"});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK((*guard)->bytes == "back");
    CHECK(guard->ack());
}

TEST_CASE(
    "a consumer whose server comes back with a wrong certificate is told, and loses nothing") {
    const Certificates& files = Certificates::made();
    const TempDir folder;
    const auto use = [&](const std::string& name) {
        for (const std::string end : {".pem", ".key"}) {
            std::filesystem::copy_file(files.path(name + end), folder.path() + "/server" + end,
                                       std::filesystem::copy_options::overwrite_existing);
        }
    };
    use("right");
    RedisServer server({"--tls-cert-file", folder.path() + "/server.pem", "--tls-key-file",
                        folder.path() + "/server.key", "--tls-ca-cert-file", files.path("ca.pem"),
                        "--tls-auth-clients", "no", "--appendonly", "yes", "--appendfsync",
                        "always"},
                       RedisServer::Listen::tls);
    Consumer<Raw> consumer(orizuru::tls_endpoint(server.uri() + files.trusting()), "q");
    RedisClient(server.plain_uri()).lpush("q", "held");
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    server.kill();
    use("elsewhere");
    server.restart();
    CHECK(contains(message_of<orizuru::ReplyError>([&] {
                       const auto deadline = std::chrono::steady_clock::now() + 10s;
                       while (std::chrono::steady_clock::now() < deadline) {
                           static_cast<void>(consumer.next(100ms));
                       }
                   }),
                   "IP address mismatch"));
    server.kill();
    use("right");
    server.restart();
    CHECK(eventually([&] { return guard->ack(); }));
    CHECK(RedisClient(server.plain_uri()).llen("q") == 0);
}

TEST_CASE_FIXTURE(TlsFixture, "a forked child leaves its parent's connections alone") {
    Producer<Raw> producer(endpoint, "q");
    producer.push(Raw{"parent"});
    CHECK(status_of_child([&] {
              try {
                  producer.push(Raw{"child"});
              } catch (const std::logic_error&) {
                  Producer<Raw>(endpoint, "q").push(Raw{"own"});
                  return as_expected;
              }
              return not_as_expected;
          }) == as_expected);
    producer.push(Raw{"parent"});
    CHECK(redis.lrange("q") == std::vector<std::string>{"parent", "own", "parent"});
}

TEST_CASE_FIXTURE(TlsFixture, "sentinels and the master that they name are reached by TLS alone") {
    const Certificates& files = Certificates::made();
    Sentinel sentinel;
    sentinel.start(files.lines_of_server("right") + "sentinel monitor main 127.0.0.1 " +
                       std::to_string(server.port()) + " 1\n",
                   RedisServer::Listen::tls);
    const std::string node = "127.0.0.1:" + std::to_string(sentinel.port()) + "/main";
    REQUIRE(eventually([&] {
        try {
            return RedisClient(sentinel.uri()).command({"PING"}).text == "PONG";
        } catch (const std::runtime_error&) {
            return false;
        }
    }));
    const Endpoint found =
        orizuru::tls_endpoint("rediss+sentinel://" + node + Certificates::made().trusting());
    CHECK(found.address() == "rediss+sentinel://" + node);
    Producer<Raw>(found, "q").push(Raw{"through"});
    CHECK(redis.lrange("q") == std::vector<std::string>{"through"});
    CHECK(contains(message_of<orizuru::ReplyError>(
                       [&] { Connection{orizuru::tls_endpoint("rediss+sentinel://" + node)}; }),
                   "the server's certificate is refused"));
    CHECK_THROWS_AS(Connection{"redis+sentinel://" + node}, orizuru::ConnectionError);
}

TEST_CASE_FIXTURE(TlsFixture, "threads share an endpoint") {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            Producer<Raw> producer(endpoint, "q");
            for (int k = 0; k < 50; ++k) {
                producer.push(Raw{"x"});
            }
        });
    }
    threads.clear();
    CHECK(redis.llen("q") == 400);
}

TEST_CASE_FIXTURE(TlsFixture, "a worker runs jobs of several queues, and those that failed again") {
    std::atomic<int> runs = 0;
    orizuru::Worker worker(endpoint, {.concurrency = 4});
    for (const std::string queue : {"one", "two", "three"}) {
        worker.handle<int>(
            queue,
            [&](int payload) {
                if (runs++ % 5 == 0) {
                    throw std::runtime_error("once more, " + std::to_string(payload));
                }
            },
            {.retry = {.max_attempts = 100, .backoff = orizuru::backoff::fixed(10ms)}});
        orizuru::JobProducer<int> jobs(endpoint, queue);
        for (int i = 0; i < 20; ++i) {
            jobs.push(i);
        }
    }
    std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
    CHECK(eventually([&] { return worker.statistics().succeeded == 60; }));
    running.request_stop();
    running.join();
    CHECK(runs > 60);
    CHECK(redis.keys("one*").empty());
}

TEST_CASE_FIXTURE(TlsFixture, "a connection over TLS leaves closed standard descriptors alone") {
    CHECK(status_of_child([&] {
              for (const int fd : {0, 1, 2}) {
                  ::close(fd);
              }
              Producer<Raw> producer(endpoint, "q");
              bool good = producer.push({"a"}) == 1;
              for (const int fd : {0, 1, 2}) {
                  good &= ::write(fd, "text", 4) == -1 && errno == EBADF;
              }
              return good && producer.push({"b"}) == 2 ? as_expected : not_as_expected;
          }) == as_expected);
}

} // namespace tls_queue_test
