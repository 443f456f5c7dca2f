// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests of Once: the scope `q` and its record of `id`, read with plain commands.

#pragma once

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/once.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace orizuru::test {

struct OnceFixture : QueueFixture {
    using Fields = std::map<std::string, std::string>;

    std::string record = "orizuru:{q}:once:id";
    std::string fences = "orizuru:{q}:fences";
    std::string scheduled = "orizuru:{q}:scheduled";
    Once once{uri, "q"};
    Once other{uri, "q"};
    int effects = 0;

    /// An effect that counts its runs.
    auto effect() {
        return [this] { ++effects; };
    }
    Fields fields() {
        Fields found;
        const auto elements = redis.command({"HGETALL", record}).elements;
        for (std::size_t i = 0; i + 1 < elements.size(); i += 2) {
            found[elements[i].text] = elements[i + 1].text;
        }
        return found;
    }
    std::string state() { return fields()["state"]; }
    /// Makes it look as if the lease had passed.
    void end_lease() { redis.command({"HSET", record, "until", "1"}); }
    std::int64_t until() { return std::stoll(fields()["until"]); }
    std::int64_t ttl() { return redis.command({"PTTL", record}).integer; }

    static OnceToken claimed(Once& by, const std::string& id = "id") {
        Claim claim = by.claim(id);
        REQUIRE(claim.state == Claim::State::claimed);
        REQUIRE(claim.token.id == id);
        return std::move(claim.token);
    }
    static MessageGuard<Raw> take(Consumer<Raw>& consumer) {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        return std::move(*guard);
    }
    bool nothing_left() {
        return redis.llen("q") == 0 && held().empty() && redis.llen(unack) == 0 &&
               redis.llen(dead) == 0 && !redis.exists(scheduled);
    }
};

} // namespace orizuru::test
