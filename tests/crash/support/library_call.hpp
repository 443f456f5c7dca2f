// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Distinguishes the library's calls from its test's, for faults that must hit only the library.

#pragma once

#include <utility>

namespace orizuru::test {

/// Its thread is in the library as long as it lives. The library's own threads always are; a test's
/// thread that has set `outside` is only then.
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

/// Returns the result of a call of the library.
template <class Action>
decltype(auto) in_library(Action action) {
    const LibraryCall call;
    return action();
}

} // namespace orizuru::test
