// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The effect of each error of Redis, by the sender of the command.

#pragma once

#include "crash/support/library_commands.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

enum class Outcome {
    waits,    ///< tries again by itself, after a pause
    connects, ///< the same on a new connection
    adopts,   ///< the same as a new incarnation, which has taken over its list
    insists,  ///< the same, but throws when refused again and again
    drains,   ///< goes on without that command, however long it is refused
    sends,    ///< the script's body at once
    throws,   ///< ReplyError with that code; the next call works
    leaves,   ///< throws, and the next call works on a new connection
    breaks,   ///< ConnectionError; the next call works
    ignores,  ///< goes on
    resigns   ///< leaves it to the collectors, without a word
};

inline constexpr std::array<std::string_view, 11> outcome_names{"waited",
                                                                "connected anew",
                                                                "adopted its list",
                                                                "adopted, then threw",
                                                                "did without",
                                                                "sent the body",
                                                                "threw",
                                                                "threw, then connected anew",
                                                                "broke",
                                                                "went on",
                                                                "resigned"};

struct Row {
    std::string_view text; ///< empty: the connection ends
    std::array<Outcome, 11> outcomes;

    [[nodiscard]] std::string_view code() const { return text.substr(0, text.find(' ')); }
    [[nodiscard]] std::string_view name() const { return text.empty() ? "end" : code(); }
    [[nodiscard]] std::optional<std::string> reply() const {
        return text.empty() ? std::nullopt : std::optional("-" + std::string(text) + "\r\n");
    }
};

namespace error_table {

using enum Outcome;

// clang-format off
// The columns of a consumer and of the parts that run by themselves.
inline constexpr std::array columns{Column::registration, Column::again, Column::start, Column::settle,
    Column::fetch, Column::blmove, Column::release, Column::adopt, Column::buffer, Column::run, Column::turn};

// Errors that a wait heals, that another connection may heal, and that only a person can fix.
//                              registration again   start     settle   fetch    blmove   release  adopt     buffer   run     turn
inline constexpr std::array passing{waits,  waits,   waits,    waits,   waits,   waits,   waits,   waits,    waits,   waits,   waits};
inline constexpr std::array full   {waits,  waits,   waits,    waits,   waits,   drains,  waits,   waits,    waits,   waits,   waits};
inline constexpr std::array role   {waits,  waits,   connects, adopts,  adopts,  adopts,  adopts,  connects, connects, connects, connects};
inline constexpr std::array rights {throws, throws,  throws,   throws,  throws,  throws,  resigns, throws,   waits,   throws,  ignores};
inline constexpr std::array script {waits,  waits,   throws,   sends,   sends,   insists, sends,   throws,   waits,   throws,  ignores};
inline constexpr std::array other  {throws, waits,   throws,   insists, insists, insists, adopts,  throws,   waits,   throws,  ignores};
inline constexpr std::array crowd  {breaks, waits,   throws,   insists, insists, insists, adopts,  throws,   waits,   throws,  ignores};
inline constexpr std::array end    {breaks, waits,   connects, adopts,  adopts,  adopts,  adopts,  connects, connects, connects, connects};

inline const std::vector<Row> rows{
    {"LOADING Redis is loading the dataset in memory", passing},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", passing},
    {"TRYAGAIN Multiple keys request during rehashing of slot", passing},
    {"CLUSTERDOWN Hash slot not served", passing},
    {"NOREPLICAS Not enough good replicas to write.", passing},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", passing},
    {"OOM command not allowed when used memory > 'maxmemory'.", full},
    {"READONLY You can't write against a read only replica.", role},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", role},
    {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", role},
    {"MOVED 3999 127.0.0.1:6381", rights},
    {"ASK 3999 127.0.0.1:6381", rights},
    {"CROSSSLOT Keys in request don't hash to the same slot", rights},
    {"NOAUTH Authentication required.", rights},
    {"WRONGPASS invalid username-password pair or user is disabled.", rights},
    {"NOPERM this user has no permissions to run the 'lpush' command", rights},
    {"NOSCRIPT No matching script. Please use EVAL.", script},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", other},
    {"EXECABORT Transaction discarded because of previous errors.", other},
    {"ERR Script killed by user with SCRIPT KILL... script: 694a5fe1, on @user_script:1.", passing},
    {"ERR max number of clients reached", crowd},
    {"", end},
};
// clang-format on

inline Outcome outcome(const Row& row, const Command& command) {
    const bool ends = row.text.empty();
    if (command.dispensable && row.code() == "NOPERM") {
        return ignores;
    }
    switch (command.column) {
    case Column::greeting:
        return ends || row.outcomes == crowd ? breaks : throws;
    case Column::command:
        return ends ? breaks : row.outcomes == role ? leaves : throws;
    case Column::size:
        return ends ? breaks : throws;
    case Column::by_the_way:
        return ignores;
    default:
        const auto column = std::ranges::find(columns, command.column);
        return row.outcomes.at(static_cast<std::size_t>(column - columns.begin()));
    }
}

} // namespace error_table

} // namespace orizuru::test
