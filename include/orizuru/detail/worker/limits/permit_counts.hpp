// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The permits of a process for the handlers of a queue: granted, fetched for, and in use. Tasks
// share them, and may outlive the worker.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/limits/queue_limit.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace orizuru::detail {

/// Any thread.
class PermitCounts : public std::enable_shared_from_this<PermitCounts> {
  public:
    PermitCounts(bool has_rate, bool has_slots) : m_has_rate(has_rate), m_has_slots(has_slots) {}

    /// Signalled when Redis has something to hear.
    [[nodiscard]] const Wake& wake() const noexcept { return m_wake; }
    /// So many were asked for then, and are granted.
    void grant(int count, TimePoint asked) noexcept {
        const std::lock_guard lock(m_mutex);
        m_granted += count;
        m_asked = asked;
        m_unused = 0; // those of the grant before, whose times are over
    }
    /// Takes those back that nobody has fetched for in time. Returns when those that are left
    /// become void; TimePoint::max() without any.
    TimePoint drop_void(TimePoint now) noexcept {
        const std::lock_guard lock(m_mutex);
        if (m_granted > 0 && now > m_asked + validity()) {
            give_back(std::exchange(m_granted, 0));
        }
        return m_granted > 0 ? m_asked + validity() : TimePoint::max();
    }
    [[nodiscard]] int granted() noexcept {
        const std::lock_guard lock(m_mutex);
        return Clock::now() <= m_asked + validity() ? m_granted : 0;
    }
    /// As QueueLimit::fetched.
    void fetched(int tasks) noexcept {
        const std::lock_guard lock(m_mutex);
        give_back(std::exchange(m_granted, 0) + std::exchange(m_fetched, tasks) - tasks);
    }
    /// None of those that were granted is used any more, unless a task has it.
    void drop_all() noexcept { fetched(0); }
    /// Returns one of those that were fetched for; null without any. Throws std::bad_alloc.
    [[nodiscard]] std::unique_ptr<Permit> permit() {
        auto permit = std::make_unique<Held>(shared_from_this());
        const std::lock_guard lock(m_mutex);
        if (m_fetched == 0) {
            return nullptr;
        }
        --m_fetched;
        ++m_running;
        permit->begin(m_asked);
        return permit;
    }
    /// Returns how many permits of the last grant go back to the rate since the last call; empty
    /// when Redis has nothing to hear.
    [[nodiscard]] std::optional<int> take_unused() noexcept {
        const std::lock_guard lock(m_mutex);
        return std::exchange(m_changed, false) ? std::optional(std::exchange(m_unused, 0))
                                               : std::nullopt;
    }
    /// Returns how many are granted or used.
    [[nodiscard]] int holding() noexcept {
        const std::lock_guard lock(m_mutex);
        return m_running + m_granted + m_fetched;
    }
    /// Has Redis hear of it, if only that nothing is wanted.
    void touch() noexcept {
        const std::lock_guard lock(m_mutex);
        change();
    }
    /// Redis counts them until then.
    void set_lease(LeaseClock::time_point end) noexcept { m_lease_end = end; }
    [[nodiscard]] bool lease_over() const noexcept {
        return LeaseClock::now() >= m_lease_end.load();
    }
    /// The lease was over, so others may have the slots of all that were taken or granted before.
    void lapse(TimePoint now) noexcept { m_lapsed_at = now; }
    /// As QueueLimit::holds.
    [[nodiscard]] bool holds(TimePoint since) const noexcept {
        return !m_has_slots || (since >= m_lapsed_at.load() && !lease_over());
    }

  private:
    class Held final : public Permit {
      public:
        explicit Held(std::shared_ptr<PermitCounts> counts) noexcept
            : m_counts(std::move(counts)) {}
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;
        ~Held() override {
            if (m_begun) {
                m_counts->end(m_used.load(), m_asked);
            }
        }
        void begin(TimePoint asked) noexcept {
            m_asked = asked;
            m_begun = true;
        }
        [[nodiscard]] bool good() const noexcept override {
            return m_counts->holds(m_asked) &&
                   (!m_counts->m_has_rate || Clock::now() <= m_asked + begins_within);
        }
        void use() noexcept override { m_used = true; }

      private:
        const std::shared_ptr<PermitCounts> m_counts;
        TimePoint m_asked;
        bool m_begun = false;
        std::atomic<bool> m_used{false};
    };

    /// A handler of a queue with a rate begins at most so long behind its grant.
    static constexpr std::chrono::milliseconds begins_within{50};
    /// A slot is kept so long for a fetch, which may be far from Redis.
    static constexpr std::chrono::milliseconds slot_kept{1000};

    [[nodiscard]] std::chrono::milliseconds validity() const noexcept {
        return m_has_rate ? begins_within : slot_kept;
    }
    void end(bool used, TimePoint asked) noexcept {
        const std::lock_guard lock(m_mutex);
        --m_running;
        const bool back = !used && asked == m_asked;
        m_unused += back ? 1 : 0;
        if (back || m_has_slots) {
            change();
        }
    }
    void give_back(int permits) noexcept {
        if (permits > 0) {
            m_unused += permits;
            change();
        }
    }
    void change() noexcept {
        m_changed = true;
        m_wake.signal();
    }

    const bool m_has_rate;
    const bool m_has_slots;
    Wake m_wake;
    std::atomic<LeaseClock::time_point> m_lease_end{LeaseClock::time_point()};
    std::atomic<TimePoint> m_lapsed_at{TimePoint()};
    std::mutex m_mutex; ///< guards what follows
    int m_granted = 0;
    int m_fetched = 0;
    int m_running = 0;
    int m_unused = 0;
    bool m_changed = false;
    TimePoint m_asked;
};

} // namespace orizuru::detail
