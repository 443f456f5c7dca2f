// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A connection of one's own: commands with any arguments, and what becomes of a lost one.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/security.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace connection_test {

using orizuru::Connection;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;

TEST_CASE_FIXTURE(QueueFixture, "a command takes ranges of texts for arguments, beside others") {
    Connection connection(uri);
    const std::vector<std::string> words{"b", "", "c"};
    CHECK(connection.command("q", "RPUSH", "q", "a", words, 4).integer == 5);
    CHECK(redis.lrange("q") == Texts{"a", "b", "", "c", "4"});
    const std::array<std::string_view, 2> both{"q", "none"};
    CHECK(connection.command("", "EXISTS", std::span(both)).integer == 1);
    CHECK(connection.command("", "PING", std::span<const std::string>()).text == "PONG");
}

TEST_CASE_FIXTURE(QueueFixture, "a command that finds its connection lost makes another one") {
    Connection connection(uri);
    const auto first = orizuru::detail::connected_at(connection);
    CHECK(connection.command("", "PING").text == "PONG");
    CHECK(orizuru::detail::connected_at(connection) == first);
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    CHECK(connection.command("", "PING").text == "PONG");
    CHECK(orizuru::detail::connected_at(connection) > first);
}

/// Has no memory for a channel.
class NoMemory : public orizuru::detail::Security {
    std::unique_ptr<orizuru::detail::SecureChannel> open(int /*fd*/, const std::string& /*host*/,
                                                         const std::string& /*a*/) const override {
        throw std::bad_alloc();
    }
};

TEST_CASE("a stream that is to be secure greets nobody without encryption, also after a failure") {
    const orizuru::test::RedisServer server({}, orizuru::test::RedisServer::Listen::tcp);
    orizuru::Endpoint endpoint("redis://127.0.0.1:" + std::to_string(server.port()));
    orizuru::detail::EndpointParts::of(endpoint).security = std::make_shared<NoMemory>();
    orizuru::detail::Stream stream(endpoint, orizuru::detail::TimePoint::min(), nullptr);
    const auto greet = [&] {
        try {
            stream.greet();
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    };
    CHECK(orizuru::test::eventually([&] { return !greet(); }));
    CHECK_FALSE(greet());
}

} // namespace connection_test
