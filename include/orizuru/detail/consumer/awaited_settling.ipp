// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Begins settlements whose callers are told of the end. Only coroutines and their like need it.

#include <orizuru/detail/consumer/guard_core.ipp>
#include <orizuru/detail/consumer/held/awaited_settlements.hpp>
#include <orizuru/detail/consumer/session.hpp>
#include <orizuru/detail/consumer/settlement_waiter.hpp>

namespace orizuru::detail {

ORIZURU_INLINE void GuardCore::begin(Settlement settlement,
                                     std::unique_ptr<SettlementWaiter> waiter) {
    Session& session = this->session();
    m_burial = std::move(settlement.burial); // behind the begin, the guard may go
    session.begin(m_delivery, std::move(settlement.move), std::move(waiter), settlement.what);
}

inline void Session::begin(const DeliveryPtr& message, std::unique_ptr<Move> move,
                           std::unique_ptr<SettlementWaiter> waiter, std::string_view what) {
    m_lane.locked([&](Lock&) {
        AwaitedSettlements& all = AwaitedSettlements::of(m_lane);
        const Mirror& mirror = m_lane.mirror();
        // Then the heartbeat has been woken for an earlier one, which it has not sent yet.
        const bool woken =
            m_lane.attendance().wanted() && (mirror.has_acks() || mirror.has_moves());
        all.add(std::make_unique<AwaitedSettlement>(all, message, std::move(waiter), what));
        if (message->state == Delivery::State::lost) {
            message->tell_outcome();
            return;
        }
        begin_settling(message, std::move(move));
        if (!woken) {
            m_lane.attendance().ask();
        }
    });
}

} // namespace orizuru::detail
