// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How long a reconciler leaves each queue alone.

#include <orizuru/detail/jittered_pauses.hpp>
#include <orizuru/detail/postgres/ledger_step.hpp>
#include <orizuru/detail/wake.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

namespace orizuru::detail {

class LedgerPauses {
  public:
    [[nodiscard]] TimePoint end(const std::string& queue) { return m_pauses[queue].until; }

    /// After a step that did not throw: none when it got on.
    void stepped(const std::string& queue, const LedgerStep& step) {
        Pause& pause = m_pauses[queue];
        pause.failed.reset();
        const bool nothing = step.sent + step.retried + step.told.size() == 0;
        if (step.next == LedgerStep::Next::busy || step.next == LedgerStep::Next::lost ||
            (step.next == LedgerStep::Next::done && nothing)) {
            pause.until = deadline_in(std::min(pause.vain.next(), longest_in_vain));
        }
    }
    void failed(const std::string& queue) {
        Pause& pause = m_pauses[queue];
        pause.until = deadline_in(pause.failed.next());
    }
    void leave(const std::string& queue, std::chrono::milliseconds time) {
        m_pauses[queue].until = deadline_in(time);
    }
    /// A look has seen that there is nothing to be done.
    void nothing_due(const std::string& queue) { m_pauses[queue].vain.reset(); }

  private:
    // Another reconciler works in the queue, or a job is locked, or Redis loses something again and
    // again: of the end of that nobody tells.
    static constexpr std::chrono::milliseconds longest_in_vain{1000};

    struct Pause {
        TimePoint until{};
        JitteredPauses failed = {};
        JitteredPauses vain = {};
    };

    std::map<std::string, Pause> m_pauses;
};

} // namespace orizuru::detail
