// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps sockets and pipes off the descriptors 0 to 2. A daemon, or a shell's `>&-`, starts a
// process with some of them closed, and the next descriptor would get such a number: what the
// process then prints would go to Redis, which takes a line of text for a command.

#include <orizuru/detail/base/system.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace orizuru::detail {

/// Takes those of 0 to 2 that are closed, for good; reading and writing them still fails, on
/// Linux with EBADF, and a program that the process starts still has them closed. Call it before
/// whatever makes a descriptor. Any thread may, at any time. Without a free descriptor it does
/// nothing.
inline void take_standard_descriptors() noexcept {
    const auto is_open = [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; };
    while (!is_open(STDIN_FILENO) || !is_open(STDOUT_FILENO) || !is_open(STDERR_FILENO)) {
        // To let go of it later could close what another thread has meanwhile put in its place.
        const int taken = ::open("/", system::open_for_nothing | O_CLOEXEC);
        if (taken < 0) {
            return;
        }
        if (taken > STDERR_FILENO) { // another thread was faster
            ::close(taken);
        }
    }
}

/// The descriptor, or its copy above 2 in its place, when the number became free only after
/// take_standard_descriptors(). -1 with errno when there is no room for a copy.
[[nodiscard]] inline int above_standard(int fd) noexcept {
    if (fd < 0 || fd > STDERR_FILENO) {
        return fd;
    }
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    ::close(fd);
    errno = error;
    return copy;
}

} // namespace orizuru::detail
