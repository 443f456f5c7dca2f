// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A forked child that reports its findings by its exit status: assertions do not work in it.

#pragma once

#include "support/eventually.hpp"
#include "support/posix.hpp"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>

namespace orizuru::test {

inline constexpr int as_expected = 0;
inline constexpr int not_as_expected = 1;
inline constexpr int hung = 2;
inline constexpr int first_own_status = 3; ///< from here on, a test defines the meanings

inline const pid_t test_process = ::getpid();

/// Takes back the handlers of the test framework, which a worker calls behind its own, in a child
/// of the test. Its own children have what it has set.
inline void reset_signals() {
    if (::getppid() == test_process) {
        std::signal(SIGTERM, SIG_DFL);
        std::signal(SIGINT, SIG_DFL);
    }
}

/// Forks. Returns the child's exit status, which is the result of `life`, or says that it hung; -1
/// = a signal ended it.
inline int status_of_child(const std::function<int()>& life) {
    const pid_t child = ::fork();
    if (child < 0) {
        throw_errno("fork");
    }
    if (child == 0) {
        reset_signals();
        try {
            ::_exit(life());
        } catch (...) {
            ::_exit(not_as_expected);
        }
    }
    int status = 0;
    const bool ended =
        eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 2 * patience);
    if (!ended) {
        ::kill(child, SIGKILL);
        wait_for(child);
        return hung;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace orizuru::test
