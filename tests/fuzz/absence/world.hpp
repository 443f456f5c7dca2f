// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// One run of consumers and collectors of one queue from one seed: leases from 100 ms to minutes,
// deaths, and a Redis that refuses or holds writes, restarts, or fails over to a replica that lacks
// the last writes. Checks that no consumer is reaped that beats whenever it can, and that each dead
// one is, in time.

#pragma once

#include "fuzz/absence/life_signs.hpp"
#include "fuzz/absence/time.hpp"
#include "fuzz/simulation/chance.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

/// What happened in runs, so that one sees that all kinds did.
using Tally = std::map<std::string, std::uint64_t>;

class World {
  public:
    World(std::uint64_t seed, Fault fault)
        : m_chance(seed), m_fault(fault), m_redis(fault), m_cuts_idle(seed % 10 == 0) {}

    /// Returns what went wrong, or nothing.
    std::optional<std::string> run(Tally& tally);

  private:
    enum class Trouble { refuses, refuses_some, holds, restarts, fails_over };
    static constexpr std::array<const char*, 5> trouble_names{"refusals", "partial refusals",
                                                              "holds", "restarts", "failovers"};
    static constexpr Millis shortest_idle = 50; ///< of connections that are cut

    struct Outage {
        Trouble kind;
        Millis from;
        Millis to;
        Millis lag;  ///< of the replica
        bool silent; ///< clients wait for the old host in vain
    };
    struct Consumer {
        Millis lease;
        bool tells; ///< its lease: not one of 0.1.0
        Millis dies = never;
        Millis starts = 0;
        int refused = 0;       ///< attempts in a row
        int refused_alone = 0; ///< those of them at the end at which others were not refused
    };
    struct Collector {
        Millis interval;
        bool single; ///< calls of collect()
        Millis grace;
        Millis begun;
        std::optional<Millis> answered_since = {}; ///< once it was refused; `never`: not yet
        std::optional<Millis> last_answer = {};
        std::optional<Millis> replaced = {}; ///< when a lost connection counted last
    };
    struct Event {
        Millis at;
        std::uint64_t number;
        std::function<void()> action;
        friend bool operator<(const Event& a, const Event& b) {
            return a.at != b.at ? a.at > b.at : a.number > b.number;
        }
    };

    void at(Millis time, std::function<void()> action) {
        m_events.push({std::max(time, m_now), ++m_events_made, std::move(action)});
    }
    Millis scale() { return m_consumers[m_chance.below(m_consumers.size())].lease; }
    void make_consumers();
    void make_collectors();
    void make_outages();

    [[nodiscard]] const Outage* outage() const {
        for (const Outage& outage : m_outages) {
            if (m_now >= outage.from && m_now < outage.to) {
                return &outage;
            }
        }
        return nullptr;
    }
    /// Runs `request` when Redis does; `patience`: then its client gives up. Calls `refused` if
    /// Redis does not run it.
    void send(Millis patience, const std::function<void()>& request,
              const std::function<void()>& refused);

    void attempt(std::size_t number);
    void visit(std::size_t number);
    /// Sends a collector's request.
    void request(std::size_t number, const std::function<void()>& request);
    /// Whether the connection that a collector has used was lost since.
    [[nodiscard]] bool lost_connection(const Collector& collector) const;
    void ask(std::size_t number, int consumer);
    void end(const Outage& outage);
    void begin();
    void check_the_dead();
    [[nodiscard]] Millis deadline(const Consumer& consumer) const;

    Chance m_chance;
    Fault m_fault;
    LifeSigns m_redis;
    bool m_cuts_idle; ///< something between cuts idle connections
    Millis m_now = 0;
    Millis m_end = 0;
    std::uint64_t m_events_made = 0;
    std::priority_queue<Event> m_events;
    std::vector<Consumer> m_consumers;
    std::vector<Collector> m_collectors;
    std::vector<Outage> m_outages;
    std::vector<std::function<void()>> m_held;
    std::deque<std::pair<Millis, LifeSigns>> m_history; ///< for replicas
    std::optional<std::string> m_wrong;
    Tally* m_tally = nullptr;
};

inline void World::make_consumers() {
    static constexpr std::array<Millis, 9> leases{100,    300,    1000,   3000,   10'000,
                                                  30'000, 30'000, 60'000, 120'000};
    const bool mixed = m_chance.happens(0.3);
    const auto first = m_chance.below(leases.size());
    const int count = m_chance.between(1, 4);
    for (int i = 0; i < count; ++i) {
        const auto other = std::min(leases.size() - 1, first + m_chance.below(3));
        const Millis lease = leases[mixed ? other : first];
        Consumer consumer{lease, !m_chance.happens(0.05)};
        consumer.starts = m_chance.between(0, static_cast<int>(lease));
        if (m_chance.happens(0.4)) {
            consumer.dies = consumer.starts + m_chance.between(1, static_cast<int>(8 * lease));
        }
        m_consumers.push_back(consumer);
    }
}

inline void World::make_collectors() {
    static constexpr std::array<Millis, 7> intervals{1000,   1000,   5000,   15'000,
                                                     15'000, 60'000, 600'000};
    static constexpr std::array<Millis, 3> graces{1000, 10'000, 10'000};
    Millis longest = 0;
    Millis shortest = never;
    for (const Consumer& consumer : m_consumers) {
        longest = std::max(longest, consumer.lease);
        shortest = std::min(shortest, consumer.lease);
    }
    const int count = m_chance.happens(0.7) ? 1 : 2;
    const bool single = m_chance.happens(0.3);
    for (int i = 0; i < count; ++i) {
        Millis interval = intervals[m_chance.below(intervals.size())];
        while (interval > 300 * shortest) { // or the beats are too many to simulate
            interval /= 4;
        }
        m_collectors.push_back({interval, single, graces[m_chance.below(graces.size())],
                                m_chance.between(0, static_cast<int>(interval))});
    }
    for (const Collector& collector : m_collectors) {
        m_end = std::max(m_end, 12 * longest + 4 * collector.interval + 2 * collector.grace);
    }
}

inline void World::make_outages() {
    const int count = m_chance.between(0, 4);
    Millis from = 0;
    for (int i = 0; i < count; ++i) {
        const Millis lease = scale();
        // Some follow at once, before the living could beat in between.
        const double pause = i > 0 && m_chance.happens(0.4) ? 0.1 : 4;
        from += static_cast<Millis>(m_chance.fraction() * pause * static_cast<double>(lease));
        const auto kind = static_cast<Trouble>(m_chance.below(trouble_names.size()));
        const auto length =
            static_cast<Millis>((0.1 + 2.9 * m_chance.fraction()) * static_cast<double>(lease));
        const Millis lag = m_chance.happens(0.3) ? m_chance.between(0, static_cast<int>(2 * lease))
                                                 : m_chance.between(0, 20);
        // A single collect() does not wait for those who wait for a silent host.
        const bool silent =
            m_chance.happens(0.5) && !std::ranges::any_of(m_collectors, &Collector::single);
        m_outages.push_back({kind, from, from + length, lag, silent});
        from += length + 1;
    }
}

inline void World::send(Millis patience, const std::function<void()>& request,
                        const std::function<void()>& refused) {
    const Outage* const outage = this->outage();
    if (outage == nullptr) {
        request();
        return;
    }
    switch (outage->kind) {
    case Trouble::refuses_some:
        if (m_chance.happens(0.5)) {
            request();
            return;
        }
        [[fallthrough]];
    case Trouble::refuses:
    case Trouble::restarts:
    case Trouble::fails_over:
        at(m_now + (outage->kind == Trouble::fails_over && outage->silent ? patience
                                                                          : m_chance.between(0, 2)),
           refused);
        return;
    case Trouble::holds:
        if (m_now + patience <= outage->to) {
            at(m_now + patience, refused); // Redis drops what a closed connection had sent
        } else {
            m_held.push_back(request);
        }
        return;
    }
}

inline void World::attempt(std::size_t number) {
    Consumer& consumer = m_consumers[number];
    if (m_now >= consumer.dies) {
        return;
    }
    const auto again = [this, number](Millis pause) {
        at(m_now + pause, [this, number] { attempt(number); });
    };
    const Millis patience = std::min<Millis>(5000, consumer.lease / 3);
    send(
        patience,
        [this, number, again] {
            Consumer& consumer = m_consumers[number];
            m_redis.beat(m_now, static_cast<int>(number), consumer.lease, consumer.tells);
            consumer.refused = consumer.refused_alone = 0;
            again(consumer.lease / 3 + m_chance.between(0, 2));
        },
        [this, number, again] {
            Consumer& consumer = m_consumers[number];
            ++consumer.refused;
            const Outage* const outage = this->outage();
            const bool alone = outage != nullptr && outage->kind == Trouble::refuses_some;
            consumer.refused_alone = alone ? consumer.refused_alone + 1 : 0;
            m_redis.refused(m_now, consumer.lease);
            // Full jitter. One of 0.1.0 waits longer.
            const Millis most = consumer.tells ? std::min<Millis>(consumer.lease / 12, 1000)
                                               : std::min<Millis>(consumer.lease / 3, 5000);
            const Millis bound =
                std::min<Millis>(most, Millis{50} << std::min(consumer.refused - 1, 7));
            again(1 + static_cast<Millis>(m_chance.below(static_cast<std::size_t>(bound))));
        });
}

inline void World::request(std::size_t number, const std::function<void()>& request) {
    send(
        5000,
        [this, number, request] {
            Collector& collector = m_collectors[number];
            const bool replaced =
                lost_connection(collector) &&
                (!collector.replaced || m_now - *collector.replaced >= Rule::replacements_apart ||
                 m_fault == Fault::each_replacement_counts);
            collector.last_answer = m_now;
            if (collector.answered_since == never) {
                collector.answered_since = m_now;
            } else if (replaced && m_fault != Fault::replacements_forgotten) {
                collector.answered_since = collector.replaced = m_now;
            }
            request();
        },
        [this, number, sent = m_now] {
            // Requests are sent side by side here: one may end late, after others were answered.
            Collector& collector = m_collectors[number];
            if (!collector.answered_since || *collector.answered_since <= sent) {
                collector.answered_since = never;
            }
        });
}

inline bool World::lost_connection(const Collector& collector) const {
    if (!collector.last_answer) {
        return false;
    }
    if (m_cuts_idle && m_now - *collector.last_answer >= shortest_idle) {
        return true;
    }
    return std::ranges::any_of(m_outages, [this, &collector](const Outage& outage) {
        return (outage.kind == Trouble::restarts || outage.kind == Trouble::fails_over) &&
               outage.to <= m_now && outage.from > *collector.last_answer;
    });
}

/// A pass, or a call of collect().
inline void World::visit(std::size_t number) {
    Collector& collector = m_collectors[number];
    // Passes begin 9/10 to 10/10 of an interval apart.
    at(m_now + collector.interval -
           m_chance.between(0, static_cast<int>(std::min<Millis>(collector.interval / 10, 60'000))),
       [this, number] { visit(number); });
    request(number, [this, number] {
        std::vector<int> unheard;
        std::ranges::copy_if(m_redis.registered(), std::back_inserter(unheard),
                             [this](int id) { return !m_redis.heard(m_now, id); });
        m_redis.visit(m_now, unheard.empty());
        for (const int consumer : unheard) {
            ask(number, consumer);
        }
    });
}

inline void World::ask(std::size_t number, int id) {
    Collector& collector = m_collectors[number];
    Consumer& consumer = m_consumers[static_cast<std::size_t>(id)];
    if (m_fault == Fault::own_start_counts && m_now < collector.begun + collector.grace) {
        return;
    }
    const LifeSigns::Answer answer = m_redis.reap(
        m_now, {id, consumer.tells ? std::optional(consumer.lease) : std::nullopt, collector.grace,
                collector.single ? 0 : std::max<Millis>(0, collector.grace - collector.interval),
                !collector.single,
                collector.answered_since ? std::optional(m_now - *collector.answered_since)
                                         : std::nullopt});
    using Verdict = LifeSigns::Answer::Verdict;
    switch (answer.verdict) {
    case Verdict::alive:
    case Verdict::gone:
        return;
    case Verdict::dead:
        ++(*m_tally)["reaped"];
        if (m_now < consumer.dies) {
            // Others could write, it could not, again and again.
            if (consumer.refused_alone >= 12) {
                ++(*m_tally)["living, refused 12 times in a row while others were not"];
                consumer.dies = m_now;
            } else if (!consumer.tells) {
                ++(*m_tally)["living, of 0.1.0"];
                consumer.dies = m_now;
            } else {
                m_wrong = "consumer " + std::to_string(id) + " lives, and is reaped at " +
                          std::to_string(m_now);
            }
        }
        return;
    case Verdict::not_yet:
        ++(*m_tally)["not yet"];
        if (collector.single &&
            (answer.gap == Rule::left_mark || answer.wait > Rule::longest_stay)) {
            return;
        }
        const Millis pause = std::max<Millis>(1, std::min(answer.wait, answer.gap / 2));
        at(m_now + pause + m_chance.between(0, 2),
           [this, number, id] { request(number, [this, number, id] { ask(number, id); }); });
    }
}

/// By when a dead consumer must have been reaped: within its lease, or a lease after Redis takes
/// writes again, and the longer of the grace and two passes.
inline Millis World::deadline(const Consumer& consumer) const {
    Millis base = consumer.dies + consumer.lease;
    for (const Outage& outage : m_outages) {
        if (outage.to >= consumer.dies) { // it may have come in between
            base = std::max(base, outage.to + consumer.lease);
        }
    }
    Millis soonest = never;
    for (const Collector& collector : m_collectors) {
        soonest = std::min(soonest, base + std::max(collector.grace, 2 * collector.interval));
    }
    return soonest + std::max<Millis>(50, consumer.lease / 10);
}

inline void World::end(const Outage& outage) {
    if (outage.kind == Trouble::fails_over) {
        // The replica has what was written `lag` before the old one went.
        while (m_history.size() > 1 && m_history.back().first > outage.from - outage.lag) {
            m_history.pop_back();
        }
        if (!m_history.empty()) {
            m_redis = m_history.back().second;
        }
    }
    std::vector<std::function<void()>> held;
    held.swap(m_held);
    while (!held.empty()) {
        std::swap(m_chance.pick(held), held.back());
        const auto request = std::move(held.back());
        held.pop_back();
        request();
    }
}

inline void World::begin() {
    make_consumers();
    make_collectors();
    make_outages();
    for (const Outage& outage : m_outages) {
        ++(*m_tally)[trouble_names[static_cast<std::size_t>(outage.kind)]];
        at(outage.to, [this, &outage] { end(outage); });
    }
    for (std::size_t i = 0; i < m_consumers.size(); ++i) {
        at(m_consumers[i].starts, [this, i] { attempt(i); });
    }
    for (std::size_t i = 0; i < m_collectors.size(); ++i) {
        at(m_collectors[i].begun, [this, i] { visit(i); });
    }
}

inline void World::check_the_dead() {
    for (std::size_t i = 0; i < m_consumers.size() && !m_wrong; ++i) {
        const Consumer& consumer = m_consumers[i];
        if (consumer.dies < never && m_redis.registered().contains(static_cast<int>(i)) &&
            deadline(consumer) < m_end) {
            m_wrong = "consumer " + std::to_string(i) + " died at " +
                      std::to_string(consumer.dies) + " and is not reaped by " +
                      std::to_string(deadline(consumer));
        }
    }
}

inline std::optional<std::string> World::run(Tally& tally) {
    m_tally = &tally;
    begin();
    const bool fails_over = std::ranges::any_of(
        m_outages, [](const Outage& outage) { return outage.kind == Trouble::fails_over; });
    while (!m_events.empty() && m_events.top().at <= m_end && !m_wrong) {
        const Event event = m_events.top();
        m_events.pop();
        m_now = event.at;
        event.action();
        if (fails_over && (m_history.empty() || m_history.back().first < m_now)) {
            m_history.emplace_back(m_now, m_redis);
        }
    }
    check_the_dead();
    return m_wrong;
}

} // namespace orizuru::test
