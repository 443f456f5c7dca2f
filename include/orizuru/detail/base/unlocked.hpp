// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Releases a lock for a scope.

#include <mutex>

namespace orizuru::detail {

class [[nodiscard]] Unlocked {
  public:
    explicit Unlocked(std::unique_lock<std::mutex>& lock) : m_lock(lock) { m_lock.unlock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;
    ~Unlocked() { m_lock.lock(); }

  private:
    std::unique_lock<std::mutex>& m_lock;
};

} // namespace orizuru::detail
