// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Acts on the replies to a lane's requests, on doubts and on refusals.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

namespace orizuru::detail {

inline Verdict Lane::on_reply(Purpose purpose, Reply&& reply) {
    Verdict verdict = apply(purpose, std::move(reply));
    if (m_link->among_others() && is_astray(verdict.reason)) {
        stray(verdict.reason, m_link->server());
        verdict.remedy = Remedy::recover; // the link itself is well
    } else if (verdict.remedy != Remedy::none) {
        act_on(verdict);
    } else if (purpose == Purpose::chain) {
        m_backoff.succeeded();
        m_failure.clear();
        m_whereabouts.served();
        m_events.forget_migration();
    }
    if (m_mirror.take_trial_news()) {
        mark_suspects();
    }
    m_held.note_outcomes();
    wake_poller();
    if (has_told()) {
        m_attendance.ask_for_news();
    }
    return verdict;
}

inline Verdict Lane::apply(Purpose purpose, Reply&& reply) {
    if (purpose == Purpose::chain) {
        return m_mirror.on_reply(std::move(reply));
    }
    if (purpose == Purpose::seek) {
        // One that is gone brings nothing more. A user without the right is told nothing.
        if (reply.is(Reply::Type::string) && reply.text.empty()) {
            m_mirror.on_lost_fetch();
        }
        m_sought = 0;
        return {};
    }
    if (purpose == Purpose::measure) {
        on_measured(reply);
        return {};
    }
    Verdict verdict =
        purpose == Purpose::start ? m_mirror.on_start(reply) : m_mirror.on_adopt(reply);
    if (m_mirror.running()) {
        on_registered();
    }
    if (const auto recovered = m_mirror.take_recovered()) {
        after_recovery(*recovered);
    }
    return verdict;
}

inline void Lane::on_registered() {
    if (m_link->among_others()) {
        m_whereabouts.found_at(m_link->server());
    }
    m_lease.confirm();
    m_cuts.ended();
    m_refusal.forget();
    m_attendance.wake_watchers(); // a thread that polls may go on
}

inline void Lane::on_measured(const Reply& reply) {
    if (const auto refusal = m_cuts.measured(reply, Clock::now(), m_mirror.lease())) {
        keep_refusal(*refusal);
    }
}

inline void Lane::after_recovery(const Recovered& recovered) {
    m_held.on_recovered(recovered);
    if (!recovered.refusal.empty()) {
        keep_refusal(recovered.refusal);
    }
    if (recovered.reaped || !recovered.lost.empty()) {
        m_events.note(EventKind::lease_lost,
                      joined({Digits(recovered.lost.size()), " messages are with others now"}));
    }
    for (const DeliveryPtr& message : recovered.surfaced) {
        m_events.note(EventKind::redelivered, "the reply to its fetch was lost", message->payload);
    }
    m_attendance.ask_for_news(); // the last guard may have acked what is lost
}

// The link does its own part: it holds all its members back, or connects again.
inline void Lane::act_on(const Verdict& verdict) {
    switch (verdict.remedy) {
    case Remedy::none:
    case Remedy::send_body: // never: the mirror does that itself
        return;
    case Remedy::back_off:
        keep_failure(m_failure, m_link->at_address(verdict.reason));
        m_events.note_migration(verdict.reason);
        m_backoff.begin(longest_backoff());
        return;
    case Remedy::recover:
        m_backoff.begin(longest_backoff());
        begin_recovery(m_link->at_address(verdict.reason));
        return;
    case Remedy::reconnect:
        begin_recovery(m_link->at_address(verdict.reason));
        return;
    case Remedy::give_up:
        m_backoff.begin(longest_backoff());
        keep_refusal(verdict.reason);
        return;
    }
}

inline void Lane::begin_recovery(std::string_view reason) noexcept {
    if (!m_mirror.running()) {
        return;
    }
    keep_failure(m_failure, reason);
    m_sought = m_waiters_client.id;
    m_mirror.begin_recovery();
    m_attendance.ask();
    m_link->wake_all();
}

inline void Lane::stray(std::string_view error, const Node& teller) {
    if (!m_whereabouts.stray(error, teller)) {
        m_backoff.begin(longest_backoff());
    }
    begin_recovery(m_link->at_address(error));
    m_attendance.ask();
}

inline void Lane::move(std::shared_ptr<Link> link) noexcept {
    m_attendance.end();
    if (m_mirror.unanswered()) {
        begin_recovery("the queue is on another node");
    }
    m_link->leave(*this);
    m_link->wake_all();
    m_link = std::move(link);
    m_link->join(*this);
    m_cuts.end_pause(); // it was for another server
    m_whereabouts.goes_elsewhere();
    m_attendance.ask();
    if (m_link->connected()) {
        on_connected({});
    }
}

// A connection that breaks with nothing unanswered leaves no doubt and needs no recovery.
inline void Lane::on_broken(std::string_view reason) noexcept {
    m_whereabouts.goes_elsewhere();
    if (m_mirror.unanswered()) {
        begin_recovery(reason);
    }
    m_failure.clear();
    m_events.forget_migration();
}

inline void Lane::on_outage(std::string_view reason) noexcept {
    m_events.note_break(reason);
    m_attendance.ask_for_news();
}

inline void Lane::on_connected(std::string_view repair) noexcept {
    if (!repair.empty()) {
        m_events.note_repair(repair);
        m_attendance.ask_for_news();
    } else if (m_link->among_others()) { // it may have been told of a break of another link
        m_events.note_repair(endpoint().address());
    }
    wake_poller();
}

inline void Lane::on_refused(const std::exception_ptr& refusal) noexcept {
    m_refusal.keep(refusal);
    m_attendance.wake_watchers();
}

inline void Lane::keep_refusal(std::string_view text) {
    keep_failure(m_failure, m_link->at_address(text));
    m_refusal.keep(std::make_exception_ptr(
        reply_error(joined({endpoint().address(), ": queue '", keys().source(), "'"}), text)));
    m_attendance.wake_watchers();
}

} // namespace orizuru::detail
