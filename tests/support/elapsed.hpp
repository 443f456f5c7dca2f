// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Bounds for how long something takes that hold on a busy machine too.

#pragma once

#include "support/eventually.hpp"
#include "support/lateness.hpp"

#include <chrono>
#include <concepts>
#include <ostream>

namespace orizuru::test {

/// How long something took. A bound from above does not count the time by which the machine let
/// threads run late meanwhile.
class Elapsed {
  public:
    using Milliseconds = std::chrono::milliseconds;

    Elapsed(Milliseconds time, Milliseconds late) : m_time(time), m_late(late) {}

    /// What it took without what the machine was late.
    [[nodiscard]] Milliseconds on_an_idle_machine() const { return m_time - m_late; }
    /// True if the machine let threads run late for a tenth of the time or more.
    [[nodiscard]] bool on_a_busy_machine() const { return 10 * m_late >= m_time; }

    friend bool operator<(const Elapsed& elapsed, Milliseconds bound) {
        return elapsed.on_an_idle_machine() < bound;
    }
    friend bool operator<=(const Elapsed& elapsed, Milliseconds bound) {
        return elapsed.on_an_idle_machine() <= bound;
    }
    friend bool operator>(const Elapsed& elapsed, Milliseconds bound) {
        return elapsed.m_time > bound;
    }
    friend bool operator>=(const Elapsed& elapsed, Milliseconds bound) {
        return elapsed.m_time >= bound;
    }
    friend std::ostream& operator<<(std::ostream& out, const Elapsed& elapsed) {
        return out << elapsed.m_time.count() << " ms, the machine being late by "
                   << elapsed.m_late.count() << " ms";
    }

  private:
    Milliseconds m_time;
    Milliseconds m_late;
};

/// Runs from its construction on.
class Stopwatch {
  public:
    [[nodiscard]] Elapsed elapsed() const {
        // The lateness that is read first lies within the time.
        const auto late = m_lateness.total() - m_late_before;
        return {std::chrono::duration_cast<Elapsed::Milliseconds>(Lateness::Clock::now() - m_begun),
                late};
    }

  private:
    Lateness m_lateness;
    Lateness::Clock::time_point m_begun = Lateness::Clock::now();
    Elapsed::Milliseconds m_late_before = m_lateness.total();
};

template <class Action>
Elapsed time_of(Action action) {
    const Stopwatch stopwatch;
    action();
    return stopwatch.elapsed();
}

/// Waits for a condition for as long as `bound` lasts on an idle machine. Returns true if it held.
template <std::predicate Condition>
[[nodiscard]] bool holds_within(std::chrono::milliseconds bound, Condition condition) {
    const Stopwatch stopwatch;
    return eventually([&] { return condition() || !(stopwatch.elapsed() <= bound); }) &&
           condition();
}

} // namespace orizuru::test
