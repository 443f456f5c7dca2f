// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// An Inspector of queues on several nodes of a Cluster.

#include "integration/core/queue_fixture.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <type_traits>

namespace inspector_cluster_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Inspector;
using orizuru::Job;
using orizuru::Place;
using orizuru::PlacedMessage;
using orizuru::Raw;
using orizuru::ReplyError;

bool any(const PlacedMessage& /*message*/) { return true; }

TEST_CASE("in a Cluster a message moves within its slot only, and all nodes' queues are found") {
    Cluster cluster(2);
    const orizuru::Endpoint endpoint = cluster.uri({0, 1});
    Inspector inspector(endpoint);
    const Texts queues{"a", "b", "{a}too"};
    for (const std::string& queue : queues) {
        orizuru::JobProducer<Raw>(endpoint, queue).push({queue}, {.unique = "u"});
    }
    REQUIRE(cluster.owner("a") != cluster.owner("b"));
    CHECK(inspector.find_queues() == queues);

    RedisClient of_a = cluster.client_of("a");
    const PlacedMessage message = inspector.peek("a", Place::waiting, 0, 1).at(0);
    const std::string refused = message_of<ReplyError>([&] { inspector.move("a", message, "b"); });
    CHECK(contains(refused, "'a'"));
    CHECK(contains(refused, "'b'"));
    CHECK(of_a.lrange("a") == Texts{message.bytes});
    CHECK(cluster.client_of("b").llen("b") == 1);
    CHECK(inspector.move("a", message, "{a}too"));
    CHECK(of_a.llen("{a}too") == 2);

    // The lock of the one that has moved is released, and that of another slot cannot be.
    Job<Raw> strange = orizuru::make_job(Raw{"strange"});
    strange.unique_id = "u";
    strange.unique_queue = "b";
    orizuru::Producer<Job<Raw>>(endpoint, "{a}too").push(strange);
    orizuru::Producer<Job<Raw>> later(endpoint, "{a}too");
    push_after(later, 1h, strange);
    CHECK(inspector.remove("{a}too", inspector.peek("{a}too", Place::scheduled, 0, 1).at(0)));
    CHECK(inspector.peek("{a}too", Place::scheduled, 0, 1).empty());
    of_a.del(orizuru::Keys("{a}too").scheduled_sequence());
    of_a.del(orizuru::Keys("{a}too").scheduled_wake());
    CHECK(of_a.exists("orizuru:{a}:unique:u"));
    CHECK(inspector.remove_if("{a}too", Place::waiting, any, 10) == 3);
    CHECK_FALSE(of_a.exists("orizuru:{a}:unique:u"));
    CHECK_FALSE(of_a.exists("orizuru:{a}:{a}too:unique:u"));
    CHECK(cluster.client_of("b").exists("orizuru:{b}:unique:u"));
    CHECK(inspector.clear("b", Place::waiting) == 1);
    CHECK_FALSE(cluster.client_of("b").exists("orizuru:{b}:unique:u"));
    CHECK(inspector.find_queues().empty());
}

TEST_CASE("in a Cluster queues of any slots are found that have jobs but no other key") {
    Cluster cluster(2);
    const orizuru::Endpoint endpoint = cluster.uri({0, 1});
    Texts queues;
    for (const char name : std::string("abcdefgh")) {
        queues.emplace_back(1, name);
        orizuru::JobProducer<Raw>(endpoint, queues.back()).push({"a"});
        cluster.client_of(queues.back()).lpush(queues.back() + "{" + name + "}", "no job");
    }
    CHECK(Inspector(endpoint).find_queues() == queues);
}

static_assert(std::is_nothrow_move_constructible_v<Inspector>);
static_assert(std::is_move_assignable_v<Inspector>);

TEST_CASE("in a Cluster an Inspector has one connection to a node, for however many queues") {
    Cluster cluster(1);
    const orizuru::Endpoint endpoint = cluster.uri({0});
    Inspector inspector(endpoint);
    RedisClient redis = cluster.client_of("q");
    for (int i = 0; i < 200; ++i) {
        CHECK(inspector.state("q" + std::to_string(i)).waiting == 0);
    }
    const auto clients = [&] {
        const std::string list = redis.command({"CLIENT", "LIST", "TYPE", "NORMAL"}).text;
        return std::ranges::count(list, '\n');
    };
    CHECK(orizuru::test::eventually([&] { return clients() == 2; })); // and the plain client
    CHECK(inspector.state("q0").waiting == 0);
}

} // namespace inspector_cluster_test
