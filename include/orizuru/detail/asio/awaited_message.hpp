// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The next message of an AsyncConsumer, and the end of its flush, for a completion handler of
// Asio's.

#include <orizuru/async/async_consumer.hpp>
#include <orizuru/detail/asio/awaited_call.hpp>
#include <orizuru/detail/async/awaited_message.hpp>
#include <orizuru/message_guard.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace orizuru::detail {

template <class T, class Call>
class AwaitedMessage final : public MessageWaiter {
  public:
    explicit AwaitedMessage(std::shared_ptr<Call> call) noexcept : m_call(std::move(call)) {}

    [[nodiscard]] bool listens() const noexcept override { return m_call->waits(); }
    void take(MessageSlot& slot) noexcept override {
        auto& content = static_cast<GuardSlot<T>&>(slot).content();
        if (m_call->end(nullptr, std::move(content))) {
            content.reset();
        }
    }
    void end(std::exception_ptr error) noexcept override { m_call->fail(std::move(error)); }

  private:
    std::shared_ptr<Call> m_call;
};

template <class Call>
class AwaitedFlush final : public FlushWaiter {
  public:
    explicit AwaitedFlush(std::shared_ptr<Call> call) noexcept : m_call(std::move(call)) {}
    void end(std::size_t late, std::exception_ptr error) noexcept override {
        m_call->end(std::move(error), std::move(late));
    }

  private:
    std::shared_ptr<Call> m_call;
};

/// Throws std::logic_error at once in a forked child, where another thread may have left the lock
/// of a context taken.
template <class Library, class T, class Token>
auto async_next(AsyncConsumer<T>& consumer, Token& token) {
    using Guard = std::optional<MessageGuard<T>>;
    AsyncConsumerCore& core = AsyncConsumerAccess::core(consumer);
    core.refuse_fork();
    const auto start = [](auto handler, AsyncConsumerCore* asked) {
        using Call = AwaitedCall<Library, decltype(handler), Guard>;
        const auto call = Call::begin(std::move(handler));
        try {
            asked->next(std::make_unique<AwaitedMessage<T, Call>>(call));
        } catch (...) {
            call->fail(std::current_exception()); // an initiation must not throw
        }
    };
    return Library::template initiate<Token, void(std::exception_ptr, Guard)>(start, token, &core);
}

template <class Library, class T, class Token>
auto async_flush(AsyncConsumer<T>& consumer, Token& token) {
    AsyncConsumerCore& core = AsyncConsumerAccess::core(consumer);
    core.refuse_fork();
    const auto start = [](auto handler, AsyncConsumerCore* asked) {
        using Call = AwaitedCall<Library, decltype(handler), std::size_t>;
        const auto call = Call::begin(std::move(handler));
        try {
            asked->flush(std::make_unique<AwaitedFlush<Call>>(call));
        } catch (...) {
            call->fail(std::current_exception());
        }
    };
    return Library::template initiate<Token, void(std::exception_ptr, std::size_t)>(start, token,
                                                                                    &core);
}

} // namespace orizuru::detail
