// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Ends, from another thread, all waiting on the connections that are made with an endpoint.

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/endpoint.hpp>

#include <memory>
#include <utility>

namespace orizuru::detail {

class Cutoff {
  public:
    /// Throws std::system_error for want of descriptors.
    Cutoff() : m_wake(std::make_shared<const Wake>()) {}

    /// The same address, for connections that this one ends.
    [[nodiscard]] Endpoint guard(Endpoint endpoint) const {
        endpoint.m_cutoff = m_wake;
        return endpoint;
    }
    /// From now on each Connection made with a guarded endpoint throws ConnectionError where it
    /// would wait.
    void signal() const noexcept { m_wake->signal(); }

    /// What is signalled; null when the endpoint is not guarded.
    [[nodiscard]] static const Wake* of(const Endpoint& endpoint) noexcept {
        return endpoint.m_cutoff.get();
    }

  private:
    std::shared_ptr<const Wake> m_wake;
};

} // namespace orizuru::detail
