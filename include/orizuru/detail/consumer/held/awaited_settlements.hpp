// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Settlements whose callers are told of the end: of an AsyncConsumer's messages, and of others by
// coroutines.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/consumer/held/awaits.hpp>
#include <orizuru/detail/consumer/held/unattended.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/settlement_waiter.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/event.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class AwaitedSettlements;

/// One of them: under the link's lock until it has an outcome, then for the thread that tells of
/// it.
class AwaitedSettlement final : public AwaitedOutcome, public Linked, private OutcomeListener {
  public:
    /// `what`: a literal, for errors.
    AwaitedSettlement(AwaitedSettlements& among, DeliveryPtr message,
                      std::unique_ptr<SettlementWaiter> waiter, std::string_view what) noexcept
        : m_among(among),
          m_message(std::move(message)),
          m_waiter(std::move(waiter)),
          m_what(what) {}

    inline void tell() noexcept override;

  private:
    friend class AwaitedSettlements;

    enum class Outcome : std::uint8_t {
        none,
        done,
        lost,    ///< the lease was, before
        refused, ///< by Redis: the message is held again
        in_doubt ///< not in time: it goes on in the background
    };

    inline void on_outcome() noexcept override;
    [[nodiscard]] inline std::exception_ptr error() const noexcept;

    AwaitedSettlements& m_among;
    const DeliveryPtr m_message;
    const std::unique_ptr<SettlementWaiter> m_waiter;
    const std::string_view m_what;
    const TimePoint m_since = Clock::now();
    Outcome m_outcome = Outcome::none;
    std::string m_reason;                      ///< why it was refused, or is in doubt
    std::unique_ptr<AwaitedSettlement> m_self; ///< while it waits
};

/// The lane owns it. Callers hold the link's lock.
class AwaitedSettlements final : public Awaits {
  public:
    explicit AwaitedSettlements(Lane& lane) : m_lane(lane) {}

    /// Makes them on demand.
    [[nodiscard]] static AwaitedSettlements& of(Lane& lane) {
        std::unique_ptr<Awaits>& all = lane.held().awaits();
        if (!all) {
            all = std::make_unique<AwaitedSettlements>(lane);
        }
        return static_cast<AwaitedSettlements&>(*all);
    }

    /// The message's outcome is awaited from now on.
    void add(std::unique_ptr<AwaitedSettlement> settlement) noexcept {
        AwaitedSettlement& added = *settlement;
        added.m_message->listener = &added;
        added.m_message->settling.await();
        added.m_self = std::move(settlement);
        m_waiting.push_back(added);
    }
    [[nodiscard]] bool empty() const noexcept override { return m_waiting.empty(); }
    TimePoint end_overdue() noexcept override {
        while (!empty()) {
            const TimePoint until = m_lane.patience((*m_waiting.begin()).m_since);
            if (Clock::now() < until) {
                return until;
            }
            give_up_first();
        }
        return TimePoint::max();
    }
    void end_all() noexcept override {
        while (!empty()) {
            give_up_first();
        }
    }

  private:
    friend class AwaitedSettlement;

    using Outcome = AwaitedSettlement::Outcome;

    /// Its settlement goes on without it.
    [[gnu::cold]] void give_up_first() noexcept {
        AwaitedSettlement& first = *m_waiting.begin();
        first.m_message->listener = nullptr;
        first.m_message->settling.end(AwaitedSettling::Stage::ended);
        first.m_reason = text_or_less(m_lane.last_failure());
        m_lane.held().leave_unattended(first.m_message);
        end(first, Outcome::in_doubt);
    }
    void on_outcome(AwaitedSettlement& settlement) noexcept {
        using S = Delivery::State;
        using Stage = AwaitedSettling::Stage;
        Delivery& message = *settlement.m_message;
        if (message.state != S::held) {
            const bool done = message.state == S::settled;
            message.settling.end(done ? Stage::done : Stage::ended);
            m_lane.held().let_go();
            end(settlement, done ? Outcome::done : Outcome::lost);
            return;
        }
        if (message.settling.end(Stage::refused)) {
            settlement.m_reason = std::exchange(message.refusal, {});
        } else { // its guard is gone: it is asked for again
            settlement.m_reason = text_or_less(message.refusal);
            m_lane.held().leave_unattended(settlement.m_message);
        }
        end(settlement, Outcome::refused);
    }
    void end(AwaitedSettlement& settlement, Outcome outcome) noexcept {
        settlement.m_outcome = outcome;
        m_waiting.erase(settlement);
        Awaits::add(std::move(settlement.m_self));
    }

    Lane& m_lane;
    LinkedList<AwaitedSettlement> m_waiting; ///< those that began first come first
};

inline void AwaitedSettlement::on_outcome() noexcept { m_among.on_outcome(*this); }

inline void AwaitedSettlement::tell() noexcept {
    const bool heard = m_waiter->end(m_outcome == Outcome::done, error());
    if (!heard && m_outcome != Outcome::in_doubt) {
        Lane& lane = m_among.m_lane;
        const std::string id = [&] {
            const std::lock_guard lock(lane.mutex());
            return text_or_less(lane.mirror().identity().id);
        }();
        const bool refused = m_outcome == Outcome::refused;
        lane.events().tell({refused ? EventKind::settlement_refused : EventKind::late_settlement,
                            lane.keys().source(), id,
                            refused                      ? std::string_view(m_reason)
                            : m_outcome == Outcome::done ? settlement_done
                                                         : settlement_lost,
                            m_message->payload});
    }
}

/// Null for one that is done or lost.
inline std::exception_ptr AwaitedSettlement::error() const noexcept {
    const Lane& lane = m_among.m_lane;
    try {
        if (m_outcome == Outcome::refused) {
            return std::make_exception_ptr(lane.refused_settlement(m_what, m_reason));
        }
        if (m_outcome == Outcome::in_doubt) {
            return std::make_exception_ptr(
                lane.unanswered_settlement(joined({m_what, " a message"}), m_reason));
        }
    } catch (...) { // without memory for it
        return std::current_exception();
    }
    return nullptr;
}

} // namespace orizuru::detail
