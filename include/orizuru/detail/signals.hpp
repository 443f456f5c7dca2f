// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Signals as bytes in a pipe, which a thread can wait for: a handler may do next to nothing itself.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace orizuru::detail {

/// Listens to SIGTERM, SIGINT, SIGTSTP and SIGTTIN for as long as it lives; then their actions are
/// what they were. One at a time in a process; other signals are left alone.
///
/// A SIGTERM or SIGINT that comes after another one, or after end_at_next(), ends the process at
/// once, whatever its threads wait for.
class Signals {
  public:
    /// Throws std::logic_error when there is one already, std::system_error for want of
    /// descriptors.
    Signals() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe2");
        }
        m_read = ends[0];
        m_write = ends[1];
        int nobody = -1;
        if (!listener().compare_exchange_strong(nobody, m_write)) {
            close();
            throw std::logic_error("two workers of a process cannot both handle its signals");
        }
        ending() = false;
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
        listener() = -1;
        close();
    }

    static void end_at_next() noexcept { ending() = true; }

    /// Readable when there is a signal.
    [[nodiscard]] int fd() const noexcept { return m_read; }

    /// The next signal that came, if any.
    [[nodiscard]] std::optional<int> next() const noexcept {
        unsigned char number = 0;
        return ::read(m_read, &number, 1) == 1 ? std::optional<int>(number) : std::nullopt;
    }

  private:
    static constexpr std::array numbers{SIGTERM, SIGINT, SIGTSTP, SIGTTIN};

    // A signal handler is told nothing but the number: so the pipe must be the process's.
    static std::atomic<int>& listener() noexcept {
        static std::atomic<int> fd{-1};
        return fd;
    }

    static std::atomic<bool>& ending() noexcept {
        static std::atomic<bool> is_ending{false};
        return is_ending;
    }

    static void write(int number) noexcept {
        if ((number == SIGTERM || number == SIGINT) && ending().exchange(true)) {
            ::_exit(128 + number);
        }
        const int saved = errno;
        const auto byte = static_cast<unsigned char>(number);
        // Fails when the pipe is full of signals: then nobody misses this one.
        [[maybe_unused]] const auto written = ::write(listener(), &byte, 1);
        errno = saved;
    }

    void close() const noexcept {
        ::close(m_read);
        ::close(m_write);
    }

    int m_read = -1;
    int m_write = -1;
    std::array<struct sigaction, numbers.size()> m_before{};
};

} // namespace orizuru::detail
