// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The N-th operator new of a push of a job fails, for N = 1, 2, ... until it needs no more. A push
// that throws std::bad_alloc has pushed nothing, so that the user may repeat it.

#include "crash/support/failing_memory.hpp"
#include "crash/support/library_call.hpp"
#include "integration/worker/worker_fixture.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/keyed.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>

namespace failing_pushes_test {

using orizuru::JobGroup;
using orizuru::JobProducer;
using orizuru::KeyedJobProducer;
using orizuru::Raw;
using orizuru::test::FailingMemory;
using orizuru::test::LibraryCall;
using orizuru::test::WorkerFixture;

struct FailingPushes : WorkerFixture {
    FailingPushes() { LibraryCall::outside = true; }
    FailingPushes(const FailingPushes&) = delete;
    FailingPushes& operator=(const FailingPushes&) = delete;
    ~FailingPushes() { LibraryCall::outside = false; }

    /// Returns how many allocations it needs. The payload of a mebibyte goes in a script of its
    /// own, before the next one is looked at.
    long check(const std::function<void(const Raw&)>& push,
               const std::function<std::int64_t()>& count) {
        long needed = 0;
        for (const std::size_t size : {std::size_t{10}, std::size_t{1} << 20}) {
            const Raw payload{std::string(size, 'x')};
            push(payload); // its script is there
            needed = 0;
            for (bool failed = true; failed; ++needed) {
                const std::int64_t before = count();
                bool thrown = false;
                FailingMemory::begin(needed, FailingMemory::Kind::once);
                try {
                    const LibraryCall call;
                    push(payload);
                } catch (const std::bad_alloc&) {
                    thrown = true;
                }
                failed = FailingMemory::end();
                CAPTURE(needed);
                CHECK(count() == before + (thrown ? 0 : 1));
            }
        }
        return needed;
    }
};

TEST_CASE_FIXTURE(FailingPushes, "a push of a job without memory has pushed nothing") {
    JobProducer<Raw> producer(uri, "q");
    CHECK(check([&](const Raw& payload) { producer.push(payload); },
                [this] { return redis.llen("q"); }) > 5);
}

TEST_CASE_FIXTURE(FailingPushes, "a push of a job with a key without memory has pushed nothing") {
    KeyedJobProducer<Raw> producer(uri, "q");
    CHECK(check([&](const Raw& payload) { producer.push("key", payload); },
                [this] { return redis.llen("orizuru:{q}:key:key"); }) > 5);
}

TEST_CASE_FIXTURE(FailingPushes, "a push of a group's member without memory has pushed nothing") {
    JobGroup group(uri, "q", {.then = orizuru::GroupThen("{q}then", Raw{"then"})});
    CHECK(check([&](const Raw& payload) { group.push("q", payload); },
                [&] { return group.state().pending; }) > 5);
}

} // namespace failing_pushes_test
