// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs a function when a block is left, also by an exception.

#include <utility>

namespace orizuru::detail {

template <class Action>
class [[nodiscard]] AtExit {
  public:
    explicit AtExit(Action action) : m_action(std::move(action)) {}
    AtExit(const AtExit&) = delete;
    AtExit& operator=(const AtExit&) = delete;
    ~AtExit() { m_action(); }

  private:
    Action m_action;
};

template <class Action>
AtExit<Action> at_exit(Action action) {
    return AtExit<Action>(std::move(action));
}

} // namespace orizuru::detail
