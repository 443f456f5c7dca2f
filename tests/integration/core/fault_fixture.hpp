// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests of faults: a queue `q` on a redis-server of the test case's own, which may be
// killed, and functions that find every message.

#pragma once

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/consumer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::test {

using RawConsumer = Consumer<Raw>;
using RawGuard = MessageGuard<Raw>;

struct OwnServer {
    RedisServer server;
    RedisClient redis{server.uri(), patience};
    std::string unack = "orizuru:{q}:unack";
    std::string dead = "orizuru:{q}:dead";

    OwnServer() = default;
    explicit OwnServer(Texts arguments) : server(std::move(arguments)) {}

    /// Settings of a server that forgets nothing that it has confirmed.
    static Texts durable() { return {"--appendonly", "yes", "--appendfsync", "always"}; }

    /// The address with a bound on the wait for each reply.
    [[nodiscard]] std::string uri(std::chrono::milliseconds command_timeout) const {
        return server.uri() + "?command_timeout=" + std::to_string(command_timeout.count());
    }

    void push(const Texts& payloads) { redis.lpush("q", payloads); }
    /// Messages 0, 1, 2, …
    void push_numbers(int count) {
        for (int i = 0; i < count;) {
            Texts some;
            for (const int end = std::min(count, i + 1000); i < end; ++i) {
                some.push_back(std::to_string(i));
            }
            push(some);
        }
    }

    /// The messages that all consumers hold, without the headers.
    Texts held() {
        Texts messages;
        for (const std::string& key : redis.keys("orizuru:{q}:processing:*")) {
            // No TYPE before it: a fence may come in between.
            for (const Answer& element : redis.try_command({"LRANGE", key, "0", "-2"}).elements) {
                messages.push_back(element.text);
            }
        }
        return messages;
    }
    /// All messages in these lists or with a consumer, sorted.
    Texts everywhere(const Texts& other_queues = {}) {
        Texts all = held();
        Texts lists = other_queues;
        lists.insert(lists.end(), {"q", unack});
        for (const std::string& list : lists) {
            std::ranges::copy(redis.lrange(list), std::back_inserter(all));
        }
        std::ranges::sort(all);
        return all;
    }
    bool is_empty() { return everywhere().empty() && redis.llen(dead) == 0; }
    std::size_t registered() {
        return redis.command({"SMEMBERS", "orizuru:{q}:consumers"}).elements.size();
    }
    /// Makes all consumers look as if they were unheard for their lease.
    void forget_heartbeats() {
        for (const std::string& key : redis.keys("orizuru:{q}:heartbeat:*")) {
            redis.del(key);
        }
    }
    /// No consumer is registered, and only the fences of former ones are left.
    bool nobody_left() {
        return registered() == 0 && redis.keys("orizuru:{q}:heartbeat:*").empty() &&
               std::ranges::all_of(
                   redis.keys("orizuru:{q}:processing:*"),
                   [this](const std::string& key) { return redis.type(key) == "string"; });
    }
    /// True when a client waits in Redis for a message.
    bool waits_now() { return contains(redis.command({"CLIENT", "LIST"}).text, "cmd=blmove"); }
    bool somebody_waits() {
        return eventually([this] { return waits_now(); });
    }

    static RawGuard take(RawConsumer& consumer) {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        return std::move(*guard);
    }
    /// Calls `next` in a thread of its own.
    static std::future<std::optional<RawGuard>> take_in_background(RawConsumer& consumer) {
        return std::async(std::launch::async, [&consumer] { return consumer.next(patience); });
    }
};

/// The same with a server that forgets nothing.
struct DurableServer : OwnServer {
    DurableServer() : OwnServer(durable()) {}
};

} // namespace orizuru::test
