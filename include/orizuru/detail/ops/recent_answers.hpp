// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets viewers of the same share what Redis is asked.

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace orizuru::detail {

/// For several threads; they may make the same one at once.
class RecentAnswers {
  public:
    explicit RecentAnswers(std::chrono::milliseconds lifetime) : m_lifetime(lifetime) {}

    /// The answer to a question, or a new one from `make` when there is none so young.
    template <class Make>
    [[nodiscard]] std::string get(const std::string& question, Make make) {
        const auto now = std::chrono::steady_clock::now();
        std::size_t epoch = 0;
        {
            const std::lock_guard lock(m_mutex);
            epoch = m_epoch;
            const auto known = m_answers.find(question);
            if (known != m_answers.end() && now - known->second.time < m_lifetime) {
                return known->second.text;
            }
        }
        std::string text = make();
        const std::lock_guard lock(m_mutex);
        if (epoch == m_epoch) {
            constexpr std::size_t most = 64;
            if (m_answers.size() >= most) {
                m_answers.clear();
            }
            m_answers[question] = {now, text};
        }
        return text;
    }

    /// Something has changed.
    void forget() {
        const std::lock_guard lock(m_mutex);
        ++m_epoch;
        m_answers.clear();
    }

  private:
    struct Answer {
        std::chrono::steady_clock::time_point time;
        std::string text;
    };

    const std::chrono::milliseconds m_lifetime;
    std::mutex m_mutex;
    std::size_t m_epoch = 0;
    std::map<std::string, Answer> m_answers;
};

} // namespace orizuru::detail
