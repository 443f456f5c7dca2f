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
#include <tuple>
#include <utility>

namespace orizuru::detail {

/// `Handler`: a completion handler for void(std::exception_ptr, Results...). It is called on its
/// executor, and destroyed there, or with its context; so is the executor, which may use the
/// context for that.
template <class Library, class Handler, class... Results>
class AwaitedCall final
    : public LoopWaiter,
      public std::enable_shared_from_this<AwaitedCall<Library, Handler, Results...>> {
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

    /// Any thread. The first end counts, if the handler still waits; others return false, and leave
    /// the results where they are. A null error: without one.
    bool end(std::exception_ptr error, Results&&... results) {
        const std::lock_guard lock(m_state->mutex());
        if (m_stage != Stage::waiting) {
            return false;
        }
        // It stays among those that wait until this runs: a context that is being destroyed may
        // destroy what is posted at once, and on any thread.
        const auto executor = m_parts->work.get_executor();
        Library::post(executor, [own = this->shared_from_this()] { own->tell(); });
        m_end.emplace(std::move(error), std::move(results)...);
        m_stage = Stage::ended;
        return true;
    }
    /// Does the same without results.
    bool fail(std::exception_ptr error) { return end(std::move(error), Results()...); }
    /// Any thread. The handler still waits.
    [[nodiscard]] bool waits() const noexcept {
        const std::lock_guard lock(m_state->mutex());
        return m_stage == Stage::waiting;
    }

    void drop() noexcept override {
        {
            const std::lock_guard lock(m_state->mutex());
            m_stage = Stage::gone;
        }
        m_end.reset();
        m_parts.reset();
    }

  private:
    enum class Stage : std::uint8_t { waiting, ended, gone };
    using End = std::tuple<std::exception_ptr, Results...>;
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
                    own->fail(Library::aborted());
                }
            });
        }
    }
    void tell() {
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
        End end = std::move(*m_end);
        m_parts.reset();
        m_end.reset();
        std::apply([&](auto&... parts) { std::move(handler)(std::move(parts)...); }, end);
    }

    const std::shared_ptr<State> m_state;
    Stage m_stage = Stage::waiting; ///< guarded by the state's lock
    std::optional<End> m_end;       ///< guarded by it until it is told
    std::optional<Parts> m_parts;   ///< the handler's thread's, except the executor while it waits
};

} // namespace orizuru::detail
