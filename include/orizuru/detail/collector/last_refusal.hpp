// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Remembers that Redis refused a collector for now. An outage that is shorter than the longest
// pause in a series of writes does not end the series, but a collector that was refused knows of
// it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

#include <optional>
#include <string>

namespace orizuru::detail {

class LastRefusal {
  public:
    /// Redis has refused a request for now, or has not answered it.
    void came() noexcept { m_ended = not_yet; }
    /// Redis has taken a write.
    void ended() noexcept {
        if (m_ended == not_yet) {
            m_ended = Clock::now();
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
};

} // namespace orizuru::detail
