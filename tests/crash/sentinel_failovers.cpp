// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Sentinels replace the master again and again while producers push and consumers work: because it
// is killed, because it hangs, or because an operator asks for it. Replication is asynchronous:
// what the new master had not received is gone, which no client can prevent, so it is counted and
// reported. But nothing else may be missing, and no list may be left behind.
//
// usage: sentinel_failovers [--seed N] [--size FAILOVERS] [--kind kill|stop|planned]
//                           [--over plain|tls]

#include "crash/support/failover_load.hpp"
#include "crash/support/fault_program.hpp"
#include "crash/support/transport.hpp"
#include "fuzz/simulation/chance.hpp"
#include "support/certificates.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/ledger.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"
#include "support/sentinels.hpp"

#include <orizuru/tls.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace sentinel_failovers_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using Clock = std::chrono::steady_clock;

/// All on ports, those of clients, replicas and sentinels.
Sentinels sentinels_over(const Transport& transport) {
    if (!transport.is_tls()) {
        return Sentinels();
    }
    const Certificates& files = Certificates::made();
    return Sentinels(files.of_server("right"), files.lines_of_server("right"), {}, {},
                     RedisServer::Listen::tls);
}

/// Waits until a server follows another one.
void await_replica(const RedisServer& server) {
    const bool follows = eventually(
        [&] {
            try {
                return RedisClient(server.plain_uri()).command({"ROLE"}).elements.at(0).text ==
                       "slave";
            } catch (const std::runtime_error&) {
                return false; // it closes its connections as it becomes one
            }
        },
        30s);
    if (!follows) {
        throw std::runtime_error("the old master does not become a replica");
    }
}

Gap replace_master(Sentinels& sentinels, const std::string& kind) {
    Gap gap{Clock::now(), {}};
    RedisServer& old = sentinels.await_master();
    RedisClient redis(old.plain_uri());
    redis.command({"SET", "probe", "x"});
    if (redis.command({"WAIT", "2", "10000"}).integer != 2) {
        throw std::runtime_error("the replicas do not follow");
    }
    if (kind == "kill") {
        old.kill();
    } else if (kind == "stop") {
        old.pause();
    } else {
        sentinels.fail_over();
    }
    sentinels.await_master(&old);
    if (kind == "kill") {
        old.restart();
    } else if (kind == "stop") {
        old.resume();
    }
    await_replica(old);
    gap.end = Clock::now();
    sentinels.await_ready();
    return gap;
}

const FaultProgram program("sentinel_failovers", [](int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(
            count, arguments, {{"seed", "1"}, {"size", "3"}, {"kind", "kill"}, {"over", "plain"}});
        const std::string& kind = options.text("kind");
        if (kind != "kill" && kind != "stop" && kind != "planned") {
            throw std::invalid_argument("--kind is kill, stop or planned");
        }
        FaultReport report(options);
        Chance chance(options.number("seed"));
        Ledger ledger("q");
        const Transport transport(options.text("over"));
        Sentinels sentinels = sentinels_over(transport);
        FailoverLoad load(orizuru::tls_endpoint(with_query(transport.complete(sentinels.uri()),
                                                           "command_timeout=1000")),
                          ledger, 30s);
        std::vector<Gap> gaps;
        std::uint64_t switches = 0;
        const auto count_unasked = [&](std::uint64_t asked) {
            const std::uint64_t unasked = sentinels.switches() - switches - asked;
            if (unasked > 0) { // some time since the last gap
                gaps.back().begin =
                    gaps.size() > 1 ? gaps[gaps.size() - 2].end : Clock::time_point::min();
                gaps.back().end = Clock::now();
                report.came("failovers because the machine stalled", unasked);
            }
            switches += asked + unasked;
        };
        for (std::uint64_t i = 0; i < options.number("size"); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(chance.between(50, 300)));
            gaps.push_back(replace_master(sentinels, kind));
            load.await_motion();
            count_unasked(1);
            report.came("failovers");
        }
        gaps.push_back({Clock::now(), Clock::now()});
        count_unasked(0);
        judge_failovers(report, load, ledger, gaps, sentinels.await_master().plain_uri());
        std::cout << "the longest time without a confirmed push: " << load.longest_gap().count()
                  << " ms\n";
        return report.finish({"failovers", "confirmed pushes", "acks that said true"});
    });
});

} // namespace sentinel_failovers_test
