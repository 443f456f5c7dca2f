// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A storm of SIGKILL, every 20 to 100 ms, over payers, clerks, relays, reconcilers, revivers,
// collectors and submitters of transfers at two banks, PostgreSQL, which starts again or is
// replaced by its standby, and two Redis servers, of which one is empty afterwards. Then all is
// calm, and each transfer must have been carried out once, and its receipt filed once. At times one
// of these Redis takes no writes. The seed decides which processes and when; the machine decides
// what they are doing then.
//
// usage: payment_storm [--seed N] [--size KILLS] [--transfers LEAST] [--outages LEAST]

#include "crash/support/fault_program.hpp"
#include "crash/support/payment_crowd.hpp"
#include "crash/support/postgres_pair.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace payment_storm_test {

using namespace orizuru::test;

const FaultProgram program("payment_storm", [](int count, char** arguments) {
    return main_of_processes(
        count, arguments, [](const Work& work) { return PaymentWork(work).run(); },
        [&] {
            const FaultOptions options(
                count, arguments,
                {{"seed", "1"}, {"size", "100"}, {"transfers", "0"}, {"outages", "0"}});
            FaultReport report(options);
            RedisServer forgetful;
            RedisServer lasting({"--appendonly", "yes", "--appendfsync", "always"});
            PostgresPair postgres;
            Chance chance(options.number("seed"));
            PaymentCrowd crowd(forgetful, lasting, postgres, report, options.number("seed"));
            const auto more = [&](std::uint64_t kills) {
                return report.wants_more(
                           kills, options.number("size"),
                           [&] {
                               return report.have_come({"payer paused", "submitter killed"}) &&
                                      report.have_come(
                                          {WriteOutages::kinds.begin(), WriteOutages::kinds.end()});
                           }) ||
                       crowd.requested() < options.number("transfers") ||
                       crowd.count_outages() < options.number("outages");
            };
            for (std::uint64_t kills = 0; more(kills); ++kills) {
                crowd.pass(std::chrono::milliseconds(chance.between(20, 100)));
                switch (kills % 40) {
                case 8:
                    crowd.restart_redis();
                    break;
                case 16:
                    crowd.restart_lasting_redis();
                    break;
                case 24:
                    crowd.restart_postgres();
                    break;
                case 12:
                case 32:
                    crowd.fail_over_postgres();
                    break;
                default:
                    crowd.kill_one();
                }
                if (chance.happens(0.1)) {
                    crowd.pause_one();
                }
                crowd.refuse_writes_at_times(kills, options.number("size"));
            }
            for (const std::string& wrong : crowd.finish()) {
                report.violation(wrong);
            }
            std::vector<std::string_view> kinds{"PostgreSQL killed and replaced by its standby",
                                                "PostgreSQL killed and restarted",
                                                "Redis killed and restarted",
                                                "Redis killed and restarted with its data",
                                                "clerk killed",
                                                "collector killed",
                                                "payer killed",
                                                "payer paused",
                                                "reconciler killed",
                                                "relay killed",
                                                "reviver killed",
                                                "run cancelled",
                                                "submitter killed",
                                                "transfer carried out",
                                                "transfer expired",
                                                "transfer revived"};
            kinds.insert(kinds.end(), WriteOutages::kinds.begin(), WriteOutages::kinds.end());
            return report.finish(kinds);
        });
});

} // namespace payment_storm_test
