// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Implements the part of MessageGuard that does not depend on the message type.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/script.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class Session;
class SettlementWaiter;

/// A settlement that is composed and not begun.
struct Settlement {
    std::unique_ptr<Move> move;                          ///< null: an ack
    std::string_view what;                               ///< a literal, for errors
    std::unique_ptr<const std::string> burial = nullptr; ///< the reason of one
};

/// A job that others wait for is not ended by its guard.
[[noreturn]] [[gnu::cold]] void refuse_awaited(Delivery::Awaited by);

/// For one thread at a time. Blocks and throws as MessageGuard documents.
class GuardCore {
  public:
    GuardCore() noexcept = default;
    GuardCore(GuardCore&& other) noexcept
        : m_session(std::exchange(other.m_session, nullptr)),
          m_delivery(std::move(other.m_delivery)),
          m_burial(std::move(other.m_burial)) {}
    /// Rejects its own message if that is unsettled, as the destructor does, then takes over.
    GuardCore& operator=(GuardCore&& other) noexcept {
        if (this != &other) {
            reject_unsettled();
            m_session = std::exchange(other.m_session, nullptr);
            m_delivery = std::move(other.m_delivery);
            m_burial = std::move(other.m_burial);
        }
        return *this;
    }
    GuardCore(const GuardCore&) = delete;
    GuardCore& operator=(const GuardCore&) = delete;
    ~GuardCore() { reject_unsettled(); }

    /// From now on the message is to be settled; before, there must be none.
    void guard(Session& session, DeliveryPtr&& delivery) noexcept {
        m_session = &session;
        m_delivery = std::move(delivery);
    }

    /// The message is nobody's to settle.
    void guard_settled(DeliveryPtr&& delivery) noexcept { m_delivery = std::move(delivery); }

    /// A message that nobody settles any more.
    struct GivenUp {
        Session* session = nullptr; ///< which it keeps alive
        DeliveryPtr message;
    };
    /// Lets go of an unsettled message; the guard is settled then.
    [[nodiscard]] GivenUp give_up() noexcept {
        m_burial = nullptr;
        return {std::exchange(m_session, nullptr), m_delivery};
    }
    /// Puts such messages back: at the end of their consumer one step requeues all of them, in the
    /// order of the queue.
    [[gnu::cold]] static void put_back(Fifo<GivenUp> messages) noexcept;
    [[gnu::cold]] static void put_back(const GivenUp& message) noexcept;

    [[nodiscard]] std::string_view payload() const;
    bool ack();
    /// Accepts an ack, which the consumer's flush() sends with others: a suspect's is sent now.
    bool ack_later();
    /// Throws std::logic_error for a guard that is settled or was moved from, and in a forked
    /// child.
    [[nodiscard]] Settlement acking() const;
    [[nodiscard]] Settlement rejecting() const;
    [[nodiscard]] Settlement releasing() const;
    [[nodiscard]] Settlement releasing(std::string replacement) const;
    [[nodiscard]] Settlement pushing(std::string_view queue) const;
    [[nodiscard]] Settlement pushing(std::string_view queue, std::string replacement) const;
    [[nodiscard]] Settlement burying(std::string_view reason) const;
    [[nodiscard]] Settlement settling(const Script& script, std::vector<std::string> keys,
                                      std::vector<std::string> args) const;
    /// Does the same for one that comes again: it keeps its recoveries.
    [[nodiscard]] Settlement putting_off(const Script& script, std::vector<std::string> keys,
                                         std::vector<std::string> args) const;
    /// Does the same as settling() for one that others wait for: the script brings the next one.
    [[nodiscard]] Settlement passing_on(const Script& script, std::vector<std::string> keys,
                                        std::vector<std::string> args) const;
    /// From now on settling it by ack, push and a script throws std::logic_error, as others wait
    /// for its end (jobs/order/job_order.hpp, jobs/group/membership.hpp); by bury, too, when those
    /// of its key do. While it is unsettled.
    void let_wait(Delivery::Awaited by) noexcept { m_delivery->awaited = by; }
    /// Throws std::logic_error then.
    void refuse_if_awaited() const;
    void refuse_in_burst() const {
        if (awaited(Delivery::Awaited::by_burst)) {
            refuse_awaited(Delivery::Awaited::by_burst);
        }
    }
    [[nodiscard]] bool awaited(Delivery::Awaited by) const noexcept {
        return !moved_from() && m_delivery->awaited == by;
    }
    /// From now on it settles those, too. While it is unsettled. Their payloads outlive it.
    void lead(std::unique_ptr<const Burst> burst) noexcept { m_delivery->burst = std::move(burst); }
    /// Null where it settles its own message alone.
    [[nodiscard]] const Burst* burst() const noexcept { return m_delivery->burst.get(); }
    bool settle(Settlement settlement);
    /// Does the same in two steps, between which the settlements of other guards may begin. The
    /// guard counts as settled meanwhile. If `begin` throws, nothing has happened.
    void begin(Settlement settlement);
    bool finish(std::string_view what);
    /// Sends one that has begun, and waits for nothing.
    void send_begun() noexcept;
    /// Begins a settlement whose end `waiter` is told of. The guard counts as settled unless Redis
    /// refuses; it may go before that. If it throws, nothing has happened.
    ORIZURU_INLINE void begin(Settlement settlement, std::unique_ptr<SettlementWaiter> waiter);
    /// The reason, once it is buried.
    [[nodiscard]] const std::string* buried() const noexcept;
    /// It was blamed for the death of a consumer, and is handled apart. While it is unsettled.
    [[nodiscard]] bool suspected() const noexcept { return m_delivery->trial != nullptr; }
    [[nodiscard]] const Keys& keys() const;
    [[nodiscard]] std::int64_t max_payload() const;
    [[nodiscard]] bool held() const;
    [[nodiscard]] bool settled() const noexcept {
        return m_session == nullptr || m_delivery->settling.settles();
    }
    [[nodiscard]] bool moved_from() const noexcept { return !m_delivery; }

  private:
    void check_not_moved_from() const;
    [[nodiscard]] Session& session() const;
    [[nodiscard]] Session& own_session() const;
    [[nodiscard]] Settlement moving(const Script& script, std::vector<std::string> keys,
                                    std::vector<std::string> args, std::string_view what,
                                    Move::Recoveries recoveries = Move::Recoveries::kept) const;
    template <class End>
    bool end(std::unique_ptr<const std::string> burial, End end);
    void abandon() noexcept;
    void reject_unsettled() noexcept {
        if (m_session != nullptr) {
            abandon();
        }
    }

    /// An unsettled message keeps it alive; null: nothing is to be settled. A settlement that is
    /// awaited may end it.
    Session* m_session = nullptr;
    DeliveryPtr m_delivery;
    std::unique_ptr<const std::string> m_burial; ///< the reason of one that has begun
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/consumer/guard_core.ipp>
#endif
