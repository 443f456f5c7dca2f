// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The settlements of a lane whose callers are told of the end, instead of waiting in a thread.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/mirror/delivery.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class AwaitedSettlements;

/// Is told of the end of a settlement.
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

/// One of them, under the link's lock until it has ended, then for the thread that tells of it.
class AwaitedSettlement final : public Linked, private OutcomeListener {
  public:
    enum class Outcome : std::uint8_t {
        none,
        done,
        lost,    ///< the lease was, before
        refused, ///< by Redis: the message is held again
        in_doubt ///< not in time: it goes on in the background
    };

    /// `what`: a literal, for errors.
    AwaitedSettlement(AwaitedSettlements& list, DeliveryPtr message,
                      std::unique_ptr<SettlementWaiter> waiter, std::string_view what) noexcept
        : m_list(list), m_message(std::move(message)), m_waiter(std::move(waiter)), m_what(what) {}

    [[nodiscard]] Outcome outcome() const noexcept { return m_outcome; }
    [[nodiscard]] const std::string& payload() const noexcept { return m_message->payload; }
    [[nodiscard]] std::string_view what() const noexcept { return m_what; }
    /// Why it was refused, or is in doubt.
    [[nodiscard]] const std::string& reason() const noexcept { return m_reason; }
    /// As SettlementWaiter::end.
    bool tell(std::exception_ptr error) const noexcept {
        return m_waiter->end(m_outcome == Outcome::done, std::move(error));
    }

  private:
    friend class AwaitedSettlements;
    friend class EndedSettlements;

    inline void on_outcome() noexcept override;

    AwaitedSettlements& m_list;
    const DeliveryPtr m_message;
    const std::unique_ptr<SettlementWaiter> m_waiter;
    const std::string_view m_what;
    const TimePoint m_since = Clock::now();
    Outcome m_outcome = Outcome::none;
    std::string m_reason;
    std::unique_ptr<AwaitedSettlement> m_self; ///< while it waits
    std::unique_ptr<AwaitedSettlement> m_next; ///< the next one that has ended
};

/// Those that have ended, in this order.
class EndedSettlements {
  public:
    EndedSettlements() = default;
    EndedSettlements(EndedSettlements&& other) noexcept
        : m_first(std::move(other.m_first)), m_last(std::exchange(other.m_last, nullptr)) {}
    EndedSettlements& operator=(EndedSettlements&&) = delete;
    ~EndedSettlements() {
        while (pop()) { // one by one: a chain would end itself recursively
        }
    }

    [[nodiscard]] bool empty() const noexcept { return m_first == nullptr; }
    void push(std::unique_ptr<AwaitedSettlement> settlement) noexcept {
        AwaitedSettlement* const last = settlement.get();
        (m_first ? m_last->m_next : m_first) = std::move(settlement);
        m_last = last;
    }
    /// Null when there are no more.
    std::unique_ptr<AwaitedSettlement> pop() noexcept {
        std::unique_ptr<AwaitedSettlement> first = std::move(m_first);
        if (first) {
            m_first = std::move(first->m_next);
        }
        return first;
    }

  private:
    std::unique_ptr<AwaitedSettlement> m_first;
    AwaitedSettlement* m_last = nullptr; ///< if there is a first
};

/// Callers hold the link's lock.
class AwaitedSettlements {
  public:
    using Outcome = AwaitedSettlement::Outcome;

    AwaitedSettlements() = default;
    AwaitedSettlements(const AwaitedSettlements&) = delete;
    AwaitedSettlements& operator=(const AwaitedSettlements&) = delete;
    ~AwaitedSettlements() = default;

    /// The message's outcome is awaited from now on.
    void add(std::unique_ptr<AwaitedSettlement> settlement) noexcept {
        AwaitedSettlement& added = *settlement;
        added.m_message->listener = &added;
        added.m_message->settling.await();
        added.m_self = std::move(settlement);
        m_waiting.push_back(added);
    }
    [[nodiscard]] bool empty() const noexcept { return m_waiting.empty(); }
    /// Returns since when the first of them waits; there is one.
    [[nodiscard]] TimePoint first() noexcept { return (*m_waiting.begin()).m_since; }
    /// Ends the first: its settlement goes on without it. Returns the message.
    [[gnu::cold]] DeliveryPtr give_up_first(const std::string& reason) noexcept {
        AwaitedSettlement& first = *m_waiting.begin();
        first.m_message->listener = nullptr;
        first.m_message->settling.end(AwaitedSettling::Stage::ended);
        first.m_reason = text_or_less(reason);
        DeliveryPtr message = first.m_message;
        end(first, Outcome::in_doubt);
        return message;
    }
    /// Returns how many messages were settled or lost since the last call.
    [[nodiscard]] std::size_t take_let_go() noexcept { return std::exchange(m_let_go, 0); }

    [[nodiscard]] bool has_ended() const noexcept { return !m_ended.empty(); }
    [[nodiscard]] EndedSettlements take_ended() noexcept { return std::move(m_ended); }

  private:
    friend class AwaitedSettlement;

    void on_outcome(AwaitedSettlement& settlement) noexcept {
        using S = Delivery::State;
        using Stage = AwaitedSettling::Stage;
        Delivery& message = *settlement.m_message;
        if (message.state != S::held) {
            const bool done = message.state == S::settled;
            message.settling.end(done ? Stage::done : Stage::ended);
            ++m_let_go;
            end(settlement, done ? Outcome::done : Outcome::lost);
        } else if (message.settling.end(Stage::refused)) {
            settlement.m_reason = std::exchange(message.refusal, {});
            end(settlement, Outcome::refused);
        } else { // its guard is gone: it is asked for again
            message.unattended = true;
            message.listener = &settlement;
        }
    }
    void end(AwaitedSettlement& settlement, Outcome outcome) noexcept {
        settlement.m_outcome = outcome;
        m_waiting.erase(settlement);
        m_ended.push(std::move(settlement.m_self));
    }

    LinkedList<AwaitedSettlement> m_waiting; ///< those that began first come first
    EndedSettlements m_ended;
    std::size_t m_let_go = 0;
};

inline void AwaitedSettlement::on_outcome() noexcept { m_list.on_outcome(*this); }

} // namespace orizuru::detail
