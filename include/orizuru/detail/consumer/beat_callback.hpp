// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Calls the user's on_beat on a thread of its own: a slow one delays no beat.

#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/forked_child.hpp>
#include <orizuru/detail/base/own_thread.hpp>

#include <atomic>
#include <functional>
#include <memory>

namespace orizuru::detail {

class BeatCallback {
  public:
    /// Does nothing without on_beat. Throws std::system_error if there can be no more threads.
    explicit BeatCallback(const std::function<void()>& on_beat) {
        if (on_beat) {
            m_asked = std::make_shared<std::atomic<Asked>>(Asked::nothing);
            m_thread.start([asked = m_asked, on_beat = std::function<void()>(on_beat)] {
                run(*asked, on_beat);
            });
        }
    }
    BeatCallback(const BeatCallback&) = delete;
    BeatCallback& operator=(const BeatCallback&) = delete;
    /// Waits for a call that runs, except inside that call.
    ~BeatCallback() { ask(Asked::to_end); }

    /// Asks for a call. Those that are asked for while one runs become one.
    void call() noexcept { ask(Asked::to_call); }

  private:
    enum class Asked { nothing, to_call, to_end };

    static void run(std::atomic<Asked>& asked, const std::function<void()>& on_beat) noexcept {
        const ForkMark process;
        asked.wait(Asked::nothing);
        while (asked.exchange(Asked::nothing) == Asked::to_call) {
            try {
                const EndOfForks end(process);
                on_beat();
            } catch (...) { // NOLINT(bugprone-empty-catch)
                // Exceptions are swallowed, as ConsumerOptions::on_beat says.
            }
            asked.wait(Asked::nothing);
        }
    }
    void ask(Asked asked) noexcept {
        if (m_asked) {
            *m_asked = asked;
            m_asked->notify_one();
        }
    }

    std::shared_ptr<std::atomic<Asked>> m_asked; ///< the thread may outlive this object
    OwnThread m_thread;
};

} // namespace orizuru::detail
