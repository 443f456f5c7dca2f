// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A storm of SIGKILL over the processes of a deploy that rolls: some are of version 0.1.0. It may
// be that the collectors are old and the rest is new, or that the consumers and producers are old
// and the collectors new, or that each kill starts either version.
//
// A collector of 0.1.0 does not know when Redis takes writes, so Redis is never away while one may
// run. One of today does not know the leases of consumers of 0.1.0: for these it takes 2 s without
// writes for an outage, and what is shorter for none. Without the history of git there is no such
// version: then the exit status is 77.
//
// usage: rolling_deploys [--seed N] [--size KILLS] [--way old-collectors|new-collectors|either]

#include "crash/support/fault_program.hpp"
#include "crash/support/older_version.hpp"
#include "crash/support/storm.hpp"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rolling_deploys_test {

using namespace orizuru::test;

const FaultProgram program("rolling_deploys", [](int count, char** arguments) {
    return main_of_storm(count, arguments, [&] {
        const FaultOptions options(count, arguments,
                                   {{"seed", "1"}, {"size", "60"}, {"way", "either"}});
        const std::string& way = options.text("way");
        if (way != "old-collectors" && way != "new-collectors" && way != "either") {
            throw std::invalid_argument("--way is old-collectors, new-collectors or either");
        }
        FaultReport report(options);
        const OlderVersion old("deployed");
        if (old.missing()) {
            std::cout << *old.missing() << std::endl;
            return 77;
        }
        RedisServer server;
        Chance chance(options.number("seed"));
        const auto program = [&](const std::string& role) -> std::string {
            const bool is_old = way == "either"           ? chance.happens(0.5)
                                : way == "old-collectors" ? role == "collector"
                                                          : role != "collector";
            report.came(role + (is_old ? " of 0.1.0" : " of today"));
            return is_old ? old.program() : "";
        };
        Storm storm(server, report, options.number("seed"), "storm",
                    {.collectors = 1,
                     .rate = 1200,
                     .rest = 1500,
                     .first_collector = 2,
                     .program = program});
        storm.let_outages_take(std::chrono::milliseconds(2200), std::chrono::milliseconds(3000));
        std::vector<std::string_view> kinds{"collector killed", "consumer killed",
                                            "consumer paused", "producer killed", Storm::fenced};
        if (way == "new-collectors") {
            kinds.insert(kinds.end(), WriteOutages::kinds.begin(), WriteOutages::kinds.end());
        }
        const std::uint64_t size = options.number("size");
        for (std::uint64_t kills = 0;
             report.wants_more(kills, size, [&] { return storm.has_seen(kinds); }); ++kills) {
            storm.pass(std::chrono::milliseconds(chance.between(20, 200)));
            storm.kill_one();
            if (chance.happens(0.3)) {
                storm.pause_one();
            }
            if (chance.happens(0.3)) {
                storm.cut_one();
            }
            if (way == "new-collectors") {
                storm.refuse_writes_at_times(kills, size);
            }
        }
        for (const std::string& wrong : storm.finish()) {
            report.violation(wrong);
        }
        return report.finish(kinds);
    });
});

} // namespace rolling_deploys_test
