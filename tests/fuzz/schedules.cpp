// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The seeded test of the protocol: the library's own mirror and scripts against a real Redis of
// its own or the model of one, under faults in an order that one seed decides. A seed means the
// same on both. With a sabotage it must find violations.
//
// usage: schedules [--server redis|model] [--seed FIRST] [--seeds COUNT] [--steps STEPS]
//                  [--config NAME] [--sabotage NAME] [--trace]

#include "fuzz/model/model_server.hpp"
#include "fuzz/model/raw_redis.hpp"
#include "fuzz/simulation/faults.hpp"
#include "fuzz/simulation/sabotage.hpp"
#include "fuzz/simulation/scenario.hpp"
#include "fuzz/simulation/simulation.hpp"
#include "fuzz/simulation/violation.hpp"
#include "support/redis_server.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace {

using orizuru::test::Faults;
using orizuru::test::ModelledRedis;
using orizuru::test::ModelServer;
using orizuru::test::RawRedis;
using orizuru::test::Sabotage;
using orizuru::test::sabotages;
using orizuru::test::Scenario;
using orizuru::test::scenarios;
using orizuru::test::Users;
using orizuru::test::Words;

struct Options {
    bool model = false; ///< in place of a real Redis
    std::uint64_t first = 1;
    std::uint64_t count = 100;
    int steps = 120;
    std::string scenario; ///< empty: all
    const Sabotage* sabotage = nullptr;
    bool trace = false;
};

// In fewer runs a kind of fault may be missing by chance.
constexpr std::uint64_t enough_for_every_fault = 1000;
constexpr std::size_t shown_violations = 5;

// What an assertion of the library would otherwise leave untold.
char current_run[256];

extern "C" void tell_current_run(int number) {
    const std::string_view text(current_run);
    if (::write(STDERR_FILENO, text.data(), text.size()) >= 0) {
        std::signal(number, SIG_DFL);
        std::raise(number);
    }
}

template <class Table>
const auto& named(const Table& table, std::string_view name) {
    for (const auto& entry : table) {
        if (entry.name == name) {
            return entry;
        }
    }
    std::string known;
    for (const auto& entry : table) {
        known += ' ' + std::string(entry.name);
    }
    throw std::invalid_argument("'" + std::string(name) + "' is none of" + known);
}

Options parse(int count, char** arguments) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view name = arguments[i];
        if (name == "--trace") {
            options.trace = true;
            continue;
        }
        if (++i == count) {
            throw std::invalid_argument("a value is missing after " + std::string(name));
        }
        const std::string value = arguments[i];
        if (name == "--server" && (value == "redis" || value == "model")) {
            options.model = value == "model";
        } else if (name == "--seed") {
            options.first = std::stoull(value);
        } else if (name == "--seeds") {
            options.count = std::stoull(value);
        } else if (name == "--steps") {
            options.steps = std::stoi(value);
        } else if (name == "--config") {
            options.scenario = named(scenarios, value).name;
        } else if (name == "--sabotage") {
            options.sabotage = &named(sabotages, value);
        } else {
            throw std::invalid_argument("unknown: " + std::string(name));
        }
    }
    return options;
}

class RealRedis {
  public:
    RealRedis() {
        restrict_user(m_may_not_settle, "reader", {"-lset", "-lpush"});
        restrict_user(m_may_not_put, "settler", {"-lpush"});
    }

    Users users() { return {m_all_rights, m_may_not_settle, m_may_not_put}; }

  private:
    static void restrict_user(RawRedis& redis, const std::string& name, const Words& rights) {
        Words user{"ACL", "SETUSER", name, "on", "nopass", "~*", "&*", "+@all"};
        user.insert(user.end(), rights.begin(), rights.end());
        redis.command(user);
        redis.command({"AUTH", name, "any"});
    }

    orizuru::test::RedisServer m_server;
    RawRedis m_all_rights{m_server.socket_path()};
    RawRedis m_may_not_settle{m_server.socket_path()};
    RawRedis m_may_not_put{m_server.socket_path()};
};

class Model {
  public:
    Users users() { return {m_all_rights, m_may_not_settle, m_may_not_put}; }

  private:
    ModelledRedis m_redis;
    ModelServer m_all_rights{m_redis};
    ModelServer m_may_not_settle{m_redis, {"LSET", "LPUSH"}};
    ModelServer m_may_not_put{m_redis, {"LPUSH"}};
};

class Runner {
  public:
    Runner(Options options, std::string program, Users users)
        : m_options(std::move(options)), m_program(std::move(program)), m_users(users) {}

    /// Whether all is as it should be.
    bool run(const Scenario& scenario) {
        const auto begin = std::chrono::steady_clock::now();
        Faults faults;
        std::size_t violations = 0;
        std::uint64_t seeds = 0;
        for (; seeds < m_options.count && !(m_options.sabotage && violations > 0); ++seeds) {
            const std::uint64_t seed = m_options.first + seeds;
            const std::string again = repeat(scenario, seed);
            std::snprintf(current_run, sizeof current_run, "to repeat: %s\n", again.c_str());
            try {
                orizuru::test::Simulation(m_users, seed, scenario, m_options.sabotage, faults,
                                          m_options.trace)
                    .run(m_options.steps);
            } catch (const orizuru::test::Violation& violation) {
                if (++violations <= shown_violations) {
                    std::cout << "seed " << seed << ": " << violation.what()
                              << "\n  to repeat: " << again << '\n';
                }
            }
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        std::cout << scenario.name << ": seeds " << m_options.first << " to "
                  << m_options.first + seeds - 1 << ", " << m_options.steps << " steps each, "
                  << violations << " violations, " << took.count() << " s" << std::endl;
        for (const auto& [kind, times] : faults.counts()) {
            std::cout << "    " << times << ' ' << kind << '\n';
        }
        if (m_options.sabotage != nullptr) {
            return was_found(*m_options.sabotage, violations);
        }
        m_runs += seeds;
        for (const std::string_view kind : Faults::expected(scenario)) {
            m_came[kind] |= faults.counts().contains(kind);
        }
        return violations == 0;
    }

    /// Whether each kind of fault came in one of the scenarios that should bring it.
    bool complete() {
        bool all = true;
        for (const auto& [kind, came] : m_came) {
            if (!came && m_runs >= enough_for_every_fault) {
                std::cout << "never came: " << kind << '\n';
                all = false;
            }
        }
        return all;
    }

  private:
    [[nodiscard]] std::string repeat(const Scenario& scenario, std::uint64_t seed) const {
        std::string command = m_program + " --server " + (m_options.model ? "model" : "redis") +
                              " --config " + std::string(scenario.name) + " --seed " +
                              std::to_string(seed) + " --seeds 1 --steps " +
                              std::to_string(m_options.steps);
        if (m_options.sabotage != nullptr) {
            command += " --sabotage " + std::string(m_options.sabotage->name);
        }
        return command;
    }

    static bool was_found(const Sabotage& sabotage, std::size_t violations) {
        std::cout << "sabotage " << sabotage.name
                  << (violations > 0 ? " was found\n" : " was NOT found\n");
        return violations > 0;
    }

    Options m_options;
    std::string m_program;
    Users m_users;
    std::uint64_t m_runs = 0;
    std::map<std::string_view, bool> m_came;
};

} // namespace

int main(int count, char** arguments) {
    try {
        const Options options = parse(count, arguments);
        std::signal(SIGABRT, tell_current_run);
        std::optional<RealRedis> redis;
        std::optional<Model> model;
        Runner runner(options, arguments[0],
                      options.model ? model.emplace().users() : redis.emplace().users());
        bool good = true;
        for (const Scenario& scenario : scenarios) {
            if (options.sabotage != nullptr && options.scenario.empty()
                    ? scenario.name == options.sabotage->scenario
                    : options.scenario.empty() || scenario.name == options.scenario) {
                good = runner.run(scenario) && good;
            }
        }
        good = runner.complete() && good;
        return good ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n' << current_run;
        return 2;
    }
}
