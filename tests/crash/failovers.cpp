// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A replica takes over again and again while producers push and consumers work. With Redis' own
// FAILOVER nothing may be lost or come again after its ack returned true. When the replica is
// promoted behind the back of a primary that goes on answering, everything that the old primary
// confirms meanwhile is gone: no client can prevent that, so it is counted and reported. But
// nothing else may be missing, and no list may be left behind.
//
// usage: failovers [--seed N] [--size FAILOVERS] [--kind coordinated|abrupt]

#include "crash/support/fault_program.hpp"
#include "fuzz/simulation/chance.hpp"
#include "support/collect_dead.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/ledger.hpp"
#include "support/proxy.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"
#include "support/replication.hpp"

#include <orizuru/orizuru.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace failovers_test {

using namespace std::chrono_literals;
using orizuru::Raw;
using orizuru::test::Chance;
using orizuru::test::collect_dead;
using orizuru::test::eventually;
using orizuru::test::FaultOptions;
using orizuru::test::FaultReport;
using orizuru::test::Ledger;
using orizuru::test::Place;
using orizuru::test::Proxy;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using Clock = std::chrono::steady_clock;

constexpr auto patience = 30s;

/// Messages that were confirmed or delivered in this time may be lost: from when the replica was
/// last known to have everything, to when no client uses the old primary any more.
struct Gap {
    Clock::time_point begin;
    Clock::time_point end;
};

/// Two servers, a primary and its replica, and the proxy to the primary.
class Pair {
  public:
    Pair() { follow(0, 1); }

    [[nodiscard]] std::string uri() const { return m_way.uri() + "?command_timeout=2000"; }
    [[nodiscard]] RedisClient& primary() { return *m_clients[m_primary]; }

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
        primary().command({"SET", "probe", "x"});
        if (primary().command({"WAIT", "1", "10000"}).integer != 1) {
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
        if (!eventually(condition, patience)) {
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

/// Producers, consumers and a collector, each a thread.
class Load {
  public:
    Load(const std::string& uri, Ledger& ledger) : m_uri(uri), m_ledger(ledger) {
        for (int i = 0; i < 2; ++i) {
            m_producing.emplace_back([this, i](const std::stop_token& stop) { produce(i, stop); });
        }
        for (const int prefetch : {1, 1, 10}) {
            m_consuming.emplace_back(
                [this, prefetch](const std::stop_token& stop) { consume(prefetch, stop); });
        }
        m_consuming.emplace_back([this](const std::stop_token& stop) { collect(stop); });
    }

    /// Ends pushing; returns when all messages are consumed.
    void drain(Pair& pair) {
        m_producing.clear();
        if (!eventually([&] { return pair.primary().llen("q") == 0; }, patience)) {
            throw std::runtime_error("the queue does not drain");
        }
        m_consuming.clear();
    }

    /// The time from a request to Redis until its answer.
    struct Time {
        Clock::time_point asked;
        Clock::time_point heard;
    };
    using Times = std::map<std::string, Time, std::less<>>;

    /// When a push was confirmed.
    [[nodiscard]] const Times& confirmed() const { return m_confirmed; }
    /// When a message first came.
    [[nodiscard]] const Times& delivered() const { return m_delivered; }
    /// When an ack returned true.
    [[nodiscard]] const Times& acked() const { return m_acked; }

  private:
    void produce(int number, const std::stop_token& stop) {
        orizuru::Producer<Raw> producer(m_uri, "q");
        for (int i = 0; !stop.stop_requested(); ++i) {
            const std::string message = std::to_string(number) + "." + std::to_string(i);
            m_ledger.pushing(message);
            try {
                const auto asked = Clock::now();
                producer.push({message});
                note(m_confirmed, message, asked);
                m_ledger.pushed(message);
            } catch (const orizuru::ConnectionError& error) {
                if (!error.in_doubt()) {
                    m_ledger.not_pushed(message);
                }
            } catch (const orizuru::ReplyError&) {
                m_ledger.not_pushed(message);
            }
            std::this_thread::sleep_for(500us);
        }
    }

    void consume(int prefetch, const std::stop_token& stop) {
        orizuru::Consumer<Raw> consumer(m_uri, "q", {.lease = 2s, .prefetch = prefetch});
        while (!stop.stop_requested()) {
            try {
                // Short waits, so that some end while Redis has postponed them.
                const auto asked = Clock::now();
                if (auto guard = consumer.next(stop, 20ms)) {
                    const std::string message(guard->payload());
                    note(m_delivered, message, asked);
                    m_ledger.handed_out(message);
                    m_ledger.settling(message, Place::gone);
                    const auto acking = Clock::now();
                    if (guard->ack()) {
                        note(m_acked, message, acking);
                        m_ledger.settled(message, Place::gone);
                    } else {
                        m_ledger.not_settled(message, Place::gone);
                    }
                }
            } catch (const orizuru::Error&) { // NOLINT(bugprone-empty-catch)
                // A settlement in doubt stays so in the ledger.
            }
        }
    }

    void note(Times& times, const std::string& message, Clock::time_point asked) {
        const std::lock_guard lock(m_mutex);
        times.try_emplace(message, Time{asked, Clock::now()}); // the first one counts
    }

    void collect(const std::stop_token& stop) {
        orizuru::GarbageCollector(m_uri, "q", {.max_recoveries = 1'000'000, .grace = 0ms})
            .run(stop, 100ms);
    }

    std::string m_uri;
    Ledger& m_ledger;
    std::mutex m_mutex;
    Times m_confirmed;
    Times m_delivered;
    Times m_acked;
    std::vector<std::jthread> m_consuming;
    std::vector<std::jthread> m_producing;
};

/// Whether a violation is explained by a command that may have run in a gap.
bool is_of_a_gap(std::string_view wrong, const Load& load, const std::vector<Gap>& gaps) {
    const Load::Times& times = wrong.starts_with("LOST")       ? load.confirmed()
                               : wrong.starts_with("VANISHED") ? load.delivered()
                                                               : load.acked();
    const auto in_gap = [&](std::string_view message) {
        const auto time = times.find(message);
        return time != times.end() && std::ranges::any_of(gaps, [&](const Gap& gap) {
                   return gap.begin <= time->second.heard && time->second.asked <= gap.end;
               });
    };
    while (!wrong.empty()) {
        const std::size_t end = std::min(wrong.find_first_of(": "), wrong.size());
        if (in_gap(wrong.substr(0, end))) {
            return true;
        }
        wrong.remove_prefix(std::min(end + 1, wrong.size()));
    }
    return false;
}

int run(const FaultOptions& options) {
    const bool coordinated = options.text("kind") == "coordinated";
    if (!coordinated && options.text("kind") != "abrupt") {
        throw std::invalid_argument("--kind is coordinated or abrupt");
    }
    FaultReport report(options);
    Chance chance(options.number("seed"));
    Ledger ledger("q");
    Pair pair;
    Load load(pair.uri(), ledger);
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
    load.drain(pair);

    collect_dead(pair.primary(), pair.uri(), "q"); // consumers that could no longer leave

    std::map<std::string, std::uint64_t> measured;
    for (const std::string& wrong : ledger.check(pair.primary())) {
        if (is_of_a_gap(wrong, load, gaps)) {
            ++measured[wrong.substr(0, wrong.find(' '))];
        } else {
            report.violation(wrong);
        }
    }
    report.came("confirmed pushes", load.confirmed().size());
    report.came("acks that said true", load.acked().size());
    std::cout << "Redis' own: " << measured["LOST"] << " confirmed pushes lost, "
              << measured["VANISHED"] << " delivered and not confirmed, " << measured["I6:"]
              << " deliveries after an ack that said true, " << measured["DUP"]
              << " acked and still there\n";
    return report.finish({"failovers", "confirmed pushes", "acks that said true"});
}

const orizuru::test::FaultProgram program("failovers", [](int count, char** arguments) {
    return orizuru::test::run_fault_program([&] {
        return run(FaultOptions(count, arguments,
                                {{"seed", "1"}, {"size", "5"}, {"kind", "coordinated"}}));
    });
});

} // namespace failovers_test
