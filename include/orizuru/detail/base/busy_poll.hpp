// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Polls for up to 50 us before it sleeps, where that pays: waking a sleeping CPU takes longer than
// the round trip to a Redis nearby.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/wake.hpp>

#include <algorithm>
#include <chrono>

namespace orizuru::detail {

/// Learns from the waits of one socket how long the next one may poll before it sleeps. With one
/// CPU it never polls: Redis or the kernel would need that CPU.
///
/// Polling begins when waits that slept took about as long as waking a CPU. It continues while
/// waits that poll are clearly shorter than those were. It ends after waits that polled in vain,
/// and at once when the kernel takes the CPU away: other threads then need it, and the kernel
/// sooner serves a thread that has slept. Each end doubles the number of waits until polling begins
/// again; many answers in time halve it.
class BusyPoll {
  public:
    using Duration = Clock::duration;

    static constexpr Duration longest = std::chrono::microseconds(50);
    /// A thread that sleeps less shares a CPU with Redis: polling gains nothing, and the kernel
    /// would have to separate the two.
    static constexpr Duration wakes = std::chrono::microseconds(25);
    /// A wait that slept at most this long might have been answered within `longest` of polling.
    static constexpr Duration near = std::chrono::microseconds(200);
    /// A polling thread that was away for this long has lost its CPU.
    static constexpr Duration away = std::chrono::microseconds(150);

    explicit BusyPoll(int cpus) noexcept : m_useful(cpus > 1) {}

    [[nodiscard]] bool useful() const noexcept { return m_useful; }
    /// How long the next wait may poll.
    [[nodiscard]] Duration budget() const noexcept { return m_budget; }

    /// The wait polled for `time`, with or without an answer.
    void polled(Duration time, bool answered) noexcept {
        if (answered && time <= away) {
            m_budget = longest;
            on_answer(time);
            return;
        }
        if (time <= away && m_warm_up > 0) {
            --m_warm_up;
            return;
        }
        m_budget /= 2;
        if (time > away || m_budget < shortest) {
            stop();
        }
    }
    /// The wait slept for `time` without polling.
    void slept(Duration time) noexcept {
        if (time < wakes || time > near) {
            m_waits = 0;
            return;
        }
        m_slept = m_waits == 0 ? time : average(m_slept, time);
        if (++m_waits >= m_trials) {
            m_budget = longest;
            m_polled = Duration::zero();
            m_waits = 0;
            m_warm_up = cold;
        }
    }

  private:
    static constexpr Duration shortest = std::chrono::microseconds(10);
    static constexpr int least_trials = 8;
    static constexpr int most_trials = 1024;
    static constexpr int sample = 64;
    /// Redis' CPU has slept too: this many first waits in vain do not count.
    static constexpr int cold = 16;
    static constexpr int forgiving = 256;

    static Duration average(Duration before, Duration now) noexcept {
        return before + (now - before) / 8;
    }

    void on_answer(Duration time) noexcept {
        m_polled = m_polled == Duration::zero() ? time : average(m_polled, time);
        if (++m_waits % sample == 0 && m_polled > m_slept * 3 / 4) {
            stop();
        } else if (m_waits == forgiving) {
            m_waits = 0;
            m_trials = std::max(m_trials / 2, least_trials);
        }
    }
    void stop() noexcept {
        m_budget = Duration::zero();
        m_trials = std::min(m_trials * 2, most_trials);
        m_waits = 0;
    }

    bool m_useful;
    Duration m_budget{};
    int m_trials = least_trials; ///< waits that sleep, until it polls
    int m_waits = 0;             ///< such waits in a row, or answers since polling began
    int m_warm_up = 0;           ///< waits in vain that do not count yet
    Duration m_slept{};          ///< the average before polling began
    Duration m_polled{};         ///< the average since polling began
};

/// Waits as `wait_ready` does, but first polls for as long as `poll` permits.
inline short wait_ready(BusyPoll& poll, int fd, short events, const Wake* wake,
                        TimePoint deadline) {
    const TimePoint begin = Clock::now();
    if (!poll.useful() || begin >= deadline) {
        return wait_ready(fd, events, wake, deadline);
    }
    if (poll.budget() == BusyPoll::Duration::zero()) {
        const short ready = wait_ready(fd, events, wake, deadline);
        if (ready != 0) {
            poll.slept(Clock::now() - begin);
        }
        return ready;
    }
    const TimePoint end = std::min(deadline, begin + poll.budget());
    TimePoint now = begin;
    while (now < end) {
        const auto ready = poll_ready(fd, events, wake, std::chrono::milliseconds(0));
        now = Clock::now();
        if (ready) {
            if (*ready != 0) {
                poll.polled(now - begin, true);
            }
            return *ready;
        }
    }
    poll.polled(now - begin, false);
    return wait_ready(fd, events, wake, deadline);
}

} // namespace orizuru::detail
