// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Ends a forked child that comes back from the user's code to the library: it has its parent's
// connections, which it must leave alone, and none of the parent's threads.

#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/line_writer.hpp>

#include <sysexits.h>
#include <unistd.h>

namespace orizuru::detail {

/// Runs no destructor, and neither allocates nor locks: another thread may have held the lock.
[[noreturn]] [[gnu::cold]] inline void end_forked_child() noexcept {
    LineWriter(STDERR_FILENO)
        .write("orizuru: a forked child came back from a handler or callback: it ends; let a child "
               "end by exec or _exit");
    ::_exit(EX_SOFTWARE);
}

/// Ends the process at the end of a call of the user's code, unless it is the one that began it.
class EndOfForks {
  public:
    /// `mark` is from the process that makes the call.
    explicit EndOfForks(const ForkMark& mark) noexcept : m_mark(mark) {}
    EndOfForks(const EndOfForks&) = delete;
    EndOfForks& operator=(const EndOfForks&) = delete;
    ~EndOfForks() {
        if (m_mark.forked()) {
            end_forked_child();
        }
    }

  private:
    const ForkMark& m_mark;
};

} // namespace orizuru::detail
