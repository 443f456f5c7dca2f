// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// An executor of the user's that knows whether its context still exists: Asio does not, and to post
// to one that is gone is undefined. It knows who waits there for what another thread will tell, and
// lets go of them when the context is destroyed.

#include <orizuru/detail/base/linked_list.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace orizuru::detail {

/// Waits in a loop for what another thread will tell. Make it with std::make_shared.
class LoopWaiter : public Linked {
  public:
    virtual ~LoopWaiter() = default;

    /// The context is being destroyed, by this thread: destroys what waits.
    virtual void drop() noexcept = 0;

  private:
    friend class LoopWaiters;

    std::shared_ptr<LoopWaiter> m_self; ///< while it waits
};

/// Those who wait. Owns them, and allocates nothing.
class LoopWaiters {
  public:
    void add(std::shared_ptr<LoopWaiter> waiter) noexcept {
        LoopWaiter& added = *waiter;
        m_waiters.push_back(added);
        added.m_self = std::move(waiter);
    }
    /// Null if it does not wait any more.
    std::shared_ptr<LoopWaiter> take(LoopWaiter& waiter) noexcept {
        if (waiter.m_self) {
            m_waiters.erase(waiter);
        }
        return std::move(waiter.m_self);
    }
    /// Null if nobody waits.
    std::shared_ptr<LoopWaiter> take_any() noexcept {
        return m_waiters.empty() ? nullptr : take(*m_waiters.begin());
    }

  private:
    LinkedList<LoopWaiter> m_waiters;
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
        ~Watch() override { m_state->drop_all(); } // made too late to be shut down

        [[nodiscard]] const std::shared_ptr<LoopState>& state() const noexcept { return m_state; }

      private:
        void shutdown() noexcept override { m_state->drop_all(); }

        const std::shared_ptr<LoopState> m_state = std::make_shared<LoopState>();
    };

  public:
    [[nodiscard]] static std::shared_ptr<LoopState> of(Context& context) {
        return use_service<Watch>(context).state();
    }

    /// Held while something is posted: the context does not go meanwhile.
    [[nodiscard]] std::mutex& mutex() noexcept { return m_mutex; }

    // With the lock.

    /// Returns false when the context is being destroyed.
    bool add(std::shared_ptr<LoopWaiter> waiter) noexcept {
        if (!m_gone) {
            m_waiters.add(std::move(waiter));
        }
        return !m_gone;
    }
    /// Null if it does not wait any more.
    std::shared_ptr<LoopWaiter> take(LoopWaiter& waiter) noexcept { return m_waiters.take(waiter); }

  private:
    void drop_all() noexcept {
        // Without the lock: what waits may own what ends other calls in this context.
        while (const auto waiter = take_any()) {
            waiter->drop();
        }
    }
    [[nodiscard]] std::shared_ptr<LoopWaiter> take_any() noexcept {
        const std::lock_guard lock(m_mutex);
        m_gone = true;
        return m_waiters.take_any();
    }

    std::mutex m_mutex; ///< guards the next two
    bool m_gone = false;
    LoopWaiters m_waiters;
};

/// `Library`: Asio or BoostAsio. Copies are one. Any thread. It may outlive its context, and has no
/// executor then: destroying one of a strand uses the context.
template <class Library>
class Loop {
  public:
    using Executor = typename Library::Executor;

    explicit Loop(Executor executor) : m_owner(std::make_shared<Owner>(std::move(executor))) {}

    /// For the thread of the loop.
    [[nodiscard]] Executor executor() const { return m_owner->executor(); }
    /// Returns false when the context is gone: nothing was posted. Throws what Asio does.
    template <class Function>
    bool post(Function function) const {
        return m_owner->post(std::move(function));
    }

  private:
    using State = LoopState<Library>;

    /// Has the executor while there is its context.
    class Holder final : public LoopWaiter {
      public:
        Holder(Executor executor, std::shared_ptr<State> state)
            : m_state(std::move(state)), m_executor(std::move(executor)) {}

        void drop() noexcept override {
            const std::lock_guard lock(m_state->mutex());
            m_executor.reset();
        }

        const std::shared_ptr<State> m_state;
        std::optional<Executor> m_executor; ///< guarded by the state's lock
    };
    /// The last copy of a loop lets go of the executor.
    class Owner {
      public:
        explicit Owner(Executor executor) {
            auto state = State::of(Library::context_of(executor));
            m_holder = std::make_shared<Holder>(std::move(executor), std::move(state));
            const std::lock_guard lock(m_holder->m_state->mutex());
            if (!m_holder->m_state->add(m_holder)) {
                m_holder->m_executor.reset();
            }
        }
        Owner(const Owner&) = delete;
        Owner& operator=(const Owner&) = delete;
        ~Owner() {
            const std::lock_guard lock(m_holder->m_state->mutex());
            m_holder->m_executor.reset();
            m_holder->m_state->take(*m_holder);
        }

        [[nodiscard]] Executor executor() const {
            const std::lock_guard lock(m_holder->m_state->mutex());
            return *m_holder->m_executor;
        }
        template <class Function>
        bool post(Function function) const {
            const std::lock_guard lock(m_holder->m_state->mutex());
            if (!m_holder->m_executor) {
                return false;
            }
            Library::post(*m_holder->m_executor, std::move(function));
            return true;
        }

      private:
        std::shared_ptr<Holder> m_holder;
    };

    std::shared_ptr<Owner> m_owner;
};

} // namespace orizuru::detail
