// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The task of a storm's process, as its parent gives it on the command line. The process dies with
// its parent, in any state.

#pragma once

#include "crash/support/fault_program.hpp"
#include "crash/support/transport.hpp"

#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/tls.hpp>

#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

/// How long a consumer of a storm may go unheard.
inline constexpr std::chrono::milliseconds storm_lease{500};
/// The interval of a collector.
inline constexpr std::chrono::milliseconds storm_pass{100};

/// Killed consumers must not bury messages. Some collectors have the time to await that Redis has
/// taken writes for a whole lease, others only for the half of it that they must; that of a
/// consumer of version 0.1.0 is unknown to them, and only the third is patient enough for it.
[[nodiscard]] inline GarbageCollectorOptions storm_collector(std::size_t index = 0) {
    constexpr std::array graces{2 * storm_pass, storm_lease + storm_pass, 3 * storm_lease};
    return {.max_recoveries = 1'000'000, .grace = graces.at(index % graces.size())};
}

/// True if Redis serves the same command later: it loads its data, or is in an outage.
[[nodiscard]] inline bool is_for_now(const ReplyError& error) {
    return error.code() == "LOADING" || error.code() == "NOREPLICAS" || error.code() == "MISCONF" ||
           error.code() == "BUSY";
}

struct Work {
    std::string role = {};    ///< "producer", "consumer", "collector", "steady"
    std::size_t index = 0;    ///< among the processes of its role; decides how it uses the library
    std::uint64_t serial = 0; ///< unique for each process
    std::uint64_t seed = 0;
    std::size_t rate = 0; ///< messages that a producer pushes per second, about
    std::size_t rest = 0; ///< milliseconds in every 3000 in which it pushes none
    std::string queue = {};
    std::string uri = {};
    std::string journal = {};
    std::string database = {}; ///< for processes that use PostgreSQL
    std::size_t queues = 2; ///< of a worker, of a producer of jobs, and to which a submitter sends
    std::string program = {}; ///< another executable that runs it

    static constexpr std::string_view command = "work";
    static constexpr std::uint64_t most_messages = 10'000'000; ///< of one process

    [[nodiscard]] std::vector<std::string> words() const {
        std::vector words = program.empty() ? FaultProgram::words() : std::vector{program};
        words.insert(words.end(),
                     {std::string(command), std::to_string(::getpid()), role, std::to_string(index),
                      std::to_string(serial), std::to_string(seed), std::to_string(rate),
                      std::to_string(rest), queue, uri, journal, database, std::to_string(queues)});
        return words;
    }
    /// Runs in the child; `words` are main's arguments.
    [[nodiscard]] static Work from(char** words) {
        Work work{words[3],
                  std::stoull(words[4]),
                  std::stoull(words[5]),
                  std::stoull(words[6]),
                  std::stoull(words[7]),
                  std::stoull(words[8]),
                  words[9],
                  words[10],
                  words[11],
                  words[12],
                  std::stoull(words[13])};
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != std::stol(words[2])) {
            throw std::runtime_error("the parent has died");
        }
        return work;
    }

    /// The first of the numbers that only this process gives its messages.
    [[nodiscard]] std::uint64_t first_message() const { return serial * most_messages; }
    /// Some have less patience than the pauses of Redis last.
    [[nodiscard]] Endpoint endpoint() const {
        return tls_endpoint(with_query(uri, "client_name=" + name() +
                                                (index % 3 == 0 ? "&command_timeout=1000" : "")));
    }
    /// Where it notes when it ran late (late_times.hpp).
    [[nodiscard]] std::string late_times() const { return journal + ".late"; }
    /// The name of its connections in Redis.
    [[nodiscard]] std::string name() const { return role + std::to_string(serial); }
};

/// Constructs an object that connects in its constructor, as soon as Redis lets it.
template <class T, class... Arguments>
std::unique_ptr<T> connected(const Arguments&... arguments) {
    while (true) {
        try {
            return std::make_unique<T>(arguments...);
        } catch (const ConnectionError&) { // NOLINT(bugprone-empty-catch)
        } catch (const ReplyError& error) {
            if (!is_for_now(error)) {
                throw;
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

} // namespace orizuru::test
