// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The machine's memory, not Redis', is short for a while. It is not built with the address or
// thread sanitizer: these reserve terabytes of addresses, so a limit means nothing, and end the
// program when an allocation fails.

#include "integration/core/fault_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"

#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace short_of_memory_test {

constexpr std::size_t unpacked_size = std::size_t{256} << 20;

/// A message that takes more memory than its payload.
struct Unpacked {
    std::vector<char> content;
};

} // namespace short_of_memory_test

template <>
struct orizuru::Codec<short_of_memory_test::Unpacked> {
    static short_of_memory_test::Unpacked decode(std::string_view /*bytes*/) {
        return {std::vector<char>(short_of_memory_test::unpacked_size)};
    }
};

namespace short_of_memory_test {

using namespace std::chrono_literals;
using orizuru::DecodeError;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::test::as_expected;
using orizuru::test::Child;
using orizuru::test::eventually;
using orizuru::test::not_as_expected;
using orizuru::test::OwnServer;
using orizuru::test::patience;
using orizuru::test::RawConsumer;
using orizuru::test::RedisClient;
using orizuru::test::status_of_child;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

constexpr std::size_t payload_size = std::size_t{32} << 20;

constexpr int taken_too_early = orizuru::test::first_own_status;
constexpr int never_taken = taken_too_early + 1;
constexpr int no_more_threads = never_taken + 1;

void limit_memory(rlim_t bytes) {
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_AS, &limit);
}
/// Limits the process to its memory and this much more.
void leave_memory(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    limit_memory(pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes);
}

/// Whether a message came, even one that is too large to be read.
bool comes(RawConsumer& consumer, std::chrono::milliseconds timeout) {
    try {
        return consumer.next(timeout).has_value();
    } catch (const DecodeError&) {
        return true;
    } catch (const std::bad_alloc&) {
        return false; // the exception is allowed to reach the caller
    }
}

TEST_CASE_FIXTURE(OwnServer, "a consumer short of memory for a reply goes on when there is enough "
                             "again") {
    int prefetch = 1;
    SUBCASE("waiting in Redis") {}
    SUBCASE("asking by a script") { prefetch = 2; }
    // Redis makes the message: this process must stay small.
    redis.command({"EVAL", "redis.call('LPUSH', KEYS[1], string.rep('x', ARGV[1]))", "1", "q",
                   std::to_string(payload_size)});
    CHECK(status_of_child([&] {
              RedisClient child{server.uri()};
              // It must not need a time-out to recover.
              RawConsumer consumer{
                  uri(20s), "q", {.lease = 2s, .prefetch = prefetch, .max_payload = 1024}};
              leave_memory(payload_size / 3);
              // The message is out of the source: the reply is under way.
              if (!eventually([&] { return child.llen("q") == 0 || comes(consumer, 100ms); })) {
                  return never_taken;
              }
              if (comes(consumer, 300ms)) {
                  return taken_too_early;
              }
              limit_memory(RLIM_INFINITY);
              // A call may end while Redis still buries so large a message.
              return eventually([&] { return comes(consumer, 1s) || child.llen(dead) == 1; })
                         ? as_expected
                         : not_as_expected;
          }) == as_expected);
    CHECK(redis.llen(dead) == 1);
    CHECK(redis.llen("q") == 0);
    std::string left; // told if the check fails
    for (const std::string& key : redis.keys()) {
        const bool held = key.starts_with("orizuru:{q}:processing:") && redis.type(key) == "list";
        left += key + ' ' + redis.type(key) + ' ' +
                (held ? std::to_string(redis.llen(key)) + ' ' +
                            redis.command({"LINDEX", key, "-1"}).text
                      : "") +
                '\n';
    }
    CAPTURE(left);
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(OwnServer,
                  "a message that there is no memory to decode is delivered when there is "
                  "enough again") {
    push({"first", "second"});
    CHECK(status_of_child([&] {
              orizuru::Consumer<Unpacked> consumer{uri(20s), "q", {.lease = 5s, .prefetch = 2}};
              leave_memory(unpacked_size / 2);
              try {
                  static_cast<void>(consumer.next(patience));
                  return taken_too_early;
              } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
                  // The consumer still holds the message.
              }
              limit_memory(RLIM_INFINITY);
              for (const char* payload : {"first", "second"}) {
                  auto guard = consumer.next(patience);
                  if (!guard || guard->payload() != payload || !guard->ack()) {
                      return not_as_expected;
                  }
              }
              return as_expected;
          }) == as_expected);
    CHECK(redis.llen(dead) == 0);
    CHECK(is_empty());
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(WorkerFixture, "a worker that cannot have all its threads takes no job, and "
                                 "leaves nothing behind") {
    push_jobs({"a", "b", "c"});
    Child child([this] {
        Worker worker(uri, options(1000));
        worker.handle<Raw>("q", [](const Raw&) { std::this_thread::sleep_for(1h); });
        leave_memory(std::size_t{1} << 30);
        try {
            return worker.run();
        } catch (const std::system_error&) {
            return no_more_threads;
        }
    });
    CHECK(child.status() == no_more_threads);
    CHECK(jobs() == Texts{"a", "b", "c"});
    CHECK(nobody_left());
}

} // namespace short_of_memory_test
