// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets viewers of the same share what Redis is asked.

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace orizuru::detail::web {

/// For several threads.
class RecentAnswers {
  public:
    explicit RecentAnswers(std::chrono::milliseconds lifetime) : m_lifetime(lifetime) {}

    /// Returns nothing when there is none so young.
    [[nodiscard]] std::optional<std::string> find(const std::string& question) const {
        const std::lock_guard lock(m_mutex);
        const auto known = m_answers.find(question);
        if (known == m_answers.end() || Clock::now() - known->second.time >= m_lifetime) {
            return std::nullopt;
        }
        return known->second.text;
    }

    void keep(const std::string& question, const std::string& text) {
        constexpr std::size_t most = 64;
        const std::lock_guard lock(m_mutex);
        if (m_answers.size() >= most) {
            m_answers.clear();
        }
        m_answers[question] = {Clock::now(), text};
    }

    /// Something has changed.
    void forget() {
        const std::lock_guard lock(m_mutex);
        m_answers.clear();
    }

  private:
    using Clock = std::chrono::steady_clock;

    struct Answer {
        Clock::time_point time;
        std::string text;
    };

    const std::chrono::milliseconds m_lifetime;
    mutable std::mutex m_mutex;
    std::map<std::string, Answer> m_answers;
};

} // namespace orizuru::detail::web
