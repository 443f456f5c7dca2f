// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Acts on the replies to a consumer's scripts and begins recovery after a doubt. The class is in
// channels.hpp.

#include <orizuru/detail/base/digits.hpp>
#include <orizuru/detail/consumer/channels.hpp>

namespace orizuru::detail {

// Running out of memory half-way may leave the mirror partly changed. Only the list can then tell
// what it holds.
inline void Channels::take(Reply&& reply) {
    try {
        on_reply(std::move(reply));
    } catch (const std::exception& error) {
        begin_recovery(error.what());
        throw;
    }
}

inline void Channels::on_reply(Reply&& reply) {
    using Purpose = Control::Purpose;
    const Control::Expected expected = m_control.take_expected();
    switch (expected.purpose) {
    case Purpose::answer:
        expected.answer->reply = std::move(reply);
        break;
    case Purpose::start:
        follow(mirror.on_start(reply));
        on_registered(expected.sent);
        break;
    case Purpose::adopt: {
        const Verdict verdict = mirror.on_adopt(reply);
        // Comes before follow(), which may throw: the recovery's outcome must count.
        if (const auto recovered = mirror.take_recovered()) {
            on_registered(expected.sent);
            after_recovery(*recovered);
        }
        follow(verdict);
        break;
    }
    case Purpose::chain: {
        const Verdict verdict = mirror.on_reply(std::move(reply));
        if (verdict.action == Verdict::Action::proceed) {
            // Registering and adopting do not count: they can work where settling fails.
            m_control.succeeded();
        }
        follow(verdict);
        break;
    }
    }
    unattended.tell(events, mirror.identity().id);
}

inline void Channels::on_registered(TimePoint asked) {
    if (mirror.state() == Mirror::State::running) {
        confirm_lease(asked);
        forget_refusal();
    }
}

inline void Channels::follow(const Verdict& verdict) {
    switch (verdict.action) {
    case Verdict::Action::proceed:
        return;
    case Verdict::Action::back_off:
        m_control.note_failure(at_address(verdict.reason));
        m_control.hold();
        return;
    case Verdict::Action::reconnect:
        lose_control(at_address(verdict.reason));
        return;
    case Verdict::Action::recover:
        m_control.delay_connecting();
        begin_recovery(at_address(verdict.reason));
        return;
    case Verdict::Action::give_up:
        m_control.hold();
        note_refusal(verdict.reason);
        return;
    }
}

inline void Channels::note_refusal(std::string_view text) {
    m_control.note_failure(at_address(text));
    m_refusal = std::make_exception_ptr(reply_error(
        joined({endpoint().address(), ": queue '", mirror.keys().source(), "'"}), text));
}

inline void Channels::after_recovery(const Recovered& recovered) {
    m_recoveries.fetch_add(1, std::memory_order_relaxed);
    unattended.on_lost(recovered.lost);
    guards.drop(recovered.acked);
    if (!recovered.refusal.empty()) {
        note_refusal(recovered.refusal);
    }
    const std::string& id = mirror.identity().id;
    if (recovered.reaped || !recovered.lost.empty()) {
        events.note(EventKind::lease_lost, id,
                    joined({Digits(recovered.lost.size()), " messages are with others now"}));
    }
    for (const DeliveryPtr& message : recovered.surfaced) {
        events.note(EventKind::redelivered, id, "the reply to its fetch was lost",
                    message->payload);
    }
}

inline void Channels::begin_recovery(std::string_view reason) noexcept {
    if (mirror.state() != Mirror::State::running) {
        return;
    }
    mirror.begin_recovery();
    if (m_caretaker != nullptr) {
        m_caretaker->signal();
    }
    m_control.end(reason);
    if (wait) {
        wait_doomed = true;
        wait->shutdown();
    }
    m_turns.wake_all();
}

inline void Channels::drop_closed() noexcept {
    if (!m_control.idle() || !m_control.stream().closed_by_peer()) {
        return;
    }
    m_control.end("the server closed the idle connection");
    if (!m_control.proven()) {
        m_control.delay_connecting(); // the peer accepts connections only to close them
    }
    m_turns.wake_all();
}

// A connection that breaks with nothing unanswered leaves no doubt and needs no recovery.
inline void Channels::lose_control(std::string_view reason) noexcept {
    if (mirror.unanswered()) {
        begin_recovery(reason);
    }
    m_control.end(reason);
    m_control.delay_connecting();
    m_turns.wake_all();
}

} // namespace orizuru::detail
