// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Knows which requests outside a mirror's chain may still come to Redis under its identity. What
// was sent on a connection that has broken may come much later; what is answered cannot.

namespace orizuru::detail {

class LateRequests {
  public:
    /// A START, an ADOPT or a beat goes out. Each may be sent again while it is unanswered.
    void sent() noexcept { ++m_unanswered; }
    void answered() noexcept { --m_unanswered; }

    /// Nobody awaits the reply to the blocking fetch any more.
    void gave_up_fetch() noexcept { m_fetch = true; }
    /// Redis has said that the fetch's connection is gone.
    void lost_fetch() noexcept { m_fetch = false; }
    [[nodiscard]] bool has_fetch() const noexcept { return m_fetch; }

    [[nodiscard]] bool any() const noexcept { return m_fetch || m_unanswered > 0; }

  private:
    int m_unanswered = 0;
    bool m_fetch = false;
};

} // namespace orizuru::detail
