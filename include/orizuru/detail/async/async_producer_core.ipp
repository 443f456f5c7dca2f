// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of async_producer_core.hpp.

#include <orizuru/detail/async/push_groups.hpp>

namespace orizuru::detail {

ORIZURU_INLINE AsyncProducerCore::AsyncProducerCore(const Endpoint& endpoint, std::string queue,
                                                    ProducerOptions options)
    : m_groups(
          std::unique_ptr<PushGroups, Close>(new PushGroups(endpoint, std::move(queue), options))) {
}
ORIZURU_INLINE AsyncProducerCore::AsyncProducerCore(AsyncProducerCore&&) noexcept = default;
ORIZURU_INLINE AsyncProducerCore&
AsyncProducerCore::operator=(AsyncProducerCore&&) noexcept = default;
ORIZURU_INLINE AsyncProducerCore::~AsyncProducerCore() = default;

ORIZURU_INLINE void AsyncProducerCore::Close::operator()(PushGroups* groups) const noexcept {
    if (groups->forked()) {
        groups->close_after_fork(); // the thread is not here, and may have left the lock taken
    } else {
        delete groups;
    }
}

ORIZURU_INLINE void AsyncProducerCore::refuse_fork() const { m_groups->refuse_fork(); }
ORIZURU_INLINE void AsyncProducerCore::push(std::unique_ptr<AsyncPush> push) {
    m_groups->push(std::move(push));
}
ORIZURU_INLINE std::size_t AsyncProducerCore::unconfirmed() const {
    return m_groups->unconfirmed();
}

ORIZURU_INLINE const Keys& AsyncProducerCore::keys() const { return m_groups->keys(); }
ORIZURU_INLINE const ProducerOptions& AsyncProducerCore::options() const {
    return m_groups->options();
}

} // namespace orizuru::detail
