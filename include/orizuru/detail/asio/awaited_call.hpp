// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A call that a thread of the library ends, for a completion handler of Asio's.

#include <orizuru/detail/asio/loop.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace orizuru::detail {

/// `Handler`: a completion handler for void(std::exception_ptr). It is called on its executor, and
/// destroyed there, or with its context.
template <class Library, class Handler>
class AwaitedCall final : public LoopWaiter,
                          public std::enable_shared_from_this<AwaitedCall<Library, Handler>> {
    using Executor = decltype(Library::executor_of(std::declval<const Handler&>()));
    using Work = decltype(Library::with_work(std::declval<const Executor&>()));

  public:
    /// On the thread of the handler.
    static std::shared_ptr<AwaitedCall> begin(Handler handler) {
        const Executor executor = Library::executor_of(handler);
        auto call = std::make_shared<AwaitedCall>(executor, std::move(handler));
        call->m_loop.wait(call);
        call->end_when_cancelled();
        return call;
    }
    /// For `begin`.
    AwaitedCall(const Executor& executor, Handler handler)
        : m_loop(executor),
          m_parts(std::in_place, std::move(handler), Library::with_work(executor)) {}

    /// Any thread. The first end counts. Null: without an error.
    void end(std::exception_ptr error) {
        m_loop.end(*this, [&] { return Tell(this->shared_from_this(), std::move(error)); });
    }

    void drop() noexcept override { m_parts.reset(); }

  private:
    /// Runs on the executor, or is destroyed with its context, which destroys what waits then.
    class Tell {
      public:
        Tell(std::shared_ptr<AwaitedCall> call, std::exception_ptr error) noexcept
            : m_call(std::move(call)), m_error(std::move(error)) {}
        Tell(Tell&&) noexcept = default;
        Tell& operator=(Tell&&) = delete;
        Tell(const Tell&) = delete;
        Tell& operator=(const Tell&) = delete;
        ~Tell() {
            if (m_call) {
                m_call->drop();
            }
        }

        void operator()() { std::exchange(m_call, nullptr)->tell(std::move(m_error)); }

      private:
        std::shared_ptr<AwaitedCall> m_call;
        std::exception_ptr m_error;
    };
    struct Parts {
        Parts(Handler chosen, Work executor)
            : handler(std::move(chosen)), work(std::move(executor)) {}

        Handler handler;
        Work work; ///< keeps the context running
    };

    void end_when_cancelled() {
        auto slot = Library::slot_of(m_parts->handler);
        if (slot.is_connected()) {
            slot.assign([call = this->weak_from_this()](auto) {
                if (const auto own = call.lock()) {
                    own->end(Library::aborted());
                }
            });
        }
    }
    void tell(std::exception_ptr error) {
        auto slot = Library::slot_of(m_parts->handler);
        if (slot.is_connected()) {
            slot.clear();
        }
        // It may end everything, and begin the next call in this one's memory.
        Handler handler = std::move(m_parts->handler);
        m_parts.reset();
        std::move(handler)(std::move(error));
    }

    const Loop<Library, Executor> m_loop;
    std::optional<Parts> m_parts;
};

} // namespace orizuru::detail
