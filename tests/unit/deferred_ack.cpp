// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/mirror/delivery.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

namespace deferred_ack_test {

using orizuru::detail::DeferredAck;

TEST_CASE("an ack is given only while it is open, and once") {
    DeferredAck ack;
    CHECK(ack.closed());
    CHECK_FALSE(ack.give());
    ack.open();
    CHECK_FALSE(ack.closed());
    CHECK_FALSE(ack.given());
    CHECK(ack.give());
    CHECK(ack.given());
    CHECK_FALSE(ack.give());
    ack.forget();
    CHECK(ack.closed());
    CHECK_FALSE(ack.give());
}

TEST_CASE("whoever closes it learns whether it was given") {
    DeferredAck ack;
    ack.open();
    CHECK_FALSE(ack.close());
    CHECK_FALSE(ack.give());
    ack.open();
    CHECK(ack.give());
    CHECK(ack.close());
    CHECK_FALSE(ack.close());
}

TEST_CASE("of giving and closing at the same time exactly one comes first") {
    for (int i = 0; i < 1000; ++i) {
        DeferredAck ack;
        ack.open();
        std::atomic<bool> go = false;
        bool given = false;
        std::thread guard([&] {
            while (!go) {
            }
            given = ack.give();
        });
        go = true;
        const bool found = ack.close();
        guard.join();
        REQUIRE(found == given);
    }
}

} // namespace deferred_ack_test
