// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Effects that run under a claim, by themselves and for a message that is settled in one step with
// the mark.

#include "integration/once/once_fixture.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/once.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace once_runs_test {

using namespace std::chrono_literals;
using orizuru::Consumer;
using orizuru::GarbageCollector;
using orizuru::MessageGuard;
using orizuru::Once;
using orizuru::OnceOutcome;
using orizuru::OnceToken;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Scheduler;
using orizuru::detail::at_exit;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::OnceFixture;
using orizuru::test::Proxy;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::server;
using orizuru::test::Texts;
using State = orizuru::Claim::State;

// A result that is no text would be lost.
static_assert(orizuru::OnceEffect<void (*)()>);
static_assert(orizuru::OnceEffect<const char* (*)()>);
static_assert(orizuru::OnceEffect<std::string (*)(const OnceToken&)>);
static_assert(!orizuru::OnceEffect<bool (*)()>);
static_assert(!orizuru::OnceEffect<void (*)(int)>);

struct Fixture : OnceFixture {
    Consumer<Raw> consumer{uri, "q"};

    auto take_one() {
        push({"a"});
        return take(consumer);
    }
    /// Makes the consumer lose its lease: a collector gives its messages to others.
    void lose_lease() {
        forget_heartbeat(only_id());
        GarbageCollector(uri, "q", {.grace = 0ms}).collect();
    }
    /// Takes the message that was put off, when its time has come.
    auto take_again() {
        Scheduler scheduler(uri, "q");
        REQUIRE(eventually([&] { return scheduler.move_due() == 1; }));
        return take(consumer);
    }
    /// How many scripts the renewal of all held claims takes.
    std::int64_t renewals(Once& by) {
        redis.command({"CONFIG", "RESETSTAT"});
        by.renew();
        return info("commandstats", "cmdstat_eval:calls");
    }
    std::int64_t due_in() {
        return std::stoll(
                   redis.command({"ZRANGE", scheduled, "0", "0", "WITHSCORES"}).elements[1].text) -
               server_ms();
    }
};

[[noreturn]] void fail() { throw std::runtime_error("no luck"); }

TEST_CASE_FIXTURE(Fixture, "an effect runs once, and a later run gets its result") {
    const auto first = once.run("id", [this] {
        ++effects;
        return "receipt";
    });
    CHECK(first.outcome == OnceOutcome::ran);
    CHECK(first.result == "receipt");
    const auto second = other.run("id", effect());
    CHECK(second.outcome == OnceOutcome::repeated);
    CHECK(second.result == "receipt");
    CHECK(effects == 1);
    CHECK(state() == "done");
}

TEST_CASE_FIXTURE(Fixture, "an effect gets its token") {
    OnceToken given;
    CHECK(once.run("id", [&](const OnceToken& token) { given = token; }).outcome ==
          OnceOutcome::ran);
    CHECK(given.id == "id");
    CHECK(std::to_string(given.fence) == fields()["fence"]);
}

TEST_CASE_FIXTURE(Fixture, "an effect does not run while another run has its id") {
    claimed(other);
    const auto run = once.run("id", effect());
    CHECK(run.outcome == OnceOutcome::busy);
    CHECK(run.busy_for > 20s);
    CHECK(effects == 0);
}

TEST_CASE_FIXTURE(Fixture, "an effect that throws is passed on, and can run again at once") {
    CHECK(message_of<std::runtime_error>([this] { static_cast<void>(once.run("id", fail)); }) ==
          "no luck");
    CHECK_FALSE(redis.exists(record));
    CHECK(other.run("id", effect()).outcome == OnceOutcome::ran);
    auto guard = take_one();
    CHECK(message_of<std::runtime_error>([&] { once.run(guard, "second", fail); }) == "no luck");
    CHECK_FALSE(guard.settled());
    CHECK(held() == Texts{"a"});
    CHECK(once.run(guard, "second", effect()).outcome == OnceOutcome::ran);
    CHECK(effects == 2);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Fixture, "an effect during which another one has claimed its id says so, and "
                           "changes nothing of the other's") {
    const auto run = once.run("id", [this] {
        end_lease();
        claimed(other);
        return "late";
    });
    CHECK(run.outcome == OnceOutcome::lost);
    CHECK(run.result == "late");
    CHECK(state() == "claimed");
    CHECK_FALSE(fields().contains("result"));
}

TEST_CASE_FIXTURE(Fixture, "a result that is too large is not stored, and its effect does not run "
                           "again") {
    const auto large = [this] {
        ++effects;
        return std::string(Once::largest_result + 1, 'x');
    };
    auto guard = take_one();
    CHECK_THROWS_AS(once.run(guard, "id", large), std::invalid_argument);
    CHECK(state() == "done");
    CHECK(held() == Texts{"a"});
    CHECK(once.run(guard, "id", large).outcome == OnceOutcome::repeated);
    CHECK_THROWS_AS(static_cast<void>(once.run("alone", large)), std::invalid_argument);
    CHECK(once.run("alone", large).outcome == OnceOutcome::repeated);
    CHECK(effects == 2);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Fixture, "a message is acked in the step that marks its id as done") {
    auto guard = take_one();
    redis.command({"CONFIG", "RESETSTAT"});
    std::int64_t before = 0;
    const auto run = once.run(guard, "id", [&] {
        CHECK(held() == Texts{"a"});
        CHECK(state() == "claimed");
        before = info("commandstats", "cmdstat_eval:calls") +
                 info("commandstats", "cmdstat_evalsha:calls");
        return "x";
    });
    CHECK(run.outcome == OnceOutcome::ran);
    CHECK(guard.settled());
    CHECK(fields() == Fields{{"state", "done"}, {"fence", fields()["fence"]}, {"result", "x"}});
    CHECK(nothing_left());
    CHECK(info("commandstats", "cmdstat_eval:calls") +
              info("commandstats", "cmdstat_evalsha:calls") - before <=
          2); // the second is the body, when Redis did not know it
}

TEST_CASE_FIXTURE(Fixture, "a message whose id is done is acked, and its effect does not run") {
    once.complete(claimed(once), "x");
    auto guard = take_one();
    const auto run = other.run(guard, "id", effect());
    CHECK(run.outcome == OnceOutcome::repeated);
    CHECK(run.result == "x");
    CHECK(effects == 0);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Fixture, "a message whose id is busy comes again when the lease is over") {
    Once brief(uri, "q", {.lease = 1s});
    claimed(brief);
    auto guard = take_one();
    const auto run = once.run(guard, "id", effect());
    CHECK(run.outcome == OnceOutcome::busy);
    CHECK(guard.settled());
    CHECK(due_in() <= 1000);
    auto again = take_again();
    CHECK(once.run(again, "id", effect()).outcome == OnceOutcome::ran);
    CHECK(effects == 1);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Fixture,
                  "a message that was lost to another consumer is known to be done there") {
    auto guard = take_one();
    const auto run = once.run(guard, "id", [this] {
        ++effects;
        lose_lease();
        return "x";
    });
    CHECK(run.outcome == OnceOutcome::lost);
    CHECK(fields()["result"] == "x");
    CHECK(waiting() == Texts{"a"});
    Consumer<Raw> second(uri, "q");
    auto again = take(second);
    CHECK(other.run(again, "id", effect()).outcome == OnceOutcome::repeated);
    CHECK(effects == 1);
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(Fixture, "a message whose id another one has claimed meanwhile comes again, and "
                           "is acked when that one is through") {
    Once brief(uri, "q", {.lease = 200ms});
    OnceToken theirs;
    auto guard = take_one();
    const auto run = brief.run(guard, "id", [&] {
        ++effects;
        end_lease();
        theirs = claimed(other);
    });
    CHECK(run.outcome == OnceOutcome::lost);
    CHECK(state() == "claimed");
    CHECK(guard.settled());
    CHECK(other.complete(theirs));
    auto again = take_again();
    CHECK(once.run(again, "id", effect()).outcome == OnceOutcome::repeated);
    CHECK(effects == 1);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Fixture, "when the step that settles is refused the id is done, and the message "
                           "is still held") {
    const std::string clerk = "unix://clerk:open-sesame@" + server().socket_path();
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "&*", "+@all"});
    Consumer<Raw> own(clerk, "q");
    push({"a"});
    auto guard = take(own);
    const std::string error = message_of<ReplyError>([&] {
        once.run(guard, "id", [this] {
            ++effects;
            redis.command({"ACL", "SETUSER", "clerk", "-lrem"});
        });
    });
    CHECK(contains(error, "NOPERM"));
    CHECK(state() == "done");
    CHECK_FALSE(guard.settled());
    redis.command({"ACL", "SETUSER", "clerk", "+lrem"});
    CHECK(once.run(guard, "id", effect()).outcome == OnceOutcome::repeated);
    CHECK(effects == 1);
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture,
                  "when Redis is emptied during an effect, nothing of it is marked or acked") {
    auto guard = take_one();
    const auto run = once.run(guard, "id", [this] {
        ++effects;
        redis.flushall();
    });
    CHECK(run.outcome == OnceOutcome::lost);
    CHECK_FALSE(redis.exists(record));
    CHECK(other.run("id", effect()).outcome == OnceOutcome::ran);
    CHECK(effects == 2);
}

TEST_CASE(
    "when Redis does not answer behind an effect the caller is in doubt, and it is marked when "
    "Redis answers") {
    RedisServer own;
    RedisClient redis(own.uri());
    const std::string uri = own.uri() + "?connect_timeout=200&command_timeout=200";
    Once once(uri, "q", {.lease = 24h});
    Consumer<Raw> consumer(uri, "q", {.lease = 300ms});
    redis.lpush("q", "a");
    // On a busy machine the answers before the effect may be late as well: then it has not run.
    const auto repeated_until = [](auto reached, auto action) {
        return eventually([&] {
            try {
                action();
            } catch (const orizuru::ConnectionError&) {
                return reached();
            }
            return reached();
        });
    };
    std::optional<MessageGuard<Raw>> guard;
    REQUIRE(repeated_until([&] { return guard.has_value(); }, [&] { guard = consumer.next(0ms); }));
    int attempts = 0;
    std::string paused;
    bool in_doubt = false;
    REQUIRE(repeated_until([&] { return !paused.empty(); },
                           [&] {
                               const std::string id = std::to_string(++attempts);
                               try {
                                   once.run(*guard, id, [&] {
                                       paused = id;
                                       own.pause();
                                   });
                               } catch (const orizuru::ConnectionError& error) {
                                   in_doubt = error.in_doubt();
                                   throw;
                               }
                           }));
    CHECK(in_doubt);
    own.resume();
    Once patient(own.uri(), "q");
    CHECK(eventually([&] { return patient.claim(paused).state == State::done; }));
}

TEST_CASE_FIXTURE(Fixture, "a refused claim leaves the message unchanged") {
    redis.lpush(record, "x");
    auto guard = take_one();
    CHECK(contains(message_of<ReplyError>([&] { once.run(guard, "id", effect()); }),
                   record + " is a list"));
    CHECK(effects == 0);
    CHECK_FALSE(guard.settled());
    CHECK(held() == Texts{"a"});
    redis.del(record);
    CHECK(once.run(guard, "id", effect()).outcome == OnceOutcome::ran);
}

TEST_CASE_FIXTURE(Fixture, "a claim of an effect that has ended is not renewed, however it ended") {
    CHECK_THROWS(static_cast<void>(once.run("failed", fail)));
    CHECK(once.run("id", effect()).outcome == OnceOutcome::ran);
    auto guard = take_one();
    once.run(guard, "message", effect());
    CHECK(renewals(once) == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "a claim is renewed until it is answered that its id is done, or that it was "
                  "released") {
    const auto renewed_until_answered = [this](auto end) {
        Proxy proxy(server().socket_path());
        Once slow(proxy.uri() + "?command_timeout=3000", "q");
        const OnceToken token = claimed(slow);
        const auto direction = Proxy::Direction::to_server;
        proxy.cut_after(direction, proxy.bytes(0, direction), Proxy::Cut::silence, 0);
        auto ending = std::async(std::launch::async, [&] { return end(slow, token); });
        REQUIRE(eventually([&] { return proxy.was_cut(0, direction); }));
        end_lease();
        slow.renew();
        CHECK(until() > server_ms());
        CHECK(ending.get());
        CHECK(renewals(slow) == 0);
    };
    renewed_until_answered([](Once& by, const OnceToken& token) { return by.complete(token); });
    redis.del(record);
    renewed_until_answered([](Once& by, const OnceToken& token) { return by.release(token); });
}

TEST_CASE_FIXTURE(Fixture, "a claim is renewed until it is answered that its message is settled") {
    Proxy proxy(server().socket_path());
    Consumer<Raw> slow(proxy.uri() + "?command_timeout=20000", "q", {.lease = 1h});
    push({"a"});
    auto guard = take(slow);
    std::atomic<bool> ended = false;
    auto settling = std::async(std::launch::async, [&] {
        return once
            .run(guard, "id",
                 [&] {
                     proxy.freeze();
                     ended = true;
                 })
            .outcome;
    });
    const auto thaw = at_exit([&] { proxy.thaw(); }); // before `settling` is waited for
    REQUIRE(eventually([&] { return ended.load(); }));
    // It settles at some time in this second.
    const auto end = std::chrono::steady_clock::now() + 1s;
    bool renewed = true;
    while (renewed && std::chrono::steady_clock::now() < end) {
        end_lease();
        once.renew();
        renewed = until() > server_ms();
        std::this_thread::sleep_for(10ms);
    }
    CHECK(renewed);
    proxy.thaw();
    CHECK(settling.get() == OnceOutcome::ran);
    CHECK(renewals(once) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a claim that could not be completed is no longer renewed") {
    const OnceToken token = claimed(once);
    redis.del(record);
    redis.lpush(record, "x");
    CHECK_THROWS_AS(once.complete(token), ReplyError);
    CHECK(renewals(once) == 0);
}

TEST_CASE_FIXTURE(Fixture, "when many race for the same ids, each effect runs once") {
    constexpr int ids = 1000;
    constexpr int racers = 4;
    std::vector<std::atomic<int>> ran(ids);
    std::atomic<int> said{0};
    {
        std::vector<std::jthread> threads;
        threads.reserve(racers);
        for (int racer = 0; racer < racers; ++racer) {
            threads.emplace_back([&, racer] {
                Once& mine = racer % 2 == 0 ? once : other;
                for (std::size_t id = 0; id < ids; ++id) {
                    const auto run = mine.run(std::to_string(id), [&] { ++ran[id]; });
                    said += run.outcome == OnceOutcome::ran ? 1 : 0;
                }
            });
        }
    }
    CHECK(std::ranges::all_of(ran, [](const auto& times) { return times == 1; }));
    CHECK(said == ids);
}

TEST_CASE("a queue and a scope of its tag work in a cluster") {
    RedisServer node({"--cluster-enabled", "yes"}, RedisServer::Listen::tcp);
    RedisClient redis(node.uri());
    redis.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
    REQUIRE(eventually([&] {
        return redis.command({"CLUSTER", "INFO"}).text.starts_with("cluster_state:ok");
    }));
    int effects = 0;
    for (const std::string scope : {"q", "{q}payments"}) {
        Once once(node.uri(), scope);
        Consumer<Raw> consumer(node.uri(), "q");
        redis.lpush("q", "a");
        auto guard = OnceFixture::take(consumer);
        CHECK(once.run(guard, "id", [&] { ++effects; }).outcome == OnceOutcome::ran);
        REQUIRE(once.claim("busy").state == State::claimed);
        redis.lpush("q", "b");
        auto put_off = OnceFixture::take(consumer);
        CHECK(once.run(put_off, "busy", [&] { ++effects; }).outcome == OnceOutcome::busy);
        once.renew();
    }
    CHECK(effects == 2);
}

} // namespace once_runs_test
