// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Signals as bytes in a pipe, which a thread can wait for: a handler may do next to nothing itself.

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

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
/// what they were. One at a time in a process; other signals are left alone.
///
/// A SIGTERM or SIGINT that comes after another one, or after end_at_next(), ends the process at
/// once, whatever its threads wait for. One that came is raised again when an exception ends this:
/// nobody has stopped for it.
class Signals {
  public:
    /// Throws std::logic_error when there is one already, std::system_error for want of
    /// descriptors.
    Signals() {
        if (is_taken().exchange(true)) {
            throw std::logic_error("two workers of a process cannot both handle its signals");
        }
        try {
            open();
        } catch (...) {
            is_taken() = false;
            throw;
        }
        stop_signal() = 0;
        struct sigaction action {};
        action.sa_handler = [](int number) { write(number); };
        action.sa_flags = SA_RESTART;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            ::sigaction(numbers[i], &action, &m_before[i]);
        }
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    ~Signals() {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            ::sigaction(numbers[i], &m_before[i], nullptr);
        }
        const int came = stop_signal();
        is_taken() = false;
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
    static std::atomic<bool>& is_taken() noexcept {
        static std::atomic<bool> taken{false};
        return taken;
    }
    /// The SIGTERM or SIGINT that came; negative when the next one ends the process all the same.
    static std::atomic<int>& stop_signal() noexcept {
        static std::atomic<int> number{0};
        return number;
    }

    void open() const {
        // A child process must not read what its parent is told.
        static std::atomic<pid_t> owner{0};
        if (owner == ::getpid()) {
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
        owner = ::getpid();
    }

    static void write(int number) noexcept {
        if ((number == SIGTERM || number == SIGINT) && stop_signal().exchange(number) != 0) {
            ::_exit(128 + number);
        }
        const int saved = errno;
        const auto byte = static_cast<unsigned char>(number);
        // Fails when the pipe is full of signals: then nobody misses this one.
        [[maybe_unused]] const auto written = ::write(write_end(), &byte, 1);
        errno = saved;
    }

    int m_exceptions = std::uncaught_exceptions();
    std::array<struct sigaction, numbers.size()> m_before{};
};

} // namespace orizuru::detail
