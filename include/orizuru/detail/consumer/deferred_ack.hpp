// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// An ack that need not be sent at once costs its guard no lock: in a large batch, taking and giving
// back one was an eighth of what the client spent on a message. The guard leaves the ack at the
// message, where whoever has the consumer's lock finds it before the next request.

#include <atomic>
#include <cstdint>

namespace orizuru::detail {

class DeferredAck {
  public:
    /// By the guard, without the lock. When it succeeds, the guard no longer keeps the consumer
    /// alive; else it is settled under the lock.
    [[nodiscard]] bool give() noexcept {
        State expected = State::open;
        return m_state.compare_exchange_strong(expected, State::given, std::memory_order_release,
                                               std::memory_order_relaxed);
    }

    // Under the consumer's lock.

    void open() noexcept { m_state.store(State::open, std::memory_order_relaxed); }
    [[nodiscard]] bool closed() const noexcept {
        return m_state.load(std::memory_order_relaxed) == State::closed;
    }
    [[nodiscard]] bool given() const noexcept {
        return m_state.load(std::memory_order_acquire) == State::given;
    }
    /// None can be given any more; true when one was.
    bool close() noexcept {
        return m_state.exchange(State::closed, std::memory_order_acquire) == State::given;
    }
    /// The same when nobody can be giving one just now.
    void forget() noexcept { m_state.store(State::closed, std::memory_order_relaxed); }

  private:
    enum class State : std::uint8_t { closed, open, given };

    std::atomic<State> m_state{State::closed};
};

} // namespace orizuru::detail
