// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets another thread end all waiting on the connections made with an endpoint.

#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/endpoint.hpp>

#include <memory>

namespace orizuru::detail {

class Cutoff {
  public:
    /// Throws std::system_error without a free descriptor.
    Cutoff() : m_wake(std::make_shared<const Wake>()) {}

    /// Returns the address for connections that signal() ends.
    [[nodiscard]] Endpoint guard(Endpoint endpoint) const {
        EndpointParts::of(endpoint).cutoff = m_wake;
        return endpoint;
    }
    /// Each Connection made with a guarded endpoint throws ConnectionError where it would wait.
    void signal() const noexcept { m_wake->signal(); }

  private:
    std::shared_ptr<const Wake> m_wake;
};

} // namespace orizuru::detail
