// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// POSIX for the test support: an owned descriptor, sockets, a child process, and a folder that
// vanishes with the process however that ends.

#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace orizuru::test {

[[noreturn]] inline void throw_errno(const std::string& what, int error = errno) {
    throw std::system_error(error, std::generic_category(), what);
}

/// Owns a file descriptor.
class Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) noexcept : m_fd(fd) {}
    Fd(Fd&& other) noexcept : m_fd(std::exchange(other.m_fd, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) {
            reset();
            m_fd = std::exchange(other.m_fd, -1);
        }
        return *this;
    }
    ~Fd() { reset(); }

    [[nodiscard]] int get() const noexcept { return m_fd; }
    explicit operator bool() const noexcept { return m_fd >= 0; }

    void reset() noexcept {
        if (m_fd >= 0) {
            ::close(std::exchange(m_fd, -1));
        }
    }

  private:
    int m_fd = -1;
};

inline sockaddr_un unix_address(const std::string& path) {
    sockaddr_un address{};
    if (path.size() >= sizeof address.sun_path) {
        throw std::invalid_argument("too long for a Unix socket: " + path);
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

inline sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

inline Fd unix_socket() {
    Fd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!fd) {
        throw_errno("socket");
    }
    return fd;
}

/// A non-blocking listening socket.
inline Fd listen_unix(const std::string& path) {
    const sockaddr_un address = unix_address(path);
    Fd fd = unix_socket();
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd.get(), 128) != 0) {
        throw_errno("listen on " + path);
    }
    return fd;
}

/// A non-blocking connected socket, or an empty Fd when no server listens.
inline Fd connect_unix(const std::string& path) {
    const sockaddr_un address = unix_address(path);
    Fd fd = unix_socket();
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return Fd{};
    }
    return fd;
}

/// The same on a free port of 127.0.0.1.
inline Fd listen_tcp() {
    Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    const sockaddr_in address = loopback(0);
    if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd.get(), 128) != 0) {
        throw_errno("listen on 127.0.0.1");
    }
    return fd;
}
inline std::uint16_t port_of(const Fd& listener) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
}

/// A non-blocking connected socket, or an empty Fd when no server listens.
inline Fd connect_tcp(std::uint16_t port) {
    Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const sockaddr_in address = loopback(port);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return Fd{};
    }
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
    return fd;
}

/// The next waiting connection, non-blocking, or an empty Fd.
inline Fd accept_on(const Fd& listener) {
    return Fd{::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
}

/// Wakes the one thread that serves a set of sockets. Edge-triggered: each change of a socket and
/// each ring() ends one wait(), after which the thread tries all its sockets until none moves.
class Bell {
  public:
    Bell() {
        if (!m_epoll || !m_rung) {
            throw_errno("epoll or eventfd");
        }
        add(m_rung);
    }

    void add(const Fd& fd) {
        epoll_event event{};
        event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        if (::epoll_ctl(m_epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
            throw_errno("epoll_ctl");
        }
    }
    /// From any thread.
    void ring() noexcept { ::eventfd_write(m_rung.get(), 1); }
    /// Waits at most this many milliseconds; -1 = without end.
    void wait(int limit = -1) {
        epoll_event events[64];
        ::epoll_wait(m_epoll.get(), events, 64, limit);
    }

  private:
    Fd m_epoll{::epoll_create1(EPOLL_CLOEXEC)};
    Fd m_rung{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

/// Starts a program (found by PATH) in a process group of its own, so that a signal to the test's
/// group does not end it; its output is appended to a file. It inherits no other descriptor, not
/// even one that another thread has made and not yet marked.
inline pid_t spawn(std::vector<std::string> command, int input, const std::string& output) {
    std::vector<char*> argv;
    argv.reserve(command.size() + 1);
    for (std::string& word : command) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);

    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);

    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);

    pid_t pid = -1;
    const int error = ::posix_spawnp(&pid, argv.front(), &files, &attributes, argv.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
        throw_errno("start " + command.front(), error);
    }
    return pid;
}

/// waitpid that signals do not interrupt.
inline pid_t wait_for(pid_t pid, int options = 0, int* status = nullptr) {
    pid_t changed = -1;
    do {
        changed = ::waitpid(pid, status, options);
    } while (changed < 0 && errno == EINTR);
    return changed;
}

/// A new folder, removed by the destructor, or, when the process dies before that, by a small shell
/// process that waits for the other end of its input to close and then also kills the process
/// named last by take_along().
///
/// Not PR_SET_PDEATHSIG: that fires when the starting thread ends, and tests restart servers from
/// helper threads. A child forked without exec keeps the input open: let it end with its parent.
class TempDir {
  public:
    TempDir() : m_path((std::filesystem::temp_directory_path() / "orizuru-XXXXXX").string()) {
        if (::mkdtemp(m_path.data()) == nullptr) {
            throw_errno("mkdtemp " + m_path);
        }
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            throw_errno("socketpair");
        }
        const Fd input{ends[0]};
        m_watcher_input = Fd{ends[1]};
        m_watcher =
            spawn({"/bin/sh", "-c", watcher_script, "sh", m_path}, input.get(), "/dev/null");
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    ~TempDir() {
        std::error_code ignored;
        std::filesystem::remove_all(m_path, ignored);
        tell_watcher("end");
        wait_for(m_watcher);
    }

    [[nodiscard]] const std::string& path() const noexcept { return m_path; }

    /// Has the watcher kill this process when ours dies, instead of the one named before.
    void take_along(pid_t pid) { tell_watcher(std::to_string(pid)); }
    /// Call it before the process named last is reaped: its id may be used again.
    void take_nothing_along() { tell_watcher(""); }

  private:
    static constexpr auto watcher_script = R"sh(
        while read -r line; do
            [ "$line" != end ] || exit 0
            pid=$line
        done
        [ -z "$pid" ] || kill -9 "$pid"
        rm -rf "$1"
    )sh";

    void tell_watcher(std::string line) noexcept {
        line += '\n';
        ::send(m_watcher_input.get(), line.data(), line.size(), MSG_NOSIGNAL);
    }

    std::string m_path;
    Fd m_watcher_input;
    pid_t m_watcher = -1;
};

/// Ends a process that the folder takes along, also a stopped one, and waits for it. Does nothing
/// for a pid that is not positive.
inline void end_process(pid_t& pid, int signal, TempDir& folder) noexcept {
    if (pid <= 0) {
        return;
    }
    folder.take_nothing_along();
    ::kill(pid, signal);
    ::kill(pid, SIGCONT);
    wait_for(pid);
    pid = -1;
}

inline std::string contents_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

} // namespace orizuru::test
