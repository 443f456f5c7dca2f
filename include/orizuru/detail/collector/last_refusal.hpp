// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// When Redis last refused a collector for now. An outage that is shorter than the longest pause in
// a series of writes does not end the series, but a collector that was refused knows of it.

#include <orizuru/detail/base/clock.hpp>

#include <optional>
#include <string>

namespace orizuru::detail {

class LastRefusal {
  public:
    /// Redis has refused a request for now, or has not answered it.
    void came() noexcept {
        m_came = true;
        m_taken.reset();
    }
    /// Redis has taken a write.
    void ended() noexcept {
        if (m_came && !m_taken) {
            m_taken = Clock::now();
        }
    }
    /// For how long Redis has taken writes since (ms); empty if no refusal is known.
    [[nodiscard]] std::string age() const {
        if (!m_came) {
            return {};
        }
        return std::to_string(m_taken ? milliseconds_since(*m_taken) : 0);
    }

  private:
    bool m_came = false;
    std::optional<TimePoint> m_taken;
};

} // namespace orizuru::detail
