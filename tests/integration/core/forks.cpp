// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A forked child must leave its parent's connections alone; a program that it starts inherits none.

#include "integration/core/fault_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace forks_test {

using namespace std::chrono_literals;
using orizuru::BackgroundCollector;
using orizuru::GarbageCollector;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::test::as_expected;
using orizuru::test::eventually;
using orizuru::test::Fd;
using orizuru::test::not_as_expected;
using orizuru::test::OwnServer;
using orizuru::test::patience;
using orizuru::test::RawConsumer;
using orizuru::test::status_of_child;
using orizuru::test::Texts;

template <class Use>
bool is_logic_error(Use use) {
    try {
        use();
    } catch (const std::invalid_argument&) {
        return false;
    } catch (const std::logic_error&) {
        return true;
    } catch (...) {
        return false;
    }
    return false;
}

std::set<int> open_descriptors() {
    std::set<int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        found.insert(std::stoi(entry.path().filename()));
    }
    return found;
}

TEST_CASE_FIXTURE(OwnServer, "in a forked child the parent's objects throw std::logic_error, and "
                             "the parent goes on") {
    Producer<Raw> producer{server.uri(), "q"};
    auto consumer = std::make_unique<RawConsumer>(
        server.uri(), "q", orizuru::ConsumerOptions{.lease = 500ms, .prefetch = 3});
    push({"a", "b", "c"});
    std::optional first = take(*consumer);
    std::optional second = take(*consumer);
    const std::string id = consumer->name();

    CHECK(status_of_child([&] {
              bool good = is_logic_error([&] { producer.push({"x"}); });
              good &= is_logic_error([&] { static_cast<void>(producer.size()); });
              good &= is_logic_error([&] { static_cast<void>(consumer->next(0ms)); });
              good &= is_logic_error([&] { static_cast<void>(consumer->next()); });
              good &= is_logic_error([&] { consumer->flush(); });
              good &= is_logic_error([&] { static_cast<void>(consumer->size()); });
              good &= is_logic_error([&] { static_cast<void>(consumer->name()); });
              good &= is_logic_error([&] { first->ack(); });
              good &= is_logic_error([&] { second->reject(); });
              return good ? as_expected : not_as_expected;
          }) == as_expected);
    CHECK(everywhere() == Texts{"a", "b", "c"});
    CHECK(consumer->name() == id);
    CHECK(producer.push({"d"}) == 1);
    CHECK(first->ack());
    CHECK(second->ack());
    for (const std::string expected : {"c", "d"}) {
        auto guard = take(*consumer);
        CHECK(guard->bytes == expected);
        CHECK(guard.ack());
    }
    CHECK(consumer->name() == id);
    consumer.reset();
    CHECK(nobody_left());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OwnServer, "destructors in a forked child neither hang nor disturb the parent") {
    auto producer = std::make_unique<Producer<Raw>>(server.uri(), "q");
    auto collector = std::make_unique<GarbageCollector>(server.uri(), "q");
    auto collecting = std::make_unique<BackgroundCollector>(server.uri(), "q", 20ms);
    auto consumer = std::make_unique<RawConsumer>(
        server.uri(), "q", orizuru::ConsumerOptions{.lease = 300ms, .prefetch = 3});
    push({"a", "b", "c"});
    std::optional guard = take(*consumer);
    std::optional other = take(*consumer);
    const std::string id = consumer->name();
    SUBCASE("the consumer first") {
        CHECK(status_of_child([&] {
                  consumer->stop();
                  consumer.reset();
                  guard.reset();
                  other.reset();
                  producer.reset();
                  collector.reset();
                  collecting.reset();
                  return as_expected;
              }) == as_expected);
    }
    SUBCASE("the guards first") {
        CHECK(status_of_child([&] {
                  guard.reset();
                  other.reset();
                  collecting.reset();
                  consumer.reset();
                  return as_expected;
              }) == as_expected);
    }
    CHECK_FALSE(consumer->stopped());
    CHECK(everywhere() == Texts{"a", "b", "c"});
    CHECK(registered() == 1);
    CHECK(guard->ack());
    CHECK(other->ack());
    CHECK(take(*consumer).ack());
    CHECK(producer->push({"d"}) == 1);
    CHECK(take(*consumer).ack());
    CHECK(consumer->name() == id);
    CHECK(is_empty());
    push({"rejected"});
    CHECK(take(*consumer).reject());
    CHECK(take(*consumer).ack()); // the parent's collector goes on
}

TEST_CASE_FIXTURE(OwnServer, "children forked at any moment do not disturb a busy parent") {
    constexpr int count = 1'000;
    push_numbers(count);
    RawConsumer consumer{server.uri(), "q", {.lease = 200ms, .prefetch = 5}};
    const std::string id = consumer.name();
    std::atomic<int> acked{0};
    std::atomic<bool> over{false};
    std::thread handler([&] {
        while (!over) {
            if (auto guard = consumer.next(20ms)) {
                acked += guard->ack() ? 1 : 0;
            }
        }
    });
    int statuses = 0;
    for (int i = 0; i < 10; ++i) {
        statuses += status_of_child([&] {
            // Threads that do not exist here may hold its locks.
            return is_logic_error([&] { static_cast<void>(consumer.next(0ms)); }) &&
                           is_logic_error([&] { static_cast<void>(consumer.size()); }) &&
                           is_logic_error([&] { static_cast<void>(consumer.name()); })
                       ? as_expected
                       : not_as_expected;
        });
    }
    CHECK(statuses == 0);
    CHECK(eventually([&] { return acked == count; }));
    over = true;
    handler.join();
    CHECK(is_empty());
    CHECK(consumer.name() == id);
}

TEST_CASE_FIXTURE(OwnServer, "a forked child makes objects of its own") {
    Producer<Raw> producer{server.uri(), "q"};
    producer.push({"a"});
    // No threads run here, since ThreadSanitizer would allow no new ones in the child.
    CHECK(status_of_child([&] {
              Producer<Raw> own{server.uri(), "q2"};
              own.push({"from the child"});
              RawConsumer mine{server.uri(), "q2"};
              auto guard = mine.next(patience);
              return guard && guard->ack() ? as_expected : not_as_expected;
          }) == as_expected);
    CHECK(producer.push({"b"}) == 2);

    RawConsumer consumer{server.uri(), "q"};
    CHECK(take(consumer).ack());
    CHECK(take(consumer).ack());
    auto next = take_in_background(consumer);
    REQUIRE(somebody_waits());
    CHECK(status_of_child([&] {
              Producer<Raw> own{server.uri(), "q"};
              return own.push({"c"}) == 1 ? as_expected : not_as_expected;
          }) == as_expected);
    auto guard = next.get();
    REQUIRE(guard);
    CHECK((*guard)->bytes == "c");
    CHECK(guard->ack());
}

TEST_CASE_FIXTURE(OwnServer, "a program started by the process inherits no descriptor") {
    const std::set<int> before = open_descriptors();
    Producer<Raw> producer{server.uri(), "q"};
    GarbageCollector collector{server.uri(), "q"};
    RawConsumer consumer{server.uri(), "q", {.lease = 100ms}};
    CHECK_FALSE(consumer.next(50ms));
    // The connections of control, wait, beat, producer and collector, and the Wakes.
    CHECK(eventually([&] { return open_descriptors().size() >= before.size() + 5; }));

    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const Fd reader{ends[0]};
    Fd writer{ends[1]};
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(writer.get(), STDOUT_FILENO);
        ::execl("/bin/sh", "sh", "-c", "ls /proc/$$/fd", nullptr);
        ::_exit(not_as_expected);
    }
    writer.reset();
    std::string text;
    char buffer[4096];
    for (ssize_t size = 0; (size = ::read(reader.get(), buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<std::size_t>(size));
    }
    orizuru::test::wait_for(child);
    std::istringstream lines(text);
    int inherited = 0;
    for (int fd = 0; lines >> fd;) {
        // Without the pipe's, and without those that the test itself was started with; 10 and above
        // belong to the shell.
        inherited += fd > 2 && fd != ends[0] && fd != ends[1] && !before.contains(fd) ? 1 : 0;
    }
    CHECK_MESSAGE(inherited == 0, text);
    CHECK_FALSE(text.empty());
}

} // namespace forks_test
