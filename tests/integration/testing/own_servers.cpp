// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/eventually.hpp"

#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/testing/drain.hpp>
#include <orizuru/testing/redis_server.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace own_servers_test {

using namespace std::chrono_literals;
using orizuru::Connection;
using orizuru::ConnectionError;
using orizuru::Consumer;
using orizuru::JobProducer;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::SignalHandling;
using orizuru::Worker;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::testing::drain;
using orizuru::testing::RedisServer;

template <class Error, class Action>
std::string error_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

bool answers(const std::string& uri) {
    try {
        Connection(orizuru::Endpoint(uri)).command("", "PING");
        return true;
    } catch (const ConnectionError&) {
        return false;
    }
}

WorkerOptions silent() {
    return {.concurrency = 2,
            .signal_handling = SignalHandling::none,
            .on_event = [](const orizuru::WorkerEvent&) {}};
}

orizuru::QueueOptions hasty() {
    orizuru::QueueOptions options;
    options.retry.max_attempts = 3;
    options.retry.backoff = [](auto...) { return 1ms; };
    return options;
}

TEST_CASE(
    "a server of a test's own answers until it is killed, and is empty when it starts again") {
    RedisServer server;
    const RedisServer other;
    Producer<Raw>(server.endpoint(), "q").push({"a"});
    CHECK(Producer<Raw>(server.uri(), "q").size() == 1);
    CHECK(Producer<Raw>(other.uri(), "q").size() == 0);
    server.kill();
    server.kill();
    CHECK_FALSE(answers(server.uri()));
    server.restart();
    CHECK(Producer<Raw>(server.uri(), "q").size() == 0);
    server.restart();
    CHECK(answers(server.uri()));
}

TEST_CASE("with persistence a restart keeps what was pushed") {
    RedisServer server({.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
    Producer<Raw>(server.uri(), "q").push({"a"});
    server.restart();
    CHECK(Producer<Raw>(server.uri(), "q").size() == 1);
}

TEST_CASE("a program that is missing, and one that ends, are told of in words") {
    const std::string missing = error_of<std::system_error>(
        [] { const RedisServer server({.program = "no-such-redis-server"}); });
    CHECK(contains(missing, "no-such-redis-server cannot be started"));
    const std::string refused = error_of<std::runtime_error>([] {
        const RedisServer server({.arguments = {"--no-such-option", "1"}});
    });
    CHECK(contains(refused, "redis-server does not answer"));
    CHECK(contains(refused, "no-such-option"));
}

TEST_CASE("a server ends with its test's process, which is killed, and so does its folder") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const RedisServer server;
        const std::string uri = server.uri() + '\n';
        const auto written = ::write(ends[1], uri.data(), uri.size());
        ::raise(written > 0 ? SIGKILL : SIGABRT);
    }
    std::string uri;
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) {
        uri += c;
    }
    ::waitpid(child, nullptr, 0);
    CHECK(eventually([&] { return !answers(uri); }));
    const auto folder = std::filesystem::path(uri.substr(7)).parent_path();
    CHECK(eventually([&] { return !std::filesystem::exists(folder); }));
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("a worker is drained when all its queue's jobs have ended, those that failed as well") {
    const RedisServer server;
    Worker worker(server.endpoint(), silent());
    std::atomic<int> runs{0};
    worker.handle<Raw>(
        "q",
        [&](const Raw& raw) {
            ++runs;
            if (raw.bytes == "bad") {
                throw std::runtime_error("bad");
            }
        },
        hasty());
    JobProducer<Raw> producer(server.endpoint(), "q");
    for (int i = 0; i < 50; ++i) {
        producer.push({std::to_string(i)});
    }
    producer.push({"bad"});
    producer.push({"late"}, {.delay = 50ms});
    drain(worker, server.endpoint(), "q");
    CHECK(runs == 51 + 3);
    CHECK(worker.statistics().succeeded == 51);
    CHECK(orizuru::DeadList(server.endpoint(), "q").size() == 1);
}

TEST_CASE("what keeps a worker from being drained is told") {
    RedisServer server;
    Worker worker(server.endpoint(), silent());
    worker.handle<Raw>(
        "q", [](const Raw&) {}, hasty());
    JobProducer<Raw>(server.endpoint(), "q").push({"late"}, {.delay = 1h});
    CHECK(error_of<std::runtime_error>([&] { drain(worker, server.endpoint(), "q", 50ms); }) ==
          "queue 'q' is not drained: 1 scheduled");
    server.kill();
    CHECK_THROWS_AS(drain(worker, server.endpoint(), "q"), ConnectionError);
    Worker idle(server.endpoint(), silent());
    CHECK_THROWS_AS(drain(idle, server.endpoint(), "q"), orizuru::Error);
}

} // namespace own_servers_test
