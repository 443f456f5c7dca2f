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

    /// A message that nobody settles any more.
    struct GivenUp {
        Session* session = nullptr; ///< which it keeps alive
        DeliveryPtr message;
    };
    /// Lets go of an unsettled message; the guard is settled then.
    [[nodiscard]] GivenUp give_up() noexcept {
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
    bool reject();
    bool release();
    bool push(std::string_view queue);
    bool push(std::string_view queue, std::string replacement);
    bool bury(std::string_view reason);
    [[nodiscard]] const std::string* buried() const noexcept { return m_burial.get(); }
    bool settle(const Script& script, std::vector<std::string> keys, std::vector<std::string> args);
    /// Does the same for one that comes again: it keeps its recoveries.
    bool put_off(const Script& script, std::vector<std::string> keys,
                 std::vector<std::string> args);
    /// It was blamed for the death of a consumer, and is handled apart. While it is unsettled.
    [[nodiscard]] bool suspected() const noexcept { return m_delivery->trial != nullptr; }
    [[nodiscard]] const Keys& keys() const;
    [[nodiscard]] std::int64_t max_payload() const;
    [[nodiscard]] bool held() const;
    [[nodiscard]] bool settled() const noexcept { return m_session == nullptr; }
    [[nodiscard]] bool moved_from() const noexcept { return !m_delivery; }

  private:
    void check_not_moved_from() const;
    [[nodiscard]] Session& session() const;
    bool move_to(const Script& script, std::vector<std::string> keys, std::vector<std::string> args,
                 std::string_view what, Move::Recoveries recoveries = Move::Recoveries::kept);
    bool settle_by(std::unique_ptr<Move> move, std::string_view what);
    void abandon() noexcept;
    void reject_unsettled() noexcept {
        if (m_session != nullptr) {
            abandon();
        }
    }

    Session* m_session = nullptr; ///< an unsettled message keeps it alive; null = nothing to settle
    DeliveryPtr m_delivery;
    std::unique_ptr<const std::string> m_burial; ///< the reason, once buried
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/consumer/guard_core.ipp>
#endif
