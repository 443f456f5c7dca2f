// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// While a slot is on its way to another node of a Cluster, the old node sends pushes to a missing
// key there, by ASK.

#include "integration/core/queue_fixture.hpp"
#include "support/cluster.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace cluster_asking_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::BufferedProducer;
using orizuru::ConnectionError;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;

/// Two masters with a replica each.
Cluster& pair() {
    static Cluster cluster(2, true);
    return cluster;
}

std::vector<Raw> many(int count) {
    std::vector<Raw> messages;
    for (int i = 0; i < count; ++i) {
        messages.push_back({std::to_string(i)});
    }
    return messages;
}

/// The queue `q`, which is on its way from one master to the other.
struct Asking {
    std::size_t from = pair().owner("q");
    std::size_t to = 1 - from;
    RedisClient old_node = pair().client(from);
    RedisClient asked = pair().client(to);
    std::string slot = std::to_string(pair().slot("q"));
    std::string uri = pair().uri({from}) + "?client_name=pusher";

    Asking() {
        asked.command({"CLUSTER", "SETSLOT", slot, "IMPORTING", pair().id(from)});
        old_node.command({"CLUSTER", "SETSLOT", slot, "MIGRATING", pair().id(to)});
    }
    ~Asking() {
        pair().node(from + 2).resume();
        pair().node(to + 2).resume();
        finish();
        asked.flushall();
    }
    /// All keys have moved: there are none at the old node.
    void finish() {
        for (RedisClient* const node : {&asked, &old_node}) {
            node->command({"CLUSTER", "SETSLOT", slot, "NODE", pair().id(to)});
        }
    }

    static long field(RedisClient& node, const std::string& section, const std::string& name) {
        const std::string text = node.command({"INFO", section}).text;
        const auto at = text.find(name);
        return at == std::string::npos ? 0 : std::stol(text.substr(at + name.size()));
    }
    long connections() { return field(asked, "stats", "total_connections_received:"); }
    static Texts pushers(RedisClient& node) {
        Texts ids;
        std::istringstream lines(node.command({"CLIENT", "LIST"}).text);
        for (std::string line; std::getline(lines, line);) {
            if (contains(line, " name=pusher ")) {
                ids.push_back(line.substr(3, line.find(' ') - 3));
            }
        }
        return ids;
    }
    Texts list() {
        finish();
        return asked.lrange("q");
    }
};

/// What a push throws, and whether it leaves messages in doubt.
template <class Push>
std::pair<std::string, bool> failure_of(Push push) {
    bool in_doubt = false;
    std::string what = message_of<ConnectionError>([&] {
        try {
            push();
        } catch (const ConnectionError& error) {
            in_doubt = error.in_doubt();
            throw;
        }
    });
    return {std::move(what), in_doubt};
}

TEST_CASE_FIXTURE(Asking, "pushes that are sent on share a connection, which ends with the move") {
    Producer<Raw> producer(uri, "q");
    const long before = connections();
    for (int i = 0; i < 50; ++i) {
        producer.push(Raw{"x"});
    }
    producer.push_all(many(5000));
    CHECK(connections() == before + 1);
    CHECK(pushers(asked).size() == 1);

    // One that Redis closes meanwhile is made anew, and so is one beside a new one of the producer.
    asked.command({"CLIENT", "KILL", "ID", pushers(asked).at(0)});
    CHECK(producer.push(Raw{"x"}) == 5051);
    CHECK(connections() == before + 2);
    old_node.command({"CLIENT", "KILL", "ID", pushers(old_node).at(0)});
    CHECK(producer.push(Raw{"x"}) == 5052);
    CHECK(connections() == before + 3);
    CHECK(eventually([&] { return pushers(asked).size() == 1; }));

    finish();
    CHECK(producer.push(Raw{"x"}) == 5053);
    CHECK(eventually([&] { return pushers(asked).size() == 1; }));
}

TEST_CASE_FIXTURE(Asking, "a node that cannot be reached to ask fails a push, which says which") {
    Producer<Raw> producer(uri, "q");
    const std::string most = asked.command({"CONFIG", "GET", "maxclients"}).elements.at(1).text;
    asked.command({"CONFIG", "SET", "maxclients", "1"});
    const auto one = failure_of([&] { producer.push(Raw{"x"}); });
    const auto several = failure_of([&] { producer.push_all(many(2500)); });
    asked.command({"CONFIG", "SET", "maxclients", most});
    for (const std::string& what : {one.first, several.first}) {
        CHECK(contains(what, "LPUSH 'q': redis://127.0.0.1:"));
        CHECK(contains(what, "max number of clients"));
    }
    CHECK_FALSE(one.second);
    CHECK(several.second); // there was an LPUSH behind it, to which the reply is not read
    CHECK(producer.push(Raw{"x"}) == 1);
}

TEST_CASE_FIXTURE(Asking, "a node that refuses whoever asks refuses the push") {
    Producer<Raw> producer(uri, "q");
    asked.command({"ACL", "SETUSER", "default", "resetpass", ">secret"});
    const auto check = [&](const auto& push) {
        try {
            push();
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK(error.code() == "NOAUTH");
            CHECK(contains(error.what(), "LPUSH 'q': NOAUTH redis://127.0.0.1:"));
        }
    };
    check([&] { producer.push(Raw{"x"}); });
    check([&] { producer.push_all(many(2500)); });
    asked.command({"ACL", "SETUSER", "default", "nopass"});
    CHECK(producer.push(Raw{"x"}) == 1);
}

TEST_CASE_FIXTURE(Asking, "a push that is sent on waits for the replicas of the other node") {
    const auto producing = [&](std::chrono::milliseconds within) {
        return Producer<Raw>(uri, "q", {.replicas = {.count = 1, .within = within}});
    };
    auto producer = producing(60s);
    // The WAIT behind an LPUSH that is sent on asks the old node, too: a replica that has said
    // that it has everything when it stops makes nobody wait, unless a PING comes behind.
    old_node.command({"CONFIG", "SET", "repl-ping-replica-period", "3600"});
    REQUIRE(eventually([&] {
        return field(old_node, "replication", ",offset=") ==
               field(old_node, "replication", "master_repl_offset:");
    }));
    pair().node(from + 2).pause();
    for (std::size_t i = 1; i <= 20; ++i) {
        CHECK(producer.push({"a"}) == i);
    }
    CHECK(producer.push_all(many(2500)) == 2520);
    CHECK(field(asked, "commandstats", "cmdstat_wait:calls=") == 23);
    pair().node(to + 2).pause();
    const auto failure = failure_of([&] { producing(300ms).push({"b"}); });
    CHECK(failure.second);
    CHECK(contains(failure.first, "LPUSH 'q': done, but only 0 of 1 replicas have it"));
    pair().node(to + 2).resume();
    CHECK(producer.push({"c"}) == 2522);
}

TEST_CASE_FIXTURE(Asking, "a buffered producer has its messages sent on, in order") {
    BufferedProducer<Raw> producer(uri, "q");
    Texts expected;
    for (int i = 0; i < 2500; ++i) {
        producer.push(Raw{std::to_string(i)});
        expected.insert(expected.begin(), std::to_string(i));
    }
    producer.flush();
    CHECK(list() == expected);
}

} // namespace cluster_asking_test
