// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A Cluster whose nodes speak TLS alone: a queue is found and followed as without it, and each node
// has to show who it is.

#include "integration/core/queue_fixture.hpp"
#include "support/certificates.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>
#include <orizuru/tls.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace tls_cluster_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Consumer;
using orizuru::Endpoint;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;

const Certificates& files() { return Certificates::made(); }

Cluster& three() {
    static Cluster cluster(3, false, files().of_server("right"), RedisServer::Listen::tls);
    return cluster;
}

Endpoint trusting(const std::vector<std::size_t>& seeds) {
    return orizuru::tls_endpoint(three().uri(seeds) + files().trusting());
}

/// The node shows this certificate to those that connect from now on.
void show(std::size_t node, const std::string& name) {
    three().client(node).command({"CONFIG", "SET", "tls-cert-file", files().path(name + ".pem"),
                                  "tls-key-file", files().path(name + ".key")});
}

Texts taken(Consumer<Raw>& consumer, int count) {
    Texts texts;
    for (int i = 0; i < count; ++i) {
        auto guard = consumer.next(10s);
        REQUIRE(guard);
        texts.push_back((*guard)->bytes);
        CHECK(guard->ack());
    }
    return texts;
}

TEST_CASE("a queue is found over TLS from whichever node, and followed while and after it moves") {
    for (const std::string queue : {"a", "b", "c"}) {
        for (const std::size_t seed : {0U, 1U, 2U}) {
            Producer<Raw>(trusting({seed}), queue).push(Raw{queue});
            Consumer<Raw> consumer(trusting({seed}), queue);
            CHECK(taken(consumer, 1) == Texts{queue});
        }
    }
    const Endpoint endpoint = trusting({0, 1, 2});
    Producer<Raw> producer(endpoint, "q");
    Consumer<Raw> consumer(endpoint, "q");
    producer.push(Raw{"before"});
    CHECK(taken(consumer, 1) == Texts{"before"});
    auto next = (three().owner("q") + 1) % 3;
    producer.push(Raw{"held"});
    auto held = consumer.next(5s);
    REQUIRE(held);
    three().migrate("q", next, [&] { producer.push(Raw{"meanwhile"}); }); // twice, by ASK
    CHECK(three().owner("q") == next);
    producer.push(Raw{"after"});
    CHECK(held->ack());
    CHECK(taken(consumer, 3) == Texts{"meanwhile", "meanwhile", "after"});
    CHECK(three().client(next).llen("q") == 0);
}

TEST_CASE("a node whose certificate is for another host is refused, whoever refers to it") {
    const std::size_t owner = three().owner("q");
    const std::size_t other = (owner + 1) % 3;
    show(owner, "elsewhere");
    for (const std::size_t seed : {owner, other}) {
        const std::string what =
            message_of<ReplyError>([&] { Producer<Raw>(trusting({seed}), "q").push(Raw{"x"}); });
        CHECK(contains(what, "127.0.0.1:" + std::to_string(three().node(owner).port())));
        CHECK(contains(what, "IP address mismatch, expected name '127.0.0.1'"));
    }
    show(owner, "right");
    Producer<Raw> producer(trusting({other}), "q");
    producer.push(Raw{"x"});

    show(other, "elsewhere"); // which gets the slot: a push by ASK is refused as well
    three().migrate("q", other, [&, first = true]() mutable {
        if (!first) {
            const std::string what = message_of<ReplyError>([&] { producer.push(Raw{"y"}); });
            CHECK(contains(what, "LPUSH 'q'"));
            CHECK(contains(what, "IP address mismatch, expected name '127.0.0.1'"));
        }
        first = false;
    });
    show(other, "right");
    producer.push(Raw{"z"});
    CHECK(three().client(other).lrange("q") == Texts{"z", "x"});
}

TEST_CASE("nodes that speak TLS alone are not reached without it") {
    const std::string plain = "redis" + three().uri().substr(std::string("rediss").size());
    CHECK_THROWS_AS(Producer<Raw>(plain, "q"), orizuru::Error);
    CHECK(contains(
        message_of<ReplyError>([&] { Producer<Raw>(orizuru::tls_endpoint(three().uri()), "q"); }),
        "the server's certificate is refused"));
}

} // namespace tls_cluster_test
