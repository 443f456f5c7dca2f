// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of cli.hpp.

#include <orizuru/detail/base/standard_descriptors.hpp>
#include <orizuru/detail/base/uri.hpp>
#include <orizuru/detail/ops/cli/arguments.hpp>
#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/commands.hpp>
#include <orizuru/detail/ops/cli/screen.hpp>
#include <orizuru/detail/ops/cli/stop_signals.hpp>
#include <orizuru/detail/ops/cli/visible_text.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>

#include <CLI/CLI.hpp>

namespace orizuru {

namespace detail::cli {

inline constexpr const char* cli_footer =
    R"(Exit codes: 0 done; 1 Redis is away or refuses, also one of several queues, or the message has
gone, or the answer cannot be written; 2 wrong usage.

JSON has times as ISO 8601 in UTC, lengths of time in milliseconds (fields named _ms), null for
what is not known, and a payload as text when its payload_encoding is "utf-8", else in "hex".
With ls -n there is a document in each line.
)";

/// The library's version, as meson.build has it.
inline constexpr const char* cli_version = "0.2.0";

/// Its first line is the description; with the others it is what --help says of the command alone.
inline void describe(CLI::App& command, const std::string& about) {
    const std::size_t end = std::min(about.find('\n'), about.size());
    command.description(about.substr(0, end));
    if (end < about.size()) {
        command.footer(joined({about.substr(end + 1), "\n\n", cli_footer}));
    }
}

/// Returns the help on a command, or, with an empty name, of the program. Throws
/// std::invalid_argument when there is no such command.
[[nodiscard]] inline std::string help_of(CLI::App& app, const std::string& name) {
    if (name.empty()) {
        return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
    }
    for (CLI::App* const command : app.get_subcommands([](CLI::App*) { return true; })) {
        if (command->get_name() == name) {
            return command->help(app.get_name());
        }
    }
    throw std::invalid_argument(joined({"there is no command '", name, "'"}));
}

/// A message without the password of an address that stood in a wrong place.
[[nodiscard]] inline std::string without_passwords(std::string message,
                                                   const std::vector<std::string>& arguments) {
    for (const std::string& argument : arguments) {
        if (argument.find("://") == std::string::npos) {
            continue;
        }
        const std::string shown = redacted(argument);
        for (std::size_t at = 0; (at = message.find(argument, at)) != std::string::npos;
             at += shown.size()) {
            message.replace(at, argument.size(), shown);
        }
    }
    return message;
}

} // namespace detail::cli

ORIZURU_INLINE int Cli::run(const std::vector<std::string>& arguments,
                            const detail::cli::CliStreams& streams) const {
    const auto complain = [&](const std::exception& error) {
        detail::cli::complain(streams, detail::cli::without_passwords(error.what(), arguments));
    };
    CLI::App app("Looks into queues of Orizuru on a Redis, and tidies them.", "orizuru");
    app.require_subcommand(0, 1)->fallthrough()->footer(detail::cli::cli_footer);
    detail::cli::CliOptions options;
    detail::cli::common_arguments(app, options);
    const detail::cli::CliCommand* chosen = nullptr;
    for (const detail::cli::CliCommand& command : detail::cli::cli_commands) {
        CLI::App* const added = app.add_subcommand(command.name, command.about);
        command.add_arguments(*added, options);
        added->callback([&] { chosen = &command; });
    }
    bool version = false;
    app.add_flag("--version", version, "Print the version");
    std::string asked;
    const CLI::App* help = nullptr;
    if (!m_commands.contains("help")) {
        CLI::App* const added =
            app.add_subcommand("help", "Tell what the program or a command does");
        added->add_option("COMMAND", asked, "Name of the command")->type_name("");
        help = added;
    }
    const Own* own = nullptr;
    std::vector<std::string> behind;
    for (const auto& [name, command] : m_commands) {
        CLI::App* const added = app.add_subcommand(name);
        detail::cli::describe(*added, command.about);
        // All that it does not know is the command's.
        added->fallthrough(false)->allow_extras();
        detail::cli::url_argument(*added, options);
        added->callback([&, added, found = &command] {
            own = found;
            behind = added->remaining();
        });
    }
    try {
        // CLI11 takes them from the end.
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
        if (version) {
            streams.out << app.get_name() << ' ' << detail::cli::cli_version << '\n';
            return 0;
        }
        if (help != nullptr && help->parsed()) {
            streams.out << detail::cli::help_of(app, asked);
            return 0;
        }
        if (own != nullptr) {
            const Endpoint endpoint = m_connect(options.url);
            own->run({endpoint, behind, streams.out, streams.stop()});
            return 0;
        }
        if (chosen == nullptr) {
            throw CLI::RequiredError("A command");
        }
        detail::cli::CliCall call(options, m_connect(options.url), m_formats, streams);
        chosen->run(call);
        call.write();
        return call.is_whole() ? 0 : 1;
    } catch (const CLI::Success&) {
        streams.out << app.help();
        return 0;
    } catch (const CLI::ParseError& error) {
        complain(error);
        detail::cli::complain(streams, "--help tells of the commands and their arguments");
        return 2;
    } catch (const std::invalid_argument& error) {
        complain(error);
        return 2;
    } catch (const std::exception& error) {
        complain(error);
        return 1;
    }
}

ORIZURU_INLINE int Cli::run(const std::vector<std::string>& arguments, std::ostream& out,
                            std::ostream& err, const std::stop_token& stop) const {
    return run(arguments, {.out = out, .err = err, .stop = [&] { return stop; }});
}

ORIZURU_INLINE int Cli::run(int argc, const char* const* argv) const {
    detail::take_standard_descriptors();
    std::optional<detail::cli::StopSignals> stopping;
    const int status = run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                           {.out = std::cout,
                            .err = std::cerr,
                            .stop = [&] { return stopping.emplace().token(); },
                            .screen = detail::cli::screen_of_stdout()});
    if (!std::cout.flush() && status == 0) {
        std::cerr << "orizuru: the answer could not be written\n";
        return 1;
    }
    return status;
}

} // namespace orizuru
