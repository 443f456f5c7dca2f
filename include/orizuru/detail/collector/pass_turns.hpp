// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Decides when a collector of a fleet asks for its turn to make a pass, and gives back a turn whose
// pass fails.
//
// A turn is due 9/10 of an interval after the last one. Each collector asks at a random moment of
// the tenth after that. So a pass begins within an interval of the last one even if the process
// that made the last is gone. Each process asks about once per interval, and a thousand do not ask
// at once.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/collector/fleet_turn.hpp>
#include <orizuru/error.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace orizuru::detail {

class PassTurns {
  public:
    /// A longer interval counts as this one.
    static constexpr std::chrono::milliseconds longest_interval = std::chrono::hours(24);

    explicit PassTurns(std::string key) : m_turn{std::move(key), 2 * longest_interval} {}

    /// Returns whether it is this collector's turn. If so, call done() or give_back() next. Throws
    /// as FleetTurn::take.
    [[nodiscard]] bool take(Connection& connection, std::chrono::milliseconds interval);
    /// Notes that the pass is complete.
    void done() noexcept {
        m_taken = false;
        m_tries = 0;
        m_stands_back = false;
    }
    /// Gives back a turn that was taken and not done; stands back from the second in a row on.
    /// Throws as FleetTurn::give_back; can then be tried again.
    void give_back(Connection& connection) {
        if (!m_taken) {
            return;
        }
        m_turn.give_back(connection);
        m_taken = false;
        // A single failure is likely an outage. A collector that never completes a pass would hold
        // the turn most of the time, because it takes it again right after giving it back.
        if (m_tries > 1) {
            stand_back();
        }
    }
    /// Leaves turns to other collectors, as long as any take theirs, until a pass is done.
    void stand_back() {
        m_stands_back = true;
        m_rests_until = deadline_in(apart(m_interval));
    }
    /// Puts off asking for `time`, but for an interval at most.
    void put_off(std::chrono::milliseconds time, std::chrono::milliseconds interval) {
        m_next = deadline_in(std::min(time, apart(interval)) + spread(interval));
    }

    /// When to ask next, after take() or put_off().
    [[nodiscard]] TimePoint next() const noexcept { return m_next; }

  private:
    /// How long ago the last turn must be. A collector that stands back asks after an interval,
    /// when all others have asked.
    [[nodiscard]] std::chrono::milliseconds apart(std::chrono::milliseconds interval) const {
        return m_stands_back ? interval + interval / 10 : interval - interval / 10;
    }
    std::chrono::milliseconds spread(std::chrono::milliseconds interval) {
        return std::chrono::milliseconds(m_random.up_to(interval.count() / 10));
    }

    FleetTurn m_turn;
    TimePoint m_next{};
    TimePoint m_rests_until{};
    std::chrono::milliseconds m_interval{}; ///< of the last take()
    int m_tries = 0;                        ///< turns taken since a pass was done
    bool m_taken = false;
    bool m_stands_back = false;
    Random m_random;
};

inline bool PassTurns::take(Connection& connection, std::chrono::milliseconds interval) {
    const TimePoint now = Clock::now();
    if (now < m_rests_until) {
        m_next = m_rests_until + spread(interval);
        return false;
    }
    const auto left = m_turn.take(connection, apart(interval));
    m_interval = interval;
    m_taken = left.count() == 0;
    m_tries += m_taken ? 1 : 0;
    m_next = now + (m_taken ? apart(interval) : left) + spread(interval);
    return m_taken;
}

} // namespace orizuru::detail
