// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A deploy that rolls over the storm of payments: the tables and all processes but the collectors
// are of version 0.1.0 at first. Then the tables are brought to this version while they work; those
// that run go on, and each that is killed starts again as one of today. Each transfer must have
// been carried out once, and its receipt filed once. The servers are never away: a deploy does not
// need that, collectors do not know the leases of consumers of 0.1.0, and its processes stay
// connected to a standby. Without the history of git there is no such version: then the exit status
// is 77.
//
// usage: rolling_payments [--seed N] [--size KILLS]

#include "crash/support/fault_program.hpp"
#include "crash/support/older_version.hpp"
#include "crash/support/payment_crowd.hpp"
#include "crash/support/postgres_pair.hpp"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

namespace rolling_payments_test {

using namespace orizuru::test;

const FaultProgram program("rolling_payments", [](int count, char** arguments) {
    return main_of_processes(
        count, arguments, [](const Work& work) { return PaymentWork(work).run(); },
        [&] {
            const FaultOptions options(count, arguments, {{"seed", "1"}, {"size", "60"}});
            FaultReport report(options);
            const OlderVersion old("deployed_payments", "libpqxx libpq");
            if (old.missing()) {
                std::cout << *old.missing() << std::endl;
                return 77;
            }
            RedisServer forgetful;
            RedisServer lasting({"--appendonly", "yes", "--appendfsync", "always"});
            PostgresPair postgres;
            Chance chance(options.number("seed"));
            PaymentCrowd crowd(forgetful, lasting, postgres, report, options.number("seed"),
                               old.program());
            const std::uint64_t size = options.number("size");
            for (std::uint64_t kills = 0; kills < size; ++kills) {
                crowd.pass(std::chrono::milliseconds(chance.between(50, 200)));
                if (kills == size / 3) {
                    crowd.roll_out();
                }
                crowd.kill_one();
                if (chance.happens(0.1)) {
                    crowd.pause_one();
                }
            }
            for (const std::string& wrong : crowd.finish()) {
                report.violation(wrong);
            }
            return report.finish(
                {"processes of 0.1.0", "processes of today", "transfer carried out"});
        });
});

} // namespace rolling_payments_test
