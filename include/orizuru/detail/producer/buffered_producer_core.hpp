// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The part of BufferedProducer that does not depend on the type of its messages.

#include <orizuru/buffered_producer_options.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/detail/producer/payload_source.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace orizuru::detail {

/// Blocks and throws as BufferedProducer documents.
class BufferedProducerCore {
  public:
    BufferedProducerCore(const Endpoint& endpoint, std::string queue,
                         BufferedProducerOptions options);
    BufferedProducerCore(const BufferedProducerCore&) = delete;
    BufferedProducerCore& operator=(const BufferedProducerCore&) = delete;
    BufferedProducerCore(BufferedProducerCore&&) noexcept;
    BufferedProducerCore& operator=(BufferedProducerCore&&) noexcept;
    ~BufferedProducerCore();

    /// Accepts the one message of `payload`.
    std::uint64_t push(PayloadSource payload);
    void flush();
    [[nodiscard]] std::size_t unconfirmed() const;
    std::uint64_t length();

    [[nodiscard]] const Keys& keys() const;
    [[nodiscard]] const BufferedProducerOptions& options() const;

  private:
    struct Parts;
    Owned<std::unique_ptr<Parts>, "buffered producer"> m_parts;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/producer/buffered_producer_core.ipp>
#endif
