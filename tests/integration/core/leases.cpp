// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The lease keeps itself, and when it is lost all the same, the consumer and its guards notice,
// late owners never succeed, and the consumer goes on as a new incarnation.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/proxy.hpp"

#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leases_test {

using namespace std::chrono_literals;
using orizuru::Collected;
using orizuru::Event;
using orizuru::EventKind;
using orizuru::GarbageCollector;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::Fd;
using orizuru::test::OwnServer;
using orizuru::test::Proxy;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::RedisClient;
using orizuru::test::Texts;
using orizuru::test::time_of;
using orizuru::test::wait_for;

struct Leases : OwnServer {
    /// The value that this process gives the key, for another process.
    static std::string told(RedisClient& own, const std::string& key) {
        while (!own.exists(key)) {
            std::this_thread::sleep_for(1ms);
        }
        return own.command({"GET", key}).text;
    }

    Collected collect() { return GarbageCollector(server.uri(), "q", {.grace = 0ms}).collect(); }
    /// A collector declares all consumers dead.
    Collected reap() {
        forget_heartbeats();
        return collect();
    }
};

/// A forked process that consumes until it is killed. It uses only those of the parent's objects
/// that were made for it: no doctest, no destructors.
class OtherProcess {
  public:
    /// `live` gets a function to call when it is ready.
    explicit OtherProcess(const std::function<void(const std::function<void()>&)>& live) {
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        const Fd reader{ends[0]};
        Fd writer{ends[1]};
        m_pid = ::fork();
        if (m_pid == 0) {
            try {
                live([&] { writer.reset(); });
            } catch (...) {
                ::_exit(1);
            }
            ::pause();
            ::_exit(0);
        }
        writer.reset();
        char byte = 0;
        REQUIRE(::read(reader.get(), &byte, 1) == 0);
    }
    OtherProcess(const OtherProcess&) = delete;
    OtherProcess& operator=(const OtherProcess&) = delete;
    ~OtherProcess() { kill(); }

    void signal(int number) const { ::kill(m_pid, number); }
    void kill() {
        if (m_pid > 0) {
            signal(SIGKILL);
            wait_for(m_pid);
            m_pid = -1;
        }
    }

  private:
    pid_t m_pid = -1;
};

/// A consumer whose death Redis does not notice: its wait stays there.
struct Ghost {
    explicit Ghost(Leases& leases)
        : process([&](const auto& ready) {
              ready();
              RedisClient own{leases.server.uri()};
              RawConsumer consumer{Leases::told(own, "address"), "q", {.lease = 300ms}};
              static_cast<void>(consumer.next());
          }),
          proxy(leases.server.socket_path()) {
        proxy.swallow_fin();
        leases.redis.set("address", proxy.uri());
    }

    OtherProcess process; // before the proxy's thread: ThreadSanitizer wants forks without threads
    Proxy proxy;
};

TEST_CASE_FIXTURE(Leases, "the lease is kept while a handler blocks for several leases") {
    std::atomic<int> beats{0};
    const Diary diary;
    RawConsumer consumer{
        server.uri(), "q", {.lease = 200ms, .on_event = diary.pen(), .on_beat = [&] { ++beats; }}};
    const std::string id = consumer.name();
    push({"a"});
    auto guard = take(consumer);
    const int before = beats;
    const auto begun = std::chrono::steady_clock::now();
    // Three beats come in each lease; this takes five beats.
    CHECK(eventually([&] {
        CHECK(collect() == Collected{});
        return beats >= before + 15;
    }));
    CHECK(std::chrono::steady_clock::now() - begun >= 800ms);
    const auto left_ms = redis.command({"PTTL", "orizuru:{q}:heartbeat:" + id}).integer;
    CHECK(left_ms > 0);
    CHECK(left_ms <= 200);
    CHECK(guard.ack());
    CHECK(consumer.name() == id);
    CHECK(is_empty());
    CHECK(diary.size() == 0);
}

TEST_CASE_FIXTURE(Leases, "settling after the lease was lost is false, and the consumer goes on "
                          "as a new incarnation") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.prefetch = 7, .on_event = diary.pen()}};
    RawConsumer other{server.uri(), "q"};
    push({"a", "b", "c", "d", "e", "f", "g"});
    std::vector<RawGuard> guards;
    for (int i = 0; i < 6; ++i) {
        guards.push_back(take(consumer));
    }
    const std::string id = consumer.name();
    CHECK(redis.del("orizuru:{q}:heartbeat:" + id) == 1);
    CHECK(collect().reclaimed == 7);

    CHECK_FALSE(guards[1].ack());
    CHECK(consumer.name() != id);
    CHECK_FALSE(guards[0].reject());
    CHECK_FALSE(guards[2].release());
    CHECK_FALSE(guards[3].push("other"));
    CHECK_FALSE(guards[4].bury("too late"));
    { const RawGuard dropped = std::move(guards[5]); }
    CHECK(eventually([&] { return diary.count(EventKind::lease_lost) == 1; }));
    CHECK(everywhere({"other"}) == Texts{"a", "b", "c", "d", "e", "f", "g"});
    CHECK(redis.llen("q") == 7);
    CHECK(redis.llen(dead) == 0);

    for (const std::string expected : {"a", "b", "c", "d"}) {
        auto guard = take(other);
        CHECK(guard->bytes == expected);
        CHECK(guard.ack());
    }
    for (const std::string expected : {"e", "f", "g"}) {
        auto guard = take(consumer);
        CHECK(guard->bytes == expected);
        CHECK(guard.ack());
    }
    CHECK(is_empty());
    CHECK(registered() == 2);
}

TEST_CASE_FIXTURE(Leases, "the beat of an idle consumer notices the lost lease") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.lease = 300ms, .on_event = diary.pen()}};
    const std::string id = consumer.name();
    push({"a"});
    auto guard = take(consumer);
    CHECK(reap().reclaimed == 1);
    CHECK(eventually([&] { return diary.count(EventKind::lease_lost) == 1; }));
    CHECK(eventually([&] { return registered() == 1; }));
    CHECK(consumer.name() != id);
    CHECK_FALSE(guard.ack());
    CHECK(take(consumer).ack());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(Leases, "a consumer that waits in next when its lease is lost gets the next "
                          "message as a new incarnation") {
    RawConsumer consumer{server.uri(), "q"};
    const std::string id = consumer.name();
    auto next = take_in_background(consumer);
    REQUIRE(somebody_waits());
    CHECK(reap().consumers == 1);
    push({"a"});
    auto guard = next.get();
    REQUIRE(guard);
    CHECK(guard->ack());
    CHECK(consumer.name() != id);
    CHECK(is_empty());
    CHECK(registered() == 1);
}

TEST_CASE_FIXTURE(Leases, "an ack whose reply came in before the reaping stays true") {
    RawConsumer consumer{server.uri(), "q", {.prefetch = 3}};
    push({"a", "b", "c"});
    auto first = take(consumer);
    auto second = take(consumer);
    auto third = take(consumer);
    CHECK(second.ack());
    CHECK(reap().reclaimed == 2);
    CHECK_FALSE(first.ack());
    CHECK_FALSE(third.ack());
    CHECK(everywhere() == Texts{"a", "c"});
}

TEST_CASE_FIXTURE(Leases, "deferred acks that come too late are counted by flush") {
    RawConsumer consumer{server.uri(), "q", {.prefetch = 3, .ack = orizuru::AckMode::deferred}};
    push({"a", "b", "c"});
    CHECK(take(consumer).ack());
    CHECK(consumer.flush() == 0);
    CHECK(everywhere() == Texts{"b", "c"});
    CHECK(take(consumer).ack());
    CHECK(take(consumer).ack());
    CHECK(reap().reclaimed == 2);
    CHECK(consumer.flush() == 2);
    CHECK(consumer.flush() == 0);
    CHECK(everywhere() == Texts{"b", "c"});
}

TEST_CASE_FIXTURE(Leases, "a process that was paused beyond its lease does not succeed late") {
    push({"a", "b"});
    // The results of its two settlements, as an exit status.
    const std::string verdicts = "verdicts";
    OtherProcess sleeper{[&](const auto& ready) {
        RawConsumer consumer{server.uri(), "q", {.lease = 300ms, .prefetch = 2}};
        auto first = consumer.next();
        auto second = consumer.next();
        ready();
        RedisClient own{server.uri()};
        told(own, "go");
        own.lpush(verdicts, first->ack() ? "true" : "false");
        own.lpush(verdicts, second->push("other") ? "true" : "false");
        ::pause();
    }};
    CHECK(held().size() == 2);
    sleeper.signal(SIGSTOP);
    std::uint64_t reclaimed = 0;
    CHECK(eventually([&] { return (reclaimed += collect().reclaimed) == 2; }));
    RawConsumer consumer{server.uri(), "q"};
    auto guard = take(consumer);
    CHECK(guard->bytes == "a");
    redis.set("go", "now");
    sleeper.signal(SIGCONT);
    CHECK(eventually([&] { return redis.llen(verdicts) == 2; }));
    CHECK(redis.lrange(verdicts) == Texts{"false", "false"});
    CHECK(everywhere({"other"}) == Texts{"a", "b"});
    CHECK(guard.ack());
}

TEST_CASE_FIXTURE(Leases, "a consumer goes on after FLUSHALL") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.lease = 300ms, .on_event = diary.pen()}};
    const std::string id = consumer.name();
    push({"a"});
    std::optional guard = take(consumer);
    SUBCASE("with a message in hand, noticed by its settlement") {
        redis.flushall();
        CHECK_FALSE(guard->ack());
        CHECK(eventually([&] { return diary.count(EventKind::lease_lost) == 1; }));
    }
    SUBCASE("with a message in hand, noticed by the beat") {
        redis.flushall();
        CHECK(eventually([&] { return diary.count(EventKind::lease_lost) == 1; }));
        CHECK_FALSE(guard->ack());
    }
    SUBCASE("while it waits in next") {
        CHECK(guard->ack());
        auto next = take_in_background(consumer);
        REQUIRE(somebody_waits());
        redis.flushall();
        push({"c"});
        auto third = next.get();
        REQUIRE(third);
        CHECK(third->ack());
    }
    push({"b"});
    auto second = take(consumer);
    CHECK(second->bytes == "b");
    CHECK(second.ack());
    CHECK(consumer.name() != id);
    CHECK(is_empty());
    CHECK(eventually([&] { return registered() == 1; }));
    CHECK(collect() == Collected{});
}

TEST_CASE_FIXTURE(Leases, "exceptions of callbacks are swallowed") {
    std::atomic<int> beats{0};
    std::atomic<int> events{0};
    RawConsumer consumer{server.uri(),
                         "q",
                         {.lease = 150ms,
                          .on_event =
                              [&](const Event&) {
                                  ++events;
                                  throw std::runtime_error("no logger");
                              },
                          .on_beat =
                              [&] {
                                  ++beats;
                                  throw 42;
                              }}};
    CHECK(eventually([&] { return beats >= 3; }));
    push({"a"});
    auto guard = take(consumer);
    reap();
    CHECK_FALSE(guard.ack());
    CHECK(events >= 1);
    const int before = beats;
    CHECK(eventually([&] { return beats > before; }));
    CHECK(take(consumer).ack());
}

TEST_CASE_FIXTURE(Leases, "a guard can be settled or destroyed inside on_event") {
    std::mutex mutex;
    std::optional<RawGuard> kept;
    std::atomic<int> done{0};
    bool destroys = false;
    SUBCASE("settled") {}
    SUBCASE("destroyed") { destroys = true; }
    RawConsumer consumer{server.uri(), "q", {.prefetch = 3, .on_event = [&](const Event& event) {
                                                 const std::lock_guard lock(mutex);
                                                 if (event.kind != EventKind::reconnected ||
                                                     !kept) {
                                                     return;
                                                 }
                                                 if (!destroys) {
                                                     done += kept->reject() ? 1 : 0;
                                                 } else {
                                                     ++done;
                                                 }
                                                 kept.reset();
                                             }}};
    push({"a", "b", "c"});
    kept = take(consumer);
    auto second = take(consumer);
    auto third = take(consumer);
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    const auto waited = time_of([&] {
        CHECK(second.ack());
        CHECK(third.ack());
        CHECK(eventually([&] { return done == 1; }));
    });
    CHECK(waited < 2s);
    CHECK(redis.lrange(unack) == Texts{"a"});
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Leases, "a consumer and its last guard can end inside on_beat") {
    std::mutex mutex;
    auto consumer = std::unique_ptr<RawConsumer>();
    std::optional<RawGuard> kept;
    std::atomic<bool> ready{false};
    std::atomic<bool> ended{false};
    const auto on_beat = [&] {
        if (!ready) {
            return;
        }
        const std::lock_guard lock(mutex);
        consumer.reset();
        kept.reset();
        ended = true;
        ready = false;
    };
    consumer = std::make_unique<RawConsumer>(
        server.uri(), "q", orizuru::ConsumerOptions{.lease = 150ms, .on_beat = on_beat});
    push({"a"});
    kept = take(*consumer);
    ready = true;
    CHECK(eventually([&] { return ended.load(); }));
    CHECK(eventually([&] { return nobody_left(); }));
    CHECK(redis.lrange(unack) == Texts{"a"});
    const std::lock_guard lock(mutex);
    CHECK(consumer == nullptr);
}

TEST_CASE_FIXTURE(Leases,
                  "a waiter that Redis keeps for a dead consumer takes no message with it") {
    Ghost ghost{*this};
    REQUIRE(somebody_waits());
    ghost.process.kill();
    CHECK(eventually([&] { return collect().consumers == 1; }));
    CHECK(somebody_waits());
    for (int i = 0; i < 20; ++i) {
        push({std::to_string(i)});
    }
    CHECK(redis.llen("q") == 20);
    CHECK(held().empty());
    RawConsumer living{server.uri(), "q"};
    for (int i = 0; i < 20; ++i) {
        auto guard = take(living);
        CHECK(guard->bytes == std::to_string(i));
        CHECK(guard.ack());
    }
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(Leases, "a message that goes to a dead consumer's waiter is brought back") {
    Ghost ghost{*this};
    REQUIRE(somebody_waits());
    ghost.process.kill();
    push({"a"});
    CHECK(held() == Texts{"a"});
    CHECK(eventually([&] { return collect().reclaimed == 1; }));
    CHECK(redis.lrange("q") == Texts{"a"});
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Leases, "an id that is taken is told from other failures of an adoption") {
    redis.set("taken", "x");
    const auto answer =
        redis.try_command({"EVAL", std::string(orizuru::detail::adopt_script()), "5", "heartbeat",
                           "old", "new heartbeat", "taken", "consumers", "id", "new id",
                           "orz:0123456789abcdef:0", "1000", "1000", "orz:0123456789abcdef:"});
    CHECK(answer.text.starts_with("BUSYNAME "));
    CHECK(redis.keys() == orizuru::test::Texts{"taken"});
}

} // namespace leases_test
