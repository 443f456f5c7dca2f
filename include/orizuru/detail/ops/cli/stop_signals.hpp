// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Turns SIGINT and SIGTERM into a stop.

#include <orizuru/detail/base/own_thread.hpp>

#include <atomic>
#include <csignal>
#include <stop_token>
#include <utility>

namespace orizuru::detail::cli {

/// While it lives, the first SIGINT or SIGTERM requests a stop, and the next one ends the process,
/// whatever its threads wait for and whichever handler it has. It blocks them in the thread that
/// makes it, and so in those that this starts; threads from before must have them blocked. A signal
/// that the process ignores stays ignored.
class StopSignals {
  public:
    /// Throws std::system_error when the process can have no more threads.
    StopSignals() {
        sigemptyset(&m_signals); // a macro on macOS, as sigaddset
        for (const int number : {SIGINT, SIGTERM}) {
            struct sigaction present {};
            ::sigaction(number, nullptr, &present);
            if (present.sa_handler != SIG_IGN) {
                sigaddset(&m_signals, number);
                m_heeded = number;
            }
        }
        if (m_heeded == none) {
            return;
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
        if (m_heeded == none) {
            return;
        }
        m_ended = true;
        m_thread.signal(m_heeded);
        m_thread.end();
        put_back();
    }

    [[nodiscard]] std::stop_token token() const noexcept { return m_stop.get_token(); }

  private:
    static constexpr int none = 0;

    void listen() {
        bool ending = false;
        int came = 0;
        while (!(ending && none_pending()) && ::sigwait(&m_signals, &came) == 0) {
            // One of those that come at the end is the destructor's.
            if (m_ended && !std::exchange(ending, true)) {
                continue;
            }
            if (!m_stop.request_stop()) {
                end_process(came);
            }
        }
    }
    [[nodiscard]] bool none_pending() const noexcept {
        sigset_t pending{};
        ::sigpending(&pending);
        return sigismember(&pending, SIGINT) != 1 && sigismember(&pending, SIGTERM) != 1;
    }
    void end_process(int number) const noexcept {
        std::signal(number, SIG_DFL);
        ::raise(number);
        ::pthread_sigmask(SIG_UNBLOCK, &m_signals, nullptr);
    }
    void put_back() const noexcept { ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr); }

    sigset_t m_signals{};
    sigset_t m_before{};
    int m_heeded = none; ///< one of them
    std::atomic<bool> m_ended{false};
    std::stop_source m_stop;
    OwnThread m_thread;
};

} // namespace orizuru::detail::cli
