// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The part of Producer that does not depend on the type of its messages.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/detail/producer/payload_source.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer_options.hpp>
#include <orizuru/reply.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace orizuru::detail {

class ServerClock;

/// For one thread at a time. Blocks and throws as Producer documents.
class ProducerCore {
  public:
    [[gnu::cold]] ProducerCore(const Endpoint& endpoint, std::string&& queue,
                               ProducerOptions options);
    ProducerCore(const ProducerCore&) = delete;
    ProducerCore& operator=(const ProducerCore&) = delete;
    ProducerCore(ProducerCore&&) noexcept;
    ProducerCore& operator=(ProducerCore&&) noexcept;
    ~ProducerCore();

    /// Pushes the one message of `payload`.
    std::uint64_t push(PayloadSource payload);
    /// Pushes all messages of `payloads`.
    std::uint64_t push_all(PayloadSource payloads);
    std::uint64_t length();
    /// Reads the clock, as ServerClock does.
    void read(ServerClock& clock);
    /// Runs a command, given as bytes; error messages contain `name`.
    Reply command(std::string_view name, std::string_view bytes);
    /// Ends nothing but the child's copy of the connection; not to be used or destroyed any more.
    [[gnu::cold]] void close_after_fork() noexcept;

    [[nodiscard]] const Keys& keys() const;
    [[nodiscard]] const ProducerOptions& options() const;

  private:
    struct Parts;

    Owned<std::unique_ptr<Parts>, "producer"> m_parts;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/producer/producer_core.ipp>
#endif
