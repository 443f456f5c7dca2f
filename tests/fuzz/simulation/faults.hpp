// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Counts the faults that came, and says which should have come.

#pragma once

#include "fuzz/simulation/scenario.hpp"

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

/// How often each kind of fault has really come.
class Faults {
  public:
    void came(std::string_view kind) {
        const auto found = m_counts.find(kind);
        if (found == m_counts.end()) {
            m_counts.emplace(kind, 1);
        } else {
            ++found->second;
        }
    }
    [[nodiscard]] const std::map<std::string, std::size_t, std::less<>>& counts() const noexcept {
        return m_counts;
    }
    /// What the scenario should bring.
    [[nodiscard]] static std::vector<std::string_view> expected(const Scenario& scenario) {
        std::vector<std::string_view> result;
        const auto expect = [&](double rate, std::initializer_list<std::string_view> kinds) {
            if (rate > 0) {
                result.insert(result.end(), kinds);
            }
        };
        expect(1, {"acks that said true", "ended drained", "ended by a crash", "BEAT later",
                   "BEAT reply lost", "taken back"});
        expect(scenario.cut, {"cut", "cut with nothing unanswered", "ran after the client gave up",
                              "recovered", "surfaced", "ADOPT never came", "ADOPT reply lost",
                              "ADOPT later", "ADOPT refused"});
        expect(scenario.only_refusals_that_pass ? 0 : scenario.refuse,
               {"START refused", "START without rights", "MOVE without rights",
                "SETTLE without rights", "refused BUSY", "refused LOADING", "refused TRYAGAIN",
                "refused MISCONF", "refused NOREPLICAS", "refused OOM", "refused NOSCRIPT",
                "refused READONLY", "refused NOPERM", "refused ERR", "a reply of the wrong type",
                "fetch refused"});
        expect(scenario.reap,
               {"reaped", "reaped while the consumer lived", "BEAT says fenced", "lease lost"});
        expect(scenario.rewind > 0 ? 0 : scenario.reap,
               {"spared until Redis has taken writes for long enough"});
        expect(scenario.rewind > 0 ? 0 : scenario.reap, {"buried by a collector"});
        expect(scenario.trial, {"put apart by a collector", "a suspect came", "a suspect surfaced",
                                "no room for a suspect", "TRY without rights",
                                "counts of suspects that ended", "suspects put back at the stop",
                                "suspects returned to the source", "BEAT says that suspects wait"});
        expect(scenario.rewind, {"rewound", "BEAT says gone"});
        expect(scenario.stop,
               {"stopped", "release with guards held", "left", "stopped, waiter unblocked",
                "stopped, waiter's connection closed", "guards dropped at the stop"});
        expect(scenario.cut > 0 ? scenario.stop : 0, {"release refused", "leave in doubt"});
        expect(scenario.crash, {"crashed"});
        expect(scenario.lost_start, {"START never came", "START later", "START reply lost"});
        expect(scenario.lost_start >= 0.5 ? 1 : 0, {"START fenced"});
        expect(scenario.wrong_source, {"source of the wrong type", "source refused"});
        expect(scenario.script_flush, {"scripts forgotten"});
        expect(scenario.long_time, {"a long time passes", "a short fence ends"});
        expect(scenario.cut > 0 ? scenario.most_consumers - 1 : 0,
               {"one mirror recovers while others have replies owed", "a discarded reply",
                "link broken with several unanswered", "a mirror idle while the link broke",
                "moved to another link"});
        expect(scenario.fewest_consumers > 8 ? 1 : 0, {"eight at a time"});
        expect(scenario.bulk, {"list rewritten"});
        expect(scenario.unusual_wishes,
               {"refused by its body", "refused because its body failed", "wrong target"});
        return result;
    }

  private:
    std::map<std::string, std::size_t, std::less<>> m_counts;
};

} // namespace orizuru::test
