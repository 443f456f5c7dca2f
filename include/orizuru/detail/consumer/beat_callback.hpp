// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Calls the user's on_beat on a thread of its own: a slow one delays no beat.

#include <orizuru/detail/base/own_thread.hpp>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace orizuru::detail {

class BeatCallback {
  public:
    /// Does nothing without on_beat. Throws std::system_error if there can be no more threads.
    explicit BeatCallback(const std::function<void()>& on_beat) {
        if (on_beat) {
            m_calls = std::make_shared<Calls>(on_beat);
            m_thread.start([calls = m_calls] { calls->run(); });
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

    class Calls {
      public:
        explicit Calls(std::function<void()> on_beat) : m_on_beat(std::move(on_beat)) {}

        void run() {
            while (take()) {
                try {
                    m_on_beat();
                } catch (...) { // NOLINT(bugprone-empty-catch)
                    // Exceptions are swallowed, as ConsumerOptions::on_beat says.
                }
            }
        }
        void ask(Asked asked) noexcept {
            {
                const std::lock_guard lock(m_mutex);
                m_asked = asked;
            }
            m_changed.notify_one();
        }

      private:
        /// Waits for one; false at the end.
        bool take() {
            std::unique_lock lock(m_mutex);
            while (m_asked == Asked::nothing) {
                m_changed.wait(lock);
            }
            if (m_asked == Asked::to_end) {
                return false;
            }
            m_asked = Asked::nothing;
            return true;
        }

        std::function<void()> m_on_beat;
        std::mutex m_mutex;
        std::condition_variable m_changed;
        Asked m_asked = Asked::nothing;
    };

    void ask(Asked asked) noexcept {
        if (m_calls) {
            m_calls->ask(asked);
        }
    }

    std::shared_ptr<Calls> m_calls; ///< the thread may outlive this object
    OwnThread m_thread;
};

} // namespace orizuru::detail
