// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer with a buffer when Redis goes away, hangs, or answers nothing; and in a forked child.

#include "integration/core/fault_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/posix.hpp"
#include "support/proxy.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/detail/producer/push_backlog.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace buffered_outages_test {

using namespace std::chrono_literals;
using orizuru::BufferedProducer;
using orizuru::BufferedProducerOptions;
using orizuru::ConnectionError;
using orizuru::Error;
using orizuru::Raw;
using orizuru::test::as_expected;
using orizuru::test::contains;
using orizuru::test::DurableServer;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::not_as_expected;
using orizuru::test::OwnServer;
using orizuru::test::patience;
using orizuru::test::Proxy;
using orizuru::test::status_of_child;
using orizuru::test::Texts;
using orizuru::test::time_of;

/// No message is sent because of the time.
constexpr BufferedProducerOptions patient(int buffer) { return {.size = buffer, .time = 24h}; }

Texts numbered(std::size_t first, std::size_t end) {
    Texts texts;
    for (std::size_t i = first; i < end; ++i) {
        texts.push_back(std::to_string(i));
    }
    return texts;
}

Texts oldest_first(OwnServer& own) {
    Texts list = own.redis.lrange("q");
    std::ranges::reverse(list);
    return list;
}

/// The list without repetitions; the first of each stays.
Texts once_each(const Texts& list) {
    std::set<std::string> seen;
    Texts once;
    std::ranges::copy_if(list, std::back_inserter(once),
                         [&](const std::string& text) { return seen.insert(text).second; });
    return once;
}

void push_texts(BufferedProducer<Raw>& producer, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
        producer.push({std::to_string(i)});
    }
}

/// The same; repeats the messages that were not accepted.
void push_stubbornly(BufferedProducer<Raw>& producer, std::size_t first, std::size_t end) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (std::size_t i = first; i < end;) {
        try {
            producer.push({std::to_string(i)});
            ++i;
        } catch (const Error&) {
            REQUIRE(std::chrono::steady_clock::now() < deadline);
        }
    }
}

template <class Use>
bool is_logic_error(Use use) {
    try {
        use();
    } catch (const std::invalid_argument&) {
        return false;
    } catch (const std::logic_error&) {
        return true;
    }
    return false;
}

TEST_CASE_FIXTURE(DurableServer,
                  "what was accepted before and during an outage arrives behind it, in "
                  "order, by itself") {
    BufferedProducer<Raw> producer{server.uri(), "q", {.size = 10, .time = 5ms}};
    push_texts(producer, 0, 7);
    producer.flush();
    server.kill();
    std::size_t accepted = 7;
    try {
        while (accepted < 1000) {
            push_texts(producer, accepted, accepted + 1);
            ++accepted;
        }
        FAIL_CHECK("everything was accepted");
    } catch (const ConnectionError&) {
    }
    CHECK(accepted >= 7 + 20);
    CHECK(accepted <= 7 + 30);
    CHECK_THROWS_AS(producer.flush(), ConnectionError);
    CHECK_THROWS_AS(producer.size(), ConnectionError);
    CHECK(producer.unconfirmed() == accepted - 7);
    server.restart();
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    CHECK(oldest_first(*this) == numbered(0, accepted));
}

TEST_CASE_FIXTURE(DurableServer, "a server killed again and again while a producer pushes loses "
                                 "nothing that was accepted") {
    constexpr std::size_t count = 200'000;
    std::atomic<bool> over{false};
    std::thread killer([&] {
        while (!over) {
            const auto length = redis.llen("q");
            static_cast<void>(
                eventually([&] { return over || redis.llen("q") > length + 20'000; }));
            server.restart();
        }
    });
    {
        BufferedProducer<Raw> producer{server.uri(), "q", {.size = 100, .time = 1ms}};
        push_stubbornly(producer, 0, count);
        over = true;
        killer.join();
        producer.flush();
        CHECK(producer.unconfirmed() == 0);
    }
    const Texts there = oldest_first(*this);
    CHECK(there.size() >= count);
    const bool in_order = once_each(there) == numbered(0, count);
    CHECK(in_order);
}

TEST_CASE_FIXTURE(OwnServer, "an LPUSH whose reply was lost is sent again: its messages are there "
                             "twice") {
    Proxy proxy(server.socket_path());
    BufferedProducer<Raw> producer{proxy.uri(), "q", patient(3)}; // all in one LPUSH
    // The greeting's answer has passed.
    proxy.cut_after(Proxy::Direction::to_client, 7, Proxy::Cut::fin, 0);
    push_texts(producer, 0, 3);
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    CHECK(oldest_first(*this) == Texts{"0", "1", "2", "0", "1", "2"});
}

TEST_CASE_FIXTURE(OwnServer,
                  "while Redis hangs, push returns at once until the buffer is full, then "
                  "fails within command_timeout; the destructor gives up as soon") {
    auto producer =
        std::make_unique<BufferedProducer<Raw>>(uri(1s) + "&connect_timeout=300", "q", patient(10));
    producer->push({"first"});
    producer->flush();
    server.pause();
    CHECK(time_of([&] { push_texts(*producer, 0, 30); }) < 900ms);
    const auto waited = time_of([&] { CHECK_THROWS_AS(producer->push({"30"}), ConnectionError); });
    CHECK(waited < 3s);
    CHECK(producer->unconfirmed() == 30);
    const auto flushed = time_of([&] {
        try {
            producer->flush();
            FAIL_CHECK("no exception");
        } catch (const ConnectionError& error) {
            CHECK(contains(error.what(), "unix://"));
        }
    });
    CHECK(flushed < 3s);
    CHECK(producer->unconfirmed() == 30);
    CHECK(time_of([&] { producer.reset(); }) < 3s);
    server.resume();
}

TEST_CASE_FIXTURE(OwnServer, "push does not wait while the thread connects") {
    Proxy proxy(server.socket_path());
    BufferedProducer<Raw> producer{
        proxy.uri() + "?command_timeout=100&connect_timeout=5000", "q", {.size = 10, .time = 1ms}};
    proxy.freeze();
    push_texts(producer, 0, 1);
    REQUIRE(eventually([&] { return proxy.accepted() == 2; }));
    CHECK(time_of([&] { push_texts(producer, 1, 9); }) < 2s);
    CHECK(proxy.accepted() == 2);
    proxy.thaw();
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    CHECK(once_each(oldest_first(*this)) == numbered(0, 9));
}

TEST_CASE_FIXTURE(OwnServer, "the destructor of a producer whose Redis is gone gives up at once") {
    auto producer = std::make_unique<BufferedProducer<Raw>>(server.uri(), "q", patient(10));
    push_texts(*producer, 0, 15);
    server.kill();
    CHECK(time_of([&] { producer.reset(); }) < 2s);
}

TEST_CASE("a message goes in time although the LPUSH before is not answered") {
    std::atomic<int> pushes{0};
    auto server =
        std::make_unique<FakeServer>([&](const Texts& argv) -> std::optional<std::string> {
            if (argv.at(0) == "LPUSH") {
                ++pushes;
                return ""; // no answer
            }
            return "+PONG\r\n";
        });
    BufferedProducer<Raw> producer{
        server->uri() + "?command_timeout=60000", "q", {.size = 10, .time = 5ms}};
    producer.push({"a"});
    CHECK(eventually([&] { return pushes == 1; }));
    producer.push({"b"});
    CHECK(eventually([&] { return pushes == 2; }));
    CHECK(producer.unconfirmed() == 2);
    producer.push({"c"}); // stays in the buffer: two LPUSHes are in flight
    CHECK(producer.unconfirmed() == 3);
    CHECK(pushes == 2);
    server.reset(); // or the destructor would wait for a minute
}

TEST_CASE("a failure between a refusal and the next answer loses neither LPUSH") {
    std::mutex mutex;
    Texts accepted;
    int pushes = 0;
    const FakeServer server([&](const Texts& argv) -> std::optional<std::string> {
        if (argv.at(0) == "PING") {
            return "+PONG\r\n";
        }
        const std::lock_guard lock(mutex);
        if (++pushes == 1) {
            return "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
        }
        accepted.push_back(argv.at(2));
        return ":" + std::to_string(accepted.size()) + "\r\n";
    });
    orizuru::detail::PushBacklog backlog(server.uri(), "q", 1);
    for (const char* const text : {"first", "second"}) {
        const auto payload = [text](std::string& out) {
            out += text;
            return true;
        };
        backlog.add(payload);
        backlog.close_chunk();
        backlog.send();
    }
    std::mutex owner;
    std::unique_lock lock_of_owner(owner);
    const auto hear = [&] {
        if (!backlog.take_answer(lock_of_owner)) {
            backlog.read(backlog.pipeline().await(std::chrono::steady_clock::now() + 10s));
        }
    };
    while (backlog.pipeline().in_flight() == 2) {
        hear();
    }
    backlog.note_failure(); // from a thread that has tried to connect meanwhile
    while (backlog.size() > 0) {
        backlog.send();
        hear();
    }
    const std::lock_guard lock(mutex);
    CHECK(std::ranges::count(accepted, "first") == 1);
    CHECK(std::ranges::count(accepted, "second") >= 1);
}

TEST_CASE("an answer that no LPUSH can have ends the connection; the messages are sent again") {
    std::atomic<int> pushes{0};
    std::atomic<int> greetings{0};
    const FakeServer server([&](const Texts& argv) -> std::optional<std::string> {
        if (argv.at(0) == "PING") {
            ++greetings;
            return "+PONG\r\n";
        }
        switch (++pushes) {
        case 1:
            return "+OK\r\n";
        case 2:
            return "-READONLY You can't write against a read only replica.\r\n";
        default:
            return ":" + std::to_string(argv.size() - 2) + "\r\n";
        }
    });
    BufferedProducer<Raw> producer{server.uri(), "q", patient(3)}; // all in one LPUSH
    push_texts(producer, 0, 3);
    CHECK(eventually([&] { return producer.unconfirmed() == 0; }));
    CHECK(pushes == 3);
    CHECK(greetings == 3); // also because the master may be elsewhere by now
    CHECK(producer.push({"next"}) == 3);
    producer.flush();
}

TEST_CASE_FIXTURE(OwnServer,
                  "in a forked child a producer with a buffer throws std::logic_error, its "
                  "destructor sends nothing, and the parent goes on") {
    auto producer = std::make_unique<BufferedProducer<Raw>>(server.uri(), "q", patient(10));
    push_texts(*producer, 0, 15);
    CHECK(status_of_child([&] {
              bool good = is_logic_error([&] { producer->push({"x"}); });
              good &= is_logic_error([&] { producer->flush(); });
              good &= is_logic_error([&] { static_cast<void>(producer->size()); });
              good &= is_logic_error([&] { static_cast<void>(producer->unconfirmed()); });
              producer.reset();
              return good ? as_expected : not_as_expected;
          }) == as_expected);
    push_texts(*producer, 15, 28);
    producer->flush();
    CHECK(oldest_first(*this) == numbered(0, 28));
}

TEST_CASE_FIXTURE(OwnServer, "children forked at any moment do not disturb a busy producer") {
    constexpr std::size_t count = 50'000;
    auto producer = std::make_unique<BufferedProducer<Raw>>(
        server.uri(), "q", BufferedProducerOptions{.size = 7, .time = 1ms});
    int statuses = 0;
    for (std::size_t i = 0; i < 20; ++i) {
        push_texts(*producer, i * count / 20, (i + 1) * count / 20);
        // The thread is at work, and may hold the lock.
        statuses += status_of_child([&] {
            const bool good = is_logic_error([&] { producer->push({"x"}); });
            producer.reset();
            return good ? as_expected : not_as_expected;
        });
    }
    CHECK(statuses == 0);
    producer->flush();
    CHECK(oldest_first(*this) == numbered(0, count));
}

} // namespace buffered_outages_test
