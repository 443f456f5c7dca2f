// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a simulated consumer sends, and what it does after replies and breaks. The class is in
// simulated_consumer.hpp.

#pragma once

#include "fuzz/simulation/revealed.hpp"
#include "fuzz/simulation/simulated_consumer.hpp"

#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::test {

inline void SimulatedConsumer::start() {
    if (!m_link->owes(asker(), Request::Kind::start)) {
        m_mirror->send_start(m_out);
        flush(Request::Kind::start);
    }
}

inline void SimulatedConsumer::adopt() {
    if (m_link->owes(asker(), Request::Kind::adopt)) {
        return;
    }
    if (!m_link->may_adopt()) {
        m_context.faults.came("eight at a time");
        return;
    }
    look_for_wait();
    m_mirror->send_adopt(m_out);
    flush(Request::Kind::adopt);
}

// As CLIENT LIST on the link.
inline void SimulatedConsumer::look_for_wait() {
    if (!m_mirror->has_late_fetch() || m_context.chance.happens(0.2)) {
        return; // or it has not the right to ask
    }
    const bool there = m_network.knows(m_last_wait);
    m_context.faults.came(there ? "the waiter's connection lives"
                                : "the waiter's connection is gone");
    if (!there || m_context.has(Defect::presumed_gone)) {
        m_mirror->on_lost_fetch();
    }
}

inline void SimulatedConsumer::after_adoption() {
    const auto recovered = m_mirror->take_recovered();
    if (!recovered) {
        return;
    }
    m_context.faults.came("recovered");
    for (const detail::DeliveryPtr& message : recovered->surfaced) {
        m_context.faults.came(message->trial ? "a suspect surfaced" : "surfaced");
        if (message->trial && !message->trial->field().empty()) {
            throw Violation("a suspect surfaced, and where it is counted is known");
        }
    }
    if (m_mirror->state() == State::left) {
        m_context.faults.came("leave in doubt");
    }
    m_forgot = false; // whatever it was runs into the fence
    m_hidden_rewind = m_wait_broken = false;
    if (m_robbed != m_mirror->identity().id) { // else its new list was taken before it heard of it
        m_robbed.clear();
    }
}

inline void SimulatedConsumer::beat() {
    if (m_mirror->leaving() && !m_context.has(Defect::beats_while_leaving)) {
        return;
    }
    const Keys& keys = m_queue.keys();
    const std::string id = m_mirror->identity().id;
    m_mirror->on_beat_sent();
    const Words command{"EVAL",
                        std::string(detail::beat_script()),
                        "4",
                        keys.heartbeat(id),
                        keys.processing(id),
                        keys.consumers(),
                        keys.writes(),
                        id,
                        "60000",
                        keys.suspects(),
                        "",
                        "600000"};
    if (m_context.strikes(0.1)) {
        m_context.faults.came("BEAT later");
        m_network.add_ghosts({command}, ++m_context.made);
        return;
    }
    const Reply reply = m_network.run(command);
    if (m_context.strikes(0.1)) {
        m_context.faults.came("BEAT reply lost");
        return;
    }
    m_mirror->on_beat_answered();
    if (reply.integer == 3) {
        m_context.faults.came("BEAT says that suspects wait");
        return;
    }
    // The fence may be that of its own leaving.
    if (reply.integer != 1 && !m_mirror->leaving()) {
        m_context.faults.came(reply.integer == 0 ? "BEAT says fenced" : "BEAT says gone");
        recover();
    }
}

inline void SimulatedConsumer::send_settle(int fetch) {
    m_mirror->send_settle(m_out, fetch);
    const Words words = words_of(m_out);
    const std::size_t first_other = 3 + std::stoul(words.at(2)) + 5; // behind the least length
    if (words.size() > first_other && !words[first_other].starts_with('-')) {
        m_context.faults.came("list rewritten");
    }
    flush(Request::Kind::settle);
}

inline void SimulatedConsumer::try_suspect() {
    if (auto trial = detail::Trials::ask(m_share.trials, m_share.limits)) {
        m_mirror->send_try_suspect(m_out, std::move(trial), m_share.limits);
        flush(Request::Kind::suspect);
    } else {
        m_context.faults.came("no room for a suspect");
    }
}

inline void SimulatedConsumer::look_at_suspect(std::size_t before) const {
    if (m_mirror->messages().size() == before) {
        return;
    }
    m_context.faults.came("a suspect came");
    const detail::Trials::Held held = m_share.trials->held();
    const auto level = static_cast<std::size_t>(held.most_blamed);
    if (level == 0 || held.count > m_share.limits.most.at(level - 1)) {
        throw Violation("a process holds more suspects than it may");
    }
}

inline bool SimulatedConsumer::puts_back() const {
    return std::any_of(
        m_mirror->messages().begin(), m_mirror->messages().end(),
        [](const auto& message) { return !message->taken && message->state == Held::wanted; });
}

inline void SimulatedConsumer::send() {
    Chance& chance = m_context.chance;
    const bool fetches = m_context.phase != Phase::still;
    if (m_mirror->can_move() && m_mirror->has_moves() && chance.happens(0.6)) {
        send_move();
    }
    const double trial = m_context.scenario.trial;
    if (trial > 0 && m_mirror->can_send() && may_begin_to_wait() && chance.happens(trial)) {
        try_suspect();
    }
    if (m_mirror->can_send() && !m_mirror->blocked() && fetches && chance.happens(0.35)) {
        send_settle(chance.between(1, m_context.scenario.most_fetched));
    } else if (m_mirror->can_send() && m_mirror->has_acks() && chance.happens(0.4)) {
        send_settle(0);
    } else if (may_begin_to_wait() && !m_hidden_rewind && chance.happens(0.3)) {
        // Not after a hidden rewind: what a blocking fetch adds and nobody has read yet can make up
        // for what the rewind took away. The least length cannot see that, and a settlement then
        // removes a message that it does not mean: a gap that is known and left open.
        if (m_wait_broken) {
            recover();
            return;
        }
        m_mirror->send_blocking_fetch(m_out, std::chrono::milliseconds(5000));
        m_last_wait = m_wait.number();
        m_wait.send(std::exchange(m_out, {}), Request::Kind::fetch);
    }
}

inline void SimulatedConsumer::begin_stop() {
    m_context.faults.came("stopped");
    say("stop");
    m_stopping = true;
    if (m_context.chance.happens(0.3)) {
        m_context.faults.came("guards dropped at the stop");
        m_forsaken = true;
        m_guards.clear();
        m_mirror->forsake();
    }
}

inline void SimulatedConsumer::send_while_stopping() {
    Chance& chance = m_context.chance;
    if (m_mirror->blocked()) {
        if (chance.happens(0.4)) {
            m_context.faults.came("stopped, waiter unblocked");
            m_wait.unblock();
        } else if (chance.happens(0.3)) {
            m_context.faults.came("stopped, waiter's connection closed");
            close_wait();
            m_mirror->forget_blocking_fetch();
            m_forgot = true;
        }
        return;
    }
    m_mirror->requeue_suspects();
    if (puts_back()) {
        m_context.faults.came("suspects put back at the stop");
    }
    if (m_mirror->can_move() && m_mirror->has_moves() && chance.happens(0.6)) {
        send_move();
    }
    if (m_mirror->can_send() && m_mirror->has_acks() && chance.happens(0.6)) {
        send_settle(0);
    }
    // One at a time: behind a release that leaves, nothing may be sent.
    m_releasing = m_releasing && m_mirror->unanswered();
    const bool due = m_mirror->has_ready() || none_handed_out();
    if (m_mirror->can_send() && !m_mirror->fetching() && !m_releasing && !puts_back() && due) {
        send_release();
    }
}

inline void SimulatedConsumer::send_release() {
    m_releasing = true;
    if (!none_handed_out()) {
        m_context.faults.came("release with guards held");
    }
    m_leaving = m_mirror->identity().id;
    m_mirror->send_release(m_out);
    flush(Request::Kind::release);
}

inline bool SimulatedConsumer::none_handed_out() const {
    return std::none_of(
        m_mirror->messages().begin(), m_mirror->messages().end(),
        [](const auto& message) { return message->taken && message->state != Held::sent; });
}

// ---- Replies

inline void SimulatedConsumer::read_wait() {
    if (!runs()) {
        return;
    }
    if (std::optional<Reply> reply = m_wait.receive()) {
        const detail::Verdict verdict = m_mirror->on_blocking_fetch(std::move(*reply));
        look_at_outcomes();
        // The connection is its own: the link stays, whatever it is.
        if (follow(verdict) != detail::Remedy::none) {
            pause();
        }
    }
}

inline bool SimulatedConsumer::awaits(Request::Kind kind) const {
    switch (kind) {
    case Request::Kind::start:
        return m_mirror->state() == State::unregistered;
    case Request::Kind::adopt:
        return m_mirror->state() == State::recovering && m_mirror.value().*revealed(Adopting{});
    default:
        return m_mirror->unanswered();
    }
}

inline detail::Remedy SimulatedConsumer::take(Request::Kind kind, Reply&& reply) {
    if (!awaits(kind)) {
        if (m_context.exact()) {
            throw Violation("a reply that its mirror does not await");
        }
        return detail::Remedy::none;
    }
    detail::Verdict verdict;
    if (kind == Request::Kind::start) {
        if (reply.is(Reply::Type::integer) && reply.integer == 0) {
            m_context.faults.came("START fenced");
        }
        verdict = m_mirror->on_start(reply);
    } else if (kind == Request::Kind::adopt) {
        verdict = m_mirror->on_adopt(reply);
        after_adoption();
    } else {
        const std::size_t before = m_mirror->messages().size();
        verdict = m_mirror->on_reply(std::move(reply));
        if (kind == Request::Kind::suspect) {
            look_at_suspect(before);
        }
    }
    look_at_outcomes();
    return follow(verdict);
}

inline detail::Remedy SimulatedConsumer::follow(const detail::Verdict& verdict) {
    if (verdict.remedy != detail::Remedy::none) {
        say("verdict ", static_cast<int>(verdict.remedy), ": ", verdict.reason);
    }
    if (verdict.remedy == detail::Remedy::give_up) {
        pause();
    }
    if (verdict.remedy == detail::Remedy::recover || verdict.remedy == detail::Remedy::reconnect) {
        check_cause(verdict);
        recover();
    }
    return verdict.remedy;
}

// Nothing that a refusal left behind, and nothing that another mirror does, may look like a doubt.
inline void SimulatedConsumer::check_cause(const detail::Verdict& verdict) const {
    const bool shown =
        m_context.exact() || (m_context.sabotage != nullptr && m_context.sabotage->doubts);
    if (shown && verdict.reason.starts_with("STALE")) {
        throw Violation("STALE, and nothing happened to the list");
    }
}

// ---- Doubts

inline void SimulatedConsumer::recover() {
    if (!runs()) {
        return;
    }
    if (m_context.scenario.only_refusals_that_pass) {
        throw Violation("a recovery, and nothing was in doubt");
    }
    ++m_recoveries;
    say("recovery begins");
    if (m_link->owes_others(m_number)) {
        m_context.faults.came("one mirror recovers while others have replies owed");
    }
    close_wait();
    m_mirror->begin_recovery();
    if (m_context.has(Defect::forgotten)) {
        m_link->forget(m_number);
    }
    if (m_links.size() > 1 && m_context.strikes(0.3)) {
        m_context.faults.came("moved to another link");
        m_link = &m_context.chance.pick(m_links);
    }
}

inline void SimulatedConsumer::close_wait() {
    if (m_context.has(Defect::late_replies)) {
        m_wait.leave_requests();
    } else {
        m_wait.close();
    }
}

inline void SimulatedConsumer::lose_link() {
    if (m_mirror->unanswered()) {
        recover();
    }
}

inline void SimulatedConsumer::lose_wait() {
    if (!runs()) {
        return;
    }
    say("its wait connection breaks");
    m_context.faults.came("cut");
    close_wait();
    if (m_mirror->blocked()) {
        recover();
    } else {
        m_context.faults.came("cut with nothing unanswered");
    }
}

inline void SimulatedConsumer::wait_long() {
    if (m_context.chance.happens(0.5) && m_mirror->blocked()) {
        lose_wait();
        return;
    }
    run_wait();
    m_wait.unblock(); // BLMOVE's own time ends
    while (m_wait.unread() > 0 && runs()) {
        read_wait();
    }
}

inline void SimulatedConsumer::meet_hidden_rewind() {
    m_wait.let_go();
    m_hidden_rewind = true;
}

inline void SimulatedConsumer::meet_rewind() {
    m_wait.drop();
    m_wait_broken = true;
    if (m_mirror->unanswered() || m_mirror->blocked()) {
        recover();
    }
}

inline void SimulatedConsumer::lift_barrier() { m_mirror.value().*revealed(Draining{}) = false; }

} // namespace orizuru::test
