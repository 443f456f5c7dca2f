// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Is told of the end of a settlement.

#include <exception>

namespace orizuru::detail {

class SettlementWaiter {
  public:
    SettlementWaiter() = default;
    SettlementWaiter(const SettlementWaiter&) = delete;
    SettlementWaiter& operator=(const SettlementWaiter&) = delete;
    virtual ~SettlementWaiter() = default;

    /// Called once, on any thread, with no lock held: what the settlement would return, or null and
    /// what it would throw. Returns false if nobody listens any more.
    virtual bool end(bool done, std::exception_ptr error) noexcept = 0;
};

} // namespace orizuru::detail
