// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// An executor of the user's that knows whether its context still exists: Asio does not, and to post
// to one that is gone is undefined. It knows who waits there for what another thread will tell, and
// lets go of them when the context is destroyed.

#include <memory>
#include <mutex>
#include <utility>

namespace orizuru::detail {

/// Waits in a loop for what another thread will tell. Make it with std::make_shared.
class LoopWaiter {
  public:
    LoopWaiter() = default;
    LoopWaiter(const LoopWaiter&) = delete;
    LoopWaiter& operator=(const LoopWaiter&) = delete;
    virtual ~LoopWaiter() = default;

    /// The context is being destroyed, by this thread: destroys what waits.
    virtual void drop() noexcept = 0;

  private:
    friend class LoopWaiters;

    std::shared_ptr<LoopWaiter> m_self; ///< while it waits
    LoopWaiter* m_before = nullptr;
    LoopWaiter* m_behind = nullptr;
};

/// Those who wait. Owns them, and allocates nothing.
class LoopWaiters {
  public:
    void add(std::shared_ptr<LoopWaiter> waiter) noexcept {
        LoopWaiter& added = *waiter;
        added.m_behind = m_first;
        if (m_first != nullptr) {
            m_first->m_before = &added;
        }
        m_first = &added;
        added.m_self = std::move(waiter);
    }
    /// Null if it does not wait any more.
    std::shared_ptr<LoopWaiter> take(LoopWaiter& waiter) noexcept {
        if (waiter.m_self) {
            (waiter.m_before != nullptr ? waiter.m_before->m_behind : m_first) = waiter.m_behind;
            if (waiter.m_behind != nullptr) {
                waiter.m_behind->m_before = waiter.m_before;
            }
            waiter.m_before = waiter.m_behind = nullptr;
        }
        return std::move(waiter.m_self);
    }
    /// Null if nobody waits.
    std::shared_ptr<LoopWaiter> take_any() noexcept {
        return m_first != nullptr ? take(*m_first) : nullptr;
    }

  private:
    LoopWaiter* m_first = nullptr;
};

/// A context's, which outlives it.
template <class Library>
class LoopState {
    using Context = typename Library::Context;

    /// Lives in the context.
    class Watch final : public Context::service {
      public:
        using key_type = Watch;
        inline static typename Context::id id;

        explicit Watch(Context& context) : Context::service(context) {}

        [[nodiscard]] const std::shared_ptr<LoopState>& state() const noexcept { return m_state; }

      private:
        void shutdown() noexcept override {
            // Without the lock: what waits may own what ends other calls in this context.
            while (const auto waiter = m_state->take_any()) {
                waiter->drop();
            }
        }

        const std::shared_ptr<LoopState> m_state = std::make_shared<LoopState>();
    };

  public:
    [[nodiscard]] static std::shared_ptr<LoopState> of(Context& context) {
        return use_service<Watch>(context).state();
    }

    std::mutex mutex; ///< guards the next two; held while something is posted
    bool gone = false;
    LoopWaiters waiters;

  private:
    [[nodiscard]] std::shared_ptr<LoopWaiter> take_any() noexcept {
        const std::lock_guard lock(mutex);
        gone = true;
        return waiters.take_any();
    }
};

/// `Library`: Asio or BoostAsio. `Executor`: any of its executors. Copies are one. Any thread.
template <class Library, class Executor = typename Library::Executor>
class Loop {
    using State = LoopState<Library>;

  public:
    explicit Loop(Executor executor)
        : m_executor(std::move(executor)), m_state(State::of(Library::context_of(m_executor))) {}

    /// For the thread of the loop.
    [[nodiscard]] const Executor& executor() const noexcept { return m_executor; }
    /// Returns false when the context is gone: nothing was posted. Throws what Asio does.
    template <class Function>
    bool post(Function function) const {
        const std::lock_guard lock(m_state->mutex);
        if (m_state->gone) {
            return false;
        }
        Library::post(m_executor, std::move(function));
        return true;
    }
    /// Has it wait until `end`, or until its context is destroyed. For the thread of the loop.
    void wait(std::shared_ptr<LoopWaiter> waiter) const noexcept {
        const std::lock_guard lock(m_state->mutex);
        m_state->waiters.add(std::move(waiter));
    }
    /// If it still waits, it does no longer, and what `make` returns is posted. Throws what Asio
    /// does.
    template <class Make>
    void end(LoopWaiter& waiter, Make make) const {
        const std::lock_guard lock(m_state->mutex);
        if (m_state->waiters.take(waiter) != nullptr) {
            Library::post(m_executor, make());
        }
    }

  private:
    Executor m_executor;
    std::shared_ptr<State> m_state;
};

} // namespace orizuru::detail
