// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The end of a guard's settlement, for a completion handler of Asio's.

#include <orizuru/async/async_consumer.hpp>
#include <orizuru/detail/asio/awaited_call.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/consumer/settlement_waiter.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace orizuru::detail {

template <class Call>
class SettlementCall final : public SettlementWaiter {
  public:
    explicit SettlementCall(std::shared_ptr<Call> call) noexcept : m_call(std::move(call)) {}
    bool end(bool done, std::exception_ptr error) noexcept override {
        return m_call->end(std::move(error), std::move(done));
    }

  private:
    std::shared_ptr<Call> m_call;
};

/// `settlement` is composed; the guard is unsettled.
template <class Library, class Token>
auto async_settle(GuardCore& guard, Settlement settlement, Token& token) {
    const auto start = [](auto handler, GuardCore* settled, Settlement how) {
        using Call = AwaitedCall<Library, decltype(handler), bool>;
        const auto call = Call::begin(std::move(handler));
        try {
            settled->begin(std::move(how), std::make_unique<SettlementCall<Call>>(call));
        } catch (...) {
            call->fail(std::current_exception()); // an initiation must not throw
        }
    };
    return Library::template initiate<Token, void(std::exception_ptr, bool)>(start, token, &guard,
                                                                             std::move(settlement));
}

} // namespace orizuru::detail
