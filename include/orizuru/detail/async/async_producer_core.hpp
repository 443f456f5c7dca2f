// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The part of AsyncProducer that does not depend on the type of its messages.

#include <orizuru/detail/async/async_push.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer_options.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace orizuru::detail {

class PushGroups;

/// Throws as AsyncProducer documents. Any thread.
class AsyncProducerCore {
  public:
    AsyncProducerCore(const Endpoint& endpoint, std::string queue, ProducerOptions options);
    AsyncProducerCore(const AsyncProducerCore&) = delete;
    AsyncProducerCore& operator=(const AsyncProducerCore&) = delete;
    AsyncProducerCore(AsyncProducerCore&&) noexcept;
    AsyncProducerCore& operator=(AsyncProducerCore&&) noexcept;
    ~AsyncProducerCore();

    void refuse_fork() const;
    void push(std::unique_ptr<AsyncPush> push);
    [[nodiscard]] std::size_t unconfirmed() const;

    [[nodiscard]] const Keys& keys() const;
    [[nodiscard]] const ProducerOptions& options() const;

  private:
    struct Close {
        void operator()(PushGroups* groups) const noexcept;
    };

    Owned<std::unique_ptr<PushGroups, Close>, "async producer"> m_groups;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/async/async_producer_core.ipp>
#endif
