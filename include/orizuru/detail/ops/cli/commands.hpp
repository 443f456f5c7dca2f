// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// All commands of `orizuru`.

#include <orizuru/detail/ops/cli/arguments.hpp>
#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/changing.hpp>
#include <orizuru/detail/ops/cli/keys_and_groups.hpp>
#include <orizuru/detail/ops/cli/looking.hpp>
#include <orizuru/detail/ops/cli/messages.hpp>

#include <array>

#include <CLI/CLI.hpp>

namespace orizuru::detail::cli {

struct CliCommand {
    const char* name;
    const char* about;
    void (*add_arguments)(CLI::App& command, CliOptions& options);
    /// Throws std::invalid_argument for a wrong usage.
    void (*run)(CliCall& call);
};

inline constexpr std::array cli_commands{
    CliCommand{"ls", "List queues, with how many messages are where", ls_arguments, ls},
    CliCommand{"show", "Show a queue and its consumers", queue_argument, show},
    CliCommand{"workers", "List the consumers of queues", queues_argument, workers},
    CliCommand{"peek", "Show messages; those that are served next first, of the dead the newest",
               peek_arguments, peek},
    CliCommand{"keys", "Show the keys of a queue in order, those with most jobs behind first",
               keys_arguments, keys},
    CliCommand{"groups", "Show groups of jobs that have not ended", groups_arguments, groups},
    CliCommand{"find", "Show where a job is", find_arguments, find},
    CliCommand{"pause", "Have all workers take nothing from a queue", queue_argument, pause},
    CliCommand{"resume", "Let workers take from a paused queue", queue_argument, resume},
    CliCommand{"forget", "Take a queue off the list, until a worker serves it; messages stay",
               forget_arguments, forget},
    CliCommand{"run", "Have a job, or messages of a place, served now", choice_arguments, run_now},
    CliCommand{"rm", "Remove a job, or messages of a place", choice_arguments, remove},
    CliCommand{"cancel", "Take a job to the dead list, also one that runs", cancel_arguments,
               cancel},
    CliCommand{"mv", "Move a job to another queue", mv_arguments, move_job},
    CliCommand{"clear", "Remove all messages of a place", clear_arguments, clear},
    CliCommand{"metrics", "Print the numbers of queues for Prometheus", queues_argument, metrics}};

} // namespace orizuru::detail::cli
