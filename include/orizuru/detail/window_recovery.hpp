// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How a window finds out, after a doubt, what has run. Part of window.hpp, which is the header to
// read first and to include.

#include <orizuru/detail/window.hpp>

namespace orizuru::detail {

inline void Window::begin_recovery() {
    if (m_state == State::running) {
        m_state = State::recovering;
        m_adoption.emplace(m_self);
        m_blocked = m_draining = false;
    }
}

inline void Window::send_adopt(std::string& out) {
    assert(m_state == State::recovering);
    m_adoption->send(out, m_keys, m_lease, m_make_identity);
}

inline Verdict Window::on_adopt(const Reply& reply) {
    Verdict verdict = m_adoption->on_reply(reply);
    if (m_adoption->result()) {
        conclude(*std::exchange(m_adoption, std::nullopt)->result());
    }
    return verdict;
}

inline void Window::conclude(Adoption::Result result) {
    m_recovered.emplace();
    const auto version = m_self.version(result.header);
    const std::uint64_t newest = m_requests.empty() ? m_confirmed : m_requests.back().version;
    const bool known = version && m_confirmed <= *version && *version <= newest;
    m_state = result.list ? State::running : State::unregistered;
    settle_doubts(known ? version : std::nullopt);
    if (!result.list) {
        m_recovered->reaped = m_state != State::left;
        lose(m_messages);
        m_messages.clear();
        become(m_make_identity());
    } else {
        auto& list = *result.list;
        const bool ours = known && list.size() >= m_messages.size() &&
                          std::equal(m_messages.begin(), m_messages.end(), list.begin(),
                                     [](const DeliveryPtr& message, const std::string& payload) {
                                         return message->payload == payload;
                                     });
        if (ours) {
            for (std::size_t i = m_messages.size(); i < list.size(); ++i) {
                append(list[i]);
                m_recovered->surfaced.push_back(m_messages.back());
            }
        } else {
            match(std::move(*result.list));
        }
        become(std::move(result.identity));
    }
    m_confirmed = m_last_sent = 0;
    m_more_to_fetch = false;
    recount();
}

// Of the unanswered requests those up to the header's version have run. With no version that can
// be right (Redis was rewound or emptied) none counts as run.
inline void Window::settle_doubts(std::optional<std::uint64_t> version) {
    bool first = true;
    const Fifo<Request> requests = std::exchange(m_requests, {});
    for (const Request& request : requests) {
        if (version && request.version <= *version) {
            done(request);
            continue;
        }
        put_back(request, blame(request, std::exchange(first, false) && version));
    }
}

// A request that fails for a reason of its own is sent twice. One that was the first to be cut off,
// again and again, may be the reason itself (Redis closes the connection on what is too large for
// it), and would keep all others from being sent.
inline std::string Window::blame(const Request& request, bool first_not_run) {
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

// The list is not what it should be: it is the truth. Its elements are matched, oldest first, with
// the messages of equal bytes; what is left over on one side is delivered, on the other lost. Here
// and only here a message whose ack was confirmed can come again.
inline void Window::match(std::vector<std::string> list) {
    Fifo<DeliveryPtr> before = std::exchange(m_messages, {});
    for (std::string& payload : list) {
        const auto same = std::ranges::find_if(before, [&](const DeliveryPtr& message) {
            return message && message->payload == payload;
        });
        if (same != before.end()) {
            m_messages.push_back(std::move(*same));
        } else {
            append(payload);
            m_recovered->surfaced.push_back(m_messages.back());
        }
    }
    before.erase_if([](const DeliveryPtr& message) { return !message; });
    lose(before);
}

inline void Window::lose(const Fifo<DeliveryPtr>& messages) {
    for (const DeliveryPtr& message : messages) {
        message->state = S::lost;
        m_recovered->lost.push_back(message);
    }
}

} // namespace orizuru::detail
