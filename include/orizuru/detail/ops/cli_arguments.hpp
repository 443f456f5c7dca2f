// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The arguments of the commands of `orizuru`.

#include <orizuru/detail/ops/cli_call.hpp>
#include <orizuru/detail/ops/place_name.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace orizuru::detail {

inline void common_arguments(CLI::App& app, CliOptions& options) {
    app.add_option("-u,--url", options.url,
                   "Redis' address. All users of this host see the arguments of a process: give a "
                   "password in the environment")
        ->envname("ORIZURU_URL")
        ->type_name("URL");
    app.add_flag("--json", options.json, "Answer with one JSON document in a line");
}

inline void queue_argument(CLI::App& command, CliOptions& options) {
    command.add_option("QUEUE", options.queue, "Name of the queue")->required()->type_name("");
}

inline void queues_argument(CLI::App& command, CliOptions& options) {
    command.add_option("QUEUE", options.queues, "Names of queues; none: those that workers list")
        ->type_name("");
}

/// The place of the command's messages, one of `places`.
inline CLI::Option* place_argument(CLI::App& command, CliOptions& options,
                                   const std::vector<Place>& places) {
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
        options.again_after = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
    };
    command
        .add_option_function<double>("-n,--every", set,
                                     "Again every so many seconds, until SIGINT or SIGTERM")
        ->check(CLI::Range(0.1, 86400.0))
        ->type_name("SECONDS");
}

inline void peek_arguments(CLI::App& command, CliOptions& options) {
    queue_argument(command, options);
    place_argument(command, options, {every_place.begin(), every_place.end()})->required();
    command.add_option("-n,--count", options.count, "At most so many; 20 if not given")
        ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()))
        ->type_name("COUNT");
    command.add_option("--skip", options.skip, "Leave out so many before them")
        ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
        ->type_name("COUNT");
    command.add_flag("--full", options.full, "Whole payloads and reasons");
}

} // namespace orizuru::detail
