// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The arguments of the commands of `orizuru`.

#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/time_text.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace orizuru::detail::cli {

inline CLI::Option& url_argument(CLI::App& app, CliOptions& options) {
    return *app.add_option(
                   "-u,--url", options.url,
                   "Redis' address. All users of this host see the arguments of a process: give a "
                   "password in the environment")
                ->type_name("URL");
}

inline void common_arguments(CLI::App& app, CliOptions& options) {
    url_argument(app, options).envname("ORIZURU_URL");
    app.add_flag("--json", options.json, "Answer with one JSON document in a line");
}

inline void queue_argument(CLI::App& command, CliOptions& options) {
    command.add_option("QUEUE", options.queue, "Name of the queue")->required()->type_name("");
}

inline void forget_arguments(CLI::App& command, CliOptions& options) {
    command
        .add_option("QUEUE", options.queue,
                    "Name on the list of queues, or that name as `ls` shows it, with escapes")
        ->required()
        ->type_name("");
}

inline void queues_argument(CLI::App& command, CliOptions& options) {
    CLI::Option* const names =
        command
            .add_option("QUEUE", options.queues, "Names of queues; none: those that workers list")
            ->type_name("");
    command.add_flag("--scan", options.scan, "Search the database for queues: O(its keys)")
        ->excludes(names);
}

/// The place of the command's messages, one of `places`.
inline CLI::Option* place_argument(CLI::App& command, CliOptions& options,
                                   std::span<const Place> places) {
    std::vector<std::string> names;
    for (const Place place : places) {
        names.emplace_back(place_name(place));
    }
    const auto set = [&options](const std::string& name) { options.where = to_place(name); };
    return command.add_option_function<std::string>("--where", set, "Where the messages are")
        ->check(CLI::IsMember(std::move(names)))
        ->type_name("PLACE");
}

inline void ls_arguments(CLI::App& command, CliOptions& options) {
    queues_argument(command, options);
    const auto set = [&options](const double& seconds) {
        if (!(seconds > 0)) { // no range refuses what is no number
            throw CLI::ValidationError("--every", "not in range: no number");
        }
        options.again_after = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
    };
    command
        .add_option_function<double>("-n,--every", set,
                                     "Again every so many seconds, until SIGINT or SIGTERM")
        ->check(CLI::Range(0.1, 86400.0))
        ->type_name("SECONDS");
}

inline void full_argument(CLI::App& command, CliOptions& options) {
    command.add_flag("--full", options.full, "Whole payloads and reasons");
}

/// They choose among the messages of the place that `where` names.
inline void filter_arguments(CLI::App& command, CliOptions& options, CLI::Option& where) {
    const auto set_reason = [&options](const std::string& text) { options.reason = text; };
    command
        .add_option_function<std::string>("--reason", set_reason,
                                          "Only those that died, or failed last, for a reason with "
                                          "this text in it")
        ->check([](const std::string& text) {
            return std::string(text.empty() ? "an empty text would choose all" : "");
        })
        ->needs(&where)
        ->type_name("TEXT");
    const auto set_older = [&options](const std::string& text) { options.older = to_length(text); };
    command
        .add_option_function<std::string>("--older", set_older,
                                          "Only those that died, or were enqueued first, so long "
                                          "ago: 250ms, 90s, 15m, 1h, 7d. Of those that are not "
                                          "dead only jobs are known to be old")
        ->check([](const std::string& text) {
            const auto length = to_length(text);
            return length && length->count() > 0 ? std::string()
                                                 : text + " is no length of time such as 90s";
        })
        ->needs(&where)
        ->type_name("LENGTH");
}

inline void page_arguments(CLI::App& command, CliOptions& options) {
    command.add_option("-n,--count", options.count, "At most so many; 20 if not given")
        ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()))
        ->type_name("COUNT");
    command.add_option("--skip", options.skip, "Leave out so many before them")
        ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
        ->type_name("COUNT");
}

inline void keys_arguments(CLI::App& command, CliOptions& options) {
    queue_argument(command, options);
    command.add_option("KEY", options.id, "One key, with its job that is out")->type_name("");
    page_arguments(command, options);
    full_argument(command, options);
}

inline void groups_arguments(CLI::App& command, CliOptions& options) {
    queue_argument(command, options);
    command.add_option("ID", options.id, "Id of a group, also of one that is done")->type_name("");
    page_arguments(command, options);
}

inline void peek_arguments(CLI::App& command, CliOptions& options) {
    queue_argument(command, options);
    CLI::Option* const where = place_argument(command, options, every_place)->required();
    filter_arguments(command, options, *where);
    page_arguments(command, options);
    full_argument(command, options);
}

inline void dry_run_argument(CLI::App& command, CliOptions& options) {
    command.add_flag("--dry-run", options.dry_run, "Only say how many messages it would change");
}

/// For a command that changes the job.
inline CLI::Option* id_argument(CLI::App& command, CliOptions& options) {
    return command
        .add_option("ID", options.id,
                    "Whole id of a job; of an id that the library has made, 4 of its 32 "
                    "hexadecimal digits or more suffice, if only this one's begins with them")
        ->type_name("");
}

inline void cancel_arguments(CLI::App& command, CliOptions& options) {
    queue_argument(command, options);
    id_argument(command, options)->required();
    command
        .add_option("REASON", options.why, "Why, as the dead list says; \"cancelled\" if not given")
        ->type_name("");
}

inline void find_arguments(CLI::App& command, CliOptions& options) {
    queue_argument(command, options);
    command.add_option("ID", options.id, "Id of a job, or what only this one's begins with")
        ->required()
        ->type_name("");
    full_argument(command, options);
}

inline void mv_arguments(CLI::App& command, CliOptions& options) {
    queue_argument(command, options);
    id_argument(command, options)->required();
    command.add_option("TO", options.to, "Name of the other queue")->required()->type_name("");
    dry_run_argument(command, options);
}

/// Adds those of a command for one job, or for all messages that are chosen.
inline void choice_arguments(CLI::App& command, CliOptions& options) {
    queue_argument(command, options);
    CLI::Option* const id = id_argument(command, options);
    CLI::Option* const where = place_argument(command, options, changeable_places)->excludes(id);
    filter_arguments(command, options, *where);
    command.add_option("-n,--count", options.limit, "At most so many")
        ->check(CLI::Range(std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max()))
        ->needs(where)
        ->type_name("COUNT");
    dry_run_argument(command, options);
}

inline void clear_arguments(CLI::App& command, CliOptions& options) {
    queue_argument(command, options);
    place_argument(command, options, changeable_places)->required();
    command.add_flag("--yes", options.yes, "Without it, only say how many messages would go");
    dry_run_argument(command, options);
}

} // namespace orizuru::detail::cli
