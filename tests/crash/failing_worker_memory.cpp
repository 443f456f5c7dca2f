// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The N-th operator new of a running worker fails, in any thread, for N = 1, 2, ... until there are
// fewer; then there is memory again. The worker must live on, and each job must be where its
// handling has put it. The program is linked with malloc replaced, which msgpack's zone calls
// directly.

#include "crash/support/failing_memory.hpp"
#include "crash/support/library_call.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>
#include <msgpack.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

extern "C" {
void* __real_malloc(std::size_t size);
void* __wrap_malloc(std::size_t size) {
    return orizuru::test::FailingMemory::refuses(size) ? nullptr : __real_malloc(size);
}
}

namespace failing_worker_memory_test {

using namespace std::chrono_literals;
using orizuru::Guarantee;
using orizuru::Job;
using orizuru::JobBatch;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEvent;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::FailingMemory;
using orizuru::test::LibraryCall;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

/// Its thread is out of the library for as long as it lives.
class UserCode {
  public:
    UserCode() : m_before(std::exchange(LibraryCall::outside, true)) {}
    UserCode(const UserCode&) = delete;
    UserCode& operator=(const UserCode&) = delete;
    ~UserCode() { LibraryCall::outside = m_before; }

  private:
    bool m_before;
};

/// Its first decoding fails, and another allocation after it.
struct Twice {
    inline static std::atomic<long> before_second{0}; ///< how many allocations succeed
    inline static std::atomic<int> decodings{0};

    static Twice decode(std::string_view bytes) {
        const UserCode outside;
        if (decodings++ == 0) {
            FailingMemory::begin(before_second, FailingMemory::Kind::once);
            throw std::bad_alloc();
        }
        return {std::string(bytes)};
    }

    std::string bytes;
};

/// Larger than what the library allocates for itself.
struct Wide {
    inline static std::atomic<int> decodings{0};

    std::array<char, 300'000> bytes;
};
/// So that a guard keeps it on the heap.
struct WideWithoutMove : Wide {
    WideWithoutMove() = default;
    WideWithoutMove(const WideWithoutMove& other) : Wide(other) {} // may throw
};

/// Its jobs have an envelope of their own.
struct OwnJob {};

} // namespace failing_worker_memory_test

template <>
struct orizuru::Codec<orizuru::Job<failing_worker_memory_test::OwnJob>> {
    static Job<failing_worker_memory_test::OwnJob> decode(std::string_view /*bytes*/) {
        throw std::bad_alloc();
    }
};
template <>
struct orizuru::Codec<failing_worker_memory_test::Wide> {
    static failing_worker_memory_test::Wide decode(std::string_view /*bytes*/) {
        ++failing_worker_memory_test::Wide::decodings;
        return {};
    }
};
template <>
struct orizuru::Codec<failing_worker_memory_test::WideWithoutMove> {
    static failing_worker_memory_test::WideWithoutMove decode(std::string_view /*bytes*/) {
        return {};
    }
};
template <>
struct orizuru::Codec<failing_worker_memory_test::Twice> {
    static failing_worker_memory_test::Twice decode(std::string_view bytes) {
        return failing_worker_memory_test::Twice::decode(bytes);
    }
};

namespace failing_worker_memory_test {

struct FailingWorkerMemory : WorkerFixture {
    static constexpr int count = 6;

    FailingWorkerMemory() { LibraryCall::outside = true; }
    ~FailingWorkerMemory() { FailingMemory::end(); }
    FailingWorkerMemory(const FailingWorkerMemory&) = delete;
    FailingWorkerMemory& operator=(const FailingWorkerMemory&) = delete;

    static std::string payload(int i) {
        // Too long for a small string, so that it allocates.
        return "job number " + std::to_string(i) + " of a few, one of which fails";
    }
    const std::string failing_payload = payload(2);

    void handle(const Raw& job) {
        const UserCode outside;
        handled.add(job.bytes);
        if (job.bytes == failing_payload) {
            throw std::runtime_error("a reason that is too long for a small string");
        }
    }
    [[nodiscard]] std::size_t times_handled(const std::string& job) const {
        return static_cast<std::size_t>(std::ranges::count(handled.all(), job));
    }
    bool all_done() { return redis.llen("q") == 0 && held_jobs().empty(); }

    void check() {
        for (int i = 0; i < count; ++i) {
            const std::string job = payload(i);
            CAPTURE(job);
            const auto places = [&](const Texts& payloads) {
                return std::ranges::count(payloads, job);
            };
            std::ptrdiff_t put_off_times = 0;
            for (const Job<Raw>& each : put_off()) {
                put_off_times += each.payload.bytes == job ? 1 : 0;
            }
            const auto rejected_times = places(payloads_of(redis.lrange(unack)));
            const auto sum = places(jobs()) + rejected_times + put_off_times;
            if (times_handled(job) == 0) {
                CHECK(sum == 1);
            } else {
                CHECK(sum == (job == failing_payload ? 1 : 0));
                // Its attempt would count for nothing.
                CHECK(rejected_times == 0);
                CHECK(times_handled(job) == 1);
            }
        }
        CHECK(redis.llen(dead) == 0);
        CHECK(held_jobs().empty());
    }
};

TEST_CASE_FIXTURE(FailingWorkerMemory, "a job that there is no memory to decode, nor to end its "
                                       "attempt, is put off or handled") {
    long failing = 0;
    for (bool failed = true; failed; ++failing) {
        CAPTURE(failing);
        redis.flushall();
        Twice::before_second = failing;
        Twice::decodings = 0;
        std::atomic<int> times_handled{0};
        Worker worker(uri, options());
        worker.handle<Twice>(
            "q", [&](const Twice&) { ++times_handled; }, much_later());
        {
            push_jobs({payload(0)});
            Running running(worker);
            CHECK(eventually([&] { return times_handled == 1 || put_off().size() == 1; }));
            failed = FailingMemory::end();
            running.stop();
        }
        CHECK(static_cast<std::size_t>(times_handled) + put_off().size() == 1);
        CHECK(redis.llen(unack) == 0);
        CHECK(redis.llen(dead) == 0);
        CHECK(held_jobs().empty());
        REQUIRE(eventually([&] { return ids().empty(); })); // what is unattended ends by itself
    }
    CHECK(failing > 20);
}

TEST_CASE_FIXTURE(FailingWorkerMemory, "a job that there is no room for is taken again as often as "
                                       "that happens, and that is neither an attempt nor its end") {
    std::atomic<int> attempts{0};
    Worker worker(uri, options());
    SUBCASE("one by one") {
        worker.handle<Wide>("q", [&](const Job<Wide>& job) { attempts += job.attempt; });
    }
    SUBCASE("in its guard") {
        worker.handle<WideWithoutMove>(
            "q", [&](const Job<WideWithoutMove>& job) { attempts += job.attempt; });
    }
    SUBCASE("in batches") {
        worker.handle_batch<Wide>("q",
                                  [&](const JobBatch<Wide>& batch) {
                                      for (const auto& job : batch) {
                                          attempts += job.attempt();
                                      }
                                  },
                                  {.size = 2, .time = 5ms});
    }
    Running running(worker);
    REQUIRE(so_many_wait(1));
    FailingMemory::refuse(sizeof(Wide), 4);
    push_jobs({payload(0)});
    CHECK(eventually([&] { return attempts > 0; }));
    running.stop();
    CHECK(FailingMemory::to_refuse() == 0);
    CHECK(attempts == 1);
    CHECK(put_off().empty());
    CHECK(redis.llen(unack) == 0);
    CHECK(redis.llen(dead) == 0);
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(FailingWorkerMemory, "a job for which the Codec of its envelope has no memory "
                                       "three times in a row goes to the dead list") {
    Worker worker(uri, options());
    worker.handle<OwnJob>("q", [](const OwnJob&) {});
    Running running(worker);
    push_jobs({payload(0)});
    CHECK(eventually([&] { return redis.llen(dead) == 1; }));
    running.stop();
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(FailingWorkerMemory, "an envelope whose kind there is never memory to find goes "
                                       "to the dead list, and the worker goes on") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", "k", write_down());
    Job<Raw> job = orizuru::make_job(Raw{payload(0)});
    job.kind = "k";
    const std::string small = bytes_of(job);
    constexpr std::size_t values = 50'000; // a byte each here, and a msgpack::object there
    job.later = {"\xdc\xc3\x50" + std::string(values, '\xc0')};
    Running running(worker);
    REQUIRE(so_many_wait(1));
    FailingMemory::refuse(sizeof(msgpack::object) * values, std::numeric_limits<int>::max());
    redis.lpush("q", bytes_of(job));
    redis.lpush("q", small);
    CHECK(has_handled({payload(0)}));
    FailingMemory::end();
    running.stop();
    CHECK(redis.llen(dead) == 1);
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(FailingWorkerMemory,
                  "a batch is handled before its time when there is no room for its next job") {
    Wide::decodings = 0;
    std::atomic<int> done{0};
    Worker worker(uri, options());
    worker.handle_batch<Wide>(
        "q", [&](const JobBatch<Wide>& batch) { done += static_cast<int>(batch.size()); },
        {.size = 2, .time = 2s});
    Running running(worker);
    push_jobs({payload(0)});
    REQUIRE(eventually([] { return Wide::decodings == 1; }));
    FailingMemory::refuse(sizeof(Wide), std::numeric_limits<int>::max());
    push_jobs({payload(1)});
    CHECK(eventually([&] { return done == 1; }));
    FailingMemory::end();
    CHECK(eventually([&] { return done == 2; }));
    running.stop();
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(FailingWorkerMemory,
                  "whichever allocation of a worker fails, it lives on, and no "
                  "job is lost or buried") {
    QueueOptions chosen = much_later();
    chosen.lease = 6s; // acks whose flush had no memory are sent after a third of it
    bool in_batches = false;
    auto kind = FailingMemory::Kind::once;
    SUBCASE("one by one") {}
    SUBCASE("one by one, with all behind it") { kind = FailingMemory::Kind::lasting; }
    SUBCASE("fetched ahead") { chosen.prefetch = count; }
    SUBCASE("in batches") { in_batches = true; }
    std::size_t fetches_failed = 0;
    std::size_t unsettled = 0;
    long failing = 0;
    for (bool failed = true; failed; ++failing) {
        CAPTURE(failing);
        redis.flushall();
        handled = {};
        Texts payloads;
        for (int i = 0; i < count; ++i) {
            payloads.push_back(payload(i));
        }
        std::atomic<bool> fetch_failed{false};
        WorkerOptions around = options(2);
        around.on_event = [&](const WorkerEvent& event) {
            const UserCode outside;
            fetches_failed += event.kind == WorkerEventKind::fetch_failed ? 1U : 0U;
            unsettled += event.kind == WorkerEventKind::unsettled ? 1U : 0U;
            fetch_failed = fetch_failed || event.kind == WorkerEventKind::fetch_failed;
        };
        Worker worker(uri, around);
        if (in_batches) {
            worker.handle_batch<Raw>(
                "q",
                [this](const JobBatch<Raw>& batch) {
                    for (const auto& job : batch) {
                        handle(job->payload);
                    }
                },
                {.size = 1, .time = 5ms}, chosen);
        } else {
            worker.handle<Raw>(
                "q", [this](const Raw& job) { handle(job); }, chosen);
        }
        {
            Running running(worker);
            REQUIRE(so_many_wait(1)); // all its threads are there
            FailingMemory::begin(failing, kind);
            push_jobs(payloads);
            CHECK(eventually([&] { return fetch_failed || all_done(); }));
            failed = FailingMemory::end();
            running.stop();
        }
        check();
        REQUIRE(ids().empty());
    }
    std::printf("%ld allocations failed, one in each run; %zu fetches and %zu settlements told\n",
                failing - 1, fetches_failed, unsettled);
    CHECK(failing > 20);
}

} // namespace failing_worker_memory_test
