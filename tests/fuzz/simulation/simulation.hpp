// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// One run of the seeded test: a few queues with their producers and collectors, and processes with
// a few consumers on shared links, in an order drawn from the seed.

#pragma once

#include "fuzz/model/server.hpp"
#include "fuzz/simulation/context.hpp"
#include "fuzz/simulation/network.hpp"
#include "fuzz/simulation/simulated_consumer.hpp"
#include "fuzz/simulation/simulated_process.hpp"
#include "fuzz/simulation/simulated_queue.hpp"

#include <orizuru/detail/redis/limits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

namespace orizuru::test {

class Simulation {
  public:
    /// Empties Redis.
    Simulation(Users users, std::uint64_t seed, const Scenario& scenario, const Sabotage* sabotage,
               Faults& faults, bool trace);
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;

    /// Throws Violation.
    void run(int steps);

  private:
    /// How often the last stops go on.
    static constexpr int most_rounds = 400;

    void make_consumers();
    void step();
    void disturb();
    void collect();
    void collect_from(SimulatedQueue& queue);
    void rewind();
    void pass_long_time();
    void check_owners();
    void drain();
    void leave_at_end();
    void crash_at_end();
    void collect_all();
    void check();

    [[nodiscard]] bool all_rest();
    [[nodiscard]] bool all_settled();
    template <class Visit>
    void each_consumer(Visit visit) {
        for (SimulatedProcess& process : m_processes) {
            std::ranges::for_each(process.consumers(), visit);
        }
    }

    Context m_context;
    Network m_network{m_context};
    std::deque<SimulatedQueue> m_queues; // which stay where they are
    std::deque<SimulatedProcess> m_processes;
    std::function<void()> m_restore; ///< what brings Redis back to where it was
};

inline Simulation::Simulation(Users users, std::uint64_t seed, const Scenario& scenario,
                              const Sabotage* sabotage, Faults& faults, bool trace)
    : m_context{users.all_rights, users, scenario, sabotage, faults, trace, Chance(seed)} {
    Server& redis = m_context.redis;
    redis.command({"FLUSHALL"});
    redis.command({"SCRIPT", "FLUSH"});
    redis.command({"SET", "no list", "x"});
    // A rewind brings back another time, too.
    m_context.counts_writes = seed % 2 == 0 && scenario.rewind == 0;
    make_consumers();
    for (SimulatedQueue& queue : m_queues) {
        queue.push(m_context.chance.between(0, 6));
    }
}

inline void Simulation::make_consumers() {
    Chance& chance = m_context.chance;
    const Scenario& scenario = m_context.scenario;
    const int consumers = chance.between(scenario.fewest_consumers, scenario.most_consumers);
    const bool crowd = consumers > Link::most_adoptions;
    const int queues = chance.between(1, std::min(consumers, 3));
    const int processes = crowd ? 1 : chance.between(1, std::min(consumers, 2));
    for (int i = 1; i <= queues; ++i) {
        m_queues.emplace_back(m_context, m_network, i);
    }
    for (int i = 0; i < processes; ++i) {
        const bool two_links = !crowd && consumers > processes && chance.happens(0.3);
        m_processes.emplace_back(m_context, m_network, two_links ? 2 : 1);
    }
    for (int i = 0; i < consumers; ++i) {
        SimulatedProcess& process = m_processes[static_cast<std::size_t>(i % processes)];
        process.add_consumer(i < queues ? m_queues[static_cast<std::size_t>(i)]
                                        : chance.pick(m_queues));
    }
}

inline void Simulation::run(int steps) {
    for (int i = 0; i < steps; ++i) {
        m_context.say("step ", i);
        step();
    }
    m_context.say("the end begins");
    std::ranges::for_each(m_queues, &SimulatedQueue::mend);
    m_context.phase = Phase::calm;
    if (m_context.chance.happens(0.5)) {
        m_context.faults.came("ended drained");
        drain();
        leave_at_end();
    } else {
        m_context.faults.came("ended by a crash");
        crash_at_end();
    }
    check();
}

// ---- Steps

inline void Simulation::step() {
    if (m_context.quiet()) {
        collect();
    } else {
        disturb();
    }
    if (m_context.chance.happens(0.3)) {
        m_network.run_ghost();
    }
    std::ranges::for_each(m_processes, &SimulatedProcess::step);
}

inline void Simulation::disturb() {
    const Scenario& scenario = m_context.scenario;
    std::ranges::for_each(m_queues, &SimulatedQueue::disturb);
    for (SimulatedQueue& queue : m_queues) {
        if (m_context.strikes(scenario.reap)) {
            collect_from(queue);
        }
    }
    if (m_context.strikes(scenario.script_flush)) {
        m_context.faults.came("scripts forgotten");
        m_context.redis.command({"SCRIPT", "FLUSH"});
    }
    if (scenario.rewind > 0) {
        if (!m_restore || m_context.strikes(scenario.snapshot)) {
            m_restore = m_context.redis.snapshot();
            std::ranges::for_each(m_queues, &SimulatedQueue::remember);
        } else if (m_context.strikes(scenario.rewind)) {
            rewind();
        }
    }
    if (m_context.strikes(scenario.long_time)) {
        pass_long_time();
    }
    for (SimulatedProcess& process : m_processes) {
        if (m_context.strikes(scenario.crash)) {
            process.crash();
        }
    }
}

inline void Simulation::collect() {
    for (SimulatedQueue& queue : m_queues) {
        collect_from(queue);
    }
}

inline void Simulation::collect_from(SimulatedQueue& queue) {
    const auto owner = [this](const std::string& id) {
        SimulatedConsumer* found = nullptr;
        each_consumer(
            [&](SimulatedConsumer& consumer) { found = consumer.has_id(id) ? &consumer : found; });
        return found;
    };
    queue.collect([&](const std::string& id) { return owner(id) != nullptr; },
                  [&](const std::string& id) {
                      if (SimulatedConsumer* consumer = owner(id)) {
                          consumer->taken_for_dead(id);
                      }
                  });
}

// Ends each key that would not outlive a short fence: heartbeats, too.
inline void Simulation::pass_long_time() {
    m_context.faults.came("a long time passes");
    m_context.say("a long time passes");
    std::ranges::for_each(m_processes, &SimulatedProcess::wait_long);
    Server& redis = m_context.redis;
    for (const SimulatedQueue& queue : m_queues) {
        const std::string writes = queue.keys().writes();
        m_context.series[writes].pass(redis, writes, detail::short_fence_time.count());
    }
    for (const std::string& key : redis.keys()) {
        const std::int64_t left = redis.command({"PTTL", key}).integer;
        if (left < 0 || left > detail::short_fence_time.count()) {
            continue;
        }
        const Reply text = redis.run({"GET", key});
        redis.command({"DEL", key});
        for (const SimulatedQueue& queue : m_queues) {
            if (key.starts_with(queue.keys().processing(""))) {
                m_context.faults.came("a short fence ends");
                m_network.end_fence(key, text.text);
            }
        }
    }
}

// Half of the time the connections live on, as they do when a server is made a replica and a master
// again, or behind a proxy.
inline void Simulation::rewind() {
    m_context.faults.came("rewound");
    m_context.say("Redis is rewound");
    m_restore();
    std::ranges::for_each(m_queues, &SimulatedQueue::repeat);
    std::ranges::for_each(m_processes, m_context.chance.happens(0.5)
                                           ? &SimulatedProcess::meet_hidden_rewind
                                           : &SimulatedProcess::meet_rewind);
}

// ---- Ends

inline bool Simulation::all_settled() {
    bool settled = !m_network.has_ghosts();
    for (SimulatedQueue& queue : m_queues) {
        settled = settled && queue.backlog() == 0;
    }
    each_consumer([&](const SimulatedConsumer& consumer) { settled &= consumer.holds_nothing(); });
    return settled;
}

inline bool Simulation::all_rest() {
    bool rest = all_settled();
    each_consumer([&](const SimulatedConsumer& consumer) { rest &= consumer.rests(); });
    return rest;
}

inline void Simulation::drain() {
    constexpr int enough = 4000;
    for (int i = 0; i < enough; ++i) {
        m_context.phase = Phase::calm;
        step();
        m_context.phase = Phase::still;
        for (int j = 0; j < 50 && all_settled(); ++j) {
            if (all_rest()) {
                std::ranges::for_each(m_processes, &SimulatedProcess::check_trials);
                return;
            }
            step();
        }
    }
    throw Violation("it comes to no end");
}

inline void Simulation::leave_at_end() {
    m_context.say("the last stop");
    each_consumer(&SimulatedConsumer::stop);
    bool gone = false;
    for (int i = 0; i < most_rounds && !gone; ++i) {
        gone = true;
        each_consumer([&](SimulatedConsumer& consumer) { gone &= consumer.leave(); });
        std::ranges::for_each(m_processes, &SimulatedProcess::answer_all);
    }
    each_consumer(&SimulatedConsumer::check_gone);
    collect_all();
    check_owners();
    for (const SimulatedQueue& queue : m_queues) {
        if (!Server::texts(m_context.redis.command({"SMEMBERS", queue.keys().consumers()}))
                 .empty()) {
            throw Violation("somebody is registered after the last has left");
        }
    }
}

inline void Simulation::crash_at_end() {
    std::ranges::for_each(m_processes, &SimulatedProcess::crash);
    while (m_network.has_ghosts()) {
        m_network.run_ghost();
    }
    if (m_context.scenario.rewind == 0) {
        collect_all();
    }
    check_owners();
}

// When nobody lives and a collector has passed. After a rewind it can find only what the registry
// has kept.
inline void Simulation::check_owners() {
    if (m_context.scenario.rewind > 0) {
        return;
    }
    for (const std::string& key : m_context.redis.keys()) {
        for (const SimulatedQueue& queue : m_queues) {
            if (key.starts_with(queue.keys().processing("")) &&
                m_context.redis.type(key) == "list") {
                throw Violation("a list of nobody is left: " + key);
            }
        }
    }
}

// A collector's passes when nobody lives: the series of writes is theirs alone then.
inline void Simulation::collect_all() {
    constexpr int passes = 1 + SeriesAccount::lease / (2 * SeriesAccount::step);
    for (int i = 0; i < (m_context.counts_writes ? passes : 1); ++i) {
        for (SimulatedQueue& queue : m_queues) {
            queue.collect([](const std::string&) { return false; }, [](const std::string&) {});
        }
    }
}

inline void Simulation::check() {
    for (const std::string& key : m_context.redis.keys()) {
        const auto owners = std::ranges::count_if(
            m_queues, [&](SimulatedQueue& queue) { return queue.oracle().owns(key); });
        if (owners != 1 && m_context.redis.type(key) == "list") {
            throw Violation("a list of no queue: " + key);
        }
    }
    for (SimulatedQueue& queue : m_queues) {
        queue.oracle().check(m_context.redis);
    }
}

} // namespace orizuru::test
