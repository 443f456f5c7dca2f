// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Turns SIGINT and SIGTERM into a stop.

#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/base/standard_descriptors.hpp>
#include <orizuru/detail/base/wake.hpp>

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <stop_token>

namespace orizuru::detail::cli {

/// While it lives, the first SIGINT or SIGTERM requests a stop, and the next one ends the process.
/// It blocks them in the thread that makes it, and so in those that this starts; threads from
/// before must have them blocked. A signal that the process ignores stays ignored.
class StopSignals {
  public:
    /// Throws std::system_error without a free descriptor or thread.
    StopSignals() {
        ::sigemptyset(&m_signals);
        for (const int number : {SIGINT, SIGTERM}) {
            struct sigaction present {};
            ::sigaction(number, nullptr, &present);
            if (present.sa_handler != SIG_IGN) {
                ::sigaddset(&m_signals, number);
            }
        }
        take_standard_descriptors();
        m_fd = ::signalfd(-1, &m_signals, SFD_CLOEXEC | SFD_NONBLOCK);
        if (m_fd < 0) {
            throw_errno("signalfd");
        }
        ::pthread_sigmask(SIG_BLOCK, &m_signals, &m_before);
        try {
            m_thread.start([this] { listen(); });
        } catch (...) {
            put_back();
            throw;
        }
    }
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;
    ~StopSignals() {
        m_end.signal();
        m_thread.end();
        put_back();
    }

    [[nodiscard]] std::stop_token token() const noexcept { return m_stop.get_token(); }

  private:
    void listen() {
        signalfd_siginfo came{};
        if (wait_ready(m_fd, POLLIN, &m_end, TimePoint::max()) != 0 &&
            ::read(m_fd, &came, sizeof came) > 0) {
            m_stop.request_stop();
            // Whatever the process waits for.
            ::pthread_sigmask(SIG_UNBLOCK, &m_signals, nullptr);
            wait_ready(-1, 0, &m_end, TimePoint::max());
        }
    }
    void put_back() const noexcept {
        ::close(m_fd);
        ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr);
    }

    sigset_t m_signals{};
    sigset_t m_before{};
    int m_fd = -1;
    Wake m_end;
    std::stop_source m_stop;
    OwnThread m_thread;
};

} // namespace orizuru::detail::cli
