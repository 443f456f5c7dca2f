// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What is varied between runs of the seeded test: how often which fault comes, and the defects that
// are put in on purpose to see that the test finds them.

#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

/// Probabilities are per step, unless said otherwise.
struct Scenario {
    std::string_view name;
    int alphabet = 2;              ///< different payloads; 0: no two are equal
    double cut = 0.06;             ///< a connection breaks
    double refuse = 0.04;          ///< per request: it is answered by an error and not run
    double reap = 0.01;            ///< a collector passes
    double rewind = 0;             ///< Redis goes back to an earlier state
    double stop = 0.01;            ///< the consumer stops; another starts when it has left
    double crash = 0.004;          ///< the consumer's process dies; another starts
    double lost_start = 0.15;      ///< per START: the reply is lost
    double wrong_source = 0.004;   ///< the source is no list for a while
    double script_flush = 0.01;    ///< Redis forgets its scripts
    double unusual_wishes = 0.12;  ///< per settlement: refuses, fails, has a wrong target
    std::string_view blamed = "1"; ///< how many a collector blames for a death
};

inline constexpr std::array scenarios{
    Scenario{.name = "good"},
    Scenario{.name = "good_uniq", .alphabet = 0},
    Scenario{.name = "good_alpha1", .alphabet = 1},
    Scenario{.name = "good_gc", .alphabet = 0, .cut = 0.08, .refuse = 0.02, .reap = 0.06},
    Scenario{.name = "release", .alphabet = 3, .reap = 0.03, .stop = 0.08, .wrong_source = 0.01},
    Scenario{.name = "release_uniq", .alphabet = 0, .cut = 0.08, .reap = 0.02, .stop = 0.08},
    Scenario{.name = "start",
             .alphabet = 0,
             .refuse = 0.02,
             .reap = 0.12,
             .stop = 0.05,
             .crash = 0.03,
             .lost_start = 0.5,
             .blamed = "3"},
    Scenario{.name = "bodies",
             .alphabet = 0,
             .cut = 0.04,
             .refuse = 0.06,
             .script_flush = 0.05,
             .unusual_wishes = 0.5},
    Scenario{.name = "rewind",
             .alphabet = 0,
             .cut = 0.03,
             .refuse = 0.02,
             .reap = 0,
             .rewind = 0.02,
             .stop = 0,
             .crash = 0,
             .wrong_source = 0},
    Scenario{.name = "rewind_all",
             .alphabet = 0,
             .cut = 0.03,
             .refuse = 0.02,
             .reap = 0.01,
             .rewind = 0.02,
             .stop = 0.01,
             .crash = 0.004,
             .wrong_source = 0},
};

/// A defect: a change to the text of a script, or to how the harness drives the mirror.
struct Sabotage {
    std::string_view name;
    std::string_view scenario; ///< where it shows
    std::string_view from = {};
    std::string_view to = {};
    bool late_replies = false; ///< a closed wait connection's replies still count
    bool hide_header = false;  ///< recovery is not told which requests ran
};

inline constexpr std::array sabotages{
    Sabotage{.name = "reap_without_fence",
             .scenario = "good_gc",
             .from = "redis.call('SET', processing, 'reaped ' .. header, 'PX', ARGV[2])",
             .to = "redis.call('DEL', processing)"},
    Sabotage{.name = "adopt_without_fence",
             .scenario = "good",
             .from =
                 "redis.call('SET', old, 'adopted ' .. ARGV[2] .. ' ' .. header, 'PX', ARGV[4])",
             .to = ""},
    Sabotage{.name = "adopt_hides_header", .scenario = "good", .hide_header = true},
    Sabotage{.name = "late_replies", .scenario = "good", .late_replies = true},
    Sabotage{.name = "settle_without_header_check",
             .scenario = "good_uniq",
             .from = "if redis.call('LINDEX', p, -1) ~= ARGV[1] then "
                     "return redis.error_reply('STALE header') end\nlocal held",
             .to = "local held"},
    Sabotage{.name = "header_not_advanced",
             .scenario = "good_uniq",
             .from = "redis.call('LSET', p, -1 - k, ARGV[2])",
             .to = "redis.call('LSET', p, -1 - k, ARGV[1])"},
    Sabotage{.name = "removed_before_type_check",
             .scenario = "good",
             .from = "if type(refused) == 'table' and refused.err then\n",
             .to = "if type(refused) == 'table' and refused.err then\n"
                   "    redis.call('LSET', p, ARGV[4], ARGV[2])\n"
                   "    redis.call('LREM', p, -1, ARGV[2])\n"},
    Sabotage{.name = "settle_without_length_check",
             .scenario = "rewind",
             .from =
                 "if held < tonumber(ARGV[3]) then return redis.error_reply('STALE length') end",
             .to = ""},
    Sabotage{.name = "settle_takes_without_rights",
             .scenario = "good_uniq",
             .from = "if n ~= '0' and not redis.acl_check_cmd('LPUSH', p, 'x') then",
             .to = "if false then"},
    Sabotage{.name = "push_loses",
             .scenario = "good",
             .from = "redis.call('LPUSH', KEYS[1], ARGV[1] or payload)",
             .to = ""},
    Sabotage{.name = "release_keeps",
             .scenario = "release",
             .from = "redis.call('LTRIM', p, -(held + 1), -1)",
             .to = ""},
    Sabotage{.name = "leave_without_fence",
             .scenario = "release_uniq",
             .from = "redis.call('SET', p, 'released ' .. ARGV[2], 'PX', ARGV[6])",
             .to = "redis.call('DEL', p)"},
};

/// A script's text with the defect, if it is one of this script.
inline std::string spoiled(std::string_view source, const Sabotage& sabotage) {
    std::string text(source);
    const auto position = sabotage.from.empty() ? std::string::npos : text.find(sabotage.from);
    if (position != std::string::npos) {
        text.replace(position, sabotage.from.size(), sabotage.to);
    }
    return text;
}

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
        expect(1,
               {"acks that said true", "ended drained", "ended by a crash", "START never came",
                "ADOPT never came", "ADOPT reply lost", "ADOPT later", "ADOPT refused",
                "START refused", "START later", "START without rights", "BEAT later",
                "BEAT reply lost", "MOVE without rights", "SETTLE without rights", "taken back"});
        expect(scenario.cut, {"cut", "cut with nothing unanswered", "ran after the client gave up",
                              "recovered", "surfaced"});
        expect(scenario.refuse,
               {"refused BUSY", "refused LOADING", "refused TRYAGAIN", "refused MISCONF",
                "refused NOREPLICAS", "refused OOM", "refused NOSCRIPT", "refused READONLY",
                "refused NOPERM", "refused ERR", "a reply of the wrong type", "fetch refused"});
        expect(scenario.reap,
               {"reaped", "reaped while the consumer lived", "BEAT says fenced", "lease lost"});
        expect(scenario.rewind > 0 ? 0 : scenario.reap, {"buried by a collector"});
        expect(scenario.rewind, {"rewound", "BEAT says gone"});
        expect(scenario.stop, {"stopped", "release with guards held", "left",
                               "stopped, waiter unblocked", "stopped, waiter's connection closed",
                               "guards dropped at the stop", "release refused", "leave in doubt"});
        expect(scenario.crash, {"crashed"});
        expect(scenario.lost_start, {"START reply lost"});
        expect(scenario.lost_start >= 0.5 ? 1 : 0, {"START fenced"});
        expect(scenario.wrong_source, {"source of the wrong type", "source refused"});
        expect(scenario.script_flush, {"scripts forgotten"});
        expect(scenario.unusual_wishes,
               {"refused by its body", "refused because its body failed", "wrong target"});
        return result;
    }

  private:
    std::map<std::string, std::size_t, std::less<>> m_counts;
};

} // namespace orizuru::test
