// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A queue moves in a Cluster whose nodes speak nothing but TLS.

#include "integration/core/queue_fixture.hpp"
#include "support/certificates.hpp"
#include "support/cluster.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

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
            auto guard = consumer.next(patience);
            REQUIRE(guard);
            CHECK((*guard)->bytes == message);
            guard->ack();
        }
        CHECK(consumer.flush() == 0);
        cluster.migrate("q", (cluster.owner("q") + 1) % cluster.size(), [&] {
            producer.push({"on the way"}); // by ASK, or to the old node
        });
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK((*guard)->bytes == "on the way");
        guard->ack();
        guard = consumer.next(patience);
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
    orizuru::Worker worker(endpoint, {.signal_handling = orizuru::SignalHandling::none,
                                      .on_event = [](const orizuru::WorkerEvent&) {}});
    for (const std::string queue : {"a", "b", "c", "d"}) {
        worker.handle<int>(queue, [&](int) { ++done; });
    }
    const std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
    for (int round = 0; round < 2; ++round) {
        for (const std::string queue : {"a", "b", "c", "d"}) {
            orizuru::JobProducer<int>(endpoint, queue).push_all({1, 2, 3});
        }
        CHECK(eventually([&] { return done == 12 * (round + 1); }));
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

TEST_CASE("a node with a certificate for another host is refused, whichever node refers to it") {
    TlsCluster cluster("right");
    const Certificates& files = Certificates::made();
    const auto show = [&](std::size_t node, const std::string& name) {
        cluster.client(node).command({"CONFIG", "SET", "tls-cert-file", files.path(name + ".pem"),
                                      "tls-key-file", files.path(name + ".key")});
    };
    const auto from = [&](std::size_t seed) {
        return orizuru::tls_endpoint(cluster.uri({seed}) + files.trusting());
    };
    const auto refusal = [](const auto& push) {
        const std::string what = message_of<orizuru::ReplyError>(push);
        CHECK(contains(what, "IP address mismatch, expected name '127.0.0.1'"));
        return what;
    };
    const std::size_t owner = cluster.owner("q");
    const std::size_t other = (owner + 1) % cluster.size();
    show(owner, "elsewhere");
    const std::string node = "127.0.0.1:" + std::to_string(cluster.node(owner).port());
    for (const std::size_t seed : {owner, other}) {
        CHECK(contains(refusal([&] { Producer<Raw>(from(seed), "q"); }), node));
    }
    show(owner, "right");
    Producer<Raw> producer(from(other), "q");
    show(other, "elsewhere");
    cluster.migrate("q", other, [&] { // by ASK
        CHECK(contains(refusal([&] { producer.push(Raw{"x"}); }), "LPUSH 'q'"));
    });
    show(other, "right");
    producer.push(Raw{"y"});
    CHECK(cluster.client(other).lrange("q") == Texts{"y"});
}

TEST_CASE("nodes that speak TLS alone are not reached without it") {
    TlsCluster cluster("right");
    const std::string plain = "redis" + cluster.uri().substr(std::string("rediss").size());
    CHECK_THROWS_AS(Producer<Raw>(plain, "q"), orizuru::Error);
    CHECK(contains(message_of<orizuru::ReplyError>(
                       [&] { Producer<Raw>(orizuru::tls_endpoint(cluster.uri()), "q"); }),
                   "the server's certificate is refused"));
}

} // namespace tls_cluster_test
