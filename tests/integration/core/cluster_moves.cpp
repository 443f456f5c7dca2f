// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// In a Cluster, the objects for a queue find the node that has it, and follow it to another.

#include "integration/core/queue_fixture.hpp"
#include "support/cluster.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/posix.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/once.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace cluster_moves_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Connection;
using orizuru::ConnectionError;
using orizuru::Consumer;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;

Cluster& three() {
    static Cluster cluster(3);
    return cluster;
}

/// Where the queue is not yet.
std::size_t next_of(const std::string& queue) { return (three().owner(queue) + 1) % 3; }

/// Some of these move the queue "many" when they are encoded.
struct Moving {
    int number = 0;
};

} // namespace cluster_moves_test

template <>
struct orizuru::Codec<cluster_moves_test::Moving> {
    static std::string encode(const cluster_moves_test::Moving& message) {
        using namespace cluster_moves_test;
        if (message.number == 3000 || message.number == 6000) {
            three().migrate("many", next_of("many"));
        }
        return std::to_string(message.number);
    }
    static cluster_moves_test::Moving decode(std::string_view /*bytes*/) { return {}; }
};

namespace cluster_moves_test {

TEST_CASE("queues are found on whichever node has them") {
    for (const std::string queue : {"a", "b", "c", "d", "e"}) {
        for (const std::size_t seed : {0U, 1U, 2U}) {
            Producer<Raw> producer(three().uri({seed}), queue);
            producer.push(Raw{queue});
            CHECK(three().client_of(queue).lrange(queue) == Texts{queue});
            Consumer<Raw> consumer(three().uri({seed}), queue);
            auto guard = consumer.next(patience);
            REQUIRE(guard);
            CHECK(guard->reject());
            CHECK(orizuru::GarbageCollector(three().uri({seed}), queue, {.grace = 0ms})
                      .collect()
                      .unacked == 1);
            CHECK(consumer.next(patience).value().reject());
            const orizuru::BackgroundCollector collecting(three().uri({seed}), queue, 20ms);
            CHECK(consumer.next(patience).value().ack());
        }
    }
}

TEST_CASE("a queue that moves is followed") {
    Producer<Raw> producer(three().uri(), "q");
    Consumer<Raw> consumer(three().uri(), "q");
    producer.push(Raw{"held"});
    auto held = consumer.next(patience);
    REQUIRE(held);
    producer.push(Raw{"waits"});
    const std::size_t to = (three().owner("q") + 1) % 3;
    three().migrate("q", to);
    CHECK(three().owner("q") == to);
    producer.push(Raw{"later"});
    CHECK(held->ack());
    for (const std::string text : {"waits", "later"}) {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK((*guard)->bytes == text);
        CHECK(guard->ack());
    }
    CHECK(three().client_of("q").llen("q") == 0);
}

TEST_CASE("push_all follows a queue that moves more than once meanwhile") {
    Producer<Moving> producer(three().uri(), "many");
    std::vector<Moving> messages(9000);
    for (int number = 0; number < 9000; ++number) {
        messages.at(static_cast<std::size_t>(number)).number = number;
    }
    CHECK(producer.push_all(messages) == 9000);
    Texts expected;
    for (int number = 8999; number >= 0; --number) {
        expected.push_back(std::to_string(number));
    }
    CHECK(three().client_of("many").lrange("many") == expected);
}

TEST_CASE("a consumer that waits is told when its queue moves, and gets what comes there") {
    Consumer<Raw> consumer(three().uri(), "q");
    const std::size_t from = three().owner("q");
    std::jthread moving([&] {
        CHECK(eventually([&] {
            return three().client(from).command({"CLIENT", "LIST"}).text.find("cmd=blmove") !=
                   std::string::npos;
        }));
        three().migrate("q", next_of("q"));
        three().client_of("q").lpush("q", "there");
    });
    const Stopwatch watch;
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK((*guard)->bytes == "there");
    CHECK(guard->ack());
    CHECK(watch.elapsed() < 5s);
}

TEST_CASE("while the queue moves, pushes and acks go on, and nothing is lost") {
    Producer<Raw> producer(three().uri(), "q");
    Consumer<Raw> consumer(three().uri(), "q", {.prefetch = 2});
    producer.push(Raw{"held"});
    auto held = consumer.next(patience);
    REQUIRE(held);
    int pushed = 0;
    Texts texts;
    three().migrate("q", next_of("q"), [&] {
        // The source is not there: the first time the old node says where to ask, the second time,
        // when all other keys have moved, the same.
        for (int i = 0; i < 3; ++i) {
            texts.push_back(std::to_string(pushed++));
            producer.push(Raw{texts.back()});
        }
        std::vector<Raw> many;
        for (int i = 0; i < 2500; ++i) { // more than two LPUSHes
            texts.push_back(std::to_string(pushed++));
            many.push_back({texts.back()});
        }
        producer.push_all(many);
        if (held) {
            CHECK(held->ack()); // names the processing list alone
            held.reset();
        }
    });
    CHECK(three().client_of("q").llen("q") == pushed);
    for (const std::string& text : texts) {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK((*guard)->bytes == text);
        CHECK(guard->ack());
    }
}

TEST_CASE(
    "a push follows a node that gives no host, also by a producer made while the queue moves") {
    std::string type;
    SUBCASE("") { type = "unknown-endpoint"; }
    SUBCASE("?") { type = "hostname"; }
    Cluster cluster(2, false, {"--cluster-preferred-endpoint-type", type});
    const std::size_t from = cluster.owner("q");
    int pushed = 0;
    cluster.migrate("q", 1 - from, [&] {
        Producer<Raw>(cluster.uri({from}), "q").push(Raw{"x"});
        ++pushed;
    });
    CHECK(cluster.client_of("q").llen("q") == pushed);
}

TEST_CASE("a push that may not follow a moving queue is refused, and says why") {
    Cluster cluster(2);
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        cluster.client(i).command({"ACL", "SETUSER", "default", "-asking"});
    }
    Producer<Raw> producer(cluster.uri(), "q");
    cluster.migrate("q", 1 - cluster.owner("q"), [&] {
        CHECK(contains(message_of<ReplyError>([&] { producer.push(Raw{"x"}); }), "NOPERM"));
    });
    CHECK(producer.push(Raw{"x"}) == 1);
}

TEST_CASE("a consumer tells of a slot that takes long to move") {
    Diary diary;
    Consumer<Raw> consumer(three().uri(), "q", {.prefetch = 2, .on_event = diary.pen()});
    int times = 0;
    three().migrate("q", next_of("q"), [&] {
        if (times++ == 0) {
            const Stopwatch watch;
            CHECK(eventually([&] {
                CHECK_FALSE(consumer.next(50ms));
                return diary.count(orizuru::EventKind::slot_migrating) == 1;
            }));
            CHECK(watch.elapsed() >= 5s);
        }
    });
    CHECK(contains(diary.of(orizuru::EventKind::slot_migrating).at(0).detail, "TRYAGAIN"));
    Producer<Raw>(three().uri(), "q").push(Raw{"moved"});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK(guard->ack());
    CHECK(diary.count(orizuru::EventKind::slot_migrating) == 1);
}

TEST_CASE("passes do not prolong the series of writes while a queue moves and its consumer cannot "
          "beat, and the consumer keeps its message") {
    const std::string queue = "slow";
    const std::string prefix = "orizuru:{slow}:";
    Consumer<Raw> consumer(three().uri(), queue, {.lease = 2s});
    Producer<Raw>(three().uri(), queue).push(Raw{"held"});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    const std::size_t from = three().owner(queue);
    const std::size_t to = next_of(queue);
    RedisClient old_node = three().client(from);
    RedisClient new_node = three().client(to);
    const std::string id = old_node.command({"SMEMBERS", prefix + "consumers"}).elements.at(0).text;
    const auto exists = [](RedisClient& node, const std::string& key) {
        return node.try_command({"EXISTS", key}).integer == 1; // ASK if it is not there
    };
    orizuru::GarbageCollector collector(three().uri(), queue);
    REQUIRE(eventually([&] { return exists(old_node, prefix + "writes"); }));
    int times = 0;
    three().migrate(queue, to, [&] {
        if (times++ > 0) {
            return;
        }
        // Beats name this list, too: they are refused from now on.
        old_node.command({"MIGRATE", "127.0.0.1", std::to_string(three().node(to).port()),
                          prefix + "processing:" + id, "0", "5000"});
        // A pass asks for this first.
        old_node.command({"PEXPIRE", prefix + "heartbeat:" + id, "120000"});
        CHECK(eventually([&] {
            const std::string refusal =
                message_of<ReplyError>([&] { static_cast<void>(collector.collect()); });
            CHECK(contains(refusal, "TRYAGAIN"));
            return !exists(old_node, prefix + "writes");
        }));
        CHECK(exists(old_node, prefix + "heartbeat:" + id));
        old_node.command({"DEL", prefix + "heartbeat:" + id});
    });
    collector.collect();
    CHECK(eventually([&] { return exists(new_node, prefix + "heartbeat:" + id); }));
    CHECK(guard->ack());
    CHECK(new_node.llen(queue) == 0);
    CHECK_FALSE(
        new_node.try_command({"GET", prefix + "processing:" + id}).text.starts_with("reaped"));
}

TEST_CASE("a consumer beats while its slot is on its way, as long as its keys have not moved") {
    const std::string queue = "resting";
    Consumer<Raw> consumer(three().uri(), queue, {.lease = 9s});
    Producer<Raw>(three().uri(), queue).push(Raw{"held"});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    RedisClient node = three().client(three().owner(queue));
    const std::string id =
        node.command({"SMEMBERS", "orizuru:{resting}:consumers"}).elements.at(0).text;
    const std::string heartbeat = "orizuru:{resting}:heartbeat:" + id;
    const std::string writes = "orizuru:{resting}:writes";
    // All keys that a beat names have to be there.
    REQUIRE(eventually([&] { return node.command({"EXISTS", writes}).integer == 1; }));
    bool resting = true;
    three().migrate(queue, next_of(queue), [&] {
        if (std::exchange(resting, false)) {
            node.command({"PEXPIRE", heartbeat, "100000"}); // a beat makes it short again
            CHECK(eventually([&] {
                const std::int64_t left = node.try_command({"PTTL", heartbeat}).integer;
                return left > 0 && left <= 9000;
            }));
        }
    });
    CHECK(guard->ack());
}

TEST_CASE("two short moves of a queue are not taken for a long one") {
    struct Moved {
        std::string queue;
        std::size_t from = three().owner(queue);
        std::size_t to = next_of(queue);
        std::string slot = std::to_string(three().slot(queue));
        Diary diary{};
        Consumer<Raw> consumer{
            three().uri() + "?client_name=" + queue, queue, {.on_event = diary.pen()}};

        [[nodiscard]] long refused() const {
            const std::string text = three().client(from).command({"INFO", "errorstats"}).text;
            long sum = 0;
            for (const std::string field : {"errorstat_ASK:count=", "errorstat_TRYAGAIN:count="}) {
                const auto at = text.find(field);
                sum += at == std::string::npos ? 0 : std::stol(text.substr(at + field.size()));
            }
            return sum;
        }
        long refusals = 1; ///< in each move

        void begin_to_move() {
            three().client(to).command({"CLUSTER", "SETSLOT", slot, "IMPORTING", three().id(from)});
            three().client(from).command({"CLUSTER", "SETSLOT", slot, "MIGRATING", three().id(to)});
            const long before = refused();
            CHECK(eventually([&] {
                CHECK_FALSE(consumer.next(20ms));
                return refused() >= before + refusals;
            }));
        }
        void stay() {
            for (const std::size_t node : {to, from}) {
                three().client(node).command({"CLUSTER", "SETSLOT", slot, "STABLE"});
            }
        }
        void reconnect() {
            RedisClient owner = three().client(from);
            owner.command({"CLIENT", "KILL", "TYPE", "normal"});
            CHECK(eventually([&] {
                return contains(owner.command({"CLIENT", "LIST"}).text, " name=" + queue + " ");
            }));
        }
    };
    /// Both begin and end, without 5 s in between. Returns false if the machine was not so quick.
    const auto move_shortly = [](Moved& moved) {
        const Stopwatch watch;
        moved.begin_to_move();
        CHECK_FALSE(moved.consumer.next(50ms));
        const auto told = moved.diary.count(orizuru::EventKind::slot_migrating);
        const bool quick = !(watch.elapsed() >= 5s);
        moved.stay();
        CHECK((told == 0 || !quick));
        return quick;
    };
    Moved breaks{"breaks"}; // and does not wait any more
    breaks.refusals = 3;    // one behind a pause says nothing alone
    bool quick = move_shortly(breaks);
    breaks.reconnect();
    Moved stays{"stays"};
    for (int moves = 0; moves < 4 && quick; ++moves) { // 2 s apart
        quick = move_shortly(stays);
        const Stopwatch waiting;
        CHECK(eventually([&] {
            CHECK_FALSE(stays.consumer.next(50ms));
            return waiting.elapsed() > 2s;
        }));
    }
    if (quick) {
        move_shortly(breaks);
    }
}

TEST_CASE("the tools find the queue, too") {
    const std::string queue = "tools";
    for (int round = 0; round < 2; ++round) {
        // Each object is made before the queue moves in the first round, and used after it.
        const std::string uri = three().uri();
        Producer<orizuru::Job<int>> jobs(uri, queue);
        orizuru::Scheduler scheduler(uri, queue);
        orizuru::ScheduledList scheduled(uri, queue);
        orizuru::DeadList dead(uri, queue);
        orizuru::Pause pause(uri, queue);
        orizuru::Progress progress(uri, queue);
        orizuru::Once once(uri, queue);
        orizuru::GarbageCollector collector(uri, queue);
        if (round == 0) {
            three().migrate(queue, next_of(queue));
        }
        push_after(jobs, 1h, orizuru::make_job(1));
        push_after(jobs, 1ms, orizuru::make_job(2));
        CHECK(scheduled.size() == 2);
        CHECK(eventually([&] { return scheduler.move_due() == 1; }));
        CHECK(jobs.size() == 1);
        pause.pause();
        CHECK(pause.paused());
        pause.resume();
        progress.set("12345678901234567890123456789012", 0.5);
        CHECK(progress.get("12345678901234567890123456789012"));
        CHECK(once.run("done" + std::to_string(round), [] {}).outcome == orizuru::OnceOutcome::ran);
        CHECK(dead.size() == 0);
        CHECK(collector.collect().consumers == 0);
        three().client_of(queue).flushall();
    }
}

TEST_CASE("any node of the address will do, and dead ones are passed over") {
    const std::string dead = "127.0.0.1:" + std::to_string(port_of(listen_tcp()));
    std::string uri = three().uri({2});
    uri.insert(uri.find("//") + 2, dead + ',');
    Producer<Raw> producer(uri, "q");
    producer.push(Raw{"through"});
    three().client_of("q").flushall();
    const std::string what =
        message_of<ConnectionError>([&] { Producer<Raw>("redis+cluster://:secret@" + dead, "q"); });
    CHECK(contains(what, dead));
    CHECK_FALSE(contains(what, "secret"));
}

TEST_CASE("an address of a Cluster has no database but 0") {
    const std::string what =
        message_of<std::invalid_argument>([] { orizuru::Endpoint("redis+cluster://h/1"); });
    CHECK(contains(what, "a Cluster has only the database 0"));
    CHECK(orizuru::Endpoint("redis+cluster://a,b:7/0").address() == "redis+cluster://a:6379,b:7");
}

TEST_CASE("a plain address of a node says which address follows the queue") {
    const std::size_t other = next_of("q");
    const std::string plain = "redis://127.0.0.1:" + std::to_string(three().node(other).port());
    Producer<Raw> producer(plain, "q");
    const std::string address = "; for a Cluster the address begins with redis+cluster://";
    const std::string what = message_of<ReplyError>([&] { producer.push(Raw{"x"}); });
    CHECK(contains(what, ": MOVED "));
    CHECK(what.ends_with(address));
    const std::string next = message_of<ReplyError>([&] {
        orizuru::Consumer<Raw> consumer(plain, "q");
        static_cast<void>(consumer.next(10s));
    });
    CHECK(contains(next, "MOVED "));
    CHECK(next.ends_with(address));
}

TEST_CASE("nodes that send each other's clients in a circle refuse in Redis' own words") {
    std::atomic<int> refused{0};
    Fd listener = listen_tcp();
    const std::string node = "127.0.0.1:" + std::to_string(port_of(listener));
    const FakeServer server(
        [&](const Texts& argv) -> std::string {
            if (argv.at(0) == "TYPE" || argv.at(0) == "CLUSTER") {
                return argv.at(0) == "TYPE" ? "+none\r\n" : "*0\r\n";
            }
            ++refused;
            return "-MOVED 11958 " + node + "\r\n";
        },
        {}, std::move(listener));
    const std::string uri = "redis+cluster://" + node;
    Producer<Raw> producer(uri, "q");
    orizuru::GarbageCollector collector(uri, "q");
    const auto check = [&](auto action) {
        try {
            action();
            FAIL_CHECK("no exception");
        } catch (const ReplyError& error) {
            CHECK(error.code() == "MOVED");
            CHECK(contains(error.what(), ": MOVED 11958 " + node));
            CHECK_FALSE(contains(error.what(), "REDIRECTED"));
        }
    };
    check([&] { producer.push(Raw{"x"}); });
    check([&] { producer.push_all(std::vector<Raw>(2500)); });
    check([&] { static_cast<void>(producer.size()); });
    check([&] { collector.collect(); });
    {
        // What runs for long goes on: this may pass.
        const int before = refused;
        const std::jthread running(
            [&](const std::stop_token& stop) { CHECK_NOTHROW(collector.run(stop, 20ms)); });
        CHECK(eventually([&] { return refused >= before + 9; }));
    }
    CHECK(contains(message_of<ConnectionError>([&] { Consumer<Raw>(uri, "q"); }),
                   ": MOVED 11958 " + node));
}

TEST_CASE("a Cluster that is down refuses in words, and is waited for by consumers") {
    Cluster one(1);
    Consumer<Raw> consumer(one.uri(), "q");
    RedisClient redis = one.client(0);
    const std::string slot = std::to_string(one.slot("q"));
    redis.command({"CLUSTER", "DELSLOTS", slot});
    REQUIRE(eventually([&] { return redis.try_command({"LLEN", "q"}).is_error(); }));
    CHECK(contains(message_of<ReplyError>([&] { Producer<Raw>(one.uri(), "q").push(Raw{"x"}); }),
                   "CLUSTERDOWN"));
    std::jthread mending([&] {
        std::this_thread::sleep_for(200ms);
        redis.command({"CLUSTER", "ADDSLOTS", slot});
        CHECK(eventually([&] { return one.serves(); }));
        redis.lpush("q", "up");
    });
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK(guard->ack());
}

TEST_CASE("a node that knows of no Cluster is passed over, though it answers") {
    const RedisServer stray{{"--cluster-enabled", "yes"}, RedisServer::Listen::tcp};
    const std::string uri = "redis+cluster://127.0.0.1:" + std::to_string(stray.port()) +
                            three().uri().substr(three().uri().find("//") + 2).insert(0, ",");
    Producer<Raw>(uri, "stray").push(Raw{"x"});
    CHECK(Consumer<Raw>(uri, "stray").next(patience).value().ack());
}

TEST_CASE("a node has time to answer, however many nodes the address names") {
    Cluster one(1);
    std::string uri = one.uri();
    for (int port = 1; port < 32; ++port) { // nobody listens there
        uri += ",127.0.0.1:" + std::to_string(port);
    }
    one.node(0).pause();
    const std::jthread resuming([&] {
        std::this_thread::sleep_for(250ms); // connect_timeout shared by all would be 60 ms
        one.node(0).resume();
    });
    CHECK(Producer<Raw>(uri + "?connect_timeout=2000", "q").push(Raw{"x"}) == 1);
}

TEST_CASE("an old master that has lost the others is left for the new one") {
    Cluster cluster(3, true);
    Producer<Raw> producer(cluster.uri({0, 1, 2}), "q");
    Consumer<Raw> consumer(cluster.uri({0, 1, 2}), "q");
    producer.push(Raw{"before"});
    CHECK(consumer.next(patience).value().ack());
    const std::size_t old = cluster.owner("q");
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        if (i != old) {
            cluster.client(old).command({"CLUSTER", "FORGET", cluster.id(i)});
        }
    }
    cluster.client(old + 3).command({"CLUSTER", "FAILOVER", "TAKEOVER"});
    REQUIRE(eventually([&] {
        return cluster.client(old).try_command({"TYPE", "q"}).text.starts_with("CLUSTERDOWN") &&
               !cluster.client(old + 3).try_command({"TYPE", "q"}).is_error();
    }));
    producer.push(Raw{"after"});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK((*guard)->bytes == "after");
    CHECK(guard->ack());
}

TEST_CASE("a master that dies is replaced, and its queues are found again") {
    Cluster cluster(3, true);
    Producer<Raw> producer(cluster.uri({0, 1, 2}), "q");
    Consumer<Raw> consumer(cluster.uri({0, 1, 2}), "q");
    producer.push(Raw{"before"});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    const std::size_t old = cluster.owner("q");
    RedisClient redis = cluster.client(old);
    redis.command({"SET", "{q}probe", "x"});
    REQUIRE(redis.command({"WAIT", "1", "5000"}).integer == 1);
    cluster.node(old).kill();
    const Stopwatch watch;
    CHECK(eventually([&] {
        try {
            producer.push(Raw{"after"});
            return true;
        } catch (const orizuru::Error&) {
            return false;
        }
    }));
    MESSAGE("a push succeeds after " << watch.elapsed());
    CHECK(cluster.owner("q") != old);
    CHECK(guard->ack());
    auto next = consumer.next(patience);
    REQUIRE(next);
    CHECK((*next)->bytes == "after");
    CHECK(next->ack());
}

} // namespace cluster_moves_test
