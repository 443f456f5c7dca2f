// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The requests to cancel jobs of a queue, as Redis had them when this worker last looked.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Any thread.
class Cancellations {
  public:
    /// Reasons by the ids of jobs.
    using Reasons = std::map<std::string, std::string, std::less<>>;

    void replace(Reasons reasons) {
        const std::lock_guard lock(m_mutex);
        for (const std::string& job_id : m_ended) { // since Redis was asked
            reasons.erase(job_id);
        }
        m_any.store(!reasons.empty(), std::memory_order_release);
        m_reasons.swap(reasons);
    }
    /// Empty for a job that is not to be cancelled. Costs next to nothing while none is.
    [[nodiscard]] std::optional<std::string> reason_of(std::string_view job_id) const {
        if (!m_any.load(std::memory_order_acquire)) {
            return std::nullopt;
        }
        const std::lock_guard lock(m_mutex);
        const auto found = m_reasons.find(job_id);
        return found == m_reasons.end() ? std::nullopt : std::optional(found->second);
    }
    /// This request has come to its end: Redis may forget it.
    void end(std::string_view job_id) {
        const std::lock_guard lock(m_mutex);
        m_ended.emplace_back(job_id);
        if (const auto found = m_reasons.find(job_id); found != m_reasons.end()) {
            m_reasons.erase(found);
        }
    }
    /// Returns those that have ended since the last call.
    [[nodiscard]] std::vector<std::string> take_ended() {
        const std::lock_guard lock(m_mutex);
        return std::exchange(m_ended, {});
    }

  private:
    std::atomic<bool> m_any{false};
    mutable std::mutex m_mutex; ///< guards what follows
    Reasons m_reasons;
    std::vector<std::string> m_ended;
};

} // namespace orizuru::detail
