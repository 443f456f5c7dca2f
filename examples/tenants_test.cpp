// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Tests the handlers of tenants.cpp, without Redis and without a Worker.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN

#include "tenants.hpp"

#include <orizuru/testing/job_trial.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>

using namespace std::chrono_literals;
using orizuru::testing::JobTrial;
using orizuru::testing::Outcome;
using tenants::Order;

TEST_CASE("an order is charged when the bank has time, and tried again when it says so") {
    auto wait = 300ms;
    int charged = 0;
    const auto handler =
        tenants::charge_orders([&] { return wait; }, [&](const Order&) { ++charged; });
    JobTrial<Order> trial({7, 1});
    CHECK(trial.run(handler, tenants::when_the_bank_is_free()) == Outcome::retried);
    CHECK(trial.delay() == 300ms);
    CHECK(charged == 0);
    wait = 0ms;
    CHECK(trial.run(handler, tenants::when_the_bank_is_free()) == Outcome::acked);
    CHECK(charged == 1);
}

TEST_CASE("an order that the bank refuses for good is buried with its reason") {
    const auto refuse = [](const Order&) { throw orizuru::DoNotRetry("no such card"); };
    JobTrial<Order> trial({7, 1});
    trial.run(tenants::charge_orders([] { return 0ms; }, refuse), tenants::when_the_bank_is_free());
    CHECK(trial.outcome() == Outcome::dead);
    CHECK(trial.reason() == "no such card");
}

TEST_CASE("a copy stops when it is asked to") {
    JobTrial<std::string> trial("/everything");
    trial.request_stop();
    CHECK(trial.run(tenants::copy_everything) == Outcome::requeued);
}
