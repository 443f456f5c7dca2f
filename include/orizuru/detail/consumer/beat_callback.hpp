// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Calls the user's on_beat on a thread of its own: a slow one delays no beat.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace orizuru::detail {

class BeatCallback {
  public:
    /// Throws std::system_error when the process can have no more threads.
    explicit BeatCallback(std::function<void()> on_beat)
        : m_state(std::make_shared<State>()),
          m_thread([state = m_state, on_beat = std::move(on_beat)](const std::stop_token& token) {
              while (state->await_call(token)) {
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
        m_thread.request_stop();
        if (m_thread.get_id() == std::this_thread::get_id()) {
            m_thread.detach(); // the last guard died in the callback
        }
    }

    /// Asks for a call. Those that are asked for while one runs become one.
    void call() noexcept {
        {
            const std::lock_guard lock(m_state->mutex);
            m_state->asked = true;
        }
        m_state->changed.notify_one();
    }

  private:
    struct State {
        /// False when a stop is requested.
        bool await_call(const std::stop_token& token) {
            std::unique_lock lock(mutex);
            changed.wait(lock, token, [this] { return asked; });
            asked = false;
            return !token.stop_requested();
        }

        std::mutex mutex;
        std::condition_variable_any changed;
        bool asked = false;
    };

    std::shared_ptr<State> m_state;
    std::jthread m_thread;
};

} // namespace orizuru::detail
