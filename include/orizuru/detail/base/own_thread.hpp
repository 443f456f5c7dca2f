// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A thread whose owner may die on it, or be copied by a fork.

#include <orizuru/detail/base/fork_mark.hpp>

#include <csignal>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace orizuru::detail {

/// All threads run the same type of function: each further type would cost every program a
/// kilobyte, whether it uses that part or not.
class OwnThread {
  public:
    OwnThread() = default;
    /// Throws std::system_error when the process can have no more threads.
    explicit OwnThread(std::function<void()> body) { start(std::move(body)); }
    OwnThread(const OwnThread&) = delete;
    OwnThread& operator=(const OwnThread&) = delete;
    ~OwnThread() { end(); }

    [[nodiscard]] bool started() const noexcept { return m_thread != nullptr; }
    /// Not while there is a thread. Throws as the constructor.
    void start(std::function<void()> body) {
        m_thread = std::make_unique<std::thread>(std::move(body));
    }
    /// Sends the thread a signal, if there is one that has not ended.
    void signal(int number) const noexcept {
        if (m_thread != nullptr && !m_mark.forked()) {
            ::pthread_kill(m_thread->native_handle(), number);
        }
    }
    /// Waits for the end of the thread, if there is one, except on the thread itself. In a forked
    /// child, which has no such thread, it can be neither joined nor detached.
    void end() noexcept {
        if (m_thread == nullptr) {
            return;
        }
        if (m_mark.forked()) {
            static_cast<void>(m_thread.release());
        } else if (m_thread->get_id() == std::this_thread::get_id()) {
            m_thread->detach();
        } else {
            m_thread->join();
        }
        m_thread.reset();
    }

  private:
    ForkMark m_mark;
    std::unique_ptr<std::thread> m_thread;
};

} // namespace orizuru::detail
