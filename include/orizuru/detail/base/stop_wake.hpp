// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets a stop end a wait.

#include <orizuru/detail/base/wake.hpp>

#include <stop_token>

namespace orizuru::detail {

/// Signals `wake` once a stop is requested, until it is destroyed. `wake` must outlive it.
class StopWake {
  public:
    StopWake(const std::stop_token& token, const Wake& wake) : m_callback(token, Signal{wake}) {}

  private:
    struct Signal {
        const Wake& wake;
        void operator()() const noexcept { wake.signal(); }
    };

    std::stop_callback<Signal> m_callback;
};

} // namespace orizuru::detail
