// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The handlers of tenants.cpp, apart from it, so that tenants_test.cpp runs them without Redis.

#pragma once

#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

namespace tenants {

using orizuru::JobContext;

struct Order {
    int tenant = 0;
    int number = 0; ///< 1, 2, 3, … of each tenant
    MSGPACK_DEFINE(tenant, number)
};

/// Who may charge at once, and else after how long.
using Permit = std::function<std::chrono::milliseconds()>;
/// Writes that it is charged; for one that is, nothing changes.
using Charge = std::function<void(const Order&)>;

struct Busy : std::runtime_error {
    explicit Busy(std::chrono::milliseconds time) : std::runtime_error("busy"), wait(time) {}
    std::chrono::milliseconds wait;
};

[[nodiscard]] inline auto charge_orders(Permit permit, Charge charge) {
    return [permit = std::move(permit), charge = std::move(charge)](const Order& order) {
        if (const auto wait = permit(); wait.count() > 0) {
            throw Busy(wait); // the tenant's next order waits, too
        }
        charge(order);
    };
}

/// A bank that is busy is asked again when it says so.
[[nodiscard]] inline orizuru::RetryPolicy when_the_bank_is_free() {
    return {.max_attempts = 1'000'000, .decide = [](const std::exception_ptr& error, int) {
                try {
                    std::rethrow_exception(error);
                } catch (const Busy& busy) {
                    return orizuru::RetryDecision{orizuru::RetryDecision::Action::retry, busy.wait};
                } catch (...) {
                    return orizuru::RetryDecision{};
                }
            }};
}

/// Copies until it is cancelled: a person has started it by mistake.
inline void copy_everything(const std::string& /*target*/, JobContext<std::string>& job) {
    const std::stop_token token = job.stop_token();
    while (!token.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    throw std::runtime_error("stopped in the middle");
}

} // namespace tenants
