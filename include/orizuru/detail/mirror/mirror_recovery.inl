// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds out, after a doubt, which requests ran and which messages a mirror still has.

namespace orizuru::detail {

inline void Mirror::begin_recovery() noexcept {
    if (m_state == State::running) {
        m_state = State::recovering;
        ++m_incarnation;
        m_draining = false;
        forget_blocking_fetch();
    }
}

inline void Mirror::send_adopt(std::string& out) {
    assert(m_state == State::recovering);
    if (!m_adoption) {
        m_adoption.emplace(m_self);
    }
    m_adoption->send(out, m_keys, m_lease, time_of_fence(), m_make_identity);
    m_late.sent();
}

inline Verdict Mirror::on_adopt(const Reply& reply) {
    m_late.answered();
    Verdict verdict = m_adoption->on_reply(reply);
    if (m_adoption->result()) {
        conclude(*m_adoption->result());
        m_adoption.reset();
    }
    return verdict;
}

// If this runs out of memory, the adoption is tried again.
inline void Mirror::conclude(const Adoption::Result& result) {
    const auto version = m_self.version(result.header);
    const bool known = version && m_confirmed <= *version && *version <= last_sent();
    settle_doubts(known ? version : std::nullopt);
    Recovered recovered;
    if (!result.list) {
        Fifo<DeliveryPtr> all(m_messages);
        recovered.lost = std::move(all);
        become(m_make_identity());
        recovered.reaped = m_state != State::left;
        m_messages.clear();
        m_state = recovered.reaped ? State::unregistered : State::left;
    } else {
        Fifo<DeliveryPtr> list = match(*result.list, recovered);
        m_moves.reserve(list.size());
        become(result.identity);
        m_messages = std::move(list);
        m_state = State::running;
    }
    for (const DeliveryPtr& message : recovered.lost) {
        message->state = S::lost;
        message->tell_outcome();
        if (message->deferred_ack.close()) {
            message->deferred = true;
            ++recovered.acked;
        }
    }
    if (m_failed_fetches >= most_failed_fetches) {
        m_failed_fetches = 0;
        recovered.refusal = std::move(m_fetch_failure);
    }
    m_recovered = std::move(recovered);
    m_surfacing.reset();
    m_confirmed = 0;
    m_more_to_fetch = false;
    recount();
}

// The unanswered requests up to the header's version have run. Without a version that can be right
// (Redis was rewound or emptied) none counts as run.
inline void Mirror::settle_doubts(std::optional<std::uint64_t> version) {
    bool first = true;
    while (!m_requests.empty()) {
        Request& request = m_requests.front();
        if (version && request.version <= *version) {
            ran(request);
            if (request.trial) {
                m_surfacing = std::move(request.trial);
                m_surfacing->begin(TrialLimits::levels, {}); // at worst
            }
        } else {
            unsend(request, blame(request, std::exchange(first, false) && version));
            if (request.fetch > 0 && !request.failure.empty()) {
                ++m_failed_fetches;
                m_fetch_failure = std::move(request.failure);
            }
        }
        m_requests.pop_front();
    }
}

// A request that fails for a reason of its own is sent twice. One that is the first to be cut off
// again and again may be the reason itself: Redis closes the connection on a request that is too
// large. It would keep all others from being sent.
inline std::string Mirror::blame(const Request& request, bool first_not_run) {
    std::string refusal;
    for (const DeliveryPtr& message : m_messages) {
        if (!settles(request, message)) {
            continue;
        }
        if (!request.failure.empty()) {
            message->failures += most_cuts / 2;
        } else if (first_not_run && request.kind == Request::Kind::move) {
            ++message->failures;
        }
        if (message->failures >= most_cuts) {
            refusal = request.failure.empty()
                          ? "ERR the connection broke each time that this was sent"
                          : request.failure;
        }
    }
    return refusal;
}

// The list is the truth. Matches its elements, oldest first, with our messages of equal bytes.
// Unmatched elements are delivered, unmatched messages are lost. Only if Redis was rewound or the
// list edited can a message come again whose ack was confirmed.
inline Fifo<DeliveryPtr> Mirror::match(const std::vector<std::string>& list, Recovered& recovered) {
    Fifo<DeliveryPtr> before = m_messages;
    Fifo<DeliveryPtr> now;
    for (std::string payload : list) {
        auto same = before.begin();
        while (same != before.end() && !(*same && (*same)->payload == payload)) {
            ++same;
        }
        if (same == before.end()) {
            now.push_back(m_pool.make(payload));
            now.back()->trial = std::move(m_surfacing); // then there is no other fetch
            recovered.surfaced.push_back(now.back());
            continue;
        }
        now.push_back(std::move(*same));
        while (!before.empty() && !before.front()) {
            before.pop_front();
        }
    }
    for (DeliveryPtr& message : before) {
        if (message) {
            recovered.lost.push_back(std::move(message));
        }
    }
    return now;
}

} // namespace orizuru::detail
