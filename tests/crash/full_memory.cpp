// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A Redis whose memory is full: producers are refused, and consumers and collectors make room. It
// is held full for several leases, then kept at the limit by producers that fill any free room,
// then drained to empty.
//
// usage: full_memory [--seed N] [--size ROUNDS]
//   The seed decides the length of the messages.

#include "crash/support/fault_program.hpp"
#include "crash/support/full_memory_users.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/ledger.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/orizuru.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <list>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace full_memory_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using namespace orizuru::test::full_memory;
using orizuru::AckMode;

constexpr int handled_at_the_brim = 2000;
constexpr int kept_by_the_dead = 20;
constexpr int rejected_before = 20;

/// One round, on a server of its own.
class Course {
  public:
    Course(FaultReport& report, std::uint64_t seed) : m_round(m_server, report, seed) {
        leave_work();
        // The memory in use, with room for one or two thousand messages.
        const std::string used = field("memory", "used_memory:");
        m_redis.command(
            {"CONFIG", "SET", "maxmemory", std::to_string(std::stoll(used) + 2'000'000)});
    }

    void run() {
        std::jthread plain([this](const std::stop_token& stop) {
            m_round.attempt("a producer", [&] { produce(m_round, stop); });
        });
        std::jthread buffered([this](const std::stop_token& stop) {
            m_round.attempt("a buffer", [&] { produce_buffered(m_round, stop); });
        });
        expect_eventually([this] { return is_full(); }, "it was never full");
        std::list<Worker> workers;
        for (const int prefetch : {1, 1, 50}) {
            workers.emplace_back(m_round, prefetch, AckMode::immediate);
            workers.emplace_back(m_round, prefetch, AckMode::deferred);
        }
        hold(workers);
        collect_while_full();
        std::jthread collecting([this](const std::stop_token& stop) {
            m_round.attempt("a collector", [&] { m_collector.run(stop, 10ms); });
        });
        m_round.held = false;
        expect_eventually([this] { return m_round.handled >= handled_at_the_brim; },
                          "the queue does not drain");
        m_round.report.came("BLMOVEs refused", refused_waits());
        plain.request_stop();
        buffered.request_stop();
        plain.join();
        buffered.join();
        expect_eventually([this] { return is_drained(); }, "the queue was never drained");
        workers.clear();
        collecting.request_stop();
        collecting.join();
        judge();
    }

  private:
    /// Before memory is full: a consumer died, and messages were rejected.
    void leave_work() {
        m_redis.command({"SADD", "orizuru:{q}:consumers", "dead"});
        m_redis.command({"RPUSH", "orizuru:{q}:processing:dead", "orz:0123456789abcdef:7"});
        for (int i = 0; i < kept_by_the_dead + rejected_before; ++i) {
            const std::string payload = m_round.new_message().bytes;
            m_round.ledger.pushing(name_of(payload));
            m_redis.lpush(i < kept_by_the_dead ? "orizuru:{q}:processing:dead"
                                               : "orizuru:{q}:unack",
                          payload);
            m_round.ledger.pushed(name_of(payload));
        }
    }

    /// Nothing is settled for several leases; each consumer gets a message and keeps its lease.
    void hold(const std::list<Worker>& workers) {
        constexpr int beats = 9; // three leases
        expect_eventually(
            [&] {
                return std::ranges::all_of(workers, [](const Worker& worker) {
                    return worker.fetched() && worker.beats() >= beats;
                });
            },
            "somebody got no message, or does not beat");
        m_round.report.came("beats in a full Redis", beats * workers.size());
        m_round.expect(is_full(), "it is full no more");
    }

    void collect_while_full() {
        const orizuru::Collected collected = m_collector.collect();
        m_round.expect(collected.consumers == 1, "who was taken for dead is not the one who is");
        m_round.expect(is_full(), "collecting has made room");
        m_round.report.came("messages of the dead returned", collected.reclaimed);
        m_round.report.came("rejected messages returned", collected.unacked);
        m_round.expect(collected.reclaimed == kept_by_the_dead &&
                           collected.unacked == rejected_before,
                       "the collector did not do its work");
    }

    void judge() {
        for (Ledger* ledger : {&m_round.ledger, &m_round.next_ledger}) {
            for (const std::string& what : ledger->check(m_redis)) {
                m_round.report.violation(what);
            }
        }
        m_round.expect(m_redis.command({"SMEMBERS", "orizuru:{q}:consumers"}).elements.empty(),
                       "somebody is still registered");
        m_round.report.came("messages handled", static_cast<std::uint64_t>(m_round.handled));
    }

    template <class Condition>
    void expect_eventually(Condition condition, const std::string& otherwise) {
        if (!eventually(condition)) {
            throw std::runtime_error(otherwise);
        }
    }
    bool is_full() { return m_redis.try_command({"LPUSH", "probe", "x"}).text.starts_with("OOM"); }
    bool is_drained() {
        return m_redis.llen("q") + m_redis.llen("orizuru:{q}:unack") == 0 &&
               std::ranges::all_of(
                   m_redis.keys("orizuru:{q}:processing:*"), [this](const std::string& key) {
                       return m_redis.type(key) == "string" || m_redis.llen(key) == 1;
                   });
    }
    std::string field(const std::string& section, const std::string& name) {
        const std::string text = m_redis.command({"INFO", section}).text;
        const auto at = text.find(name);
        return at == std::string::npos ? "0" : text.substr(at + name.size());
    }
    std::uint64_t refused_waits() {
        const std::string stats = field("commandstats", "cmdstat_blmove:");
        return std::stoull(stats.substr(stats.find("rejected_calls=") + 15));
    }

    RedisServer m_server{{"--maxmemory-policy", "noeviction"}};
    RedisClient m_redis{m_server.uri()};
    Round m_round;
    orizuru::GarbageCollector m_collector{m_server.uri(), "q", {.grace = 0ms}};
};

const FaultProgram program("full_memory", [](int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments, {{"seed", "1"}, {"size", "1"}});
        FaultReport report(options);
        for (std::uint64_t round = 0; round < options.number("size"); ++round) {
            const std::uint64_t seed = options.number("seed") + round;
            try {
                Course(report, seed).run();
            } catch (const std::exception& error) {
                report.violation(error.what(), {{"seed", std::to_string(seed)}, {"size", "1"}});
            }
        }
        return report.finish({"pushes refused", "buffers refused", "handlers refused",
                              "BLMOVEs refused", "beats in a full Redis",
                              "messages of the dead returned", "rejected messages returned"});
    });
});

} // namespace full_memory_test
