// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Remembers that Redis refused a collector for now, or was lost. An outage that is shorter than the
// longest pause in a series of writes does not end the series, but a collector that was refused
// knows of it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/limits.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

class LastRefusal {
  public:
    /// `connected_at`: when the collector's connection was made.
    LastRefusal(TimePoint connected_at, std::chrono::milliseconds command_timeout)
        : m_connected_at(connected_at), m_apart(2 * (command_timeout + longest_attempts_apart)) {}

    /// Redis has refused a request for now, or has not answered it.
    void came() noexcept { m_ended = not_yet; }
    /// Redis has taken a write.
    void ended() noexcept {
        if (m_ended == not_yet) {
            m_ended = Clock::now();
        }
    }
    /// The collector has a connection, made `at` that time. If it replaces another one, and no
    /// refusal that ended later tells why, Redis was lost while the collector asked nothing. Right
    /// behind another loss that says nothing: a collector whose idle connections something cuts
    /// would never trust what it sees.
    void connected(TimePoint at) noexcept {
        const bool replaced = std::exchange(m_connected_at, at) != at;
        const bool known = m_ended && *m_ended >= at; // or not_yet
        if (replaced && !known && (!m_lost || at - *m_lost >= m_apart)) {
            m_lost = m_ended = at;
        }
    }
    /// For how long Redis has taken writes since (ms); empty if no refusal is known.
    [[nodiscard]] std::string age() const {
        if (!m_ended) {
            return {};
        }
        return joined({Digits(m_ended == not_yet ? 0 : milliseconds_since(*m_ended))});
    }

  private:
    static constexpr TimePoint not_yet = TimePoint::max();

    std::optional<TimePoint> m_ended; ///< empty: none came
    std::optional<TimePoint> m_lost;  ///< the last loss that counted
    TimePoint m_connected_at;
    std::chrono::milliseconds m_apart; ///< twice as long as a refusal delays an absence at most
};

} // namespace orizuru::detail
