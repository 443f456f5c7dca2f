// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A queue and what happens around its consumers: producers, collectors, a source that is no list.

#pragma once

#include "fuzz/simulation/context.hpp"
#include "fuzz/simulation/network.hpp"
#include "fuzz/simulation/oracle.hpp"

#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace orizuru::test {

class SimulatedQueue {
  public:
    /// `number`: its messages and keys have it in their names.
    SimulatedQueue(Context& context, Network& network, int number)
        : m_context(context),
          m_network(network),
          m_number(number),
          m_keys("q" + std::to_string(number)),
          m_oracle(m_keys, context.scenario.alphabet == 0, context.scenario.rewind == 0) {}
    SimulatedQueue(const SimulatedQueue&) = delete;
    SimulatedQueue& operator=(const SimulatedQueue&) = delete;

    [[nodiscard]] const Keys& keys() const noexcept { return m_keys; }
    [[nodiscard]] Oracle& oracle() noexcept { return m_oracle; }
    /// The source was no list at some time.
    [[nodiscard]] bool was_broken() const noexcept { return m_was_broken; }
    /// With the suspects that wait apart.
    [[nodiscard]] std::int64_t backlog() {
        return m_context.redis.command({"LLEN", m_keys.source()}).integer +
               m_context.redis.command({"LLEN", m_keys.suspects()}).integer;
    }

    void push(int count);
    void disturb();
    void mend();

    /// A collector's pass, and the time before it. Leases end when the simulation says so: it
    /// deletes the heartbeat. `living`: whether an id is that of a consumer that lives;
    /// `taken_for_dead` is told of those whose lists are taken nevertheless.
    void collect(detail::FunctionRef<bool(const std::string&)> living,
                 detail::FunctionRef<void(const std::string&)> taken_for_dead);

    /// Redis was brought back to where it was at the last `remember`: what was pushed since is
    /// pushed again.
    void remember() { m_pushed_since.clear(); }
    void repeat() {
        for (const std::string& payload : m_pushed_since) {
            m_context.redis.command({"LPUSH", m_keys.source(), payload});
        }
    }

  private:
    void pass_time();
    void return_suspects();
    [[nodiscard]] bool suspects_wait() const noexcept { return m_context.scenario.trial > 0; }
    /// How long a series must last before the absence of this consumer counts: 0 if at once, as
    /// that of one whose list is gone. `time_for`: what the collector has the time to await.
    [[nodiscard]] std::int64_t needed(const std::string& id, std::int64_t time_for);
    [[nodiscard]] std::string payload();
    void break_source();
    [[nodiscard]] bool ends_lease(bool alive) {
        return m_context.quiet() ? !alive : m_context.chance.happens(alive ? 0.6 : 0.9);
    }

    Context& m_context;
    Network& m_network;
    int m_number;
    Keys m_keys;
    Oracle m_oracle;
    int m_payloads = 0;
    bool m_broken = false;
    bool m_was_broken = false;
    Words m_pushed_since;
};

inline void SimulatedQueue::disturb() {
    Chance& chance = m_context.chance;
    if (chance.happens(0.15)) {
        push(chance.between(1, m_context.scenario.most_pushed));
    }
    if (m_broken && chance.happens(0.2)) {
        mend();
    } else if (!m_broken && chance.happens(m_context.scenario.wrong_source)) {
        break_source();
    }
}

inline void SimulatedQueue::push(int count) {
    for (int i = 0; i < count && !m_broken; ++i) {
        const std::string text = payload();
        m_context.redis.command({"LPUSH", m_keys.source(), text});
        m_oracle.pushed(text);
        m_pushed_since.push_back(text);
    }
}

// No two queues have one in common.
inline std::string SimulatedQueue::payload() {
    const int alphabet = m_context.scenario.alphabet;
    const int letter = alphabet == 0 ? ++m_payloads : m_context.chance.between(1, alphabet);
    // One that looks like a header: only the owner's own nonce makes one.
    return alphabet == 2 && letter == 2 ? "orz:feed:" + std::to_string(m_number)
                                        : m_keys.source() + "-" + std::to_string(letter);
}

inline void SimulatedQueue::collect(detail::FunctionRef<bool(const std::string&)> living,
                                    detail::FunctionRef<void(const std::string&)> taken_for_dead) {
    Server& redis = m_context.redis;
    pass_time();
    Words ids = Server::texts(redis.command({"SMEMBERS", m_keys.consumers()}));
    std::sort(ids.begin(), ids.end());
    for (const std::string& id : ids) {
        const bool lives = living(id);
        if (ends_lease(lives)) {
            redis.command({"DEL", m_keys.heartbeat(id)});
        }
        const bool leased = redis.exists(m_keys.heartbeat(id));
        const std::int64_t time_for = m_context.made % 2 == 0 ? 0 : SeriesAccount::lease;
        const std::int64_t need = needed(id, time_for);
        // Sometimes Redis has refused the collector a moment ago.
        const bool unsure = need > 0 && !m_context.quiet() && m_context.made % 5 == 3;
        SeriesAccount& series = m_context.series[m_keys.writes()];
        const Reply reply = m_network.run({"EVAL",
                                           std::string(detail::reap_script.source()),
                                           "9",
                                           m_keys.heartbeat(id),
                                           m_keys.processing(id),
                                           m_keys.source(),
                                           m_keys.consumers(),
                                           m_keys.recoveries(),
                                           m_keys.dead(),
                                           m_keys.writes(),
                                           m_keys.suspects(),
                                           m_keys.suspects_asked(),
                                           id,
                                           "604800000",
                                           "2",
                                           "259200",
                                           "0",
                                           std::string(m_context.scenario.blamed),
                                           std::to_string(need == 0 ? 0 : SeriesAccount::lease),
                                           std::to_string(time_for),
                                           "1",
                                           "0",
                                           "86400000",
                                           "600000",
                                           suspects_wait() ? "1" : "0",
                                           unsure                    ? "5999"
                                           : m_context.made % 2 == 0 ? "6000"
                                                                     : "",
                                           "5000"});
        if (reply.is(Reply::Type::error)) {
            if (!m_broken || leased) {
                throw Violation("REAP: " + reply.text);
            }
            continue;
        }
        const std::int64_t moved = reply.elements.at(0).integer;
        if (leased != (moved == -1)) {
            throw Violation("REAP took from the living or spared the dead");
        }
        if (!leased && moved != -2 && (moved == -3) != (series.age() < need || unsure)) {
            throw Violation("REAP does not go by the series of writes");
        }
        if (moved == -3) {
            m_context.faults.came("spared until Redis has taken writes for long enough");
            series.write();
            continue;
        }
        if (moved >= 0) {
            m_context.faults.came(lives ? "reaped while the consumer lived" : "reaped");
            taken_for_dead(id);
        }
        if (reply.elements.size() > 2 && reply.elements[1].integer > 0) {
            m_context.faults.came("put apart by a collector");
            if (!suspects_wait()) {
                throw Violation("REAP put messages apart for which nobody asks");
            }
        }
        if (reply.elements.size() > 2 && reply.elements[2].integer > 0) {
            m_context.faults.came("buried by a collector");
        }
    }
    if (m_context.chance.happens(0.3)) {
        m_network.run({"EVAL", std::string(detail::refill_script.source()), "2", m_keys.unack(),
                       m_keys.source(), "2"});
    }
    if (suspects_wait() && m_context.chance.happens(0.2)) {
        return_suspects();
    }
}

// Half of the time nobody has asked for so long that they go back.
inline void SimulatedQueue::return_suspects() {
    Server& redis = m_context.redis;
    if (m_context.chance.happens(0.5)) {
        redis.command({"DEL", m_keys.suspects_asked()});
    }
    const bool asked = redis.exists(m_keys.suspects_asked());
    const Reply reply =
        m_network.run({"EVAL", std::string(detail::return_suspects_script.source()), "3",
                       m_keys.suspects(), m_keys.source(), m_keys.suspects_asked()});
    if (m_broken && reply.code() == "WRONGTYPE") {
        return;
    }
    if (!reply.is(Reply::Type::integer) || (asked && reply.integer > 0)) {
        throw Violation("suspects went back to the source while somebody asked for them");
    }
    if (reply.integer > 0) {
        m_context.faults.came("suspects returned to the source");
    }
}

inline void SimulatedQueue::pass_time() {
    if (m_context.counts_writes) {
        m_context.series[m_keys.writes()].pass(
            m_context.redis, m_keys.writes(),
            SeriesAccount::step * (m_context.quiet() ? 2 : m_context.chance.between(0, 3)));
    }
}

inline std::int64_t SimulatedQueue::needed(const std::string& id, std::int64_t time_for) {
    const bool has_list = m_context.redis.type(m_keys.processing(id)) == "list";
    return m_context.counts_writes && has_list ? std::max(SeriesAccount::lease / 2, time_for) : 0;
}

inline void SimulatedQueue::break_source() {
    m_context.faults.came("source of the wrong type");
    m_broken = m_was_broken = true;
    if (m_context.redis.exists(m_keys.source())) {
        m_context.redis.command({"RENAME", m_keys.source(), m_oracle.key("aside")});
    }
    m_context.redis.command({"SET", m_keys.source(), "x"});
}

inline void SimulatedQueue::mend() {
    if (std::exchange(m_broken, false)) {
        m_context.redis.command({"DEL", m_keys.source()});
        if (m_context.redis.exists(m_oracle.key("aside"))) {
            m_context.redis.command({"RENAME", m_oracle.key("aside"), m_keys.source()});
        }
    }
}

} // namespace orizuru::test
