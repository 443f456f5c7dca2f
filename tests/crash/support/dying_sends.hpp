// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Stands between the library, hiredis and libpq and the C library's send, and kills the process at
// one of its calls: a definition in the program takes precedence over that of a shared library.
// Include it once in a program.

#pragma once

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <string_view>

namespace orizuru::test {

/// One call usually sends a statement or a command, or a part of a larger one.
class DyingSends {
  public:
    enum class When { before, after };

    /// Sends SIGKILL at the n-th call from now on; the first is 1.
    static void die_at(long n, When when) {
        s_when = when;
        s_count = 0;
        s_death = n;
    }
    /// How many calls there were since.
    static long counted() { return s_count; }

    // For the call.

    static ssize_t send(int fd, const void* bytes, size_t size, int flags) {
        static const auto real = reinterpret_cast<ssize_t (*)(int, const void*, size_t, int)>(
            ::dlsym(RTLD_NEXT, "send"));
        const bool now = ++s_count == s_death;
        if (now && s_when == When::before) {
            ::raise(SIGKILL);
        }
        const ssize_t sent = real(fd, bytes, size, flags);
        if (now) {
            ::raise(SIGKILL);
        }
        return sent;
    }

  private:
    static inline std::atomic<long> s_count{0};
    static inline std::atomic<long> s_death{0};
    static inline std::atomic<When> s_when{When::before};
};

[[nodiscard]] inline std::string_view to_string(DyingSends::When when) {
    return when == DyingSends::When::before ? "before" : "after";
}

} // namespace orizuru::test

extern "C" ssize_t send(int fd, const void* bytes, size_t size, int flags) {
    return orizuru::test::DyingSends::send(fd, bytes, size, flags);
}
