// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Signals as bytes in a pipe, which a thread can wait for: a handler may do next to nothing itself.

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <exception>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace orizuru::detail {

/// Listens to SIGTERM, SIGINT, SIGTSTP and SIGTTIN for as long as it lives; then their actions are
/// what they were. One at a time in a process; other signals, and those that were ignored, are left
/// alone. A forked child, which has these actions but nobody who listens, takes the ones before.
///
/// A SIGTERM or SIGINT that comes after another one, or after end_at_next(), ends the process at
/// once, whatever its threads wait for. One that came is raised again when an exception ends this:
/// nobody has stopped for it.
class Signals {
  public:
    /// Throws std::logic_error when there is one already, std::system_error for want of
    /// descriptors.
    Signals() {
        const pid_t self = ::getpid();
        if (listener().exchange(self) == self) {
            throw std::logic_error("two workers of a process cannot both handle its signals");
        }
        stop_signal() = 0;
        try {
            open(self);
        } catch (...) {
            listener() = 0;
            throw;
        }
        std::ranges::for_each(numbers, take);
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    ~Signals() {
        std::ranges::for_each(numbers, put_back);
        const int came = stop_signal();
        listener() = 0;
        if (came > 0 && std::uncaught_exceptions() > m_exceptions) {
            ::raise(came);
        }
    }

    static void end_at_next() noexcept {
        int none = 0;
        stop_signal().compare_exchange_strong(none, -1);
    }

    /// Readable when there is a signal.
    [[nodiscard]] int fd() const noexcept { return read_end(); }

    /// The next signal that came, if any.
    [[nodiscard]] std::optional<int> next() const noexcept {
        unsigned char number = 0;
        return ::read(read_end(), &number, 1) == 1 ? std::optional<int>(number) : std::nullopt;
    }

  private:
    static constexpr std::array numbers{SIGTERM, SIGINT, SIGTSTP, SIGTTIN};

    // A signal handler is told nothing but the number: so the pipe must be the process's. It stays
    // for good, as one may still run in another thread.
    static std::atomic<int>& read_end() noexcept {
        static std::atomic<int> fd{-1};
        return fd;
    }
    static std::atomic<int>& write_end() noexcept {
        static std::atomic<int> fd{-1};
        return fd;
    }
    /// Whose the pipe is.
    static std::atomic<pid_t>& owner() noexcept {
        static std::atomic<pid_t> pid{0};
        return pid;
    }
    /// The process that has one of these. A forked child sees its parent's.
    static std::atomic<pid_t>& listener() noexcept {
        static std::atomic<pid_t> pid{0};
        return pid;
    }
    /// The SIGTERM or SIGINT that came; negative when the next one ends the process all the same.
    static std::atomic<int>& stop_signal() noexcept {
        static std::atomic<int> number{0};
        return number;
    }
    /// What a signal did before.
    static struct sigaction& before(int number) noexcept {
        static std::array<struct sigaction, numbers.size()> actions{};
        return actions[static_cast<std::size_t>(std::ranges::find(numbers, number) -
                                                numbers.begin())];
    }

    static void take(int number) noexcept {
        struct sigaction present {};
        ::sigaction(number, nullptr, &present);
        // Else it is that of a forked child's parent, who has seen to it.
        if (present.sa_handler != heed) {
            before(number) = present;
        }
        if (present.sa_handler == SIG_IGN) {
            return;
        }
        struct sigaction action {};
        action.sa_handler = heed;
        action.sa_flags = SA_RESTART;
        ::sigaction(number, &action, nullptr);
    }
    static void put_back(int number) noexcept { ::sigaction(number, &before(number), nullptr); }

    void open(pid_t self) const {
        // A child process must not read what its parent is told.
        if (owner() == self) {
            while (next()) {
            }
            return;
        }
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe2");
        }
        read_end() = ends[0];
        write_end() = ends[1];
        owner() = self;
    }

    /// Whatever it calls is safe in a signal handler.
    static void heed(int number) noexcept {
        const int saved = errno;
        if (owner() == ::getpid()) {
            write(number);
        } else {
            put_back(number);
            ::raise(number); // comes when this has returned
        }
        errno = saved;
    }
    static void write(int number) noexcept {
        if ((number == SIGTERM || number == SIGINT) && stop_signal().exchange(number) != 0) {
            ::_exit(128 + number);
        }
        const auto byte = static_cast<unsigned char>(number);
        // Fails when the pipe is full of signals: then nobody misses this one.
        [[maybe_unused]] const auto written = ::write(write_end(), &byte, 1);
    }

    int m_exceptions = std::uncaught_exceptions();
};

} // namespace orizuru::detail
