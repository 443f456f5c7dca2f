// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Producers, consumers and a collector that work while replicas take over, and the judgement: what
// only a command of the time in between explains is Redis' own loss, by asynchronous replication.

#pragma once

#include "crash/support/cluster_failovers.hpp"
#include "support/collect_dead.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/ledger.hpp"
#include "support/redis_client.hpp"

#include <orizuru/orizuru.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

/// Producers, consumers and a collector, each a thread.
class FailoverLoad {
  public:
    using Clock = std::chrono::steady_clock;

    /// The consumers' lease.
    FailoverLoad(Endpoint endpoint, Ledger& ledger, std::chrono::seconds lease)
        : m_endpoint(std::move(endpoint)), m_ledger(ledger), m_lease(lease) {
        for (int i = 0; i < 2; ++i) {
            m_producing.emplace_back([this, i](const std::stop_token& stop) { produce(i, stop); });
        }
        for (const int prefetch : {1, 1, 10}) {
            m_consuming.emplace_back(
                [this, prefetch, &count = m_counts.emplace_back()](const std::stop_token& stop) {
                    consume(prefetch, count, stop);
                });
        }
        m_consuming.emplace_back([this](const std::stop_token& stop) { collect(stop); });
    }

    /// Returns when each consumer has got an answer to another ack.
    void await_motion() {
        for (const std::atomic<std::uint64_t>& count : m_counts) {
            const std::uint64_t before = count;
            if (!eventually([&] { return count > before; }, std::chrono::seconds(60))) {
                throw std::runtime_error("a consumer does not go on");
            }
        }
    }

    /// Ends pushing; returns when all messages are consumed.
    void drain(RedisClient& primary) {
        m_producing.clear();
        if (!eventually([&] { return primary.llen("q") == 0; }, std::chrono::seconds(30))) {
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

    /// The longest time between two confirmed pushes.
    [[nodiscard]] std::chrono::milliseconds longest_gap() const {
        std::vector<Clock::time_point> times;
        for (const auto& [message, time] : m_confirmed) {
            times.push_back(time.heard);
        }
        std::ranges::sort(times);
        Clock::duration longest{};
        for (std::size_t i = 1; i < times.size(); ++i) {
            longest = std::max(longest, times[i] - times[i - 1]);
        }
        return std::chrono::duration_cast<std::chrono::milliseconds>(longest);
    }
    /// When a push was confirmed.
    [[nodiscard]] const Times& confirmed() const { return m_confirmed; }
    /// When a message first came.
    [[nodiscard]] const Times& delivered() const { return m_delivered; }
    /// When an ack returned true.
    [[nodiscard]] const Times& acked() const { return m_acked; }

  private:
    /// The nodes of a young Cluster may not agree yet who has the slot, and one may be killed
    /// before a thread that runs late has connected.
    template <class Make>
    static auto patiently(Make connect) {
        while (true) {
            try {
                return connect();
            } catch (const ConnectionError&) { // NOLINT(bugprone-empty-catch)
                // It is tried again.
            } catch (const ReplyError& refusal) {
                if (refusal.code() != "CLUSTERDOWN") {
                    throw;
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

    void produce(int number, const std::stop_token& stop) {
        Producer<Raw> producer = patiently([&] { return Producer<Raw>(m_endpoint, "q"); });
        for (int i = 0; !stop.stop_requested(); ++i) {
            const std::string message = std::to_string(number) + "." + std::to_string(i);
            m_ledger.pushing(message);
            try {
                const auto asked = Clock::now();
                producer.push({message});
                note(m_confirmed, message, asked);
                m_ledger.pushed(message);
            } catch (const ConnectionError& error) {
                if (!error.in_doubt()) {
                    m_ledger.not_pushed(message);
                }
            } catch (const ReplyError&) {
                m_ledger.not_pushed(message);
            }
            std::this_thread::sleep_for(std::chrono::microseconds(500));
        }
    }

    void consume(int prefetch, std::atomic<std::uint64_t>& count, const std::stop_token& stop) {
        Consumer<Raw> consumer = patiently([&] {
            return Consumer<Raw>(m_endpoint, "q", {.lease = m_lease, .prefetch = prefetch});
        });
        while (!stop.stop_requested()) {
            try {
                // Short waits, so that some end while Redis has postponed them.
                const auto asked = Clock::now();
                if (auto guard = consumer.next(stop, std::chrono::milliseconds(20))) {
                    const std::string message(guard->payload());
                    note(m_delivered, message, asked);
                    m_ledger.handed_out(message);
                    m_ledger.settling(message, Place::gone);
                    const auto acking = Clock::now();
                    if (guard->ack()) {
                        note(m_acked, message, acking);
                        ++count;
                        m_ledger.settled(message, Place::gone);
                    } else {
                        m_ledger.not_settled(message, Place::gone);
                    }
                }
            } catch (const Error&) { // NOLINT(bugprone-empty-catch)
                // A settlement in doubt stays so in the ledger.
            }
        }
    }

    void note(Times& times, const std::string& message, Clock::time_point asked) {
        const std::lock_guard lock(m_mutex);
        times.try_emplace(message, Time{asked, Clock::now()}); // the first one counts
    }

    void collect(const std::stop_token& stop) {
        patiently([&] {
            return GarbageCollector(
                m_endpoint, "q",
                {.max_recoveries = 1'000'000, .grace = std::chrono::milliseconds(0)});
        }).run(stop, std::chrono::milliseconds(100));
    }

    Endpoint m_endpoint;
    Ledger& m_ledger;
    std::chrono::seconds m_lease;
    std::deque<std::atomic<std::uint64_t>> m_counts; ///< acks of each consumer
    std::mutex m_mutex;
    Times m_confirmed;
    Times m_delivered;
    Times m_acked;
    std::vector<std::jthread> m_consuming;
    std::vector<std::jthread> m_producing;
};

/// Whether a violation is explained by a command that may have run in a gap.
inline bool is_of_a_gap(std::string_view wrong, const FailoverLoad& load,
                        const std::vector<Gap>& gaps) {
    const FailoverLoad::Times& times = wrong.starts_with("LOST")       ? load.confirmed()
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

/// Ends the load, judges it on the server that is the primary at the end, and counts.
inline void judge_failovers(FaultReport& report, FailoverLoad& load, Ledger& ledger,
                            const std::vector<Gap>& gaps, const std::string& primary_uri) {
    RedisClient primary(primary_uri);
    load.drain(primary);
    collect_dead(primary, primary_uri, "q"); // consumers that could no longer leave

    std::map<std::string, std::uint64_t> measured;
    for (const std::string& wrong : ledger.check(primary)) {
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
}

} // namespace orizuru::test
