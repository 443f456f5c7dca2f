// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Calls the user's on_beat on a thread of its own: a slow one delays no beat.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace orizuru::detail {

class BeatCallback {
  public:
    /// Throws std::system_error when the process can have no more threads.
    explicit BeatCallback(std::function<void()> on_beat)
        : m_calls(std::make_shared<Calls>()),
          m_thread([calls = m_calls, on_beat = std::move(on_beat)] {
              while (calls->take()) {
                  try {
                      on_beat();
                  } catch (...) { // NOLINT(bugprone-empty-catch)
                      // Exceptions are swallowed, as ConsumerOptions::on_beat says.
                  }
              }
          }) {}
    BeatCallback(const BeatCallback&) = delete;
    BeatCallback& operator=(const BeatCallback&) = delete;
    /// Waits for a call that runs, except inside that call.
    ~BeatCallback() {
        m_calls->ask(Asked::to_end);
        if (m_thread.get_id() == std::this_thread::get_id()) {
            m_thread.detach(); // the last guard died in the callback
        } else {
            m_thread.join();
        }
    }

    /// Asks for a call. Those that are asked for while one runs become one.
    void call() noexcept { m_calls->ask(Asked::to_call); }

  private:
    enum class Asked { nothing, to_call, to_end };

    class Calls {
      public:
        void ask(Asked asked) noexcept {
            {
                const std::lock_guard lock(m_mutex);
                m_asked = asked;
            }
            m_changed.notify_one();
        }
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

      private:
        std::mutex m_mutex;
        std::condition_variable m_changed;
        Asked m_asked = Asked::nothing;
    };

    std::shared_ptr<Calls> m_calls; ///< the thread may outlive this object
    std::thread m_thread;
};

} // namespace orizuru::detail
