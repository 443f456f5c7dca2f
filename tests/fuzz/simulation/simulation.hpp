// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// One run of the seeded test: producers, collectors, the users of a consumer, and the consumer
// itself, of which the mirror and the scripts are the library's own. What the library does with
// threads and sockets the simulation does step by step, in an order drawn from the seed.

#pragma once

#include "fuzz/model/server.hpp"
#include "fuzz/simulation/chance.hpp"
#include "fuzz/simulation/oracle.hpp"
#include "fuzz/simulation/scenario.hpp"
#include "fuzz/simulation/simulated_network.hpp"

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/redis/verdict.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

class Simulation {
  public:
    /// Empties Redis.
    Simulation(Server& redis, Server& redis_without_rights, std::uint64_t seed,
               const Scenario& scenario, const Sabotage* sabotage, Faults& faults, bool trace);

    /// Throws Violation.
    void run(int steps);

  private:
    using State = detail::Mirror::State;
    using Held = detail::Delivery::State;

    struct Wish {
        detail::DeliveryPtr message;
        Settling how;
        int mark;
        int recoveries_before; ///< it was asked for
    };
    struct Snapshot {
        std::function<void()> restore;
        Words pushed_since;
    };

    [[nodiscard]] detail::Identity make_identity();
    void begin_life();
    void crash();
    void check_left();

    void step(bool quiet);
    void drain();
    void leave_at_end();
    void crash_at_end();

    // The world around the consumer.
    void disturb();
    void push(int count);
    void collect(bool everyone, bool quiet);
    void break_source();
    void mend_source();
    void snapshot();
    void rewind();

    // The consumer's users.
    void use_guards(bool quiet);
    void settle(const detail::DeliveryPtr& message, Settling how);
    [[nodiscard]] Settling any_settling();
    void look_at_outcomes();

    // The consumer's driver.
    void start(bool quiet);
    void adopt(bool quiet);
    void beat(bool quiet);
    void send();
    void send_while_stopping();
    void read(Line line);
    void follow(const detail::Verdict& verdict, Line line);
    void recover();
    void cut(Line line);
    void begin_stop();
    [[nodiscard]] bool may_lose(double rate, bool quiet) {
        return !quiet && m_chance.happens(rate);
    }
    [[nodiscard]] bool none_handed_out() const;

    void send_settle(int fetch) {
        m_mirror->send_settle(m_out, fetch);
        flush(Line::control, RequestKind::settle);
    }
    void flush(Line line, RequestKind kind) {
        m_network.send(line, std::exchange(m_out, {}), kind);
    }
    template <class... Parts>
    void say(const Parts&... parts) const {
        if (m_trace) {
            (std::cout << ... << parts) << '\n';
        }
    }

    Server& m_redis;
    const Scenario& m_scenario;
    Faults& m_faults;
    bool m_exact; ///< the lists are looked at all the time, not only at the end
    bool m_trace;
    Chance m_chance;
    Network m_network;
    Keys m_keys{"q"};
    Oracle m_oracle;

    std::optional<detail::Mirror> m_mirror;
    std::string m_out;
    std::vector<detail::DeliveryPtr> m_guards; ///< handed out and not being settled
    std::vector<Wish> m_wishes;
    bool m_stopping = false;
    bool m_forsaken = false;      ///< no guard is left: what is refused has no owner
    bool m_hidden_rewind = false; ///< Redis was rewound and no connection broke
    bool m_wait_broken = false;   ///< with nothing unanswered: the next blocking fetch finds out
    bool m_reaped_alive = false;  ///< a collector took it for dead, in this life
    bool m_forgot = false;        ///< a blocking fetch may run of which the mirror does not know
    bool m_releasing = false;     ///< a release may be unanswered
    std::string m_leaving;        ///< whose list the last release was for
    int m_hold = 0;               ///< steps to wait before anything is sent

    // A request that was cut off again and again is given back: after a failure of its own and
    // three cuts at the earliest.
    static constexpr int fewest_recoveries_to_blame = 4;

    int m_recoveries = 0;
    int m_identities = 0;
    int m_payloads = 0;
    bool m_source_broken = false;
    bool m_source_was_broken = false;
    std::optional<Snapshot> m_snapshot;
};

inline Simulation::Simulation(Server& redis, Server& redis_without_rights, std::uint64_t seed,
                              const Scenario& scenario, const Sabotage* sabotage, Faults& faults,
                              bool trace)
    : m_redis(redis),
      m_scenario(scenario),
      m_faults(faults),
      // A rewind makes lists differ; a sabotage must show in what becomes of the messages.
      m_exact(scenario.rewind == 0 && sabotage == nullptr),
      m_trace(trace),
      m_chance(seed),
      m_network(redis, redis_without_rights, m_chance, faults, scenario, sabotage, trace),
      m_oracle(m_keys, scenario.alphabet == 0, scenario.rewind == 0) {
    redis.command({"FLUSHALL"});
    redis.command({"SCRIPT", "FLUSH"});
    redis.command({"SET", "no list", "x"});
    begin_life();
    push(m_chance.between(0, 6));
}

inline void Simulation::run(int steps) {
    for (int i = 0; i < steps; ++i) {
        say("step ", i);
        step(false);
    }
    say("the end begins");
    mend_source();
    if (m_chance.happens(0.5)) {
        m_faults.came("ended drained");
        drain();
        leave_at_end();
    } else {
        m_faults.came("ended by a crash");
        crash_at_end();
    }
    m_oracle.check(m_redis);
}

inline detail::Identity Simulation::make_identity() {
    const std::string number = std::to_string(++m_identities);
    detail::Identity identity{"c:" + number, "0123456789abcdef"};
    identity.nonce.replace(16 - number.size(), number.size(), number);
    m_oracle.issued(identity);
    return identity;
}

inline void Simulation::begin_life() {
    if (m_exact && !(m_network.idle(Line::control) && m_network.idle(Line::wait))) {
        throw Violation("something of an earlier consumer is under way");
    }
    m_mirror.emplace(m_keys, std::chrono::seconds(60), [this] { return make_identity(); });
    m_stopping = m_forsaken = m_forgot = m_releasing = m_hidden_rewind = false;
    m_wait_broken = m_reaped_alive = false;
    m_hold = 0;
}

inline void Simulation::crash() {
    m_faults.came("crashed");
    say("the process dies");
    m_network.close(Line::control);
    m_network.close(Line::wait);
    for (const Wish& wish : m_wishes) {
        if (wish.message->state == Held::sent) {
            m_oracle.unknown(wish.message->payload, wish.how, wish.mark);
        }
    }
    m_wishes.clear();
    m_guards.clear();
    begin_life();
}

// ---- Steps

inline void Simulation::step(bool quiet) {
    if (quiet) {
        collect(false, true);
    } else {
        disturb();
    }
    if (m_chance.happens(0.3)) {
        m_network.run_ghost(quiet);
    }
    use_guards(quiet);
    m_hold = quiet ? 0 : std::max(0, m_hold - 1);
    switch (m_mirror->state()) {
    case State::unregistered:
        if (m_stopping) {
            begin_life(); // nothing is held and nothing registered: it has left
        } else if (m_hold == 0) {
            start(quiet);
        }
        return;
    case State::recovering:
        if (m_hold == 0) {
            adopt(quiet);
        }
        return;
    case State::left:
        check_left();
        begin_life();
        return;
    case State::running:
        break;
    }
    if (m_hold == 0) {
        m_stopping ? send_while_stopping() : send();
    }
    const bool wait_first = m_chance.happens(0.5);
    for (const Line line :
         {wait_first ? Line::wait : Line::control, wait_first ? Line::control : Line::wait}) {
        if (m_chance.happens(0.6)) {
            m_network.run_one(line, quiet);
        }
        if (m_mirror->state() == State::running && m_chance.happens(0.6)) {
            read(line);
        }
    }
    if (m_mirror->state() == State::running && m_chance.happens(0.1)) {
        beat(quiet);
    }
    if (!quiet && m_chance.happens(m_scenario.cut)) {
        cut(m_chance.happens(0.5) ? Line::control : Line::wait);
    }
    if (!quiet && !m_stopping && m_chance.happens(m_scenario.stop)) {
        begin_stop();
    }
    if (m_exact && m_mirror->state() == State::running && !m_mirror->unanswered() &&
        m_network.idle(Line::wait) && !m_network.has_ghosts() && !m_forgot) {
        m_oracle.check_list(m_redis, m_mirror->identity(), m_mirror->messages());
    }
}

inline void Simulation::drain() {
    constexpr int enough = 4000;
    for (int i = 0; i < enough; ++i) {
        step(true);
        if (m_mirror->state() == State::running && !m_stopping && m_mirror->messages().empty() &&
            !(m_mirror->unanswered() || m_mirror->blocked()) && !m_network.has_ghosts() &&
            m_redis.command({"LLEN", m_keys.source()}).integer == 0) {
            return;
        }
    }
    throw Violation("it comes to no end: the mirror holds " +
                    std::to_string(m_mirror->messages().size()) + ", the source " +
                    std::to_string(m_redis.command({"LLEN", m_keys.source()}).integer));
}

inline void Simulation::leave_at_end() {
    say("the last stop");
    m_stopping = true;
    for (int i = 0; i < 200 && m_mirror->state() == State::running; ++i) {
        send_while_stopping();
        m_network.run_one(Line::control, true);
        read(Line::control);
        for (int j = 0; j < 200 && m_mirror->state() == State::recovering; ++j) {
            adopt(true);
        }
    }
    // A collector may have taken it for dead unnoticed, or Redis forgotten it: after that it is
    // nowhere registered.
    if (m_mirror->state() == State::left) {
        check_left();
    } else if (m_mirror->state() != State::unregistered ||
               !(m_reaped_alive || m_scenario.rewind > 0)) {
        throw Violation("a consumer that holds nothing does not leave");
    }
    collect(true, true);
    if (!Server::texts(m_redis.command({"SMEMBERS", m_keys.consumers()})).empty()) {
        throw Violation("somebody is registered after the last has left");
    }
}

inline void Simulation::crash_at_end() {
    crash();
    while (m_network.has_ghosts()) {
        m_network.run_ghost(true);
    }
    if (m_scenario.rewind > 0) {
        return; // a collector can find only what the registry has kept
    }
    collect(true, true);
    for (const std::string& key : m_redis.keys()) {
        if (key.starts_with(m_keys.processing("")) && m_redis.type(key) == "list") {
            throw Violation("a list of nobody is left: " + key);
        }
    }
}

inline void Simulation::check_left() {
    m_faults.came("left");
    if (!m_guards.empty() || !m_wishes.empty() || !m_mirror->messages().empty()) {
        throw Violation("a consumer left that still holds messages");
    }
    if (!m_exact) {
        return;
    }
    const std::string key = m_keys.processing(m_leaving);
    if (m_redis.type(key) != "string" ||
        !m_redis.command({"GET", key}).text.starts_with("released orz:") ||
        m_redis.exists(m_keys.heartbeat(m_leaving)) ||
        m_redis.command({"SISMEMBER", m_keys.consumers(), m_leaving}).integer != 0) {
        throw Violation("a consumer that left has not left the registry or no fence");
    }
}

} // namespace orizuru::test

#include "fuzz/simulation/simulation_consumer.hpp"
#include "fuzz/simulation/simulation_users.hpp"
#include "fuzz/simulation/simulation_world.hpp"
