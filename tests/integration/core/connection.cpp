// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A connection of one's own: commands with any arguments, and what becomes of a lost one.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <array>
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

} // namespace connection_test
