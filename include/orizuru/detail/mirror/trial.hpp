// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Counts the suspects that a process holds: messages that were blamed for the death of a consumer.
// They wait apart (Keys::suspects), and a process takes only as many as tell whom to blame if it
// dies.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace orizuru::detail {

/// The most suspects that a process may hold while the one of them that was blamed most often was
/// blamed once, twice, or three times and more.
struct TrialLimits {
    static constexpr std::size_t levels = 3;

    std::array<int, levels> most{1, 1, 1};

    /// For n jobs at a time: n^(1 - c/3) with c recoveries, so that three deaths leave one of n. A
    /// job that survives fewer is alone sooner.
    [[nodiscard]] static TrialLimits of(int jobs, int max_recoveries) {
        const int last = std::clamp<int>(max_recoveries, 1, levels);
        TrialLimits limits;
        for (int level = 1; level < last; ++level) {
            const double most = std::pow(jobs, 1 - static_cast<double>(level) / last);
            // 1e-9: a whole number may come out just below itself.
            limits.most[static_cast<std::size_t>(level) - 1] =
                std::max(1, static_cast<int>(most + 1e-9));
        }
        return limits;
    }
};

class Trial;

/// The suspects of one process. Any thread.
class Trials {
  public:
    struct Held {
        int count = 0;
        int most_blamed = 0; ///< recoveries of the one that has most, at most TrialLimits::levels
    };

    /// Begins to ask Redis for a suspect. Null when none would fit, or another consumer of the
    /// process is asking.
    [[nodiscard]] static std::shared_ptr<Trial> ask(const std::shared_ptr<Trials>& trials,
                                                    const TrialLimits& limits);
    [[nodiscard]] Held held() const {
        const std::lock_guard lock(m_mutex);
        return counted();
    }

  private:
    friend class Trial;

    /// One is asked for, and at least one that was blamed once would fit.
    [[nodiscard]] bool admits(const TrialLimits& limits) const {
        const std::lock_guard lock(m_mutex);
        const Held held = counted();
        const auto level = static_cast<std::size_t>(std::max(held.most_blamed, 1));
        return m_held[0] == 1 && held.count < limits.most[level - 1];
    }
    [[nodiscard]] Held counted() const noexcept {
        Held held;
        for (std::size_t level = 1; level <= TrialLimits::levels; ++level) {
            held.count += m_held[level];
            held.most_blamed = m_held[level] > 0 ? static_cast<int>(level) : held.most_blamed;
        }
        return held;
    }

    mutable std::mutex m_mutex;
    std::array<int, 1 + TrialLimits::levels> m_held{}; ///< by level; 0: asked for
};

/// A suspect that the process holds or asks for, until this is destroyed.
class Trial {
  public:
    /// Asks for one.
    explicit Trial(std::shared_ptr<Trials> trials) : m_trials(std::move(trials)) {
        const std::lock_guard lock(m_trials->m_mutex);
        ++m_trials->m_held[m_level];
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    ~Trial() {
        const std::lock_guard lock(m_trials->m_mutex);
        --m_trials->m_held[m_level];
    }

    /// Redis has answered. `field`: where its recoveries are counted; empty when that is not known.
    void begin(int recoveries, std::string field) noexcept {
        const auto level = static_cast<std::size_t>(
            std::clamp<int>(recoveries, 1, static_cast<int>(TrialLimits::levels)));
        m_field = std::move(field);
        const std::lock_guard lock(m_trials->m_mutex);
        --m_trials->m_held[std::exchange(m_level, level)];
        ++m_trials->m_held[level];
    }
    [[nodiscard]] const std::string& field() const noexcept { return m_field; }
    [[nodiscard]] Trials::Held others() const { return m_trials->held(); }

  private:
    const std::shared_ptr<Trials> m_trials;
    std::size_t m_level = 0;
    std::string m_field;
};

inline std::shared_ptr<Trial> Trials::ask(const std::shared_ptr<Trials>& trials,
                                          const TrialLimits& limits) {
    auto trial = std::make_shared<Trial>(trials);
    return trials->admits(limits) ? std::move(trial) : nullptr;
}

/// A consumer's share in the trials of its process. Unless it is told otherwise, it is alone there.
struct TrialShare {
    std::shared_ptr<Trials> trials = std::make_shared<Trials>();
    TrialLimits limits = {};
    std::int64_t at_once = 0; ///< messages that the consumer handles at once; 0: not known
};

} // namespace orizuru::detail
