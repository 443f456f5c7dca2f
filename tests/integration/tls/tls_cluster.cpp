// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A queue moves in a Cluster whose nodes speak nothing but TLS.

#include "integration/core/queue_fixture.hpp"
#include "support/certificates.hpp"
#include "support/cluster.hpp"
#include "support/elapsed.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/tls.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <thread>

namespace tls_cluster_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Consumer;
using orizuru::Endpoint;
using orizuru::Producer;
using orizuru::Raw;

/// Three nodes with this certificate.
struct TlsCluster : Cluster {
    explicit TlsCluster(const std::string& certificate)
        : Cluster(3, false, Certificates::made().of_server(certificate), RedisServer::Listen::tls) {
    }

    [[nodiscard]] std::string address() const {
        return uri({0, 1, 2}) + Certificates::made().trusting();
    }
    void move(const std::string& queue) { migrate(queue, (owner(queue) + 1) % size()); }
};

TEST_CASE("a queue is found, and followed from node to node, over TLS") {
    TlsCluster cluster("right");
    const Endpoint endpoint = orizuru::tls_endpoint(cluster.address());
    Producer<Raw> producer(endpoint, "q");
    Consumer<Raw> consumer(endpoint, "q", {.prefetch = 4, .ack = orizuru::AckMode::deferred});
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 10; ++i) {
            const std::string message = std::to_string(round) + "." + std::to_string(i);
            producer.push({message});
            auto guard = consumer.next(10s);
            REQUIRE(guard);
            CHECK((*guard)->bytes == message);
            guard->ack();
        }
        CHECK(consumer.flush() == 0);
        cluster.migrate("q", (cluster.owner("q") + 1) % cluster.size(), [&] {
            producer.push({"on the way"}); // by ASK, or to the old node
        });
        auto guard = consumer.next(10s);
        REQUIRE(guard);
        CHECK((*guard)->bytes == "on the way");
        guard->ack();
        guard = consumer.next(10s);
        REQUIRE(guard);
        guard->ack();
    }
    CHECK(consumer.flush() == 0);
    CHECK(cluster.client_of("q").llen("q") == 0);
}

TEST_CASE("a worker serves queues on all nodes over TLS") {
    TlsCluster cluster("right");
    const Endpoint endpoint = orizuru::tls_endpoint(cluster.address());
    std::atomic<int> done = 0;
    orizuru::Worker worker(endpoint, {.signals = orizuru::SignalHandling::none,
                                      .on_event = [](const orizuru::WorkerEvent&) {}});
    for (const std::string queue : {"a", "b", "c", "d"}) {
        worker.handle<int>(queue, [&](int) { ++done; });
    }
    const std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
    for (int round = 0; round < 2; ++round) {
        for (const std::string queue : {"a", "b", "c", "d"}) {
            orizuru::JobProducer<int>(endpoint, queue).push_all({1, 2, 3});
        }
        CHECK(eventually([&] { return done == 12 * (round + 1); }, 20s));
        cluster.move("a");
    }
}

TEST_CASE("nodes whose certificate is for another host are refused") {
    TlsCluster cluster("elsewhere");
    const Stopwatch watch;
    const std::string what = message_of<orizuru::ReplyError>(
        [&] { Producer<Raw>(orizuru::tls_endpoint(cluster.address()), "q"); });
    CHECK(watch.elapsed() < 5s);
    CHECK(contains(what, "IP address mismatch, expected name '127.0.0.1'"));
}

} // namespace tls_cluster_test
