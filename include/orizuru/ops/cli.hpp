// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The command line program `orizuru`, to build your own from, which shows your payloads as you
// like:
//
//   int main(int argc, char** argv) {
//       orizuru::Cli cli;
//       cli.formatter("orders", [](const orizuru::PlacedMessage& message) { return …; });
//       return cli.run(argc, argv);
//   }
//
// It needs CLI11 2 and nlohmann/json 3, which no other part of the library needs: their headers, or
// the dependency orizuru-cli.
//
// With ORIZURU_SEPARATE_COMPILATION, src.hpp leaves this out. A program that uses it also includes
// <orizuru/ops/cli.ipp>, behind this, in one of its translation units.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <functional>
#include <iosfwd>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

namespace detail::cli {
struct CliStreams;
}

/// Lists queues and looks into them; its changes are an Inspector's. `orizuru --help` tells more.
///
/// Names, ids, reasons and payloads come from anyone who can push. They, and what a formatter makes
/// of them, are shown with escapes in place of control characters, bidirectional marks, characters
/// that cannot be seen, and bytes that are no UTF-8.
class Cli {
  public:
    /// Makes an endpoint from an address; throws as Endpoint's constructor does.
    using Connect = std::function<Endpoint(std::string_view uri)>;
    /// The text to show in place of a payload. An exception's message is shown before the payload.
    using Format = std::function<std::string(const PlacedMessage& message)>;

    /// Arguments of a command of your own.
    struct Call {
        const Endpoint& endpoint;                  ///< for the address that the user has named
        const std::vector<std::string>& arguments; ///< behind the command's name
        std::ostream& out;    ///< for its output: std::cout, or the stream given to run()
        std::stop_token stop; ///< requested by SIGINT and SIGTERM
    };
    /// Throws std::invalid_argument for a wrong usage.
    using Command = std::function<void(const Call& call)>;

    /// Takes all addresses except those with TLS.
    Cli() : Cli([](std::string_view uri) { return Endpoint(uri); }) {}
    /// With `orizuru::tls_endpoint` of tls.hpp it takes addresses with TLS, too.
    explicit Cli(Connect connect) : m_connect(std::move(connect)) {}

    /// Takes the place of an earlier one for the same queue.
    Cli& formatter(std::string queue, Format format) {
        m_formats.insert_or_assign(std::move(queue), std::move(format));
        return *this;
    }

    /// Adds a command of your own; `about` is for --help, its first line also for the list of all
    /// commands. Takes the place of an earlier one, also of `help`.
    Cli& command(std::string name, std::string about, Command run) {
        m_commands.insert_or_assign(std::move(name), Own{std::move(about), std::move(run)});
        return *this;
    }

    /// Runs the command that stands behind the program's name; writes to std::cout and std::cerr.
    /// Returns the exit code: 0 done; 1 Redis is away or refuses, or the message has gone; 2 wrong
    /// usage.
    ///
    /// A command that goes on by itself ends with 0 at SIGINT or SIGTERM, which it then blocks in
    /// this thread. Threads from before must have blocked them.
    int run(int argc, const char* const* argv) const;

    /// Does the same without a process: `arguments` are those behind the program's name, and `stop`
    /// ends a command that goes on.
    int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
            const std::stop_token& stop = {}) const;

  private:
    struct Own {
        std::string about;
        Command run;
    };

    [[nodiscard]] int run(const std::vector<std::string>& arguments,
                          const detail::cli::CliStreams& streams) const;

    Connect m_connect;
    std::map<std::string, Format, std::less<>> m_formats;
    std::map<std::string, Own, std::less<>> m_commands;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/cli.ipp>
#endif
