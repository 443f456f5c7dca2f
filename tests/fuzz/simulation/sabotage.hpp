// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Defects that are put in on purpose to see that the tests of the protocol find them.

#pragma once

#include <array>
#include <string>
#include <string_view>

namespace orizuru::test {

/// What the harness does wrong in driving the mirrors.
enum class Defect {
    none,
    hidden_header, ///< recovery is not told which requests ran
    late_replies,  ///< a closed wait connection's replies still count
    old_replies,   ///< so do those to an earlier incarnation's requests
    forgotten,     ///< a mirror that recovers is owed nothing: its replies go to the next
    lifted,        ///< a reply to one mirror ends the barrier of another
    one_recovers,  ///< a broken link concerns only one of its mirrors
    presumed_gone, ///< a broken connection's blocking fetch is taken for one that cannot come
    beats_while_leaving
};

/// A defect: a change to the text of a script, or to how the harness drives the mirror.
struct Sabotage {
    std::string_view name;
    std::string_view scenario; ///< where it shows
    std::string_view from = {};
    std::string_view to = {};
    Defect defect = Defect::none;
    bool doubts = false; ///< it shows in doubts that have no cause: nothing comes of them
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
    Sabotage{.name = "adopt_hides_header", .scenario = "good", .defect = Defect::hidden_header},
    Sabotage{.name = "late_replies", .scenario = "good", .defect = Defect::late_replies},
    Sabotage{.name = "settle_without_header_check",
             .scenario = "good_uniq",
             .from = "if redis.call('LINDEX', p, -1) ~= ARGV[1] then "
                     "return redis.error_reply('STALE header') end\nif ARGV[5]",
             .to = "if ARGV[5]"},
    Sabotage{.name = "header_not_advanced",
             .scenario = "good_uniq",
             .from = "redis.pcall('LSET', p, ARGV[3], ARGV[2])",
             .to = "redis.pcall('LSET', p, ARGV[3], ARGV[1])"},
    Sabotage{.name = "removed_before_type_check",
             .scenario = "good",
             .from = "if type(refused) == 'table' and refused.err then\n",
             .to = "if type(refused) == 'table' and refused.err then\n"
                   "    redis.call('LSET', p, ARGV[4], ARGV[2])\n"
                   "    redis.call('LREM', p, -1, ARGV[2])\n"},
    Sabotage{.name = "settle_without_length_check",
             .scenario = "rewind_short",
             .from = "if ARGV[5] and redis.call('LLEN'",
             .to = "if false and redis.call('LLEN'"},
    Sabotage{.name = "settle_takes_without_rights",
             .scenario = "good_uniq",
             .from = "if source and not redis.acl_check_cmd('LPUSH', p, 'x') then",
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
    Sabotage{.name = "suspect_copied",
             .scenario = "suspects",
             .from = "redis.call('LMOVE', suspects, p, 'RIGHT', 'LEFT')\nreturn",
             .to = "redis.call('LPUSH', p, suspect)\nreturn"},
    Sabotage{.name = "suspect_without_header",
             .scenario = "suspects",
             .from = "redis.call('LSET', p, -1, ARGV[2])\nif not fits",
             .to = "if not fits",
             .doubts = true},
    Sabotage{.name = "any_suspect_fits",
             .scenario = "suspects",
             .from = "fits = tonumber(ARGV[4]) < tonumber(ARGV[5 + math.floor(level)])",
             .to = "fits = true"},
    Sabotage{.name = "suspect_counted_on",
             .scenario = "suspects",
             .from = "if field then redis.pcall('HDEL', KEYS[counts], field, "
                     "'charged ' .. field) end",
             .to = ""},
    Sabotage{.name = "suspects_lost_on_return",
             .scenario = "suspects",
             .from = "redis.call('LMOVE', suspects, source, 'LEFT', 'RIGHT') do",
             .to = "redis.call('LTRIM', suspects, 1, -1) do"},
    Sabotage{.name = "absence_counts_at_once",
             .scenario = "good_gc",
             .from = "if wait > 0 then return {-3, wait, gap} end",
             .to = ""},
    Sabotage{.name = "long_pauses_count",
             .scenario = "good_gc",
             .from = "return math.floor(lease * 5 / 12) end",
             .to = "return lease end"},
    Sabotage{.name = "short_fence_of_leave",
             .scenario = "fences",
             .from = "'released ' .. ARGV[2], 'PX', ARGV[6])",
             .to = "'released ' .. ARGV[2], 'PX', '600000')"},
    Sabotage{.name = "short_fence_of_adopt",
             .scenario = "fences",
             .from = "' ' .. header, 'PX', ARGV[4])",
             .to = "' ' .. header, 'PX', '600000')"},
    Sabotage{
        .name = "late_fetch_presumed_gone", .scenario = "fences", .defect = Defect::presumed_gone},
    Sabotage{
        .name = "beats_while_leaving", .scenario = "fences", .defect = Defect::beats_while_leaving},
    Sabotage{.name = "old_replies", .scenario = "good_uniq", .defect = Defect::old_replies},
    Sabotage{.name = "forgotten_replies", .scenario = "good_uniq", .defect = Defect::forgotten},
    Sabotage{
        .name = "barrier_lifted", .scenario = "refusals", .defect = Defect::lifted, .doubts = true},
    Sabotage{.name = "one_recovers", .scenario = "good", .defect = Defect::one_recovers},
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

} // namespace orizuru::test
