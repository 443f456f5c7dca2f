// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A call that a thread of the library ends, for a completion handler of Asio's.

#include <orizuru/detail/asio/loop.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace orizuru::detail {

/// `Handler`: a completion handler for void(std::exception_ptr). It is called on its executor, and
/// destroyed there, or with its context; so is the executor, which may use the context for that.
template <class Library, class Handler>
class AwaitedCall final : public LoopWaiter,
                          public std::enable_shared_from_this<AwaitedCall<Library, Handler>> {
    using State = LoopState<Library>;
    using Work = decltype(Library::work_of(std::declval<const Handler&>()));

  public:
    /// On the thread of the handler. In a context that is being destroyed the handler is, too.
    static std::shared_ptr<AwaitedCall> begin(Handler handler) {
        auto work = Library::work_of(handler);
        auto state = State::of(Library::context_of(work.get_executor()));
        auto call =
            std::make_shared<AwaitedCall>(std::move(state), std::move(work), std::move(handler));
        if (call->wait()) {
            call->end_when_cancelled();
        } else {
            call->drop();
        }
        return call;
    }
    /// For `begin`.
    AwaitedCall(std::shared_ptr<State> state, Work work, Handler handler)
        : m_state(std::move(state)), m_parts(std::in_place, std::move(work), std::move(handler)) {}

    /// Any thread. The first end counts, if the handler still waits. Null: without an error.
    void end(std::exception_ptr error) {
        const std::lock_guard lock(m_state->mutex());
        if (m_stage != Stage::waiting) {
            return;
        }
        // It stays among those that wait until this runs: a context that is being destroyed may
        // destroy what is posted at once, and on any thread.
        const auto executor = m_parts->work.get_executor();
        Library::post(executor, [own = this->shared_from_this(),
                                 error = std::move(error)]() mutable { own->tell(error); });
        m_stage = Stage::ended;
    }

    void drop() noexcept override {
        {
            const std::lock_guard lock(m_state->mutex());
            m_stage = Stage::gone;
        }
        m_parts.reset();
    }

  private:
    enum class Stage : std::uint8_t { waiting, ended, gone };
    struct Parts {
        Parts(Work of_handler, Handler chosen)
            : work(std::move(of_handler)), handler(std::move(chosen)) {}

        Work work; ///< keeps the context running
        Handler handler;
    };

    [[nodiscard]] bool wait() {
        const std::lock_guard lock(m_state->mutex());
        return m_state->add(this->shared_from_this());
    }
    void end_when_cancelled() {
        auto slot = Library::slot_of(m_parts->handler);
        if (slot.is_connected()) {
            slot.assign([call = this->weak_from_this()](auto type) {
                const auto own = Library::may_leave_effects(type) ? call.lock() : nullptr;
                if (own) {
                    own->end(Library::aborted());
                }
            });
        }
    }
    void tell(std::exception_ptr& error) {
        {
            const std::lock_guard lock(m_state->mutex());
            if (m_state->take(*this) == nullptr) {
                return;
            }
            m_stage = Stage::gone;
        }
        auto slot = Library::slot_of(m_parts->handler);
        if (slot.is_connected()) {
            slot.clear();
        }
        // It may end everything, and begin the next call in this one's memory.
        Handler handler = std::move(m_parts->handler);
        m_parts.reset();
        std::move(handler)(std::move(error));
    }

    const std::shared_ptr<State> m_state;
    Stage m_stage = Stage::waiting; ///< guarded by the state's lock
    std::optional<Parts> m_parts;   ///< the handler's thread's, except the executor while it waits
};

} // namespace orizuru::detail
