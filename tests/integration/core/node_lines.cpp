// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Connections to several keys of a Cluster share a line to each node.

#include "support/cluster.hpp"
#include "support/redis_client.hpp"

#include <orizuru/connection.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/queue_connections.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace node_lines_test {

using namespace orizuru::test;
using orizuru::Keys;
using orizuru::detail::QueueConnections;

/// Two nodes, and two queues that are on the first.
struct TwoQueues {
    Cluster cluster{2};
    QueueConnections connections{orizuru::Endpoint(cluster.uri({0, 1}))};
    std::vector<std::string> queues;

    TwoQueues() {
        for (int i = 0; queues.size() < 2; ++i) {
            const std::string name = "q" + std::to_string(i);
            if (cluster.owner(name) == 0) {
                queues.push_back(name);
            }
        }
    }
    std::int64_t length(const std::string& queue) {
        return connections.of(Keys(queue))->command(queue, "LLEN", queue).integer;
    }
    /// How many connections a node has accepted, besides that of this question.
    std::uint64_t accepted(std::size_t node) {
        const std::string info = cluster.client(node).command({"INFO", "stats"}).text;
        const std::string field = "total_connections_received:";
        return std::stoull(info.substr(info.find(field) + field.size())) - ++m_questions[node];
    }

  private:
    std::vector<std::uint64_t> m_questions = {0, 0};
};

TEST_CASE_FIXTURE(TwoQueues, "connections to keys of one node share a line, in turn") {
    for (int i = 0; i < 3; ++i) {
        CHECK(length(queues[0]) == 0);
        CHECK(length(queues[1]) == 0);
    }
    const auto before = accepted(0);
    CHECK(length(queues[0]) == 0);
    CHECK(length(queues[1]) == 0);
    CHECK(accepted(0) == before);
}

TEST_CASE_FIXTURE(TwoQueues, "a queue that moves leaves the line to the others of its node") {
    CHECK(length(queues[0]) == 0); // whose connection makes the line
    CHECK(length(queues[1]) == 0);
    cluster.client(0).command({"RPUSH", queues[1], "x"});
    cluster.migrate(queues[1], 1);
    const auto of_first = accepted(0);
    CHECK(length(queues[1]) == 1);
    CHECK(length(queues[0]) == 0);
    CHECK(length(queues[1]) == 1);
    const auto of_second = accepted(1);
    CHECK(accepted(0) == of_first);
    CHECK(length(queues[0]) == 0);
    CHECK(length(queues[1]) == 1);
    CHECK(accepted(0) == of_first);
    CHECK(accepted(1) == of_second);
}

TEST_CASE_FIXTURE(TwoQueues, "only the connection whose queue has moved counts as made anew") {
    CHECK(length(queues[0]) == 0);
    CHECK(length(queues[1]) == 0);
    const auto since = [&](const std::string& queue) {
        return orizuru::detail::connected_at(*connections.of(Keys(queue)));
    };
    const auto of_first = since(queues[0]);
    const auto of_second = since(queues[1]);
    cluster.client(0).command({"RPUSH", queues[1], "x"});
    cluster.migrate(queues[1], 1);
    CHECK(length(queues[1]) == 1);
    CHECK(since(queues[1]) > of_second);
    CHECK(since(queues[0]) == of_first);
}

} // namespace node_lines_test
