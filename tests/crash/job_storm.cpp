// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A storm of SIGKILL, every 20 to 200 ms, over 4 workers and 2 producers of jobs that fail, wait,
// are urgent or unique; workers are asked to stop, some are paused for up to 5 leases, and so is
// Redis. Then all is calm, and everything must be finished. The seed decides which processes and
// when; the machine decides what they are doing then.
//
// usage: job_storm [--seed N] [--size KILLS] [--messages LEAST] [--queues N]

#include "crash/support/fault_program.hpp"
#include "crash/support/job_crowd.hpp"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

namespace job_storm_test {

using namespace orizuru::test;

const FaultProgram program("job_storm", [](int count, char** arguments) {
    return main_of_processes(count, arguments, do_job_work, [&] {
        const FaultOptions options(
            count, arguments, {{"seed", "1"}, {"size", "100"}, {"messages", "0"}, {"queues", "2"}});
        FaultReport report(options);
        RedisServer server;
        Chance chance(options.number("seed"));
        JobCrowd crowd(server, report, options.number("seed"), options.number("queues"));
        bool paused = false;
        for (std::uint64_t kills = 0;
             kills < options.number("size") || crowd.pushes() < options.number("messages");
             ++kills) {
            crowd.pass(std::chrono::milliseconds(chance.between(20, 200)));
            crowd.kill_one();
            if (chance.happens(0.3)) {
                crowd.pause_one();
            }
            if (chance.happens(0.4)) {
                crowd.stop_one();
            }
            // A short storm has this kind of fault, too.
            const bool due = !paused && 2 * kills > options.number("size");
            if (chance.happens(0.03) || due) {
                paused = crowd.pause_redis() || paused;
            }
        }
        for (const std::string& wrong : crowd.finish()) {
            report.violation(wrong);
        }
        return report.finish(
            {"crash seen and counted as an attempt", "handler called by the only owner", "job died",
             "job given back by a worker that stopped", "job tried again after a failure",
             "producer killed", "push confirmed", "Redis paused", "unique push refused",
             "worker killed", "worker paused", "worker stopped by SIGTERM"});
    });
});

} // namespace job_storm_test
