// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Interprets the replies on a wait connection after CLIENT UNBLOCK may have ended a BLMOVE. UNBLOCK
// also "ends" a BLMOVE that CLIENT PAUSE or FAILOVER has postponed, but Redis before 8.2 still runs
// that BLMOVE. (UNBLOCK with TIMEOUT instead of ERROR then crashes Redis.) Only the reply to a
// marker, a command sent behind the BLMOVE, proves that the BLMOVE is over.

#include <orizuru/reply.hpp>

#include <string_view>

namespace orizuru::detail {

class Unblocking {
  public:
    enum class Meaning {
        result,    ///< it is BLMOVE's reply
        ended,     ///< BLMOVE is over and brought nothing
        unblocked, ///< send a marker
        nothing,   ///< it is the reply to a marker
        doubt      ///< unexpected, or it is unclear which command it answers
    };

    /// Interprets the next reply; `blocked`: a BLMOVE is unanswered.
    Meaning read(const Reply& reply, bool blocked) noexcept {
        if (blocked && reply.is(Reply::Type::error) && reply.text == text) {
            ++m_markers;
            return Meaning::unblocked;
        }
        if (m_markers == 0) {
            return blocked ? Meaning::result : Meaning::doubt;
        }
        if (blocked && !reply.is(Reply::Type::integer)) {
            // The error may be for the marker or for the BLMOVE.
            return reply.is(Reply::Type::error) ? Meaning::doubt : Meaning::result;
        }
        --m_markers;
        return blocked && m_markers == 0 ? Meaning::ended : Meaning::nothing;
    }
    /// True while replies to markers are outstanding.
    [[nodiscard]] bool pending() const noexcept { return m_markers > 0; }
    /// Starts afresh on a new connection.
    void reset() noexcept { m_markers = 0; }

  private:
    // Redis' words since 5.0. Others would count as a change of Redis' role.
    static constexpr std::string_view text = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

    int m_markers = 0; ///< unanswered
};

} // namespace orizuru::detail
