// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps settlements whose callers do not wait: a destructor's, one that outlasted its caller's
// patience, a deferred ack. They stay queued, and on_event gets their outcome.

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/event.hpp>

#include <cstddef>
#include <new>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// The details of EventKind::late_settlement.
inline constexpr std::string_view settlement_done = "it was done";
inline constexpr std::string_view settlement_lost = "it was not done: the lease was lost";

class Unattended {
  public:
    void add(const DeliveryPtr& message) noexcept {
        message->unattended = true;
        try {
            m_messages.push_back(message);
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
            // The settlement still goes on; only its outcome is not reported.
        }
    }
    [[nodiscard]] bool empty() const noexcept { return m_messages.empty(); }

    /// Returns how many deferred acks came too late since the last call.
    [[nodiscard]] std::size_t take_late_acks() noexcept { return std::exchange(m_late_acks, 0); }

    void on_lost(const Fifo<DeliveryPtr>& messages) noexcept {
        for (const DeliveryPtr& message : messages) {
            m_late_acks += message->deferred ? 1U : 0U;
        }
    }

    /// Reports the outcomes known so far.
    void tell(EventQueue& events, std::string_view consumer) noexcept {
        m_messages.erase_if([&](const DeliveryPtr& message) {
            const bool settled = message->state == Delivery::State::settled;
            if (!settled && message->state != Delivery::State::lost) {
                return false;
            }
            events.note(EventKind::late_settlement, consumer,
                        settled ? settlement_done : settlement_lost, message->payload);
            return true;
        });
    }

    /// Requests refused settlements again, because no caller will.
    static void retry(Mirror& mirror, EventQueue& events) {
        for (const DeliveryPtr& message : mirror.messages()) {
            if (message->state == Delivery::State::held && !message->refusal.empty() &&
                (message->unattended || message->deferred)) {
                events.note(EventKind::settlement_refused, mirror.identity().id, message->refusal,
                            message->payload);
                message->failures = 0;
                mirror.want(message, std::move(message->move));
            }
        }
    }

  private:
    Fifo<DeliveryPtr> m_messages;
    std::size_t m_late_acks = 0;
};

} // namespace orizuru::detail
