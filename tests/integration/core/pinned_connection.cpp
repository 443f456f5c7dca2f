// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a connection tells of itself, and one that must not be replaced.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

namespace pinned_connection_test {

using orizuru::Connection;
using orizuru::ConnectionError;
using orizuru::test::QueueFixture;

TEST_CASE_FIXTURE(QueueFixture, "a pinned connection that is lost is not replaced, nor is anything "
                                "in doubt then") {
    Connection connection(uri);
    CHECK_FALSE(connection.replaced());
    const auto first = connection.connected_at();
    const auto kill = [this] {
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    };
    {
        const Connection::Pin pin(connection);
        CHECK(connection.command("", "PING").text == "PONG");
        kill();
        CHECK_THROWS_AS(Connection::Pin{connection}, ConnectionError);
        for (int i = 0; i < 2; ++i) {
            try {
                connection.command("", "PING");
                FAIL_CHECK("no exception");
            } catch (const ConnectionError& error) {
                CHECK_FALSE(error.in_doubt());
            }
        }
        CHECK_FALSE(connection.replaced());
    }
    CHECK(connection.command("", "PING").text == "PONG");
    CHECK(connection.replaced());
    CHECK(connection.connected_at() > first);
    kill();
    const Connection::Pin pin(connection);
    CHECK(connection.command("", "PING").text == "PONG");
}

} // namespace pinned_connection_test
