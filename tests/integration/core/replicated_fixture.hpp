// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A server of its own with one replica, for the tests of pushes that wait for replicas.

#pragma once

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/error.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace orizuru::test {

/// What a push says that leaves all of its messages in doubt.
template <class Push>
std::string doubt_of(Push push) {
    try {
        push();
        FAIL("it was confirmed");
    } catch (const ConnectionError& error) {
        CHECK(error.in_doubt());
        CHECK(error.pushed() == 0);
        return error.what();
    }
    return {};
}

struct Replicated {
    RedisServer server{{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp};
    RedisClient redis{server.uri()};
    RedisServer replica{{"--replicaof", "127.0.0.1", std::to_string(server.port())}};
    RedisClient copy{replica.uri()};

    Replicated() {
        redis.command({"SET", "first", "x"});
        REQUIRE(eventually(
            [&] {
                return redis.command({"WAIT", "1", "100"}).integer == 1;
            },
            std::chrono::seconds(20)));
        REQUIRE(caught_up()); // it may have stood still once more
    }
    Replicated(const Replicated&) = delete;
    Replicated& operator=(const Replicated&) = delete;
    ~Replicated() { replica.resume(); }

    /// Whether the replica has all that the server has.
    bool caught_up() {
        redis.command({"INCR", "marks"});
        return redis.command({"WAIT", "1", "20000"}).integer == 1;
    }
};

} // namespace orizuru::test
