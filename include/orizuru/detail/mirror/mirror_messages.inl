// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tracks a mirror's messages in this process: handed out, wanted, acked without the lock, put back.

namespace orizuru::detail {

inline void Mirror::want(const DeliveryPtr& message, std::unique_ptr<Move> move) noexcept {
    assert(message->state == S::held);
    if (!message->deferred_ack.closed()) {
        message->deferred_ack.forget();
        --m_open;
    }
    message->refusal.clear();
    message->state = S::wanted;
    message->move = std::move(move);
    if (message->move == nullptr) {
        ++m_acks;
    } else {
        queue_move(message);
    }
}

inline DeliveryPtr Mirror::hand_out() {
    if (!has_ready()) {
        return nullptr;
    }
    const DeliveryPtr& message = m_messages[m_next++];
    message->taken = true;
    find_next();
    // A message that was put back may have another owner.
    return message.unique() ? message.second() : message;
}

// Messages behind the next one wait too, except after match() met an edited list.
inline void Mirror::find_next() noexcept {
    const auto waits = [](const Delivery& message) {
        return message.state == S::held && !message.taken;
    };
    while (m_next < m_messages.size() && !waits(*m_messages[m_next])) {
        ++m_next;
    }
}

inline void Mirror::forsake() noexcept {
    for (const DeliveryPtr& message : m_messages) {
        message->taken = message->taken && message->state != S::held;
    }
    recount();
}

inline void Mirror::put_back(const Fifo<DeliveryPtr>& messages) noexcept {
    for (const DeliveryPtr& message : messages) {
        message->taken = false;
        message->deferred_ack.forget();
        message->settling.forget();
    }
    recount();
}

inline void Mirror::put_back(const DeliveryPtr& message) noexcept {
    message->taken = false;
    message->deferred_ack.forget();
    message->settling.forget();
    message->unattended = false;
    message->refusal.clear();
    recount();
}

inline void Mirror::requeue_suspects() {
    expect(0);
    for (const DeliveryPtr& message : m_messages) {
        if (message->trial && message->state == S::held && !message->taken) {
            want(message, std::make_unique<Move>(release_body(), std::vector{m_keys.suspects()},
                                                 std::vector<std::string>()));
        }
    }
    recount();
}

inline std::size_t Mirror::take_acks() noexcept {
    std::size_t taken = 0;
    std::size_t open = m_open;
    for (const DeliveryPtr& message : m_messages) {
        if (open == 0) {
            break;
        }
        open -= message->deferred_ack.closed() ? 0U : 1U;
        if (message->deferred_ack.given()) {
            want_deferred(message);
            ++taken;
        }
    }
    return taken;
}

inline std::size_t Mirror::close_acks() noexcept {
    std::size_t taken = 0;
    for (const DeliveryPtr& message : m_messages) {
        if (message->deferred_ack.close()) {
            want_deferred(message);
            ++taken;
        }
    }
    m_open = 0;
    return taken;
}

inline void Mirror::recount() noexcept {
    m_acks = m_sent = m_next = m_open = 0;
    find_next();
    m_moves.erase_if([](const DeliveryPtr& message) {
        message->queued = message->state == S::wanted;
        return !message->queued;
    });
    for (const DeliveryPtr& message : m_messages) {
        m_sent += message->state == S::sent ? 1U : 0U;
        m_open += message->deferred_ack.closed() ? 0U : 1U;
        if (message->state == S::wanted && message->move == nullptr) {
            ++m_acks;
        } else if (message->state == S::wanted && !message->queued) {
            queue_move(message);
        }
    }
}

} // namespace orizuru::detail
