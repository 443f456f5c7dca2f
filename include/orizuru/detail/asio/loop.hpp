// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// An executor of the user's that knows whether its context still exists: Asio does not, and to post
// to one that is gone is undefined.

#include <memory>
#include <mutex>
#include <utility>

namespace orizuru::detail {

/// `Library`: Asio or BoostAsio. Copies are one. Any thread.
template <class Library>
class Loop {
    using Context = typename Library::Context;

    struct State {
        std::mutex mutex; ///< guards the next; held while something is posted
        bool gone = false;
    };
    /// Lives in the context.
    class Watch final : public Context::service {
      public:
        using key_type = Watch;
        inline static typename Context::id id;

        explicit Watch(Context& context) : Context::service(context) {}

        [[nodiscard]] const std::shared_ptr<State>& state() const noexcept { return m_state; }

      private:
        void shutdown() noexcept override {
            const std::lock_guard lock(m_state->mutex);
            m_state->gone = true;
        }

        const std::shared_ptr<State> m_state = std::make_shared<State>();
    };

  public:
    using Executor = typename Library::Executor;

    explicit Loop(Executor executor)
        : m_executor(std::move(executor)), m_state(watch_of(m_executor.context()).state()) {}

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

  private:
    [[nodiscard]] static Watch& watch_of(Context& context) { return use_service<Watch>(context); }

    Executor m_executor;
    std::shared_ptr<State> m_state;
};

} // namespace orizuru::detail
