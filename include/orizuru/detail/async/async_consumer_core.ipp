// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of async_consumer_core.hpp.

#include <orizuru/detail/async/message_requests.hpp>
#include <orizuru/detail/consumer/awaited_settling.ipp>

#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE AsyncConsumerCore::AsyncConsumerCore(const Endpoint& endpoint, std::string&& queue,
                                                    ConsumerOptions&& options,
                                                    std::unique_ptr<MessageSlot> slot)
    : m_requests(std::unique_ptr<MessageRequests, Close>(
          new MessageRequests(endpoint, std::move(queue), std::move(options), std::move(slot)))) {}
ORIZURU_INLINE AsyncConsumerCore::AsyncConsumerCore(AsyncConsumerCore&&) noexcept = default;
ORIZURU_INLINE AsyncConsumerCore&
AsyncConsumerCore::operator=(AsyncConsumerCore&&) noexcept = default;
ORIZURU_INLINE AsyncConsumerCore::~AsyncConsumerCore() = default;

ORIZURU_INLINE void AsyncConsumerCore::Close::operator()(MessageRequests* requests) const noexcept {
    if (requests->forked()) {
        requests->close_after_fork(); // the thread is not here, and may have left the lock taken
    } else {
        delete requests;
    }
}

ORIZURU_INLINE void AsyncConsumerCore::refuse_fork() const { m_requests->refuse_fork(); }
ORIZURU_INLINE void AsyncConsumerCore::next(std::unique_ptr<MessageWaiter> waiter) {
    m_requests->next(std::move(waiter));
}
ORIZURU_INLINE void AsyncConsumerCore::flush(std::unique_ptr<FlushWaiter> waiter) {
    m_requests->flush(std::move(waiter));
}
ORIZURU_INLINE void AsyncConsumerCore::stop() noexcept { m_requests->stop(); }
ORIZURU_INLINE bool AsyncConsumerCore::stopped() const noexcept {
    return m_requests->consumer().stopped();
}
ORIZURU_INLINE std::string AsyncConsumerCore::id() const { return m_requests->consumer().id(); }
ORIZURU_INLINE bool AsyncConsumerCore::connected() const {
    return m_requests->consumer().connected();
}

ORIZURU_INLINE const Keys& AsyncConsumerCore::keys() const { return m_requests->keys(); }
ORIZURU_INLINE const ConsumerOptions& AsyncConsumerCore::options() const {
    return m_requests->consumer().options();
}

} // namespace orizuru::detail
