// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets another thread end all waiting on the connections made with an endpoint.

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/endpoint.hpp>

#include <memory>
#include <utility>

namespace orizuru::detail {

class Cutoff {
  public:
    /// Throws std::system_error without a free descriptor.
    Cutoff() : m_wake(std::make_shared<const Wake>()) {}

    /// The same address, for connections that signal() ends.
    [[nodiscard]] Endpoint guard(Endpoint endpoint) const {
        endpoint.m_cutoff = m_wake;
        return endpoint;
    }
    /// From now on each Connection made with a guarded endpoint throws ConnectionError where it
    /// would wait.
    void signal() const noexcept { m_wake->signal(); }

    /// The Wake that signal() signals; null when the endpoint is not guarded.
    [[nodiscard]] static const Wake* of(const Endpoint& endpoint) noexcept {
        return endpoint.m_cutoff.get();
    }

  private:
    std::shared_ptr<const Wake> m_wake;
};

} // namespace orizuru::detail
