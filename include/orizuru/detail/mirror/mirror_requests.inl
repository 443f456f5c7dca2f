// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Composes a mirror's requests.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

namespace orizuru::detail {

// Sends a script's body once. If Redis loses it later, it answers NOSCRIPT.
inline void Mirror::begin_request(std::string& out, Request& request, std::string_view sha1,
                                  std::string_view source, std::size_t keys, std::size_t args) {
    const bool cached = std::ranges::find(m_cached, sha1) != m_cached.end();
    request.with_body = !cached;
    begin_command(out, 3 + keys + args);
    append_argument(out, cached ? std::string_view("EVALSHA") : std::string_view("EVAL"));
    append_argument(out, cached ? sha1 : source);
    append_argument(out, keys);
    if (!cached) {
        m_cached.push_back(std::string(sha1));
    }
}

// They may go on with the least number of messages in the list once the requests before it have
// run. The list may hold more: a blocking fetch may have added one that is not known here yet.
inline void Mirror::chain_arguments(std::string& out) {
    append_headers(out);
    append_argument(out, live());
}

inline void Mirror::compose(Request::Kind kind, FunctionRef<void(Request&)> compose) {
    Request request;
    request.kind = kind;
    request.version = last_sent() + 1;
    try {
        compose(request);
    } catch (...) {
        unsend(request, {});
        throw;
    }
    m_sent += request.messages;
    m_requests.push_back(std::move(request));
}

inline void Mirror::send_start(std::string& out) {
    assert(m_state == State::unregistered);
    append_command(out, "EVAL", start_script(), 6, m_keys.heartbeat(m_self.id), m_processing,
                   m_keys.consumers(), m_keys.source(), m_keys.unack(), m_keys.dead(), m_self.id,
                   m_lease.count(), m_self.header(0));
    m_late.sent();
}

inline void Mirror::send_settle(std::string& out, int fetch) {
    assert(can_send() && !(fetch > 0 && blocked()));
    compose(Request::Kind::settle, [&](Request& request) {
        request.fetch = fetch;
        m_removal.clear();
        for (const DeliveryPtr& message : m_messages) {
            if (request.messages == m_acks) {
                break;
            }
            if (message->state == S::sent) {
                continue;
            }
            if (message->state == S::wanted && message->move == nullptr) {
                mark_sent(*message, request);
                m_removal.remove();
            } else {
                m_removal.keep(message->payload.size());
            }
        }
        const std::size_t oldest = m_removal.oldest();
        // Then the list is long enough if it has them.
        const bool proves_length = m_removal.arguments() == 0 && live() == oldest;
        begin_request(out, request, settle_script.sha1(), settle_script.source(), fetch > 0 ? 2 : 1,
                      proves_length ? (fetch > 0 ? 4 : 3) : 5 + m_removal.arguments());
        append_argument(out, m_processing);
        if (fetch > 0) {
            append_argument(out, m_keys.source());
        }
        append_headers(out);
        append_argument(out, -static_cast<std::int64_t>(oldest) - 1);
        if (fetch > 0 || !proves_length) {
            append_argument(out, fetch);
        }
        if (!proves_length) {
            append_argument(out, live());
        }
        m_removal.arguments([&](auto number) { append_argument(out, number); });
        m_acks -= request.messages;
    });
}

inline void Mirror::send_try_suspect(std::string& out, std::shared_ptr<Trial> trial,
                                     const TrialLimits& limits) {
    assert(can_send() && !blocked() && !fetching());
    compose(Request::Kind::suspect, [&](Request& request) {
        request.fetch = 1;
        request.trial = std::move(trial);
        begin_request(out, request, try_suspect_script.sha1(), try_suspect_script.source(), 4, 9);
        append_argument(out, m_processing);
        append_argument(out, m_keys.suspects());
        append_argument(out, m_keys.recoveries());
        append_argument(out, m_keys.suspects_asked());
        chain_arguments(out);
        const Trials::Held held = request.trial->others();
        append_argument(out, held.count);
        append_argument(out, held.most_blamed);
        for (const int most : limits.most) {
            append_argument(out, most);
        }
        append_argument(out, std::max(m_lease, suspects_patience).count());
    });
}

inline bool Mirror::can_move() const noexcept {
    std::size_t bytes = 0;
    for (const Request& request : m_requests) {
        bytes += request.bytes;
    }
    const std::size_t most = bytes < most_bytes_of_moves ? most_moves : depth;
    return m_state == State::running && !m_draining && moves_sent() < most;
}

inline void Mirror::send_move(std::string& out) {
    assert(can_move() && !m_moves.empty());
    const std::size_t before = out.size();
    compose(Request::Kind::move, [&](Request& request) {
        const DeliveryPtr& message = m_moves.front();
        std::int64_t index = 0;
        for (const DeliveryPtr& other : m_messages) {
            if (other == message) {
                break;
            }
            index += other->state == S::sent ? 0 : 1;
        }
        const Move& move = *message->move;
        const bool ends = message->trial && !message->trial->field().empty() &&
                          move.recoveries == Move::Recoveries::ended;
        begin_request(out, request, move.script.sha1(), move.script.source(),
                      1 + move.keys.size() + (ends ? 1U : 0U), 4 + move.args.size());
        append_argument(out, m_processing);
        for (const std::string& key : move.keys) {
            append_argument(out, key);
        }
        if (ends) {
            append_argument(out, m_keys.recoveries());
        }
        chain_arguments(out);
        if (ends) {
            append_argument(out, joined({Digits(-index - 2), " ", message->trial->field()}));
        } else {
            append_argument(out, -index - 2);
        }
        for (const std::string& arg : move.args) {
            append_argument(out, arg);
        }
        mark_sent(*message, request);
        request.bytes = out.size() - before;
        m_moves.pop_front()->queued = false;
    });
}

inline void Mirror::send_release(std::string& out) {
    assert(can_send() && !blocked() && !fetching());
    // Handed-out messages are the oldest, except after match() met an edited list. Messages between
    // them then stay until the last of them is settled.
    std::size_t held = 0;
    std::size_t index = 0;
    for (const DeliveryPtr& message : m_messages) {
        if (message->state != S::sent) {
            ++index;
            held = message->taken ? index : held;
        }
    }
    compose(held == 0 ? Request::Kind::leave : Request::Kind::release, [&](Request& request) {
        begin_request(out, request, release_script.sha1(), release_script.source(), 4, 6);
        append_argument(out, m_processing);
        append_argument(out, m_keys.source());
        append_argument(out, m_keys.heartbeat(m_self.id));
        append_argument(out, m_keys.consumers());
        chain_arguments(out);
        append_argument(out, held);
        append_argument(out, m_self.id);
        append_argument(out, time_of_fence().count());
        index = 0;
        for (const DeliveryPtr& message : m_messages) {
            if (message->state != S::sent && index++ >= held) {
                mark_sent(*message, request);
            }
        }
    });
    recount();
}

inline void Mirror::send_blocking_fetch(std::string& out, std::chrono::milliseconds block) {
    assert(m_state == State::running && !blocked() && !fetching());
    const Digits thousandths(1000 + block.count() % 1000); // the leading 1 keeps the zeros
    const std::string seconds =
        joined({Digits(block.count() / 1000), ".", std::string_view(thousandths).substr(1)});
    append_command(out, "BLMOVE", m_keys.source(), m_processing, "RIGHT", "LEFT", seconds);
    m_by_waiter = ByWaiter::block;
}

inline void Mirror::send_look(std::string& out) {
    assert(m_state == State::running && !blocked() && !fetching());
    append_command(out, "LMOVE", m_keys.source(), m_processing, "RIGHT", "LEFT");
    m_by_waiter = ByWaiter::look;
}

} // namespace orizuru::detail
