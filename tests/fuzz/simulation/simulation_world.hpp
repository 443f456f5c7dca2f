// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What happens around the consumer: producers, collectors, a source that is no list, and a Redis
// that goes back to an earlier state. Part of simulation.hpp.

#pragma once

#include "fuzz/simulation/simulation.hpp"

#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace orizuru::test {

inline void Simulation::disturb() {
    if (m_chance.happens(0.15)) {
        push(m_chance.between(1, 3));
    }
    if (m_chance.happens(m_scenario.reap)) {
        collect(false, false);
    }
    if (m_source_broken ? m_chance.happens(0.2) : m_chance.happens(m_scenario.wrong_source)) {
        m_source_broken ? mend_source() : break_source();
    }
    if (m_chance.happens(m_scenario.script_flush)) {
        m_faults.came("scripts forgotten");
        m_redis.command({"SCRIPT", "FLUSH"});
    }
    if (m_scenario.rewind > 0) {
        if (!m_snapshot || m_chance.happens(0.03)) {
            snapshot();
        } else if (m_chance.happens(m_scenario.rewind)) {
            rewind();
        }
    }
    if (m_chance.happens(m_scenario.crash)) {
        crash();
    }
}

inline void Simulation::push(int count) {
    for (int i = 0; i < count && !m_source_broken; ++i) {
        const int number =
            m_scenario.alphabet == 0 ? ++m_payloads : m_chance.between(1, m_scenario.alphabet);
        // One that looks like a header: only the owner's own nonce makes one.
        const std::string payload =
            (m_scenario.alphabet == 2 && number == 2 ? "orz:feed:" : "m") + std::to_string(number);
        m_redis.command({"LPUSH", m_keys.source(), payload});
        m_oracle.pushed(payload);
        if (m_snapshot) {
            m_snapshot->pushed_since.push_back(payload);
        }
    }
}

// A collector's pass. Leases end when the simulation says so: it deletes the heartbeat.
inline void Simulation::collect(bool everyone, bool quiet) {
    Words ids = Server::texts(m_redis.command({"SMEMBERS", m_keys.consumers()}));
    std::sort(ids.begin(), ids.end());
    for (const std::string& id : ids) {
        const bool own = id == m_mirror->identity().id && !everyone;
        if (quiet ? !own : m_chance.happens(own ? 0.6 : 0.9)) {
            m_redis.command({"DEL", m_keys.heartbeat(id)});
        }
        const bool alive = m_redis.exists(m_keys.heartbeat(id));
        const Reply reply = m_network.run(
            {"EVAL", std::string(detail::reap_script()), "6", m_keys.heartbeat(id),
             m_keys.processing(id), m_keys.source(), m_keys.consumers(), m_keys.recoveries(),
             m_keys.dead(), id, "604800000", "2", "259200", "0", std::string(m_scenario.blamed)});
        if (reply.is(Reply::Type::error)) {
            if (!m_source_broken || alive) {
                throw Violation("REAP: " + reply.text);
            }
            continue;
        }
        const std::int64_t moved = reply.elements.at(0).integer;
        if (alive != (moved == -1)) {
            throw Violation("REAP took from the living or spared the dead");
        }
        if (moved >= 0) {
            m_faults.came(own ? "reaped while the consumer lived" : "reaped");
            m_reaped_alive = m_reaped_alive || own;
        }
        if (reply.elements.size() > 1 && reply.elements[1].integer > 0) {
            m_faults.came("buried by a collector");
        }
    }
    if (m_chance.happens(0.3)) {
        m_network.run({"EVAL", std::string(detail::refill_script()), "2", m_keys.unack(),
                       m_keys.source(), "2"});
    }
}

inline void Simulation::break_source() {
    m_faults.came("source of the wrong type");
    m_source_broken = m_source_was_broken = true;
    if (m_redis.exists(m_keys.source())) {
        m_redis.command({"RENAME", m_keys.source(), "aside"});
    }
    m_redis.command({"SET", m_keys.source(), "x"});
}

inline void Simulation::mend_source() {
    if (std::exchange(m_source_broken, false)) {
        m_redis.command({"DEL", m_keys.source()});
        if (m_redis.exists("aside")) {
            m_redis.command({"RENAME", "aside", m_keys.source()});
        }
    }
}

inline void Simulation::snapshot() { m_snapshot = Snapshot{m_redis.snapshot(), {}}; }

inline void Simulation::rewind() {
    m_faults.came("rewound");
    say("Redis is rewound");
    m_snapshot->restore();
    for (const std::string& payload : m_snapshot->pushed_since) {
        m_redis.command({"LPUSH", m_keys.source(), payload});
    }
    // Half of the time the connections live on, as they do when a server is made a replica and a
    // master again, or behind a proxy.
    if (m_chance.happens(0.5)) {
        m_network.let_go();
        m_hidden_rewind = true;
    } else {
        m_network.drop_requests(Line::control);
        m_network.drop_requests(Line::wait);
        m_wait_broken = true;
        if (m_mirror->unanswered() || m_mirror->blocked()) {
            recover();
        }
    }
}

} // namespace orizuru::test
