// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The consumer's driver, what the library does with threads and sockets: it sends what the mirror
// composes and does what the mirror says after a reply. Part of simulation.hpp.

#pragma once

#include "fuzz/simulation/simulation.hpp"

#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/verdict.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::test {

inline void Simulation::start(bool quiet) {
    m_mirror->send_start(m_out);
    const std::string command = std::exchange(m_out, {});
    const std::string id = m_mirror->identity().id;
    if (may_lose(0.1, quiet)) {
        m_faults.came("START never came");
        return;
    }
    if (may_lose(0.1, quiet)) {
        m_faults.came("START later");
        m_network.add_ghost(command);
        return;
    }
    if (may_lose(0.05, quiet)) {
        m_faults.came("START refused");
        const std::string text = m_chance.happens(0.5) ? "LOADING the data" : "READONLY a replica";
        follow(m_mirror->on_start({Reply::Type::error, 0, text, {}}), Line::control);
        return;
    }
    if (may_lose(0.05, quiet)) {
        const bool before = m_redis.exists(m_keys.heartbeat(id));
        const Reply reply = m_network.run_without_rights(words_of(command));
        if (reply.code() == "NOPERM") {
            m_faults.came("START without rights");
            if (before != m_redis.exists(m_keys.heartbeat(id))) {
                throw Violation("START wrote before it was refused");
            }
        }
        follow(m_mirror->on_start(reply), Line::control);
        return;
    }
    const Reply reply = m_network.run(words_of(command));
    if (may_lose(m_scenario.lost_start, quiet)) {
        m_faults.came("START reply lost");
        return;
    }
    if (reply.is(Reply::Type::integer) && reply.integer == 0) {
        m_faults.came("START fenced");
    }
    follow(m_mirror->on_start(reply), Line::control);
}

inline void Simulation::adopt(bool quiet) {
    m_mirror->send_adopt(m_out);
    const std::string command = std::exchange(m_out, {});
    const double fate = quiet ? 1 : m_chance.fraction();
    if (fate < 0.15) {
        m_faults.came("ADOPT later");
        m_network.add_ghost(command);
        return;
    }
    if (fate < 0.25) {
        m_faults.came("ADOPT never came");
        return;
    }
    if (fate < 0.3) {
        m_faults.came("ADOPT refused");
        const std::string text =
            m_chance.happens(0.5) ? "BUSY a script runs" : "READONLY a replica";
        follow(m_mirror->on_adopt({Reply::Type::error, 0, text, {}}), Line::control);
        return;
    }
    const Reply reply = m_network.run(words_of(command));
    if (fate < 0.45) {
        m_faults.came("ADOPT reply lost");
        return;
    }
    const std::string before = m_mirror->identity().id;
    follow(m_mirror->on_adopt(reply), Line::control);
    if (const auto recovered = m_mirror->take_recovered()) {
        m_faults.came("recovered");
        if (!recovered->surfaced.empty()) {
            m_faults.came("surfaced");
        }
        if (m_mirror->state() == State::left) {
            m_faults.came("leave in doubt");
        }
        m_forgot = false; // whatever it was runs into the fence
        m_hidden_rewind = m_wait_broken = false;
        look_at_outcomes();
    }
}

inline void Simulation::beat(bool quiet) {
    const std::string id = m_mirror->identity().id;
    const Words command{"EVAL",
                        std::string(detail::beat_script()),
                        "3",
                        m_keys.heartbeat(id),
                        m_keys.processing(id),
                        m_keys.consumers(),
                        id,
                        "60000"};
    if (may_lose(0.1, quiet)) {
        m_faults.came("BEAT later");
        m_network.add_ghost(command_of(command));
        return;
    }
    const Reply reply = m_network.run(command);
    if (may_lose(0.1, quiet)) {
        m_faults.came("BEAT reply lost");
        return;
    }
    if (reply.integer != 1) {
        m_faults.came(reply.integer == 0 ? "BEAT says fenced" : "BEAT says gone");
        recover();
    }
}

inline void Simulation::send() {
    if (m_mirror->can_send() && m_mirror->has_moves() && m_chance.happens(0.6)) {
        m_mirror->send_move(m_out);
        flush(Line::control, RequestKind::move);
    }
    if (m_mirror->can_send() && !m_mirror->blocked() && m_chance.happens(0.35)) {
        send_settle(m_chance.between(1, 4));
    } else if (m_mirror->can_send() && m_mirror->has_acks() && m_chance.happens(0.4)) {
        send_settle(0);
    } else if (!m_mirror->blocked() && !m_mirror->fetching() && !m_hidden_rewind &&
               m_chance.happens(0.3)) {
        // Not after a hidden rewind: what a blocking fetch adds and nobody has read yet can make up
        // for what the rewind took away. The least length cannot see that, and a settlement then
        // removes a message that it does not mean: a gap that is known and left open.
        if (m_wait_broken) {
            recover();
            return;
        }
        m_mirror->send_blocking_fetch(m_out, std::chrono::milliseconds(5000));
        flush(Line::wait, RequestKind::fetch);
    }
}

inline void Simulation::begin_stop() {
    m_faults.came("stopped");
    say("stop");
    m_stopping = true;
    if (m_chance.happens(0.3)) {
        m_faults.came("guards dropped at the stop");
        m_forsaken = true;
        m_guards.clear();
        m_mirror->forsake();
    }
}

inline void Simulation::send_while_stopping() {
    if (m_mirror->blocked()) {
        if (m_chance.happens(0.4)) {
            m_faults.came("stopped, waiter unblocked");
            m_network.unblock();
        } else if (m_chance.happens(0.3)) {
            m_faults.came("stopped, waiter's connection closed");
            m_network.close(Line::wait);
            m_mirror->forget_blocking_fetch();
            m_forgot = true;
        }
        return;
    }
    if (m_mirror->can_send() && m_mirror->has_moves() && m_chance.happens(0.6)) {
        m_mirror->send_move(m_out);
        flush(Line::control, RequestKind::move);
    }
    if (m_mirror->can_send() && m_mirror->has_acks() && m_chance.happens(0.6)) {
        send_settle(0);
    }
    // One at a time: behind a release that leaves, nothing may be sent.
    m_releasing = m_releasing && m_mirror->unanswered();
    const bool due = m_mirror->has_ready() || none_handed_out();
    if (m_mirror->can_send() && !m_mirror->fetching() && !m_releasing && due) {
        m_releasing = true;
        if (!none_handed_out()) {
            m_faults.came("release with guards held");
        }
        m_leaving = m_mirror->identity().id;
        m_mirror->send_release(m_out);
        flush(Line::control, RequestKind::release);
    }
}

inline bool Simulation::none_handed_out() const {
    return std::none_of(
        m_mirror->messages().begin(), m_mirror->messages().end(),
        [](const auto& message) { return message->taken && message->state != Held::sent; });
}

inline void Simulation::read(Line line) {
    std::optional<Reply> reply = m_network.receive(line);
    if (!reply) {
        return;
    }
    const detail::Verdict verdict = line == Line::control
                                        ? m_mirror->on_reply(std::move(*reply))
                                        : m_mirror->on_blocking_fetch(std::move(*reply));
    look_at_outcomes();
    follow(verdict, line);
}

inline void Simulation::follow(const detail::Verdict& verdict, Line line) {
    if (verdict.remedy != detail::Remedy::none) {
        say("verdict ", static_cast<int>(verdict.remedy), ": ", verdict.reason);
    }
    switch (verdict.remedy) {
    case detail::Remedy::none:
        return;
    case detail::Remedy::back_off:
    case detail::Remedy::give_up:
        m_hold = m_chance.between(1, 5);
        return;
    case detail::Remedy::reconnect:
        m_hold = m_chance.between(1, 5);
        recover();
        cut(line);
        return;
    case detail::Remedy::recover:
        recover();
        return;
    }
}

inline void Simulation::recover() {
    if (m_mirror->state() != State::running) {
        return;
    }
    ++m_recoveries;
    say("recovery begins");
    m_network.close(Line::control);
    m_network.close(Line::wait);
    m_mirror->begin_recovery();
}

inline void Simulation::cut(Line line) {
    say("cut");
    m_faults.came("cut");
    m_network.close(line);
    if (line == Line::control ? m_mirror->unanswered() : m_mirror->blocked()) {
        recover();
    } else {
        m_faults.came("cut with nothing unanswered");
    }
}

} // namespace orizuru::test
