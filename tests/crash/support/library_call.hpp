// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Tells what the library does from what its test does, for faults that are to hit only the former.

#pragma once

#include <utility>

namespace orizuru::test {

/// Its thread is in the library for as long as it lives. Threads that the library has started are
/// there always, those of a test only so, when they have said that they are `outside`.
class LibraryCall {
  public:
    LibraryCall() : m_before(std::exchange(outside, false)) {}
    LibraryCall(const LibraryCall&) = delete;
    LibraryCall& operator=(const LibraryCall&) = delete;
    ~LibraryCall() { outside = m_before; }

    static inline thread_local bool outside = false;

  private:
    bool m_before;
};

/// What a call of the library returns.
template <class Action>
decltype(auto) in_library(Action action) {
    const LibraryCall call;
    return action();
}

} // namespace orizuru::test
