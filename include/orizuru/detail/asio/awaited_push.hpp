// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A push of an AsyncProducer, for a completion handler of Asio's.

#include <orizuru/async/async_producer.hpp>
#include <orizuru/detail/asio/awaited_call.hpp>
#include <orizuru/detail/async/async_push.hpp>
#include <orizuru/detail/codec/encoding.hpp>

#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace orizuru::detail {

template <class Call>
class AwaitedPush final : public AsyncPush {
  public:
    AwaitedPush(std::string payload, std::shared_ptr<Call> call) noexcept
        : AsyncPush(std::move(payload)), m_call(std::move(call)) {}
    void end(std::exception_ptr error) noexcept override { m_call->end(std::move(error)); }

  private:
    std::shared_ptr<Call> m_call;
};

/// Encodes at once. Throws EncodeError then; std::logic_error in a forked child, where another
/// thread may have left the lock of a context taken.
template <class Library, class T, class Token>
auto async_push(AsyncProducer<T>& producer, const T& message, Token& token) {
    AsyncProducerCore& core = AsyncProducerAccess::core(producer);
    core.refuse_fork();
    std::string bytes = encoded(message, producer.options().max_payload);
    const auto start = [](auto handler, AsyncProducerCore* pushing, std::string payload) {
        using Call = AwaitedCall<Library, decltype(handler)>;
        const auto call = Call::begin(std::move(handler));
        try {
            pushing->push(std::make_unique<AwaitedPush<Call>>(std::move(payload), call));
        } catch (...) {
            call->fail(std::current_exception()); // an initiation must not throw
        }
    };
    return Library::template initiate<Token, void(std::exception_ptr)>(start, token, &core,
                                                                       std::move(bytes));
}

} // namespace orizuru::detail
