// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What the users of a simulated consumer do with the messages, and what they are told. The class is
// in simulated_consumer.hpp.

#pragma once

#include "fuzz/simulation/simulated_consumer.hpp"

#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/script.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::test {

inline void SimulatedConsumer::hand_out() {
    const auto& messages = m_mirror->messages();
    const auto first = std::find_if(messages.begin(), messages.end(), [](const auto& message) {
        return message->state == Held::held && !message->taken;
    });
    if (m_mirror->has_ready() != (first != messages.end())) {
        throw Violation("what is ready is not what was not handed out");
    }
    if (m_mirror->has_ready()) {
        const detail::DeliveryPtr expected = *first;
        const detail::DeliveryPtr message = m_mirror->hand_out();
        if (message != expected) {
            throw Violation("not the oldest message was handed out");
        }
        say("handed out ", message->payload);
        m_queue.oracle().handed_out(message->payload, m_robbed.empty() ? Lease::held : Lease::lost);
        m_guards.push_back(message);
    }
}

inline void SimulatedConsumer::drop_lost_guards() {
    std::erase_if(m_guards, [](const auto& message) { return message->state == Held::lost; });
}

inline void SimulatedConsumer::use_guards() {
    if (!m_stopping && m_context.chance.happens(0.7)) {
        hand_out();
    }
    drop_lost_guards();
    if (m_context.scenario.bulk > 0) {
        ack_in_bulk();
    }
    if (m_guards.empty() || !m_context.chance.happens(0.5)) {
        return;
    }
    const std::size_t chosen =
        m_context.chance.happens(0.6) ? 0 : m_context.chance.below(m_guards.size());
    const detail::DeliveryPtr message = m_guards[chosen];
    m_guards.erase(m_guards.begin() + static_cast<std::ptrdiff_t>(chosen));
    if (message->state != Held::held) {
        throw Violation("a guard's message is settled by nobody");
    }
    if (m_context.strikes(0.02)) {
        m_context.faults.came("taken back");
        say("taken back ", message->payload);
        m_mirror->put_back(message);
    } else {
        settle(message, m_context.quiet() ? Settling::ack : any_settling());
    }
}

// Keeps the older ones, so that the acked ones lie behind messages that stay.
inline void SimulatedConsumer::ack_in_bulk() {
    while (!m_stopping && m_mirror->has_ready()) {
        hand_out();
    }
    if (!m_context.chance.happens(m_context.scenario.bulk)) {
        return;
    }
    const std::size_t kept = m_context.chance.below(m_guards.size() / 2 + 1);
    while (m_guards.size() > kept) {
        const detail::DeliveryPtr message = m_guards.back();
        m_guards.pop_back();
        settle(message, Settling::ack);
    }
}

inline Settling SimulatedConsumer::any_settling() {
    if (m_context.chance.happens(m_context.scenario.unusual_wishes)) {
        return static_cast<Settling>(m_context.chance.between(
            static_cast<int>(Settling::refuse), static_cast<int>(Settling::wrong_target)));
    }
    if (m_context.chance.happens(0.65)) {
        return Settling::ack;
    }
    return static_cast<Settling>(m_context.chance.between(static_cast<int>(Settling::reject),
                                                          static_cast<int>(Settling::record)));
}

inline void SimulatedConsumer::settle(const detail::DeliveryPtr& message, Settling how) {
    static const Script record_body(R"lua(
redis.call('RPUSH', KEYS[1], ARGV[1])
)lua");
    static const Script refuse_body(R"lua(
return redis.error_reply('NOTNOW ' .. payload)
)lua");
    static const Script fail_body(R"lua(
redis.call('RPUSH', KEYS[1], payload)
if ARGV[1] == 'INCR' then redis.call('INCR', KEYS[1]) end
error(ARGV[1] == '' and 'no luck' or {err = ARGV[1] .. ' no luck'})
)lua");
    using Recoveries = detail::Move::Recoveries;
    const auto move = [](const Script& script, Words keys, Words args = {},
                         Recoveries then = Recoveries::kept) {
        return std::make_unique<detail::Move>(script, std::move(keys), std::move(args), then);
    };
    // By a command that Redis refuses, by a plain text, and by what looks like another's answer.
    static constexpr std::array failures{"INCR", "", "SRC", "STALE", "NOSCRIPT", "BUSY"};
    const int mark = m_queue.oracle().new_mark();
    const std::string marked = Oracle::marked(message->payload, mark);
    std::unique_ptr<detail::Move> wanted;
    switch (how) {
    case Settling::ack:
        if (message->trial) {
            wanted = move(detail::ack_body(), {m_queue.keys().recoveries()});
        }
        break;
    case Settling::reject:
        wanted = move(detail::push_body(), {m_queue.keys().unack()});
        break;
    case Settling::push:
        wanted = move(detail::push_body(), {m_queue.oracle().key("other")});
        break;
    case Settling::replace:
        wanted = move(detail::push_body(), {m_queue.oracle().key("other")}, {marked});
        break;
    case Settling::bury:
        wanted = move(detail::bury_body(), {m_queue.keys().dead()}, {"a reason"});
        break;
    case Settling::give_back:
        wanted = move(detail::release_body(),
                      {message->trial ? m_queue.keys().suspects() : m_queue.keys().source()});
        break;
    case Settling::record:
        wanted = move(record_body, {m_queue.oracle().key("record")}, {marked}, Recoveries::ended);
        break;
    case Settling::refuse:
        wanted = move(refuse_body, {});
        break;
    case Settling::fail:
        wanted =
            move(fail_body, {m_queue.oracle().key("partial")}, {m_context.chance.pick(failures)});
        break;
    case Settling::wrong_target:
        wanted = m_context.chance.happens(0.5)
                     ? move(detail::push_body(), {"no list"})
                     : move(detail::bury_body(), {"no list"}, {"a reason"});
        break;
    }
    say("wanted ", message->payload, ", settling ", static_cast<int>(how), ", mark ", mark);
    m_queue.oracle().asked(message->payload, how);
    message->failures = 0; // as the session does
    const bool ends =
        message->trial && (how == Settling::ack || wanted->recoveries == Recoveries::ended);
    m_mirror->want(message, std::move(wanted));
    m_wishes.push_back(
        {message, how, mark, m_recoveries, ends ? message->trial->field() : std::string()});
}

inline void SimulatedConsumer::look_at_outcomes() {
    bool ownerless = false;
    std::erase_if(m_wishes, [&](const Wish& wish) {
        const detail::Delivery& message = *wish.message;
        switch (message.state) {
        case Held::wanted:
        case Held::sent:
            return false;
        case Held::settled:
            say("settled ", message.payload, ", mark ", wish.mark);
            m_queue.oracle().said_true(message.payload, wish.how, wish.mark);
            m_context.faults.came(wish.how == Settling::ack ? "acks that said true"
                                                            : "other settlements that said true");
            if (!wish.field.empty()) {
                m_context.faults.came("counts of suspects that ended");
                m_queue.oracle().count_ended(wish.field);
            }
            return true;
        case Held::lost:
            m_context.faults.came("lease lost");
            return true;
        case Held::held:
            break;
        }
        look_at_refusal(wish);
        if (m_forsaken) {
            ownerless = true;
        } else {
            m_guards.push_back(wish.message);
        }
        return true;
    });
    if (ownerless) {
        m_mirror->forsake();
    }
}

inline void SimulatedConsumer::look_at_refusal(const Wish& wish) {
    const std::string_view why = wish.message->refusal;
    const bool own_fault = wish.how == Settling::refuse || wish.how == Settling::fail ||
                           wish.how == Settling::wrong_target;
    const bool injected = why.starts_with("NOPERM") || why.starts_with("ERR nobody") ||
                          why.starts_with("ERR a reply of the wrong type") ||
                          (why.starts_with("ERR the connection broke") &&
                           m_recoveries - wish.recoveries_before >= fewest_recoveries_to_blame);
    if (why.empty() ||
        (!own_fault && !injected && !m_queue.was_broken() && m_context.scenario.rewind == 0)) {
        throw Violation("refused without a reason: " + wish.message->payload + " " +
                        wish.message->refusal);
    }
    if (!injected) {
        m_context.faults.came(wish.how == Settling::refuse ? "refused by its body"
                              : wish.how == Settling::fail ? "refused because its body failed"
                              : wish.how == Settling::wrong_target ? "wrong target"
                                                                   : "source refused");
    }
    say("refused ", wish.message->payload, ": ", why);
}

} // namespace orizuru::test
