// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// One message that the server refuses for itself, since it is longer than proto-max-bulk-len: it is
// named and given back, and those pushed with it go on.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/posix.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/sharded.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace refused_messages_test {

using namespace std::chrono_literals;
using orizuru::BufferedProducer;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::RefusedError;
using orizuru::ReplyError;
using orizuru::ShardedProducer;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::Fd;
using orizuru::test::listen_tcp;
using orizuru::test::port_of;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Texts;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// Takes no message over 1 MiB.
struct StrictServer : QueueFixture {
    StrictServer() { set_limit("1mb"); }
    ~StrictServer() { set_limit("512mb"); }
    StrictServer(const StrictServer&) = delete;
    StrictServer& operator=(const StrictServer&) = delete;

    void set_limit(const std::string& limit) {
        redis.command({"CONFIG", "SET", "proto-max-bulk-len", limit});
    }

    /// What the error that `action` throws says, whose payload is this one.
    template <class Action>
    static RefusedError refusal_of(const std::string& payload, Action action) {
        std::optional<RefusedError> refused;
        try {
            action();
        } catch (const RefusedError& error) {
            refused = error;
        }
        REQUIRE(refused);
        CHECK((refused->payload() == payload));
        CHECK(refused->code() == "ERR");
        CHECK(contains(refused->what(), std::to_string(payload.size()) + " bytes"));
        CHECK(contains(refused->what(), "'q'"));
        CHECK(contains(refused->what(), "proto-max-bulk-len"));
        return *refused;
    }
};

/// The slot of the queue is on its way from one node of a Cluster to another. The other node has
/// the strict server behind it and reads a whole command before it closes the connection: a node
/// that closes it sooner resets it, and the producer may lose the answer.
class MovingQueue : public StrictServer {
    using Argv = std::vector<std::string>;

    Fd m_old_listener = listen_tcp();
    Fd m_asked_listener = listen_tcp();
    std::string m_ask =
        "-ASK 11958 127.0.0.1:" + std::to_string(port_of(m_asked_listener)) + "\r\n";

  public:
    std::string moving = "redis+cluster://127.0.0.1:" + std::to_string(port_of(m_old_listener));

  private:
    FakeServer m_asked{
        [](const Argv& argv) { return argv.at(0) == "ASKING" ? "+OK\r\n" : FakeServer::pass; },
        server().socket_path(), std::move(m_asked_listener)};
    FakeServer m_old{
        [this](const Argv& argv) { return argv.at(0) == "CLUSTER" ? "*0\r\n" : m_ask; },
        {},
        std::move(m_old_listener)};
};

std::string large(std::size_t mebibytes) { return std::string(mebibytes * mebibyte + 1, 'x'); }

TEST_CASE_FIXTURE(StrictServer, "flush gives back the message that is too long, and all others are "
                                "in the queue") {
    for (const std::size_t mebibytes : {1U, 9U}) { // more than the sockets hold, too
        CAPTURE(mebibytes);
        redis.del("q");
        BufferedProducer<Raw> producer(uri, "q", {.size = 10, .time = 24h});
        Texts others;
        for (int i = 0; i < 35; ++i) {
            producer.push({i == 3 ? large(mebibytes) : std::to_string(i)});
            if (i != 3) {
                others.push_back(std::to_string(i));
            }
        }
        refusal_of(large(mebibytes), [&] { producer.flush(); });
        CHECK(waiting() == others);
        CHECK(producer.unconfirmed() == 0);
        producer.flush();
        CHECK(producer.push({"more"}) == 34);
    }
}

TEST_CASE_FIXTURE(StrictServer, "several messages that are too long are given back one by one") {
    BufferedProducer<Raw> producer(uri, "q", {.size = 10, .time = 24h});
    producer.push({"a"});
    producer.push({large(1)});
    producer.push({"b"});
    producer.push({large(2)});
    producer.push({large(3)});
    producer.push({"c"});
    std::size_t bytes = 0;
    for (int i = 0; i < 3; ++i) {
        try {
            producer.flush();
            FAIL_CHECK("no exception");
        } catch (const RefusedError& error) {
            bytes += error.payload().size();
        }
        CHECK(waiting() == Texts{"a", "b", "c"});
        CHECK(producer.unconfirmed() == static_cast<std::size_t>(2 - i));
    }
    CHECK(bytes == 6 * mebibyte + 3);
    producer.flush();
}

TEST_CASE_FIXTURE(StrictServer,
                  "the others go when nobody calls, and the message waits for flush") {
    BufferedProducer<Raw> producer(uri, "q", {.size = 10, .time = 1ms});
    for (const std::string& message : Texts{"a", large(1), "b"}) {
        producer.push({message});
    }
    CHECK(eventually([&] { return waiting() == Texts{"a", "b"}; }));
    CHECK(eventually([&] { return producer.unconfirmed() == 1; })); // it has read the answer
    refusal_of(large(1), [&] { producer.flush(); });
}

TEST_CASE_FIXTURE(StrictServer, "push gives them back, too, once they take 64 MiB") {
    BufferedProducer<Raw> producer(uri, "q", {.size = 10, .time = 24h});
    std::size_t accepted = 0;
    std::size_t given_back = 0;
    for (int i = 0; i < 30; ++i) {
        try {
            producer.push({large(9)});
            ++accepted;
        } catch (const RefusedError& error) {
            given_back += error.payload().size() == large(9).size() ? 1 : 0;
        }
        CHECK(producer.unconfirmed() <= 12); // those on their way are not refused yet
    }
    CHECK(given_back >= 9);
    while (producer.unconfirmed() > 0) {
        refusal_of(large(9), [&] { producer.flush(); });
        ++given_back;
    }
    CHECK(given_back == accepted);
    CHECK(waiting().empty());
}

TEST_CASE_FIXTURE(StrictServer, "what waits for replicas is given back, too") {
    BufferedProducer<Raw> producer(
        uri, "q", {.size = 10, .time = 24h, .replicas = {.count = 1, .within = 1ms}});
    producer.push({large(1)});
    refusal_of(large(1), [&] { producer.flush(); });
    CHECK(producer.unconfirmed() == 0);
}

TEST_CASE_FIXTURE(StrictServer,
                  "push names the message that is too long, and the producer goes on") {
    Producer<Raw> producer(uri, "q");
    for (const std::size_t mebibytes : {1U, 9U}) {
        refusal_of(large(mebibytes), [&] { producer.push({large(mebibytes)}); });
        CHECK(producer.push({"a"}) == 1);
        redis.del("q");
    }
}

TEST_CASE_FIXTURE(StrictServer, "push_all pushes the messages before the one that is too long, and "
                                "counts them") {
    Producer<Raw> producer(uri, "q");
    std::vector<Raw> messages(2500, Raw{"m"});
    for (const std::size_t first : {0U, 1U, 999U, 1000U, 1700U, 2499U}) {
        CAPTURE(first);
        redis.del("q");
        std::vector<Raw> some = messages;
        some[first].bytes = large(1);
        some.push_back({large(2)}); // longer, and behind it
        const RefusedError error = refusal_of(large(1), [&] { producer.push_all(some); });
        CHECK(error.pushed() == first);
        CHECK(redis.llen("q") == static_cast<std::int64_t>(first));
        some.erase(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(first) + 1);
        some.pop_back();
        producer.push_all(some);
        CHECK(redis.llen("q") == 2499);
    }
}

TEST_CASE_FIXTURE(StrictServer, "the producer of a queue over many shards pushes nothing twice") {
    orizuru::create_shards(uri, "many", 3);
    ShardedProducer<Raw> producer(uri, "many");
    std::vector<Raw> messages(1500, Raw{"m"});
    messages[1100].bytes = large(1);
    try {
        producer.push_all(messages);
        FAIL_CHECK("no exception");
    } catch (const RefusedError& error) {
        CHECK(error.pushed() == 1100);
        CHECK((error.payload() == large(1)));
    }
    std::int64_t there = 0;
    for (const std::string& key : redis.keys("*many*")) {
        there += redis.type(key) == "list" ? redis.llen(key) : 0;
    }
    CHECK(there == 1100);
}

TEST_CASE_FIXTURE(MovingQueue, "push_all counts what is pushed before a message that is too long "
                               "for the node that is asked") {
    Producer<Raw> producer(moving, "q");
    std::vector<Raw> messages;
    for (int i = 0; i < 2500; ++i) {
        messages.push_back({i == 3 ? large(1) : std::to_string(i)});
    }
    const RefusedError error = refusal_of(large(1), [&] { producer.push_all(messages); });
    CHECK(error.pushed() == 3);
    CHECK(waiting() == Texts{"0", "1", "2"});
    messages.erase(messages.begin(), messages.begin() + 4);
    CHECK(producer.push_all(messages) == 2499);
}

TEST_CASE_FIXTURE(MovingQueue, "flush gives back the message that is too long for the node that is "
                               "asked, and the others are in the queue once") {
    BufferedProducer<Raw> producer(moving, "q", {.size = 10, .time = 24h});
    Texts others;
    for (int i = 0; i < 35; ++i) {
        producer.push({i == 3 ? large(1) : std::to_string(i)});
        if (i != 3) {
            others.push_back(std::to_string(i));
        }
    }
    refusal_of(large(1), [&] { producer.flush(); });
    CHECK(waiting() == others);
    CHECK(producer.unconfirmed() == 0);
    producer.flush();
}

TEST_CASE_FIXTURE(MovingQueue,
                  "what waits for replicas is given back, too, when another node is asked") {
    Producer<Raw> one(moving, "q", {.replicas = {.count = 1, .within = 1ms}});
    refusal_of(large(1), [&] { one.push({large(1)}); });
    BufferedProducer<Raw> producer(
        moving, "q", {.size = 10, .time = 24h, .replicas = {.count = 1, .within = 1ms}});
    producer.push({large(1)});
    refusal_of(large(1), [&] { producer.flush(); });
    CHECK(producer.unconfirmed() == 0);
    CHECK(waiting().empty());
}

} // namespace refused_messages_test
