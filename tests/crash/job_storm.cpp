// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A storm of SIGKILL, every 20 to 200 ms, over 4 workers and 2 producers of jobs that fail, wait,
// are urgent or unique; workers are asked to stop, some are paused for up to 5 leases, and so is
// Redis, which at times takes no writes. Then all is calm, and everything must be finished. The
// seed decides which processes and when; the machine decides what they are doing then.
//
// usage: job_storm [--seed N] [--size KILLS] [--messages LEAST] [--outages LEAST] [--queues N]

#include "crash/support/fault_program.hpp"
#include "crash/support/job_crowd.hpp"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace job_storm_test {

using namespace orizuru::test;

const FaultProgram program("job_storm", [](int count, char** arguments) {
    return main_of_processes(count, arguments, do_job_work, [&] {
        const FaultOptions options(
            count, arguments,
            {{"seed", "1"}, {"size", "100"}, {"messages", "0"}, {"outages", "0"}, {"queues", "2"}});
        FaultReport report(options);
        RedisServer server;
        Chance chance(options.number("seed"));
        JobCrowd crowd(server, report, options.number("seed"), options.number("queues"));
        std::vector<std::string_view> kinds{"crash seen and counted as an attempt",
                                            "handler called by the only owner",
                                            "job died",
                                            "job tried again after a failure",
                                            "producer killed",
                                            "push confirmed",
                                            "Redis paused",
                                            "unique push refused",
                                            "worker killed",
                                            "worker paused",
                                            "worker stopped by SIGTERM"};
        kinds.insert(kinds.end(), WriteOutages::kinds.begin(), WriteOutages::kinds.end());
        const std::uint64_t size = options.number("size");
        for (std::uint64_t kills = 0;
             crowd.pushes() < options.number("messages") ||
             crowd.count_outages() < options.number("outages") ||
             report.wants_more(kills, size, [&] { return crowd.has_seen(kinds); });
             ++kills) {
            crowd.pass(std::chrono::milliseconds(chance.between(20, 200)));
            crowd.kill_one();
            if (chance.happens(0.3)) {
                crowd.pause_one();
            }
            if (chance.happens(0.4)) {
                crowd.stop_one();
            }
            // Soon in a short storm.
            const bool due = 2 * kills > size && !report.have_come({"Redis paused"});
            if (chance.happens(0.03) || due) {
                crowd.pause_redis();
            }
            crowd.refuse_writes_at_times(kills, size);
        }
        for (const std::string& wrong : crowd.finish()) {
            report.violation(wrong);
        }
        kinds.push_back(JobCrowd::given_back);
        return report.finish(kinds);
    });
});

} // namespace job_storm_test
