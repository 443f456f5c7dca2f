// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Stands between the library (and hiredis) and the socket calls of the C library, and makes one of
// them fail, or move one byte, on demand: a definition in the program takes precedence over that of
// a shared library. Include it once in a program.

#pragma once

#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::test {

enum class Call : std::size_t {
    socket,
    connect,
    connected, ///< the result of getsockopt for a connection that was begun
    setsockopt,
    getaddrinfo,
    poll,
    send,
    recv
};
inline constexpr std::size_t call_count = 8;

/// The faults of a call.
struct SocketFault {
    Call call;
    std::string_view name;
    int error; ///< errno, of getaddrinfo its own number; 0: one byte is moved
};

/// Counts the calls of the library's connections, of which one may fail: connections to the given
/// Unix socket, and all connections by TCP.
class FailingSockets {
  public:
    using Counts = std::array<long, call_count>;

    static void take_for_the_library(const std::string& path) { s_path = path; }

    /// Counts the calls from now on.
    static void begin() {
        for (std::atomic<long>& count : s_counts) {
            count = 0;
        }
        s_counting = true;
    }
    /// Does the same, and lets the call after `before` others of its kind fail.
    static void begin(const SocketFault& fault, long before) {
        s_fault = fault;
        s_left = before;
        begin();
    }
    static Counts end() {
        s_counting = false;
        s_left = -1;
        Counts counts;
        std::ranges::copy(s_counts, counts.begin());
        return counts;
    }

    // For the calls.

    struct Due {
        bool fails;
        bool one_byte;
    };
    /// Sets errno when the call is to fail.
    static Due due(Call call) {
        if (!s_counting) {
            return {};
        }
        ++s_counts.at(static_cast<std::size_t>(call));
        if (s_left < 0 || s_fault.call != call || s_left.fetch_sub(1) != 0) {
            return {};
        }
        errno = s_fault.error;
        return {s_fault.error != 0, s_fault.error == 0};
    }
    /// The same for a connection: a failed one is gone, also for the server.
    static Due due(Call call, int fd) {
        const Due result = is_watched(fd) ? due(call) : Due{};
        if (result.fails && errno != EINTR && errno != EAGAIN) {
            const int error = errno;
            ::shutdown(fd, SHUT_RDWR);
            errno = error;
        }
        return result;
    }
    static bool is_watched(int fd) { return s_watched.at(static_cast<std::size_t>(fd)); }
    static void watch(int fd, const sockaddr* address) {
        const bool local = address->sa_family == AF_UNIX;
        s_watched.at(static_cast<std::size_t>(fd)) =
            !local || reinterpret_cast<const sockaddr_un*>(address)->sun_path == s_path;
    }
    static void forget(int fd) {
        if (fd >= 0) {
            s_watched.at(static_cast<std::size_t>(fd)) = false;
        }
    }

    /// The C library's own.
    template <class Function>
    static Function* real(const char* name) {
        return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
    }

  private:
    static inline std::string s_path;
    static inline std::array<std::atomic<bool>, 4096> s_watched{};
    static inline std::atomic<bool> s_counting{false};
    static inline std::array<std::atomic<long>, call_count> s_counts{};
    static inline std::atomic<long> s_left{-1};
    static inline SocketFault s_fault{};
};

} // namespace orizuru::test

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
    using namespace orizuru::test;
    static const auto real = FailingSockets::real<int(int, int, int)>("socket");
    if (FailingSockets::due(Call::socket).fails) {
        return -1;
    }
    const int fd = real(domain, type, protocol);
    FailingSockets::forget(fd);
    return fd;
}

int connect(int fd, const sockaddr* address, socklen_t size) {
    using namespace orizuru::test;
    static const auto real = FailingSockets::real<int(int, const sockaddr*, socklen_t)>("connect");
    FailingSockets::watch(fd, address);
    if (FailingSockets::is_watched(fd) && FailingSockets::due(Call::connect).fails) {
        return -1;
    }
    return real(fd, address, size);
}

int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
    using namespace orizuru::test;
    static const auto real =
        FailingSockets::real<int(int, int, int, void*, socklen_t*)>("getsockopt");
    const int result = real(fd, level, name, value, size);
    if (name == SO_ERROR && FailingSockets::is_watched(fd) &&
        FailingSockets::due(Call::connected).fails) {
        *static_cast<int*>(value) = errno;
    }
    return result;
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
    using namespace orizuru::test;
    static const auto real =
        FailingSockets::real<int(int, int, int, const void*, socklen_t)>("setsockopt");
    if (FailingSockets::is_watched(fd) && FailingSockets::due(Call::setsockopt).fails) {
        return -1;
    }
    return real(fd, level, name, value, size);
}

int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
    using namespace orizuru::test;
    static const auto real =
        FailingSockets::real<int(const char*, const char*, const addrinfo*, addrinfo**)>(
            "getaddrinfo");
    if (FailingSockets::due(Call::getaddrinfo).fails) {
        return std::exchange(errno, EMFILE); // as with EAI_SYSTEM
    }
    return real(node, service, hints, result);
}

int poll(pollfd* fds, nfds_t count, int timeout) {
    using namespace orizuru::test;
    static const auto real = FailingSockets::real<int(pollfd*, nfds_t, int)>("poll");
    return FailingSockets::due(Call::poll).fails ? -1 : real(fds, count, timeout);
}

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
    using namespace orizuru::test;
    static const auto real = FailingSockets::real<ssize_t(int, const void*, size_t, int)>("send");
    const auto due = FailingSockets::due(Call::send, fd);
    return due.fails ? -1 : real(fd, bytes, due.one_byte ? 1 : size, flags);
}

ssize_t recv(int fd, void* bytes, size_t size, int flags) {
    using namespace orizuru::test;
    static const auto real = FailingSockets::real<ssize_t(int, void*, size_t, int)>("recv");
    const auto due = FailingSockets::due(Call::recv, fd);
    return due.fails ? -1 : real(fd, bytes, due.one_byte ? 1 : size, flags);
}

} // extern "C"
