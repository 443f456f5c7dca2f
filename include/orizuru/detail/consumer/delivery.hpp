// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A message that a consumer holds: shared between the consumer's window and the message's guard,
// and used again for another message when both have let go.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/consumer/deferred_ack.hpp>
#include <orizuru/script.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Where a settlement other than an ack takes the message.
struct Move {
    Move(Script how, std::vector<std::string> key_names, std::vector<std::string> arguments)
        : script(std::move(how)), keys(std::move(key_names)), args(std::move(arguments)) {}

    Script script;
    std::vector<std::string> keys;
    std::vector<std::string> args;
};

struct Delivery {
    enum class State : std::uint8_t {
        held,    ///< in the list, no settlement under way
        wanted,  ///< a settlement is asked for and not sent
        sent,    ///< the settlement, or the giving back, is sent and not answered
        settled, ///< it ran
        lost     ///< the lease was lost first: the message is someone else's
    };

    std::string payload;
    std::unique_ptr<Move> move; ///< what is wanted; null = ack
    std::string refusal;        ///< why Redis refused the settlement; then the state is held
    std::uint64_t version = 0;  ///< of the request that settles it, when that was sent
    State state = State::held;
    DeferredAck deferred_ack; ///< all else is under the consumer's lock, once it is taken
    bool taken = false;       ///< by the thread in `next`; it has a guard, or will get one
    bool deferred = false;    ///< an ack that was accepted and whose outcome nobody awaits
    bool unattended = false;  ///< nobody awaits the outcome: it goes to on_event
    int failures = 0;         ///< how often the settlement failed for a reason of its own

    // For the thread in `next` alone, without the lock.
    int shortages = 0;     ///< how often in a row there was no memory to decode it
    TimePoint decode_at{}; ///< before which it is not tried again, when it has any

    /// As new, but for the payload.
    void reset() noexcept {
        move.reset();
        refusal.clear();
        version = 0;
        state = State::held;
        deferred_ack.forget();
        taken = deferred = unattended = false;
        failures = 0;
        shortages = 0;
    }
};

/// A shared pointer that can tell, to a thread that may then write, that it is the only one.
class DeliveryPtr {
  public:
    DeliveryPtr() noexcept = default;
    DeliveryPtr(std::nullptr_t) noexcept {}
    [[nodiscard]] static DeliveryPtr make() { return DeliveryPtr(new Shared); }

    DeliveryPtr(const DeliveryPtr& other) noexcept : m_shared(other.m_shared) {
        if (m_shared != nullptr) {
            m_shared->owners.fetch_add(1, std::memory_order_relaxed);
        }
    }
    DeliveryPtr(DeliveryPtr&& other) noexcept : m_shared(std::exchange(other.m_shared, nullptr)) {}
    DeliveryPtr& operator=(const DeliveryPtr& other) noexcept { return *this = DeliveryPtr(other); }
    DeliveryPtr& operator=(DeliveryPtr&& other) noexcept {
        DeliveryPtr taken(std::move(other));
        std::swap(m_shared, taken.m_shared);
        return *this;
    }
    ~DeliveryPtr() {
        if (m_shared != nullptr && m_shared->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete m_shared;
        }
    }

    /// A second owner of what has one only: without an atomic operation.
    [[nodiscard]] DeliveryPtr second() const noexcept {
        m_shared->owners.store(2, std::memory_order_relaxed);
        return DeliveryPtr(m_shared);
    }

    [[nodiscard]] Delivery& operator*() const noexcept { return *m_shared; }
    [[nodiscard]] Delivery* operator->() const noexcept { return m_shared; }
    [[nodiscard]] explicit operator bool() const noexcept { return m_shared != nullptr; }
    friend bool operator==(const DeliveryPtr&, const DeliveryPtr&) noexcept = default;

    /// What other owners did before they let go has happened before.
    [[nodiscard]] bool unique() const noexcept {
        return m_shared->owners.load(std::memory_order_acquire) == 1;
    }

  private:
    struct Shared : Delivery {
        std::atomic<int> owners{1};
    };

    explicit DeliveryPtr(Shared* shared) noexcept : m_shared(shared) {}

    Shared* m_shared = nullptr;
};

} // namespace orizuru::detail
