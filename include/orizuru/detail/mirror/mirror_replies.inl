// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Applies replies to a mirror.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

namespace orizuru::detail {

inline Verdict Mirror::on_start(const Reply& reply) {
    m_late.answered();
    if (reply.is(Reply::Type::error)) {
        Verdict verdict = refused(reply);
        // An older Redis does not know the line that our scripts begin with.
        if (reply.text.starts_with("ERR Error compiling script")) {
            verdict.reason = joined({"ERR this needs Redis 7.0 or newer: ", reply.text});
        }
        return verdict;
    }
    if (reply.is(Reply::Type::integer) && reply.integer == 1) {
        m_state = State::running;
        m_confirmed = 0;
        return {};
    }
    // Fenced: the reply to an earlier START was lost and a collector came in between.
    become(m_make_identity());
    return {Remedy::back_off, "registered too late"};
}

inline Verdict Mirror::on_reply(Reply&& reply) {
    assert(!m_requests.empty());
    Request& request = m_requests.front();
    if (reply.is(Reply::Type::error)) {
        return on_error(request, reply);
    }
    if (!is_result(request, reply)) {
        return doubt(request, Remedy::reconnect, wrong_type);
    }
    ran(request);
    if (request.kind == Request::Kind::suspect) {
        on_suspect(request, reply);
        answered();
        return {};
    }
    if (request.fetch > 0) {
        m_more_to_fetch = std::cmp_greater_equal(reply.elements.size(), request.fetch);
    }
    expect(reply.elements.size());
    for (Reply& element : reply.elements) {
        append(element.text);
    }
    answered();
    return {};
}

inline void Mirror::on_suspect(Request& request, Reply& reply) {
    m_asks_for_suspects = true;
    if (reply.elements.empty()) {
        return;
    }
    expect(1);
    append(reply.elements[0].text);
    constexpr std::uint64_t most = TrialLimits::levels;
    const std::uint64_t recoveries = *whole_number(reply.elements[2].text);
    request.trial->begin(static_cast<int>(std::min(recoveries, most)),
                         std::move(reply.elements[1].text));
    m_messages.back()->trial = std::move(request.trial);
    m_trial_news = true;
}

inline void Mirror::answered() noexcept {
    m_requests.pop_front();
    m_draining = m_draining && !m_requests.empty();
}

// True only for what the script returns when it has run.
inline bool Mirror::is_result(const Request& request, const Reply& reply) noexcept {
    switch (request.kind) {
    case Request::Kind::settle:
        return is_strings(reply) && std::cmp_less_equal(reply.elements.size(), request.fetch);
    case Request::Kind::move:
        return reply.is(Reply::Type::integer) && reply.integer == 1;
    case Request::Kind::suspect:
        return is_strings(reply) &&
               (reply.elements.empty() ||
                (reply.elements.size() == 3 && whole_number(reply.elements[2].text)));
    default:
        return is_count(reply);
    }
}

inline Verdict Mirror::on_error(Request& request, const Reply& reply) {
    if (reply.code() == "SRC" && request.kind == Request::Kind::settle) {
        Verdict verdict{Remedy::give_up, std::string(reply.behind_code())};
        ran(request);
        answered();
        return verdict;
    }
    if (reply.code() == "STALE" && m_draining) {
        unsend(request, {});
        answered();
        return {};
    }
    const auto refuse = [&](Remedy remedy, const std::string& refusal) {
        Verdict verdict{remedy, refusal.empty() ? reply.text : refusal};
        unsend(request, refusal);
        m_draining = m_refused = true;
        answered();
        return verdict;
    };
    const bool of_suspect = request.kind == Request::Kind::suspect;
    if (reply.code() == "REFUSED") {
        m_asks_for_suspects = m_asks_for_suspects && !of_suspect;
        const bool alone = request.kind == Request::Kind::move || of_suspect;
        return refuse(alone ? Remedy::none : Remedy::give_up, std::string(reply.behind_code()));
    }
    const Remedy remedy = remedy_for(reply);
    switch (remedy) {
    case Remedy::back_off:
    case Remedy::reconnect:
        return refuse(remedy, {});
    case Remedy::send_body:
        m_cached.clear();
        // If Redis says so even to the body, pause before asking again.
        return refuse(request.with_body ? Remedy::back_off : Remedy::none, {});
    case Remedy::give_up: {
        // A caller that awaits the settlement gets the error; without one, the user must. A
        // consumer that may not have suspects leaves them to others.
        m_asks_for_suspects = m_asks_for_suspects && !of_suspect;
        const bool awaited = request.kind == Request::Kind::move || of_suspect ||
                             (request.kind == Request::Kind::settle && request.fetch == 0);
        return refuse(awaited ? Remedy::none : Remedy::give_up, reply.text);
    }
    case Remedy::none:
    case Remedy::recover:
        break;
    }
    return doubt(request, Remedy::recover, reply.text);
}

inline Verdict Mirror::on_blocking_fetch(Reply&& reply) {
    const ByWaiter asked = std::exchange(m_by_waiter, ByWaiter::nothing);
    if (reply.is(Reply::Type::string)) {
        expect(1);
        append(reply.text);
    }
    if (reply.is(Reply::Type::string) || reply.is(Reply::Type::nil)) {
        m_fetches += asked == ByWaiter::look ? 1U : 0U;
        return {};
    }
    if (!reply.is(Reply::Type::error)) {
        m_by_waiter = asked; // still in doubt: it may have run
        return {Remedy::recover, wrong_type};
    }
    // Redis refused it before it ran. Only a fence's error or an unknown one asks for recovery.
    const Remedy remedy = remedy_for(reply);
    return {remedy == Remedy::send_body ? Remedy::recover : remedy, reply.text};
}

inline void Mirror::ran(Request& request) noexcept {
    m_confirmed = request.version;
    m_refused = false;
    if (request.fetch > 0 && request.kind != Request::Kind::suspect) {
        ++m_fetches;
        m_failed_fetches = 0;
    }
    done(request);
}

inline void Mirror::on_settled(Delivery& message) noexcept {
    message.state = S::settled;
    message.tell_outcome();
    m_trial_news = m_trial_news || message.trial;
}

inline void Mirror::done(Request& request) noexcept {
    m_sent -= request.messages;
    for (; request.messages > 0 && settles(request, m_messages.front()); --request.messages) {
        on_settled(*m_messages.front());
        m_pool.recycle(m_messages.pop_front());
        m_next -= m_next > 0 ? 1 : 0;
    }
    if (request.messages > 0) {
        m_messages.erase_if([&](const DeliveryPtr& message) {
            const bool settled = settles(request, message);
            if (settled) {
                on_settled(*message);
                m_pool.recycle(DeliveryPtr(message));
            }
            return settled;
        });
        request.messages = 0;
        m_next = 0;
        find_next();
    }
    if (request.kind == Request::Kind::leave) {
        m_state = State::left;
    }
}

// A settlement that did not run is wanted again; after a refusal its message is held again.
inline void Mirror::unsend(const Request& request, const std::string& refusal) {
    const bool wanted =
        request.kind == Request::Kind::settle || request.kind == Request::Kind::move;
    for (const DeliveryPtr& message : m_messages) {
        if (settles(request, message)) {
            message->refusal = wanted ? refusal : std::string();
            message->state = wanted && refusal.empty() ? S::wanted : S::held;
            if (!message->refusal.empty()) {
                message->tell_outcome();
            }
        }
    }
    recount();
}

} // namespace orizuru::detail
