// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A storm of SIGKILL, every 20 to 200 ms, over 4 producers, 8 consumers and 2 collectors; some are
// paused for up to 5 leases, and so is Redis, some lose their connections, and at times Redis takes
// no writes. The seed decides which processes and when; the machine decides what they are doing
// then.
//
// usage: kill_storm [--seed N] [--size KILLS] [--messages LEAST] [--outages LEAST]
//                   [--over plain|tls]

#include "crash/support/fault_program.hpp"
#include "crash/support/storm.hpp"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace kill_storm_test {

using namespace orizuru::test;

/// The time between two reports of the progress.
constexpr std::chrono::minutes a_while(1);

const FaultProgram program("kill_storm", [](int count, char** arguments) {
    return main_of_storm(count, arguments, [&] {
        const FaultOptions options(count, arguments,
                                   {{"seed", "1"},
                                    {"size", "150"},
                                    {"messages", "0"},
                                    {"outages", "0"},
                                    {"over", "plain"}});
        FaultReport report(options);
        const Transport transport(options.text("over"));
        RedisServer server = transport.server();
        Chance chance(options.number("seed"));
        Storm storm(server, report, options.number("seed"), "storm", {.rate = 1200, .rest = 1500},
                    transport);
        const std::uint64_t size = options.number("size");
        std::vector<std::string_view> kinds{
            "collector killed",        "collector paused", "consumer cut off by FIN",
            "consumer cut off by RST", "consumer killed",  "consumer cut off, half-open",
            "consumer paused",         "producer killed",  "Redis paused",
            "waiter left half-open",   Storm::fenced};
        kinds.insert(kinds.end(), WriteOutages::kinds.begin(), WriteOutages::kinds.end());
        if (size >= 150) {
            kinds.push_back(Storm::refused_late); // else by good luck only
        }
        auto next_word = Storm::Clock::now() + a_while;
        for (std::uint64_t kills = 0;
             storm.pushes() < options.number("messages") ||
             storm.count_outages() < options.number("outages") ||
             report.wants_more(kills, size, [&] { return storm.has_seen(kinds); });
             ++kills) {
            if (Storm::Clock::now() >= next_word) {
                std::cout << kills << " kills, " << storm.pushes() << " pushes" << std::endl;
                next_word += a_while;
            }
            storm.pass(std::chrono::milliseconds(chance.between(20, 200)));
            storm.kill_one();
            if (chance.happens(0.3)) {
                storm.pause_one();
            }
            if (chance.happens(0.3)) {
                storm.cut_one();
            }
            // Soon in a short storm.
            const bool due = 2 * kills > size && !report.have_come({"Redis paused"});
            if (chance.happens(0.03) || due) {
                storm.pause_redis();
            }
            storm.refuse_writes_at_times(kills, size);
        }
        for (const std::string& wrong : storm.finish()) {
            report.violation(wrong);
        }
        return report.finish(kinds);
    });
});

} // namespace kill_storm_test
