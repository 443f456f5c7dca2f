// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A replica takes over again and again while producers push and consumers work. With Redis' own
// FAILOVER nothing may be lost or come again after its ack returned true. When the replica is
// promoted behind the back of a primary that goes on answering, everything that the old primary
// confirms meanwhile is gone: no client can prevent that, so it is counted and reported. But
// nothing else may be missing, and no list may be left behind.
//
// usage: failovers [--seed N] [--size FAILOVERS] [--kind coordinated|abrupt]

#include "crash/support/failover_load.hpp"
#include "crash/support/fault_program.hpp"
#include "fuzz/simulation/chance.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/ledger.hpp"
#include "support/proxy.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"
#include "support/replication.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace failovers_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using Clock = std::chrono::steady_clock;

/// Two servers, a primary and its replica, and the proxy to the primary.
class Pair {
  public:
    Pair() { follow(0, 1); }

    [[nodiscard]] std::string uri() const { return m_way.uri() + "?command_timeout=2000"; }
    [[nodiscard]] std::string primary_uri() const { return m_servers[m_primary]->uri(); }

    void fail_over() {
        const std::size_t old = std::exchange(m_primary, 1 - m_primary);
        m_clients[old]->command({"FAILOVER", "TO", "127.0.0.1",
                                 std::to_string(m_servers[m_primary]->port()), "TIMEOUT", "10000"});
        await([&] { return role(m_primary) == "master" && role(old) == "slave"; });
        m_way.lead_to(m_servers[m_primary]->socket_path());
    }
    /// The old primary answers for this much longer than it should.
    Gap promote(std::chrono::milliseconds longer) {
        Gap gap{Clock::now(), {}};
        RedisClient& primary = *m_clients[m_primary];
        primary.command({"SET", "probe", "x"});
        if (primary.command({"WAIT", "1", "10000"}).integer != 1) {
            throw std::runtime_error("the replica does not follow");
        }
        const std::size_t old = std::exchange(m_primary, 1 - m_primary);
        m_clients[m_primary]->command({"REPLICAOF", "NO", "ONE"});
        std::this_thread::sleep_for(longer);
        m_way.lead_to(m_servers[m_primary]->socket_path());
        m_way.break_all();
        gap.end = Clock::now();
        follow(m_primary, old);
        return gap;
    }

  private:
    static constexpr std::size_t both = 2;

    static std::unique_ptr<RedisServer> start() {
        return std::make_unique<RedisServer>(
            std::vector<std::string>{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp);
    }
    template <class Condition>
    static void await(Condition condition) {
        if (!eventually(condition)) {
            throw std::runtime_error("the servers do not change their roles");
        }
    }

    std::string role(std::size_t server) {
        return m_clients[server]->command({"ROLE"}).elements.at(0).text;
    }
    void follow(std::size_t primary, std::size_t replica) {
        orizuru::test::follow(*m_clients[replica], *m_servers[primary]);
        await([&] {
            return m_clients[primary]->command({"ROLE"}).elements.at(2).elements.size() == 1;
        });
    }

    std::array<std::unique_ptr<RedisServer>, both> m_servers{start(), start()};
    std::array<std::unique_ptr<RedisClient>, both> m_clients{
        std::make_unique<RedisClient>(m_servers[0]->uri()),
        std::make_unique<RedisClient>(m_servers[1]->uri())};
    std::size_t m_primary = 0;
    Proxy m_way{m_servers[0]->socket_path()};
};

int run(const FaultOptions& options) {
    const bool coordinated = options.text("kind") == "coordinated";
    if (!coordinated && options.text("kind") != "abrupt") {
        throw std::invalid_argument("--kind is coordinated or abrupt");
    }
    FaultReport report(options);
    Chance chance(options.number("seed"));
    Ledger ledger("q");
    Pair pair;
    FailoverLoad load(pair.uri(), ledger, 2s);
    std::vector<Gap> gaps;
    for (std::uint64_t i = 0; i < options.number("size"); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(chance.between(50, 300)));
        if (coordinated) {
            pair.fail_over();
        } else {
            gaps.push_back(pair.promote(std::chrono::milliseconds(chance.between(0, 20))));
        }
        report.came("failovers");
    }
    judge_failovers(report, load, ledger, gaps, pair.primary_uri());
    return report.finish({"failovers", "confirmed pushes", "acks that said true"});
}

const FaultProgram program("failovers", [](int count, char** arguments) {
    return run_fault_program([&] {
        return run(FaultOptions(count, arguments,
                                {{"seed", "1"}, {"size", "5"}, {"kind", "coordinated"}}));
    });
});

} // namespace failovers_test
