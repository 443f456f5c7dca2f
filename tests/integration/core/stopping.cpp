// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Ends a wait by stop() from a thread or a signal handler, by a stop_token, or by a time-out: soon,
// and without losing a message that arrives at that moment.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/proxy.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stopping_test {

using namespace std::chrono_literals;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::OwnServer;
using orizuru::test::patience;
using orizuru::test::Proxy;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::RedisClient;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// 20 ms are promised; a loaded machine or a sanitizer may take much longer.
constexpr milliseconds soon = 60ms;

struct Stopping : OwnServer {
    Stopping() {
        // A user who may not end a wait, and one who may not even ask for the connection's number.
        redis.command(
            {"ACL", "SETUSER", "patient", "on", ">secret", "~*", "+@all", "-client|unblock"});
        redis.command({"ACL", "SETUSER", "nameless", "on", ">secret", "~*", "+@all", "-client|id",
                       "-client|unblock"});
    }

    /// The address for a user other than the default one.
    [[nodiscard]] std::string uri_of(const std::string& user) const {
        return "unix://" + user + ":secret@" + server.socket_path();
    }
};

milliseconds median(std::vector<milliseconds> times) {
    std::ranges::sort(times);
    return times.at(times.size() / 2);
}

/// How long `next` goes on after `stop` was called, the median of several tries.
///
/// Each try has a consumer of its own, which is waiting when `prepared` returns.
template <class Prepare, class Stop>
milliseconds time_to_stop(const std::string& uri, int tries, Prepare prepare, Stop stop) {
    std::vector<milliseconds> times;
    for (int i = 0; i < tries; ++i) {
        RawConsumer consumer{uri, "q"};
        std::stop_source source;
        std::atomic<steady_clock::time_point> stopped_at{};
        std::optional<RawGuard> got;
        std::atomic<bool> began{false};
        std::thread waiting([&] {
            began = true;
            got = consumer.next(source.get_token());
            stopped_at = steady_clock::now();
        });
        REQUIRE(eventually([&] { return began.load(); }));
        prepare();
        const auto begun = steady_clock::now();
        stop(consumer, source, waiting.native_handle());
        waiting.join();
        CHECK_FALSE(got);
        times.push_back(std::chrono::duration_cast<milliseconds>(stopped_at.load() - begun));
    }
    return median(std::move(times));
}

std::atomic<RawConsumer*> stopped_by_signal = nullptr;

TEST_CASE_FIXTURE(Stopping, "stop ends next within 20 ms") {
    const auto waiting = [this] { REQUIRE(somebody_waits()); };
    SUBCASE("from another thread") {
        CHECK(time_to_stop(server.uri(), 20, waiting,
                           [](RawConsumer& consumer, auto&, auto) { consumer.stop(); }) <= soon);
    }
    SUBCASE("by its stop_token") {
        CHECK(time_to_stop(server.uri(), 20, waiting,
                           [](RawConsumer&, std::stop_source& source, auto) {
                               source.request_stop();
                           }) <= soon);
    }
    SUBCASE("from a signal handler") {
        struct sigaction action {};
        struct sigaction before {};
        action.sa_handler = [](int) { stopped_by_signal.load()->stop(); };
        ::sigaction(SIGUSR1, &action, &before);
        // The signal goes to the waiting thread itself: the handler may interrupt anything.
        CHECK(time_to_stop(server.uri(), 20, waiting,
                           [](RawConsumer& consumer, auto&, pthread_t thread) {
                               stopped_by_signal = &consumer;
                               ::pthread_kill(thread, SIGUSR1);
                           }) <= soon);
        ::sigaction(SIGUSR1, &before, nullptr);
    }
    SUBCASE("of a user who may not end a wait") {
        for (const std::string user : {"patient", "nameless"}) {
            CHECK(time_to_stop(uri_of(user), 5, waiting, [](RawConsumer& consumer, auto&, auto) {
                      consumer.stop();
                  }) <= soon);
        }
    }
    CHECK(nobody_left());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(Stopping, "stop ends next within 20 ms while Redis is away") {
    const auto stop = [](RawConsumer& consumer, auto&, auto) { consumer.stop(); };
    const auto by_token = [](RawConsumer&, std::stop_source& source, auto) {
        source.request_stop();
    };
    for (const bool is_paused : {false, true}) {
        CAPTURE(is_paused);
        const auto away = [&] {
            REQUIRE(somebody_waits());
            is_paused ? server.pause() : server.kill();
        };
        const auto tried = [&](const auto& how) {
            const auto time = time_to_stop(uri(50ms), 1, away, how);
            is_paused ? server.resume() : server.restart();
            return time;
        };
        std::vector<milliseconds> stopped;
        std::vector<milliseconds> by_its_token;
        for (int i = 0; i < 5; ++i) {
            stopped.push_back(tried(stop));
            by_its_token.push_back(tried(by_token));
            redis.flushall();
        }
        CHECK(median(stopped) <= soon);
        CHECK(median(by_its_token) <= soon);
    }
}

TEST_CASE_FIXTURE(Stopping, "a stopped consumer stays stopped") {
    std::optional<RawConsumer> consumer;
    consumer.emplace(server.uri(), "q");
    push({"a"});
    std::optional<RawGuard> guard;
    SUBCASE("that had nothing") {}
    SUBCASE("with a guard in hand") { guard = take(*consumer); }
    CHECK_FALSE(consumer->stopped());
    consumer->stop();
    consumer->stop();
    CHECK(consumer->stopped());
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(consumer->next());
        CHECK_FALSE(consumer->next(10s));
        CHECK_FALSE(consumer->next(std::stop_token()));
    }
    for (auto& another : *consumer) {
        FAIL_CHECK("stopped, and yet: " << another->bytes);
    }
    CHECK(registered() == (guard ? 1 : 0));
    consumer.reset();
    if (guard) {
        CHECK(guard->release());
        guard.reset();
    }
    CHECK(nobody_left());
    CHECK(everywhere() == Texts{"a"});
}

TEST_CASE_FIXTURE(Stopping, "a stop_token ends its own call only") {
    RawConsumer consumer{server.uri(), "q"};
    std::stop_source source;
    source.request_stop();
    CHECK_FALSE(consumer.next(source.get_token()));
    CHECK_FALSE(consumer.stopped());
    push({"a"});
    CHECK_FALSE(consumer.next(source.get_token(), 10s));
    auto guard = take(consumer);
    CHECK(guard.ack());
}

TEST_CASE_FIXTURE(Stopping, "stopping requeues messages that were not handed out") {
    RawConsumer consumer{server.uri(), "q", {.prefetch = 10}};
    push_numbers(10);
    auto first = take(consumer);
    CHECK(held().size() == 10);
    consumer.stop();
    CHECK_FALSE(consumer.next());
    CHECK(held() == Texts{"0"});
    CHECK(redis.lrange("q") == Texts{"9", "8", "7", "6", "5", "4", "3", "2", "1"});
    CHECK(first.ack());
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Stopping, "a consumer that is gone has left no descriptor and no connection") {
    const auto descriptors = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    };
    const auto connections = [this] {
        const std::string clients = redis.command({"INFO", "clients"}).text;
        return std::stoi(clients.substr(clients.find("connected_clients:") + 18));
    };
    redis.lpush("q", "a");
    const auto before = descriptors();
    const int before_in_redis = connections();
    for (int i = 0; i < 5; ++i) {
        std::optional<RawGuard> guard;
        RawConsumer consumer{server.uri(), "q"};
        CHECK_FALSE(RawConsumer(server.uri(), "empty").next(milliseconds(0)));
        guard = consumer.next();
        CHECK(guard->release());
    }
    {
        std::optional<RawGuard> guard;
        {
            RawConsumer consumer{server.uri(), "q"};
            guard = consumer.next();
        }
        CHECK(guard->release());
    }
    CHECK(descriptors() == before);
    CHECK(eventually([&] { return connections() == before_in_redis; }));
}

TEST_CASE_FIXTURE(Stopping, "no message is lost or stuck that arrives while a consumer stops") {
    constexpr int rounds = 300;
    std::mt19937 random{4711};
    RedisClient pusher{server.uri()};
    int handled = 0;
    int left = 0; // rounds that ended with a message in the source
    for (int i = 0; i < rounds; ++i) {
        std::optional<RawConsumer> consumer;
        consumer.emplace(server.uri(), "q", orizuru::ConsumerOptions{.prefetch = i % 3 + 1});
        std::jthread stopper([&, delay = std::chrono::microseconds{random() % 1500}] {
            std::this_thread::sleep_for(delay);
            consumer->stop();
        });
        std::jthread producer([&, delay = std::chrono::microseconds{random() % 1500}] {
            std::this_thread::sleep_for(delay);
            pusher.lpush("q", std::to_string(i));
        });
        while (auto guard = consumer->next()) {
            CHECK(guard->ack());
            ++handled;
        }
        producer.join();
        stopper.join();
        consumer.reset();
        REQUIRE(held().empty());
        left += redis.exists("q") ? 1 : 0;
    }
    CHECK(redis.llen("q") + handled == rounds);
    CHECK(everywhere().size() + static_cast<std::size_t>(handled) == rounds);
    CHECK(nobody_left());
    // Or else the storm has tested nothing.
    CHECK(handled > 0);
    CHECK(left > 0);
}

TEST_CASE_FIXTURE(Stopping, "a message that arrives while a stop_token ends a wait goes to the "
                            "next call") {
    constexpr int rounds = 200;
    std::mt19937 random{4712};
    RedisClient pusher{server.uri()};
    RawConsumer consumer{server.uri(), "q"};
    Texts handled;
    for (int i = 0; i < rounds; ++i) {
        std::stop_source source;
        std::jthread stopper([&, delay = std::chrono::microseconds{random() % 1000}] {
            std::this_thread::sleep_for(delay);
            source.request_stop();
        });
        std::jthread producer([&, delay = std::chrono::microseconds{random() % 1000}] {
            std::this_thread::sleep_for(delay);
            pusher.lpush("q", std::to_string(i));
        });
        if (auto guard = consumer.next(source.get_token())) {
            CHECK(guard->ack());
            handled.push_back((*guard)->bytes);
        }
    }
    while (handled.size() < rounds) {
        auto guard = take(consumer);
        CHECK(guard.ack());
        handled.push_back(guard->bytes);
    }
    CHECK_FALSE(consumer.next(0ms));
    for (int i = 0; i < rounds; ++i) {
        CHECK(handled[static_cast<std::size_t>(i)] == std::to_string(i));
    }
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(Stopping, "short time-outs are kept") {
    std::string user;
    SUBCASE("by ending the wait") { user = "default"; }
    SUBCASE("by a user who may not end a wait") { user = "patient"; }
    SUBCASE("by a user who may not know the number of a connection") { user = "nameless"; }
    RawConsumer consumer{user == "default" ? server.uri() : uri_of(user), "q"};
    CHECK_FALSE(consumer.next(1ms));
    for (const milliseconds timeout : {1ms, 20ms, 130ms, 0ms}) {
        CAPTURE(timeout.count());
        std::vector<milliseconds> overshoots;
        for (int i = 0; i < 3; ++i) {
            const auto waited = time_of([&] { CHECK_FALSE(consumer.next(timeout)); });
            CHECK(waited >= timeout);
            overshoots.push_back(waited.on_an_idle_machine() - timeout);
        }
        CHECK(median(overshoots) <= 60ms);
    }
    // A BLMOVE that could not be ended is still outstanding: its message is not forgotten.
    push({"a"});
    CHECK(eventually([&] { return held() == Texts{"a"} || redis.llen("q") == 1; }));
    auto guard = consumer.next(0ms);
    if (!guard) {
        guard = consumer.next(patience);
    }
    REQUIRE(guard);
    CHECK((*guard)->bytes == "a");
    CHECK(guard->ack());
    CHECK_FALSE(consumer.next(0ms));
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(Stopping, "after one wait that could not be ended, the next one can be") {
    std::atomic<int> refusals{0};
    const FakeServer fake{[&](const Texts& argv) -> std::optional<std::string> {
                              const bool ends = argv.size() > 1 && argv[1] == "UNBLOCK";
                              return ends && refusals-- > 0 ? "-LOADING the data\r\n"
                                                            : FakeServer::pass;
                          },
                          server.socket_path()};
    const auto waiting = [this](const std::string& count) {
        // Before the wait ends by itself.
        return eventually(
            [&] {
                return orizuru::test::contains(redis.command({"INFO", "clients"}).text,
                                               "blocked_clients:" + count);
            },
            1s);
    };
    RawConsumer consumer{fake.uri(), "q"};
    refusals = 1;
    // On a busy machine the time may be over before it waits.
    CHECK(eventually([&] { return !consumer.next(20ms) && refusals <= 0; }));
    CHECK(waiting("1"));
    CHECK_FALSE(consumer.next(20ms));
    CHECK(waiting("0"));
}

TEST_CASE_FIXTURE(Stopping, "what is refused behind a wait that was ended keeps nobody waiting") {
    std::atomic<bool> refusing{false};
    const FakeServer fake{[&](const Texts& argv) -> std::optional<std::string> {
                              const bool asks = argv.size() > 1 && argv[1] == "ID";
                              return asks && refusing.exchange(false) ? "-BUSY a script runs\r\n"
                                                                      : FakeServer::pass;
                          },
                          server.socket_path()};
    RawConsumer consumer{fake.uri(), "q"};
    CHECK_FALSE(consumer.next(20ms));
    refusing = true;
    CHECK_FALSE(consumer.next(20ms));
    CHECK_FALSE(refusing);
    push({"a"});
    CHECK(time_of([&] { CHECK(take(consumer).ack()); }) < 1s);
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(Stopping, "the message of a wait that could not be ended is given back at the "
                            "end") {
    for (const std::string user : {"patient", "nameless"}) {
        {
            RawConsumer consumer{uri_of(user), "q"};
            // On a slow machine the time of the first call is over before it waits in Redis.
            REQUIRE(eventually([&] {
                CHECK_FALSE(consumer.next(10ms));
                return waits_now();
            }));
            push({"a"});
            CHECK(eventually([&] { return held() == Texts{"a"}; }));
        }
        CHECK(everywhere() == Texts{"a"});
        CHECK(nobody_left());
        CHECK(redis.del("q") == 1);
    }
}

TEST_CASE_FIXTURE(Stopping, "a consumer that ends with guards alive takes no more messages, even "
                            "when its connection has just broken") {
    std::optional<RawConsumer> consumer;
    consumer.emplace(server.uri(), "q");
    push({"a"});
    auto guard = take(*consumer);
    auto next = take_in_background(*consumer);
    REQUIRE(somebody_waits());
    // Kills all connections except the waiting one.
    for (const auto& id : {"1", "2", "3", "4", "5", "6", "7", "8", "9"}) {
        const std::string client = redis.command({"CLIENT", "LIST", "ID", id}).text;
        if (!client.empty() && client.find("cmd=blmove") == std::string::npos &&
            client.find("cmd=client") == std::string::npos) {
            redis.command({"CLIENT", "KILL", "ID", id});
        }
    }
    consumer->stop();
    CHECK_FALSE(next.get());
    consumer.reset();
    push({"b"});
    CHECK(held() == Texts{"a"});
    CHECK(redis.lrange("q") == Texts{"b"});
    CHECK(guard.ack());
    CHECK(everywhere() == Texts{"b"});
}

TEST_CASE_FIXTURE(Stopping, "a consumer that ends while another thread tells of an event has left "
                            "when its destructor is over") {
    struct Telling {
        std::atomic<bool> begun{false};
        std::atomic<bool> may_end{false};
    };
    const auto telling = std::make_shared<Telling>(); // the thread may go on after the test
    std::optional<RawConsumer> consumer;
    consumer.emplace(server.uri(), "q",
                     orizuru::ConsumerOptions{
                         .lease = 100ms, .on_event = [telling](const auto&) {
                             telling->begun = true; // that no collector has come for 20 leases
                             telling->may_end.wait(false);
                         }});
    REQUIRE(eventually([&] { return telling->begun.load(); }));
    consumer.reset();
    CHECK(nobody_left());
    telling->may_end = true;
    telling->may_end.notify_all();
}

TEST_CASE_FIXTURE(Stopping, "destroying a consumer wakes no other one and leaves nothing behind") {
    RawConsumer other{server.uri(), "q"};
    auto next = take_in_background(other);
    REQUIRE(somebody_waits());
    for (int i = 0; i < 20; ++i) {
        RawConsumer consumer{server.uri(), "q"};
        CHECK_FALSE(consumer.next(0ms));
    }
    CHECK(registered() == 1);
    push({"a"});
    auto guard = next.get();
    REQUIRE(guard);
    CHECK(guard->ack());
}

TEST_CASE_FIXTURE(OwnServer, "a beat that meets the fence of the consumer's own leaving raises no "
                             "alarm") {
    const Diary diary;
    Proxy proxy(server.socket_path(), 300ms);
    {
        const RawConsumer consumer{proxy.uri(), "q", {.lease = 1500ms, .on_event = diary.pen()}};
        REQUIRE(eventually([&] { return proxy.accepted() == 2; }));
        // A beat comes to Redis behind its RELEASE, the answer to which comes later still.
        proxy.cut_after(Proxy::Direction::to_server, proxy.bytes(1, Proxy::Direction::to_server),
                        Proxy::Cut::delay, 1);
        REQUIRE(eventually([&] { return proxy.was_cut(1, Proxy::Direction::to_server); }));
        proxy.cut_after(Proxy::Direction::to_client, proxy.bytes(0, Proxy::Direction::to_client),
                        Proxy::Cut::delay, 0);
        std::this_thread::sleep_for(100ms); // so much later
    }
    CHECK(proxy.cuts() == 2);
    CHECK(diary.size() == 0);
    // Of an ADOPT.
    CHECK_FALSE(orizuru::test::contains(redis.command({"INFO", "errorstats"}).text, "FENCED"));
    CHECK(nobody_left());
}

} // namespace stopping_test
