// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The part of AsyncConsumer that does not depend on the type of its messages.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/async/awaited_message.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>

#include <memory>
#include <string>

namespace orizuru::detail {

class MessageRequests;

/// Throws as AsyncConsumer documents. Any thread.
class AsyncConsumerCore {
  public:
    [[gnu::cold]] AsyncConsumerCore(const Endpoint& endpoint, std::string&& queue,
                                    ConsumerOptions&& options, std::unique_ptr<MessageSlot> slot);
    AsyncConsumerCore(const AsyncConsumerCore&) = delete;
    AsyncConsumerCore& operator=(const AsyncConsumerCore&) = delete;
    AsyncConsumerCore(AsyncConsumerCore&&) noexcept;
    AsyncConsumerCore& operator=(AsyncConsumerCore&&) noexcept;
    ~AsyncConsumerCore();

    void refuse_fork() const;
    void next(std::unique_ptr<MessageWaiter> waiter);
    void flush(std::unique_ptr<FlushWaiter> waiter);
    void stop() noexcept;
    [[nodiscard]] bool stopped() const noexcept;
    [[nodiscard]] std::string id() const;
    [[nodiscard]] bool connected() const;

    [[nodiscard]] const Keys& keys() const;
    [[nodiscard]] const ConsumerOptions& options() const;

  private:
    struct Close {
        void operator()(MessageRequests* requests) const noexcept;
    };

    Owned<std::unique_ptr<MessageRequests, Close>, "async consumer"> m_requests;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/async/async_consumer_core.ipp>
#endif
