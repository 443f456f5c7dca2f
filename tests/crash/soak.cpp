// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Mixed load and faults for any time, in rounds. Each round is a storm on a queue of its own with
// kills, pauses, cut connections and restarts of Redis, with `appendfsync always`; after it
// everything is checked. One process lives through all rounds; its latency, memory and descriptors
// must not grow.
//
// usage: soak [--seed N] [--minutes N, also a fraction]

#include "benchmark/resident.hpp"
#include "crash/support/fault_program.hpp"
#include "crash/support/storm.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace soak_test {

using namespace orizuru::test;
using Clock = std::chrono::steady_clock;

/// Measured in the first and in the last third of the time.
struct Thirds {
    double first = 0;
    double last = 0;

    /// `part` of the measured values are not above this.
    static Thirds of(const std::vector<double>& measured, double part) {
        const auto third = std::ssize(measured) / 3;
        return {quantile({measured.begin(), measured.begin() + third}, part),
                quantile({measured.end() - third, measured.end()}, part)};
    }

    [[nodiscard]] bool grew(double factor, double more) const {
        return !(last <= first * factor + more);
    }

  private:
    static double quantile(std::vector<double> measured, double part) {
        if (measured.empty()) {
            return NAN;
        }
        std::ranges::sort(measured);
        return measured[static_cast<std::size_t>(part * static_cast<double>(measured.size() - 1))];
    }
};

/// The process that lives through it, behind a proxy of its own.
class Steady {
  public:
    Steady(const RedisServer& server, FaultReport& report)
        : m_report(report), m_proxy(server.socket_path()) {
        m_process.start(0, 0, m_proxy.uri());
    }

    void measure() {
        const std::string pid = std::to_string(m_process.pid());
        std::error_code ended;
        m_mebibytes.push_back(orizuru::benchmark::resident_bytes(pid) / (1 << 20));
        m_descriptors.push_back(static_cast<double>(
            std::distance(std::filesystem::directory_iterator("/proc/" + pid + "/fd", ended), {})));
    }
    void cut() {
        m_report.came("steady process cut off");
        m_proxy.break_all();
    }

    /// Fails when something has grown, unless the time was too short to tell.
    void finish(Clock::duration time) {
        std::optional<std::string> wrong = m_process.end();
        if (m_process.lives()) {
            m_process.ask_to_end();
            const bool ended = eventually(
                [&] {
                    wrong = m_process.end();
                    return !m_process.lives();
                },
                patience);
            if (!ended) {
                wrong = "the steady process does not end";
            }
        }
        if (wrong) {
            m_report.violation(*wrong);
        }
        m_process.kill();
        std::ifstream log(m_log);
        for (std::string line; std::getline(log, line);) {
            m_report.violation(line);
        }
        const std::vector<double> latencies = milliseconds();
        std::cout << static_cast<double>(latencies.size()) /
                         std::chrono::duration<double>(time).count()
                  << " deliveries per second in the process that lived through it" << std::endl;
        std::vector<std::string> grown;
        const auto compare = [&](const std::string& what, Thirds thirds, double factor,
                                 double more) {
            std::cout << what << ": " << thirds.first << " in the first third, " << thirds.last
                      << " in the last" << std::endl;
            if (thirds.grew(factor, more)) {
                grown.push_back(what + " grew");
            }
        };
        compare("latency p50 (ms)", Thirds::of(latencies, 0.5), 3, 5);
        // It includes pauses of Redis (2.5 s) and, after several faults, a back-off (5 s).
        compare("latency p99 (ms)", Thirds::of(latencies, 0.99), 3, 10'000);
        compare("resident (MiB)", Thirds::of(m_mebibytes, 0.5), 1.1, 2);
        compare("descriptors", Thirds::of(m_descriptors, 0.5), 1, 2);
        if (time >= enough_to_judge) {
            std::ranges::for_each(grown, [&](const auto& what) { m_report.violation(what); });
        }
    }

  private:
    static constexpr std::chrono::minutes enough_to_judge{3};
    static constexpr std::chrono::seconds patience =
        SteadyWork::patience + std::chrono::seconds(30);

    [[nodiscard]] std::vector<double> milliseconds() const {
        std::vector<double> result;
        std::ifstream file(m_latencies, std::ios::binary);
        for (std::int64_t latency = 0;
             file.read(reinterpret_cast<char*>(&latency), sizeof latency);) {
            result.push_back(static_cast<double>(latency) / 1e6);
        }
        return result;
    }

    FaultReport& m_report;
    TempDir m_folder;
    std::string m_log = m_folder.path() + "/log";
    std::string m_latencies = m_folder.path() + "/latencies";
    Proxy m_proxy;
    Process m_process{
        Work{.role = "steady", .rate = 200, .queue = "steady", .journal = m_latencies}, m_log};
    std::vector<double> m_mebibytes;
    std::vector<double> m_descriptors;
};

void one_fault(Storm& storm, Steady& steady, Chance& chance) {
    switch (chance.below(16)) {
    case 0:
        return storm.pause_redis();
    case 1:
        return storm.restart_redis();
    case 2:
        return steady.cut();
    case 3:
        return storm.cut_one();
    case 4:
    case 5:
        return storm.pause_one();
    default:
        return storm.kill_one();
    }
}

void erase(RedisClient& redis, const std::string& queue) {
    for (const std::string& pattern : {queue + "*", "orizuru:{" + queue + "}:*"}) {
        for (const std::string& key : redis.keys(pattern)) {
            redis.del(key);
        }
    }
}

int soak(const FaultOptions& options) {
    constexpr std::chrono::seconds longest_round(30);
    constexpr std::chrono::seconds shortest_round(2);
    const Crew crew{.producers = 2, .consumers = 4, .collectors = 2, .rate = 200};
    FaultReport report(options);
    RedisServer server(
        {"--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb"});
    Steady steady(server, report);
    const auto begin = Clock::now();
    const auto end =
        begin +
        std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double, std::ratio<60>>(std::stod(options.text("minutes"))));
    Chance chance(options.number("seed"));
    const std::vector<std::string_view> kinds{"consumer killed", "Redis killed and restarted",
                                              "Redis paused", "steady process cut off"};
    // With rounds for a kind that has not come in this time.
    for (std::uint64_t round = 1; Clock::now() < end || (round <= 20 && !report.have_come(kinds));
         ++round) {
        const std::string queue = "round-" + std::to_string(round);
        Storm storm(server, report, options.number("seed") + round, queue, crew);
        const auto round_begin = Clock::now();
        const auto round_end = round_begin + std::clamp<Clock::duration>(
                                                 end - round_begin, shortest_round, longest_round);
        while (Clock::now() < round_end) {
            storm.pass(std::chrono::milliseconds(chance.between(20, 200)));
            one_fault(storm, steady, chance);
            steady.measure();
        }
        for (const std::string& wrong : storm.finish()) {
            report.violation(queue + ": " + wrong);
        }
        RedisClient redis(server.uri());
        erase(redis, queue);
    }
    steady.finish(Clock::now() - begin);
    return report.finish(kinds);
}

const FaultProgram program("soak", [](int count, char** arguments) {
    return main_of_storm(count, arguments, [&] {
        return soak(FaultOptions(count, arguments, {{"seed", "1"}, {"minutes", "0.2"}}));
    });
});

} // namespace soak_test
