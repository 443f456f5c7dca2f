// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A process may start with descriptors 0 to 2 closed. Nothing of the library takes their numbers:
// what the process prints would go to Redis as commands.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/serving_fixture.hpp"
#include "support/child.hpp"
#include "support/redis_server.hpp"

#include <orizuru/detail/base/standard_descriptors.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/signals.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace standard_descriptors_test {

using namespace orizuru::test;
using orizuru::Consumer;
using orizuru::Endpoint;
using orizuru::Producer;
using orizuru::Raw;

/// Reading and writing these descriptors fails, and on Linux as on closed ones. Prints a command
/// first.
bool act_as_closed(const std::vector<int>& descriptors) {
    constexpr std::string_view command = "\r\nDEL important\r\n";
    constexpr int of_folder = orizuru::detail::system::open_for_nothing == O_PATH ? EBADF : EISDIR;
    char byte = 0;
    bool closed = true;
    for (const int fd : descriptors) {
        closed &= ::write(fd, command.data(), command.size()) == -1 && errno == EBADF;
        closed &= ::read(fd, &byte, 1) == -1 && (errno == EBADF || errno == of_folder);
    }
    return closed;
}

void close_all(const std::vector<int>& descriptors) {
    for (const int fd : descriptors) {
        ::close(fd);
    }
}

/// Has the server close all connections but the one that asks for it.
void cut_others(const std::string& uri) {
    orizuru::Connection(Endpoint(uri))
        .command("q", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
}

struct Fixture : QueueFixture {
    Fixture() { redis.set("important", "treasure"); }
};

TEST_CASE_FIXTURE(Fixture, "a producer's and a consumer's connections leave closed standard "
                           "descriptors alone, also when they are made anew") {
    RedisServer tcp({}, RedisServer::Listen::tcp);
    RedisClient other(tcp.uri());
    other.set("important", "treasure");
    for (const std::vector<int>& closed :
         std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}}) {
        for (const std::string& address : {uri, tcp.uri()}) {
            CAPTURE(address);
            CAPTURE(closed.size());
            CAPTURE(closed.front());
            CHECK(status_of_child([&] {
                      close_all(closed);
                      Producer<Raw> producer(address, "q");
                      bool good = act_as_closed(closed);
                      Consumer<Raw> consumer(address, "q",
                                             {.on_event = [](const orizuru::Event&) {}});
                      producer.push({"a"});
                      good &= act_as_closed(closed) && consumer.next()->ack();
                      cut_others(address);
                      producer.push({"b"});
                      good &= consumer.next()->ack() && act_as_closed(closed);
                      return good ? as_expected : not_as_expected;
                  }) == as_expected);
        }
    }
    CHECK(redis.exists("important"));
    CHECK(other.exists("important"));
}

TEST_CASE_FIXTURE(
    ServingFixture,
    "no byte that a worker's process prints on a closed descriptor is a signal to it, "
    "or wakes it") {
    const std::vector<int> closed{0, 1, 2};
    push_jobs({"a"});
    CHECK(status_of_child([&] {
              close_all(closed);
              bool good = false;
              const int ended = serve(
                  [&](orizuru::JobContext<Raw>&, RedisClient&) {
                      good = act_as_closed(closed);
                      ::kill(::getpid(), SIGTERM);
                  },
                  1);
              return good && ended == 0 ? as_expected : not_as_expected;
          }) == as_expected);
}

TEST_CASE("neither an eventfd nor the pipe for signals takes a closed standard descriptor") {
    const std::vector<int> closed{0, 1, 2};
    const auto stays_closed = [&closed](const auto& make) {
        return status_of_child([&] {
            close_all(closed);
            const auto made = make();
            return act_as_closed(closed) ? as_expected : not_as_expected;
        });
    };
    CHECK(stays_closed([] { return std::make_unique<orizuru::detail::Wake>(); }) == as_expected);
    CHECK(stays_closed([] { return std::make_unique<orizuru::detail::Signals>(); }) == as_expected);
}

TEST_CASE("a descriptor below 3 moves up, and any other stays as it is") {
    CHECK(status_of_child([] {
              const int high = ::dup(0);
              close_all({0, 1, 2});
              const int low = ::dup(high);
              const int moved = orizuru::detail::above_standard(low);
              const bool good = low == 0 && moved > 2 && ::fcntl(moved, F_GETFD) == FD_CLOEXEC &&
                                act_as_closed({0, 1, 2}) &&
                                orizuru::detail::above_standard(high) == high &&
                                orizuru::detail::above_standard(-1) == -1;
              return good ? as_expected : not_as_expected;
          }) == as_expected);
}

TEST_CASE_FIXTURE(Fixture, "a program that the process starts still has them closed") {
    CHECK(status_of_child([&] {
              close_all({0, 1});
              const Producer<Raw> producer(uri, "q");
              ::execl("/bin/sh", "sh", "-c",
                      "! test -e /proc/self/fd/0 && ! test -e /proc/self/fd/1", nullptr);
              return not_as_expected;
          }) == as_expected);
}

TEST_CASE_FIXTURE(Fixture, "a descriptor that is closed while connections exist is left alone by "
                           "later ones, and one that is opened anew is kept") {
    CHECK(status_of_child([&] {
              Producer<Raw> producer(uri, "q");
              close_all({0, 1});
              Consumer<Raw> consumer(uri, "q");
              bool good = act_as_closed({0, 1});
              int ends[2];
              good &= ::pipe(ends) == 0 && ::dup2(ends[1], 1) == 1;
              Producer<Raw> another(uri, "q");
              good &= another.push({"a"}) == 1 && ::write(1, "x", 1) == 1;
              char byte = 0;
              good &= ::read(ends[0], &byte, 1) == 1 && byte == 'x';
              return good ? as_expected : not_as_expected;
          }) == as_expected);
    CHECK(redis.exists("important"));
}

} // namespace standard_descriptors_test
