// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What the replies on a wait connection mean when CLIENT UNBLOCK may have ended a BLMOVE. It also
// "ends" one that CLIENT PAUSE or FAILOVER has postponed, and Redis before 8.2 runs that one all
// the same. (Ended with TIMEOUT in place of ERROR, it brings Redis down.) Only the reply to what is
// sent behind it, a marker, tells that it was over.

#include <orizuru/reply.hpp>

#include <string_view>

namespace orizuru::detail {

class Unblocking {
  public:
    enum class Meaning {
        result,    ///< it is BLMOVE's reply
        ended,     ///< BLMOVE was over, and brought nothing
        unblocked, ///< a marker is to be sent
        nothing,   ///< a marker has done its work
        doubt      ///< nobody asked for it, or it cannot be told what it belongs to
    };

    /// What the next reply means; `blocked`: a BLMOVE is unanswered.
    Meaning read(const Reply& reply, bool blocked) noexcept;
    /// True while the replies to markers are to come.
    [[nodiscard]] bool pending() const noexcept { return m_markers > 0; }
    /// The connection is another one.
    void reset() noexcept { m_markers = 0; }

  private:
    // In Redis since 5.0. Other words would be taken for a change of Redis' role.
    static constexpr std::string_view text = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

    int m_markers = 0; ///< unanswered
};

inline Unblocking::Meaning Unblocking::read(const Reply& reply, bool blocked) noexcept {
    if (blocked && reply.is(Reply::Type::error) && reply.text == text) {
        ++m_markers;
        return Meaning::unblocked;
    }
    if (m_markers == 0) {
        return blocked ? Meaning::result : Meaning::doubt;
    }
    if (blocked && !reply.is(Reply::Type::integer)) {
        // A marker that was refused cannot be told from a BLMOVE that was.
        return reply.is(Reply::Type::error) ? Meaning::doubt : Meaning::result;
    }
    --m_markers;
    return blocked && m_markers == 0 ? Meaning::ended : Meaning::nothing;
}

} // namespace orizuru::detail
