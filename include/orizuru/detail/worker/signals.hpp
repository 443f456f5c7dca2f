// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Turns signals into bytes in a pipe that a thread can wait for: a handler may do very little.

#include <orizuru/detail/base/standard_descriptors.hpp>
#include <orizuru/detail/base/system.hpp>

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

namespace orizuru::detail {

/// Listens to SIGTERM, SIGINT, SIGTSTP and SIGTTIN while it lives, then restores their actions. One
/// at a time in a process; it leaves other signals, and ignored ones, alone. A handler that the
/// program had for one of them is called behind this, as long as that lives. A forked child has
/// these handlers but no listener: on a signal it restores the earlier action and takes it.
///
/// A second SIGTERM or SIGINT, or one after end_at_next(), ends the process at once, whatever its
/// threads wait for. If an exception destroys this object, it raises the received signal again,
/// since nothing has stopped for it; unless the program's handler has had it.
class Signals {
  public:
    /// Throws std::logic_error when there is one already, std::system_error without a free
    /// descriptor.
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
        if (came > 0 && !has_handler(before(came)) && std::uncaught_exceptions() > m_exceptions) {
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

    // A signal handler gets only the number, so the pipe belongs to the process. It stays open for
    // good, since a handler may still run in another thread.
    static std::atomic<int>& read_end() noexcept {
        static std::atomic<int> fd{-1};
        return fd;
    }
    static std::atomic<int>& write_end() noexcept {
        static std::atomic<int> fd{-1};
        return fd;
    }
    /// The process that owns the pipe.
    static std::atomic<pid_t>& owner() noexcept {
        static std::atomic<pid_t> pid{0};
        return pid;
    }
    /// The process that has a Signals object. A forked child sees its parent's.
    static std::atomic<pid_t>& listener() noexcept {
        static std::atomic<pid_t> pid{0};
        return pid;
    }
    /// The SIGTERM or SIGINT that came; negative after end_at_next().
    static std::atomic<int>& stop_signal() noexcept {
        static std::atomic<int> number{0};
        return number;
    }
    /// A signal's earlier action.
    static struct sigaction& before(int number) noexcept {
        static std::array<struct sigaction, numbers.size()> actions{};
        return actions[static_cast<std::size_t>(std::ranges::find(numbers, number) -
                                                numbers.begin())];
    }

    static void take(int number) noexcept {
        struct sigaction present {};
        ::sigaction(number, nullptr, &present);
        // Otherwise a forked child inherited the handler, and the parent has saved the action.
        if ((present.sa_flags & SA_SIGINFO) == 0 || present.sa_sigaction != heed) {
            before(number) = present;
        }
        if (present.sa_handler == SIG_IGN) {
            return;
        }
        struct sigaction action {};
        action.sa_sigaction = heed;
        action.sa_flags = SA_RESTART | SA_SIGINFO;
        ::sigaction(number, &action, nullptr);
    }
    static bool has_handler(const struct sigaction& action) noexcept {
        return (action.sa_flags & SA_SIGINFO) != 0 ||
               (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
    }
    static void put_back(int number) noexcept { ::sigaction(number, &before(number), nullptr); }

    void open(pid_t self) const {
        // A child process must not read its parent's signals.
        if (owner() == self) {
            while (next()) {
            }
            return;
        }
        take_standard_descriptors();
        const system::Ends ends = system::open_pipe();
        read_end() = ends.reads;
        write_end() = ends.writes;
        owner() = self;
    }

    /// Calls only functions that are safe in a signal handler, then the program's handler.
    static void heed(int number, siginfo_t* info, void* context) noexcept {
        const int saved = errno;
        if (owner() == ::getpid()) {
            write(number);
        } else {
            put_back(number);
            ::raise(number); // arrives when this returns
            errno = saved;
            return;
        }
        errno = saved;
        const struct sigaction& former = before(number);
        if ((former.sa_flags & SA_SIGINFO) != 0) {
            former.sa_sigaction(number, info, context);
        } else if (has_handler(former)) {
            former.sa_handler(number);
        }
    }
    static void write(int number) noexcept {
        if ((number == SIGTERM || number == SIGINT) && stop_signal().exchange(number) != 0) {
            ::_exit(128 + number);
        }
        const auto byte = static_cast<unsigned char>(number);
        // Fails only when the pipe is full of signals: one more would change nothing.
        [[maybe_unused]] const auto written = ::write(write_end(), &byte, 1);
    }

    int m_exceptions = std::uncaught_exceptions();
};

} // namespace orizuru::detail
