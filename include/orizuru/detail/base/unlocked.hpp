// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs an action, usually a wait, while a held lock is released.

#include <orizuru/detail/base/at_exit.hpp>

namespace orizuru::detail {

/// Runs `action` without the lock, and holds the lock again when this returns or throws.
template <class Lock, class Action>
void unlocked(Lock& lock, Action action) {
    lock.unlock();
    const auto relock = at_exit([&lock] { lock.lock(); });
    action();
}

} // namespace orizuru::detail
