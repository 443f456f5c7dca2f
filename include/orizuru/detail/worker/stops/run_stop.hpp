// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The requests to stop that the handler of one run hears of.

#include <orizuru/detail/worker/stops/linked_stop.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// Any thread.
class RunStop {
  public:
    /// That of the handler's time limit while it has one, else one that is made when it is asked
    /// for: most handlers never do. `worker`: its stop brings about this one.
    [[nodiscard]] std::stop_token token(const std::stop_token& worker) {
        const std::lock_guard lock(m_mutex);
        if (m_limited) {
            return m_limited->get_token();
        }
        if (!m_own) {
            m_own.emplace(worker);
            if (m_cancelled) {
                m_own->source().request_stop();
            }
        }
        return m_own->token();
    }
    /// A time limit begins; empty: it has ended.
    void limit_to(std::optional<std::stop_source> stop) noexcept {
        const std::lock_guard lock(m_mutex);
        m_limited = std::move(stop);
        if (m_limited && m_cancelled) {
            m_limited->request_stop();
        }
    }
    /// Once: requests a stop on this thread.
    void cancel(std::string_view reason) {
        std::unique_lock lock(m_mutex);
        if (m_cancelled) {
            return;
        }
        m_cancelled = reason;
        m_is_cancelled.store(true, std::memory_order_release);
        std::optional<std::stop_source> limited = m_limited;
        std::optional<std::stop_source> own;
        if (m_own) {
            own = m_own->source();
        }
        lock.unlock(); // the handler's stop callbacks may ask for the token
        for (auto* const stop : {&limited, &own}) {
            if (*stop) {
                (*stop)->request_stop();
            }
        }
    }
    [[nodiscard]] bool is_cancelled() const noexcept {
        return m_is_cancelled.load(std::memory_order_acquire);
    }
    /// The reason, once it is cancelled.
    [[nodiscard]] std::optional<std::string> cancelled() const {
        const std::lock_guard lock(m_mutex);
        return m_cancelled;
    }

  private:
    std::atomic<bool> m_is_cancelled{false};
    mutable std::mutex m_mutex; ///< guards what follows
    std::optional<LinkedStop> m_own;
    std::optional<std::stop_source> m_limited;
    std::optional<std::string> m_cancelled;
};

} // namespace orizuru::detail
