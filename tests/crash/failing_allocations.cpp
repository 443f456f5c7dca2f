// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The N-th operator new of the program fails, in any thread, for N = 1, 2, ... until there are
// fewer; then there is memory again. Compares the user's answers with the place of each message in
// Redis.

#include "crash/support/failing_memory.hpp"
#include "crash/support/library_call.hpp"
#include "integration/core/queue_fixture.hpp"

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/consumer/held/unattended.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace failing_allocations_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::ConsumerOptions;
using orizuru::GarbageCollector;
using orizuru::Raw;
using orizuru::test::FailingMemory;
using orizuru::test::in_library;
using orizuru::test::LibraryCall;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;
using RawConsumer = orizuru::Consumer<Raw>;
using RawGuard = orizuru::MessageGuard<Raw>;

/// What the user knows of a message; the places are Redis lists.
enum class Told {
    nothing,     ///< never taken, rejected by its guard, or unknown: one place
    acked,       ///< by an ack that stands: no place
    maybe_acked, ///< no place or one
    moved,       ///< to the other queue
    maybe_moved  ///< still here, or there
};

/// Its decoding fails this often for lack of memory.
struct Flaky {
    static inline int shortages = 0;
};

} // namespace failing_allocations_test

template <>
struct orizuru::Codec<failing_allocations_test::Flaky> {
    static failing_allocations_test::Flaky decode(std::string_view /*bytes*/) {
        if (failing_allocations_test::Flaky::shortages > 0) {
            --failing_allocations_test::Flaky::shortages;
            throw std::bad_alloc();
        }
        return {};
    }
};

namespace failing_allocations_test {

struct FailingAllocations : QueueFixture {
    static constexpr int messages = 8;

    std::map<std::string, Told> told;
    std::size_t failures_seen = 0; ///< of the user's own calls

    FailingAllocations() { LibraryCall::outside = true; }
    ~FailingAllocations() { FailingMemory::end(); }
    FailingAllocations(const FailingAllocations&) = delete;
    FailingAllocations& operator=(const FailingAllocations&) = delete;

    void fill() {
        told.clear();
        for (int i = 0; i < messages; ++i) {
            // Too long for a small string, so that it allocates.
            told.emplace("message number " + std::to_string(i) + " of a few", Told::nothing);
        }
        for (const auto& [payload, unused] : told) {
            redis.lpush("q", {payload});
        }
    }

    /// Repeats a call that has failed: memory is short only once.
    template <class Action>
    auto persistently(Action action) {
        try {
            return in_library(action);
        } catch (const std::bad_alloc&) {
            ++failures_seen;
        } catch (const orizuru::Error&) {
            ++failures_seen; // a failure for lack of memory
        }
        return in_library(action);
    }

    void settle(RawGuard& guard, bool deferred) {
        Told& outcome = told.at(std::string(guard.payload()));
        const bool move = guard.payload().find(" 3 ") != std::string_view::npos;
        const auto attempt = [&] { return move ? guard.push("other") : guard.ack(); };
        bool certain = true;
        bool done = true;
        try {
            done = in_library(attempt);
        } catch (const std::bad_alloc&) {
            ++failures_seen;
            // The settlement has not begun, or goes on in the background.
            certain = !guard.settled();
            done = guard.settled() || in_library(attempt);
        }
        CHECK(done);
        if (move) {
            outcome = certain ? Told::moved : Told::maybe_moved;
        } else {
            outcome = certain && !deferred ? Told::acked : Told::maybe_acked;
        }
    }

    void use(const ConsumerOptions& options) {
        std::optional<RawConsumer> consumer;
        const auto end = orizuru::detail::at_exit([&] { in_library([&] { consumer.reset(); }); });
        persistently([&] { consumer.emplace(uri, "q", options); });
        for (int i = 0; i < messages - 2; ++i) {
            auto guard = persistently([&] { return consumer->next(5s); });
            REQUIRE(guard);
            if (i == 1) {
                in_library([&] { guard.reset(); }); // rejects it, or makes it come again
                continue;
            }
            settle(*guard, options.ack == AckMode::deferred);
        }
        if (persistently([&] { return consumer->flush(); }) == 0) {
            for (auto& [payload, outcome] : told) {
                outcome = outcome == Told::maybe_acked && options.ack == AckMode::deferred
                              ? Told::acked
                              : outcome;
            }
        }
    }

    std::size_t places(const std::string& payload, const Texts& lists) {
        std::size_t sum = 0;
        for (const std::string& list : lists) {
            for (const std::string& element : redis.lrange(list)) {
                sum += element == payload ? 1U : 0U;
            }
        }
        return sum;
    }

    void check() {
        CHECK(redis.llen(dead) == 0); // a moment without memory buries nothing
        for (const auto& entry : told) {
            const std::string& payload = entry.first;
            const Told outcome = entry.second;
            CAPTURE(payload);
            CAPTURE(static_cast<int>(outcome));
            const std::size_t here = places(payload, {"q", unack});
            const std::size_t there = places(payload, {"other"});
            switch (outcome) {
            case Told::nothing:
                CHECK(here == 1);
                CHECK(there == 0);
                break;
            case Told::acked:
                CHECK(here == 0);
                CHECK(there == 0);
                break;
            case Told::maybe_acked:
                CHECK(here <= 1);
                CHECK(there == 0);
                break;
            case Told::moved:
                CHECK(here == 0);
                CHECK(there == 1);
                break;
            case Told::maybe_moved:
                CHECK(here + there == 1);
                break;
            }
        }
    }

    void collect() {
        // A consumer that could not even leave is dead now.
        for (const std::string& key : redis.keys("orizuru:{q}:heartbeat:*")) {
            redis.del(key);
        }
        GarbageCollector(uri, "q", {.grace = 0ms}).collect();
    }
};

TEST_CASE_FIXTURE(FailingAllocations,
                  "whichever allocation of a consumer fails, no message is lost or doubled") {
    ConsumerOptions options;
    SUBCASE("one by one") {}
    SUBCASE("one by one, deferred") { options.ack = AckMode::deferred; }
    SUBCASE("batches") { options.prefetch = 4; }
    SUBCASE("batches, deferred") {
        options.prefetch = 4;
        options.ack = AckMode::deferred;
    }
    long failing = 0;
    for (bool failed = true; failed; ++failing) {
        CAPTURE(failing);
        redis.flushall();
        fill();
        FailingMemory::begin(failing, FailingMemory::Kind::once);
        use(options);
        failed = FailingMemory::end();
        collect();
        check();
        REQUIRE(nobody_left());
    }
    std::printf("%ld allocations failed, one in each run; the user's own calls saw %zu\n",
                failing - 1, failures_seen);
    CHECK(failures_seen > 40);
}

TEST_CASE_FIXTURE(FailingAllocations,
                  "whichever allocation fails when a lease was lost, flush counts the late acks") {
    long failing = 0;
    for (bool failed = true; failed; ++failing) {
        CAPTURE(failing);
        redis.flushall();
        fill();
        RawConsumer consumer(uri, "q", {.prefetch = messages, .ack = AckMode::deferred});
        for (int i = 0; i < messages; ++i) {
            auto guard = consumer.next(5s);
            REQUIRE(guard);
            CHECK(guard->ack());
        }
        collect();
        FailingMemory::begin(failing, FailingMemory::Kind::once);
        const std::size_t late = persistently([&] { return consumer.flush(); });
        failed = FailingMemory::end();
        CHECK(late == messages);
        CHECK(redis.llen("q") == messages);
    }
    CHECK(failing > 20);
}

TEST_CASE_FIXTURE(FailingAllocations,
                  "a guard that cannot even reject leaves a message whose shortages count anew") {
    redis.lpush("q", {"a message"});
    orizuru::Consumer<Flaky> consumer(uri, "q");
    const auto fail_once = [&] {
        CHECK_THROWS_AS(static_cast<void>(consumer.next(5s)), std::bad_alloc);
    };
    Flaky::shortages = 2;
    fail_once();
    fail_once();
    std::optional guard = consumer.next(5s);
    REQUIRE(guard);
    FailingMemory::begin(0, FailingMemory::Kind::once);
    in_library([&] { guard.reset(); });
    REQUIRE(FailingMemory::end());
    Flaky::shortages = 1;
    fail_once();
    guard = consumer.next(5s);
    REQUIRE(guard);
    CHECK(guard->ack());
    CHECK(redis.llen(dead) == 0);
    CHECK(redis.llen(unack) == 0);
}

TEST_CASE_FIXTURE(FailingAllocations, "outcomes are reported as far as there is memory for them") {
    using orizuru::detail::Delivery;
    using orizuru::detail::DeliveryPtr;
    std::size_t heard = 0;
    long failing = 0;
    for (bool failed = true; failed; ++failing) {
        orizuru::detail::EventQueue events("q", [&](const orizuru::Event&) { ++heard; });
        orizuru::detail::Unattended unattended;
        std::vector<DeliveryPtr> open;
        for (int i = 0; i < messages; ++i) {
            DeliveryPtr message = DeliveryPtr::make();
            message->payload = "a message that is too long for a small string";
            message->state = i % 3 == 1 ? Delivery::State::sent : Delivery::State::settled;
            if (i % 3 == 1) {
                open.push_back(message);
            }
            unattended.add(message);
        }
        FailingMemory::begin(failing, FailingMemory::Kind::once);
        in_library([&] { unattended.tell(events, "consumer"); });
        failed = FailingMemory::end();
        for (const DeliveryPtr& message : open) {
            message->state = Delivery::State::lost;
        }
        unattended.tell(events, "consumer");
        CHECK(unattended.empty());
        heard = 0;
        events.tell(events.take());
        CHECK(heard >= messages - 1);
    }
    CHECK(failing > messages);
}

} // namespace failing_allocations_test
