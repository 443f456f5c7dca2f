// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds out whether a loop runs what is posted to it.

#include <orizuru/detail/asio/loop.hpp>
#include <orizuru/detail/base/clock.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace orizuru::detail {

/// For one thread at a time.
template <class Library>
class LoopProbe {
  public:
    explicit LoopProbe(Loop<Library> loop) : m_loop(std::move(loop)) {}

    /// Returns for how long the loop has not run what this has posted to it. Posts again when it
    /// has.
    [[nodiscard]] Clock::duration delay() {
        const TimePoint now = Clock::now();
        if (!m_posted->exchange(true)) {
            m_since = now;
            if (!m_loop.post([posted = m_posted] { *posted = false; })) {
                *m_posted = false; // it is gone, and its jobs say so
            }
        }
        return now - m_since;
    }

  private:
    Loop<Library> m_loop;
    std::shared_ptr<std::atomic<bool>> m_posted = std::make_shared<std::atomic<bool>>(false);
    TimePoint m_since;
};

} // namespace orizuru::detail
