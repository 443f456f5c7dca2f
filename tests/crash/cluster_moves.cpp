// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A queue moves from node to node of a Cluster, again and again, while producers push and consumers
// work: key by key, or with --kind atomic by CLUSTER MIGRATESLOTS, which Valkey has since
// version 9. Nothing may be lost or come again after its ack returned true. With --kind kill a node
// that has the queue is killed instead, and its replica takes over: what that had not received is
// gone, which no client can prevent, so it is counted and reported.
//
// usage: cluster_moves [--seed N] [--size MOVES] [--kind migrate|atomic|kill]

#include "crash/support/cluster_failovers.hpp"
#include "crash/support/failover_load.hpp"
#include "crash/support/fault_program.hpp"
#include "fuzz/simulation/chance.hpp"
#include "support/cluster.hpp"
#include "support/fault_run.hpp"
#include "support/ledger.hpp"
#include "support/redis_server.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cluster_moves_test {

using namespace std::chrono_literals;
using namespace orizuru::test;

const FaultProgram program("cluster_moves", [](int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments,
                                   {{"seed", "1"}, {"size", "10"}, {"kind", "migrate"}});
        const std::string& kind = options.text("kind");
        if (kind != "migrate" && kind != "atomic" && kind != "kill") {
            throw std::invalid_argument("--kind is migrate, atomic or kill");
        }
        const bool kills = kind == "kill";
        FaultReport report(options);
        Chance chance(options.number("seed"));
        Ledger ledger("q", "{q}other"); // in one slot
        Cluster cluster(3, kills);
        if (kind == "atomic" && !cluster.moves_atomically()) {
            throw std::runtime_error(RedisServer::program() +
                                     " has no CLUSTER MIGRATESLOTS, which --kind atomic needs: "
                                     "name a Valkey 9 in ORIZURU_TEST_SERVER");
        }
        FailoverLoad load(cluster.uri({0, 1, 2}) + "?command_timeout=1000", ledger, 30s);
        std::vector<Gap> gaps;
        const auto pause = [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(chance.between(0, 100)));
        };
        for (std::uint64_t i = 0; i < options.number("size"); ++i) {
            pause();
            if (kills) {
                gaps.push_back(kill_owner(cluster, "q"));
                load.await_motion();
            } else {
                const std::size_t to = (cluster.owner("q") + 1 + chance.below(2)) % cluster.size();
                if (kind == "atomic") {
                    cluster.migrate_atomically("q", to, pause);
                } else {
                    cluster.migrate("q", to, pause);
                }
            }
            report.came(kills ? "nodes killed" : "migrations");
        }
        judge_failovers(report, load, ledger, gaps, cluster.node(cluster.owner("q")).plain_uri());
        std::cout << "the longest time without a confirmed push: " << load.longest_gap().count()
                  << " ms\n";
        return report.finish(
            {kills ? "nodes killed" : "migrations", "confirmed pushes", "acks that said true"});
    });
});

} // namespace cluster_moves_test
