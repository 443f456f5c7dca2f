// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Several queues on one connection: whose reply is whose, and what one queue's fault and the end of
// the connection mean to each.

#include "integration/core/fault_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/timeout.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/consumer/session.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/event.hpp>
#include <orizuru/keys.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace link_test {

using namespace orizuru::detail;
using namespace std::chrono_literals;
using orizuru::ConsumerOptions;
using orizuru::Event;
using orizuru::EventKind;
using orizuru::Keys;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::OwnServer;
using orizuru::test::RedisClient;
using orizuru::test::Texts;
using orizuru::test::time_of;
using State = Delivery::State;

/// A registered consumer of a queue, whose requests the test sends one by one.
struct Queue {
    Queue(const std::shared_ptr<Link>& link, const std::string& name)
        : lane(
              link, [&] { return Mirror(Keys(name), 30s, [name] { return make_identity(name); }); },
              EventQueue(name, [this](const Event& event) { events.push_back(event.kind); })) {
        drive([this] { return lane.mirror().running(); });
    }

    void drive(FunctionRef<bool()> done) {
        lane.locked([&](Lane::Lock& lock) { REQUIRE(lane.drive(lock, deadline, nullptr, done)); });
    }
    /// Sends a fetch that carries the acks.
    void send_fetch() {
        const Lane::Lock lock(lane.mutex());
        REQUIRE(lane.ready());
        lane.send([this](std::string& out) { lane.mirror().send_settle(out, 10); });
    }
    /// The next message, fetched and handed out.
    DeliveryPtr take() {
        send_fetch();
        drive([this] { return lane.mirror().has_ready(); });
        const Lane::Lock lock(lane.mutex());
        Fifo<DeliveryPtr> run;
        lane.held().hand_out(run, 1);
        return run.pop_front();
    }
    void ack(const DeliveryPtr& message) {
        const Lane::Lock lock(lane.mutex());
        lane.mirror().want(message, nullptr);
        lane.held().let_go();
    }
    [[nodiscard]] std::string id() {
        const Lane::Lock lock(lane.mutex());
        return lane.mirror().identity().id;
    }
    [[nodiscard]] std::string list() { return lane.keys().processing(id()); }

    TimePoint deadline = deadline_in(20s);
    std::vector<EventKind> events;
    Lane lane;
};

struct OneLink : OwnServer {
    /// How many connections there are besides the test's own.
    std::size_t connections() {
        const std::string list = redis.command({"CLIENT", "LIST", "TYPE", "normal"}).text;
        return static_cast<std::size_t>(std::ranges::count(list, '\n')) - 1;
    }

    std::shared_ptr<Link> link = std::make_shared<Link>(server.uri(), deadline_in(10s));
};

TEST_CASE_FIXTURE(OneLink, "an error of one queue concerns no other queue of the link") {
    Queue a(link, "a");
    Queue b(link, "b");
    redis.lpush("a", {"1"});
    redis.lpush("b", {"2"});
    const DeliveryPtr of_a = a.take();
    const DeliveryPtr of_b = b.take();
    const std::string id_of_a = a.id();
    const std::string id_of_b = b.id();

    redis.command({"DEL", a.list()});
    b.ack(of_b);
    a.ack(of_a);
    b.send_fetch();
    a.send_fetch(); // STALE
    b.send_fetch();
    a.drive([&] { return a.lane.mirror().incarnation() == 1 && a.lane.mirror().running(); });
    b.drive([&] { return !b.lane.mirror().unanswered(); });

    CHECK(a.id() != id_of_a);
    CHECK(of_a->state == State::lost);
    CHECK(of_b->state == State::settled);
    CHECK(b.id() == id_of_b);
    CHECK(b.lane.mirror().incarnation() == 0);
    CHECK(b.events.empty());
    CHECK(a.events == std::vector{EventKind::lease_lost});
    CHECK(connections() == 1);
    CHECK(redis.llen(b.list()) == 1); // its header
}

TEST_CASE_FIXTURE(OneLink, "replies that a link owes to an earlier incarnation are discarded") {
    Queue a(link, "a");
    Queue b(link, "b");
    redis.lpush("a", {"1", "2"});
    const DeliveryPtr message = a.take();
    a.ack(message);
    redis.lpush("a", {"3"});
    a.send_fetch();
    {
        // Redis has run it or will, but its reply has not been read.
        const Lane::Lock lock(a.lane.mutex());
        a.lane.begin_recovery("a doubt");
    }
    b.send_fetch();
    a.drive([&] { return a.lane.mirror().running(); });
    b.drive([&] { return !b.lane.mirror().unanswered(); });

    CHECK(message->state == State::settled); // as the adopted list's header tells
    CHECK(a.lane.mirror().messages().size() == 2);
    CHECK(a.events == std::vector{EventKind::redelivered});
    CHECK(b.lane.mirror().incarnation() == 0);
    CHECK(connections() == 1);
    CHECK(redis.llen(a.list()) == 3);

    // What follows counts.
    const DeliveryPtr next = a.take();
    a.ack(next);
    a.send_fetch();
    a.drive([&] { return next->state == State::settled; });
}

TEST_CASE_FIXTURE(OneLink, "when a link breaks, queues with an unanswered request recover") {
    Queue a(link, "a");
    Queue b(link, "b");
    const std::string id_of_b = b.id();
    redis.command({"CLIENT", "PAUSE", "60000", "WRITE"});
    a.send_fetch();
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    redis.command({"CLIENT", "UNPAUSE"});
    a.drive([&] { return a.lane.mirror().incarnation() == 1 && a.lane.mirror().running(); });

    CHECK(a.lane.mirror().incarnation() == 1);
    CHECK(b.lane.mirror().incarnation() == 0);
    CHECK(b.id() == id_of_b);
    redis.lpush("b", {"1"});
    CHECK(b.take()->payload == "1");
    const std::vector both{EventKind::disconnected, EventKind::reconnected};
    CHECK(a.events == both);
    CHECK(b.events == both);
}

TEST_CASE("at most eight queues of a link adopt their lists at a time") {
    std::atomic<int> adopts{0};
    std::atomic<int> fetches{0};
    const FakeServer fake([&](const Texts& argv) -> std::string {
        if (argv.at(0) == "PING") {
            return "+PONG\r\n";
        }
        if (argv.at(1) == start_script()) {
            return ":1\r\n";
        }
        argv.at(1) == adopt_script() ? ++adopts : ++fetches;
        return {}; // to be answered never
    });
    const auto link = std::make_shared<Link>(fake.uri(), deadline_in(10s));
    std::deque<Queue> queues;
    for (int i = 0; i < 12; ++i) {
        queues.emplace_back(link, "q" + std::to_string(i));
    }
    for (Queue& queue : queues) {
        const Lane::Lock lock(queue.lane.mutex());
        queue.lane.begin_recovery("a doubt");
    }
    for (Queue& queue : queues) {
        Lane::Lock lock(queue.lane.mutex());
        CHECK_FALSE(queue.lane.drive(lock, deadline_in(30ms), nullptr, [] { return false; }));
    }
    CHECK(orizuru::test::eventually([&] { return adopts == 8; }));
    CHECK(fetches == 0);
}

TEST_CASE_FIXTURE(OneLink, "what a call has noted is told without the lock, also when it throws") {
    Queue a(link, "a");
    const auto note = [&](const Lane::Lock& lock) {
        CHECK(lock.owns_lock());
        a.lane.events().note(EventKind::redelivered, "");
    };
    SUBCASE("it returns") { a.lane.locked(note); }
    SUBCASE("it returns something") {
        CHECK(a.lane.locked([&](const Lane::Lock& lock) {
            note(lock);
            return 7;
        }) == 7);
    }
    SUBCASE("it throws") {
        CHECK_THROWS_AS(a.lane.locked([&](const Lane::Lock& lock) {
            note(lock);
            throw std::runtime_error("refused");
        }),
                        std::runtime_error);
    }
    CHECK(a.events == std::vector{EventKind::redelivered});
    CHECK(std::unique_lock(a.lane.mutex(), std::try_to_lock).owns_lock());
}

TEST_CASE_FIXTURE(OneLink, "no queue gets the reply that is owed to one that has left the link") {
    redis.lpush("a", {"1"});
    std::optional<Queue> queue(std::in_place, link, "a");
    queue->send_fetch();
    queue.reset();
    redis.lpush("b", {"2"});
    queue.emplace(link, "b"); // at the same address
    CHECK(queue->take()->payload == "2");
    CHECK(queue->lane.mirror().incarnation() == 0);
}

TEST_CASE("errors to requests that were sent together hold a link back once") {
    const FakeServer fake([](const Texts& argv) -> std::string {
        if (argv.at(0) == "PING") {
            return "+PONG\r\n";
        }
        return argv.at(1) == start_script() ? ":1\r\n" : "-BUSY a script runs\r\n";
    });
    const auto link = std::make_shared<Link>(fake.uri(), deadline_in(10s));
    std::deque<Queue> queues;
    for (int i = 0; i < 24; ++i) {
        queues.emplace_back(link, "q" + std::to_string(i));
    }
    for (Queue& queue : queues) {
        queue.send_fetch();
    }
    Queue& last = queues.back();
    last.drive([&] { return !last.lane.mirror().unanswered(); });
    // Of up to 50 ms; the 24th could be 5 s.
    CHECK(time_of([&] { last.drive([&] { return last.lane.ready(); }); }) < 500ms);
}

TEST_CASE("a thread that reads for all notices a reply that comes too late for another queue") {
    const FakeServer fake([](const Texts& argv) -> std::string {
        if (argv.at(0) == "PING") {
            return "+PONG\r\n";
        }
        return argv.at(1) == start_script() ? ":1\r\n" : "";
    });
    const auto link = std::make_shared<Link>(fake.uri() + "?command_timeout=200", deadline_in(10s));
    Queue a(link, "a");
    Queue b(link, "b");
    std::atomic<bool> leads{false};
    std::jthread leader([&] {
        Lane::Lock lock(a.lane.mutex());
        a.lane.drive(lock, deadline_in(5s), nullptr, [&] {
            leads = true;
            return b.lane.mirror().incarnation() > 0;
        });
    });
    REQUIRE(orizuru::test::eventually([&] { return leads.load(); }));
    CHECK(time_of([&] {
              b.send_fetch();
              b.drive([&] { return b.lane.mirror().incarnation() > 0; });
          }) < 3s);
}

TEST_CASE_FIXTURE(OneLink,
                  "consumers that share a link settle each message once, while it breaks") {
    constexpr int messages = 300;
    const std::array<std::string, 4> names{"a", "b", "c", "d"};
    for (const std::string& name : names) {
        for (int i = 0; i < messages; ++i) {
            redis.lpush(name, {std::to_string(i)});
        }
    }
    std::mutex mutex;
    std::vector<std::string> settled;
    std::vector<std::jthread> threads;
    for (const std::string& name : names) {
        threads.emplace_back([&, name] {
            const auto session = Session::open(std::make_shared<Heartbeat>(link), Keys(name),
                                               ConsumerOptions{.prefetch = 3}, deadline_in(10s));
            for (int left = messages; left > 0;) {
                Timeout timeout(20s);
                const DeliveryPtr message = session->fetcher().next({}, timeout);
                if (!message) {
                    break;
                }
                if (session->settle(message, nullptr, "acking")) {
                    --left;
                    const std::lock_guard lock(mutex);
                    settled.push_back(name + message->payload);
                }
            }
        });
    }
    const auto count = [&] {
        const std::lock_guard lock(mutex);
        return settled.size();
    };
    for (std::size_t i = 1; i < 6; ++i) {
        const std::size_t enough = i * messages * names.size() / 8;
        CHECK(orizuru::test::eventually([&] { return count() >= enough; }));
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    }
    threads.clear();
    std::ranges::sort(settled);
    CHECK(std::ranges::adjacent_find(settled) == settled.end());
    CHECK(settled.size() == messages * names.size());
    for (const std::string& name : names) {
        CHECK(redis.llen(name) == 0);
        CHECK(redis.command({"SCARD", Keys(name).consumers()}).integer == 0);
    }
}

TEST_CASE_FIXTURE(OneLink, "a beat that is refused concerns no other queue of the heartbeat") {
    const auto heartbeat = std::make_shared<Heartbeat>(link);
    std::atomic<int> beats_of_b{0};
    const auto open = [&](const std::string& name, std::function<void()> on_beat) {
        return Session::open(heartbeat, Keys(name),
                             ConsumerOptions{.lease = 300ms, .on_beat = std::move(on_beat)},
                             deadline_in(10s));
    };
    const auto a = open("a", nullptr);
    const auto b = open("b", [&] { ++beats_of_b; });
    const auto consumers = [&](const std::string& name) {
        return redis.command({"SMEMBERS", Keys(name).consumers()}).elements;
    };
    const std::string id_of_a = consumers("a").at(0).text;
    const std::string id_of_b = consumers("b").at(0).text;

    redis.command({"DEL", Keys("a").processing(id_of_a)});
    CHECK(eventually([&] {
        const auto now = consumers("a");
        return now.size() == 1 && now[0].text != id_of_a;
    }));
    const int until_now = beats_of_b;
    CHECK(eventually([&] { return beats_of_b > until_now + 1; }));
    CHECK(consumers("b").at(0).text == id_of_b);
}

TEST_CASE_FIXTURE(OneLink, "an on_beat may end a consumer while its own consumer ends") {
    const auto heartbeat = std::make_shared<Heartbeat>(link);
    auto other = Session::open(heartbeat, Keys("b"), ConsumerOptions(), deadline_in(10s));
    RedisClient watching(server.uri());
    std::atomic<bool> begun{false};
    std::atomic<bool> ended{false};
    const auto end_other = [&] {
        if (!begun.exchange(true)) {
            // Its own consumer has left the registry, and now leaves the heartbeat.
            ended = eventually([&] { return !watching.exists("orizuru:{a}:consumers"); });
            other.reset();
        }
    };
    auto own =
        Session::open(heartbeat, Keys("a"), ConsumerOptions{.lease = 300ms, .on_beat = end_other},
                      deadline_in(10s));
    REQUIRE(eventually([&] { return begun.load(); }));
    own.reset();
    CHECK(ended);
    CHECK(other == nullptr);
    CHECK_FALSE(redis.exists("orizuru:{b}:consumers"));
}

} // namespace link_test
