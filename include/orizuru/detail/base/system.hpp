// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The differences between Linux, macOS and FreeBSD: the rest of the library uses POSIX alone. The
// tests define ORIZURU_POSIX to try on Linux what the others take.

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#if __has_include(<sys/random.h>)
#include <sys/random.h> // macOS has getentropy() there, the others in <unistd.h>
#endif

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <system_error>

#if defined(__linux__) && !defined(ORIZURU_POSIX)
#include <sched.h>
#include <sys/eventfd.h>
#else
#include <algorithm>
#include <thread>
#endif

namespace orizuru::detail {

[[noreturn]] [[gnu::cold]] inline void throw_errno(const char* call) {
    throw std::system_error(errno, std::generic_category(), call);
}

} // namespace orizuru::detail

namespace orizuru::detail::system {

/// A channel of bytes in this process: what is written to one end makes the other readable. An
/// eventfd is both.
struct Ends {
    int reads = -1;
    int writes = -1;
};

/// Has a connection to a silent peer tested after `seconds`, and then again and again.
inline void keep_alive(int socket, int seconds) noexcept {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#ifdef TCP_KEEPIDLE
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
#else
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPALIVE, &seconds, sizeof seconds);
#endif
}

/// Where send() cannot be asked to raise no SIGPIPE, asks the socket.
inline void raise_no_sigpipe([[maybe_unused]] int socket) noexcept {
#ifdef SO_NOSIGPIPE
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}

/// Both names are one number on most systems, and then compilers call the second a mistake.
[[nodiscard]] inline bool would_block(int error) noexcept {
#if EAGAIN == EWOULDBLOCK
    return error == EAGAIN;
#else
    return error == EAGAIN || error == EWOULDBLOCK;
#endif
}

/// As ::send to a socket for which raise_no_sigpipe() was called.
[[nodiscard]] inline ssize_t send(int socket, const char* data, std::size_t size) noexcept {
#ifdef MSG_NOSIGNAL
    return ::send(socket, data, size, MSG_NOSIGNAL);
#else
    return ::send(socket, data, size, 0);
#endif
}

#if defined(__linux__) && !defined(ORIZURU_POSIX)

/// The number of descriptors that open_wake() takes.
inline constexpr std::size_t wake_descriptors = 1;
/// Goes on while the host sleeps.
inline constexpr clockid_t lease_clock = CLOCK_BOOTTIME;
/// Opens a path for its descriptor alone.
inline constexpr int open_for_nothing = O_PATH;
/// A folder with an entry for each open descriptor.
inline constexpr const char* descriptors = "/proc/self/fd";

/// A pipe that does not block and that no program inherits. Throws std::system_error.
[[nodiscard]] inline Ends open_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
        throw_errno("pipe2");
    }
    return {ends[0], ends[1]};
}

/// Such a channel for wake() alone. Throws std::system_error.
[[nodiscard]] inline Ends open_wake() {
    const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
        throw_errno("eventfd");
    }
    return {fd, fd};
}

/// Makes it readable, unless it is full. Safe in a signal handler that keeps errno.
inline void wake(Ends ends) noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(ends.writes, &one, sizeof one);
}

/// Makes `present` the channel that `other` is. Throws std::system_error.
inline void replace(Ends present, Ends other) {
    if (::dup3(other.writes, present.writes, O_CLOEXEC) < 0) {
        throw_errno("dup3");
    }
}

/// Has a mapped page emptied in forked children; false if the kernel (before 4.14) cannot do that.
[[nodiscard]] inline bool wipe_on_fork(void* page, std::size_t size) noexcept {
    return ::madvise(page, size, MADV_WIPEONFORK) == 0;
}

/// The number of CPUs that the process may use; 1 when the kernel does not say.
[[nodiscard]] inline int usable_cpus() noexcept {
    cpu_set_t affinity;
    // Asks for the process, since this thread may be bound otherwise. Fails on a machine with more
    // CPUs than the set has room for.
    return ::sched_getaffinity(::getpid(), sizeof affinity, &affinity) == 0 ? CPU_COUNT(&affinity)
                                                                            : 1;
}

#else // POSIX

inline constexpr std::size_t wake_descriptors = 2;
inline constexpr clockid_t lease_clock = CLOCK_MONOTONIC; // goes on in a sleep on macOS
inline constexpr int open_for_nothing = O_RDONLY;
inline constexpr const char* descriptors = "/dev/fd";

/// A program that another thread starts meanwhile inherits them.
[[nodiscard]] inline Ends without_waiting(const std::array<int, 2>& ends) noexcept {
    for (const int fd : ends) {
        ::fcntl(fd, F_SETFD, FD_CLOEXEC);
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    return {ends[0], ends[1]};
}

[[nodiscard]] inline Ends open_pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) {
        throw_errno("pipe");
    }
    return without_waiting(ends);
}

/// No pipe: a thread that writes to it while another replaces it might get SIGPIPE.
[[nodiscard]] inline Ends open_wake() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) {
        throw_errno("socketpair");
    }
    raise_no_sigpipe(ends[1]);
    return without_waiting(ends);
}

inline void wake(Ends ends) noexcept {
    [[maybe_unused]] const auto sent = send(ends.writes, "", 1);
}

inline void replace(Ends present, Ends other) {
    // In this order: what is written in between is read afterwards.
    for (const auto& [from, to] :
         {std::array{other.writes, present.writes}, std::array{other.reads, present.reads}}) {
        if (::dup2(from, to) < 0) {
            throw_errno("dup2");
        }
        ::fcntl(to, F_SETFD, FD_CLOEXEC);
    }
}

[[nodiscard]] inline bool wipe_on_fork([[maybe_unused]] void* page,
                                       [[maybe_unused]] std::size_t size) noexcept {
#if defined(INHERIT_ZERO) && !defined(ORIZURU_POSIX)
    return ::minherit(page, size, INHERIT_ZERO) == 0;
#else
    return false;
#endif
}

[[nodiscard]] inline int usable_cpus() noexcept {
    return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

#endif

} // namespace orizuru::detail::system
