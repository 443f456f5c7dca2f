// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills Redis by SIGKILL and starts it again, many times, under load. With `--fsync always`
// everything that it has confirmed must hold. With `--fsync everysec` the loss is counted, and the
// program succeeds with any loss. A killed process loses nothing of the page cache, so `--lose`
// says how much of the last writes a power cut takes as well.
//
// usage: redis_restarts [--seed N] [--size RESTARTS] [--fsync always|everysec]
//                       [--lose MILLISECONDS]

#include "crash/support/fault_program.hpp"
#include "crash/support/power_cut.hpp"
#include "crash/support/storm.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace redis_restarts_test {

using namespace orizuru::test;

/// Rewrites the file now and then, so that restarts meet that, too, and reading it stays short; but
/// not when it is to be cut, because then it must be a single file.
std::vector<std::string> durable(const std::string& fsync, bool rewritten) {
    return {"--appendonly",
            "yes",
            "--appendfsync",
            fsync,
            "--auto-aof-rewrite-percentage",
            rewritten ? "100" : "0",
            "--auto-aof-rewrite-min-size",
            "4mb"};
}

/// Removes the violations that a Redis explains which forgot its last writes; counts and prints
/// them.
void measure_loss(std::vector<std::string>& wrong) {
    const auto take_out = [&](std::initializer_list<std::string_view> beginnings) {
        return std::erase_if(wrong, [&](const std::string& what) {
            return std::ranges::any_of(beginnings, [&](std::string_view beginning) {
                return what.starts_with(beginning);
            });
        });
    };
    const auto lost = take_out({"LOST"});
    const auto vanished = take_out({"VANISHED"});
    const auto again = take_out({"I6", "DUP", "MISPLACED"});
    std::cout << "measured: " << lost << " confirmed messages lost, " << vanished
              << " that were delivered and not confirmed, " << again
              << " times a settled one came again" << std::endl;
}

const FaultProgram program("redis_restarts", [](int count, char** arguments) {
    return main_of_storm(count, arguments, [&] {
        const FaultOptions options(
            count, arguments, {{"seed", "1"}, {"size", "25"}, {"fsync", "always"}, {"lose", "0"}});
        FaultReport report(options);
        const std::chrono::milliseconds lose(options.number("lose"));
        RedisServer server(durable(options.text("fsync"), lose.count() == 0));
        PowerCut power_cut(server);
        Chance chance(options.number("seed"));
        Storm storm(server, report, options.number("seed"), "storm");
        for (std::uint64_t restarts = 0; restarts < options.number("size"); ++restarts) {
            storm.pass(lose + std::chrono::milliseconds(chance.between(100, 700)));
            server.kill();
            if (lose.count() > 0) {
                power_cut.lose(lose);
            }
            storm.restart_redis();
        }
        std::vector<std::string> wrong = storm.finish();
        if (options.text("fsync") != "always") {
            measure_loss(wrong);
        }
        for (const std::string& what : wrong) {
            report.violation(what);
        }
        return report.finish({"Redis killed and restarted"});
    });
});

} // namespace redis_restarts_test
