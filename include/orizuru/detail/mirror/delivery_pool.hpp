// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reuses deliveries for later messages: in steady state none is allocated.

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/mirror/delivery.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace orizuru::detail {

class DeliveryPool {
  public:
    /// Makes a message of these bytes. Swaps them for memory that `payload` can use again.
    [[nodiscard]] DeliveryPtr make(std::string& payload) {
        DeliveryPtr message = spare();
        message->payload.swap(payload);
        return message;
    }

    /// Takes a message that the mirror has let go; a guard may still use its payload.
    void recycle(DeliveryPtr&& message) noexcept {
        message->move.reset();
        if (m_spare.size() >= most_kept || message->payload.capacity() > largest_kept) {
            return;
        }
        try {
            m_spare.push_back(std::move(message));
        } catch (...) { // NOLINT(bugprone-empty-catch)
            // Not keeping one only costs an allocation later.
        }
    }

  private:
    // Two batches of the largest size, 8 MiB at the most.
    static constexpr std::size_t most_kept = 2000;
    static constexpr std::size_t largest_kept = 4096;

    DeliveryPtr spare() {
        while (!m_spare.empty()) {
            DeliveryPtr message = m_spare.pop_front();
            if (message.unique()) {
                message->reset();
                return message;
            }
        }
        return DeliveryPtr::make();
    }

    Fifo<DeliveryPtr> m_spare;
};

} // namespace orizuru::detail
