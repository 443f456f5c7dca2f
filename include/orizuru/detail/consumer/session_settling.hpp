// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Settles messages and waits for Redis' replies, up to a deadline. The class is in session.hpp.

#include <orizuru/detail/consumer/session.hpp>

namespace orizuru::detail {

inline TimePoint Session::patience(TimePoint since) const {
    const TimePoint own = std::max(m_channels.lease_from() + m_options.lease,
                                   since + m_channels.endpoint().command_timeout());
    return std::min(own, m_channels.limit());
}

inline bool Session::settle(const DeliveryPtr& message, std::unique_ptr<Move> move,
                            std::string_view what) {
    using S = Delivery::State;
    const bool deferred = m_options.ack == AckMode::deferred && move == nullptr;
    if (deferred && message->deferred_ack.give()) {
        return true; // this session may be gone by now
    }
    Lock lock(m_channels);
    if (message->state == S::lost) {
        m_channels.guards.drop(1);
        return false;
    }
    message->failures = 0;
    if (deferred) {
        m_channels.mirror.want_deferred(message);
        m_channels.guards.drop(1);
        return true;
    }
    m_channels.mirror.want(message, std::move(move));
    try {
        await_settlement(lock, message, what);
    } catch (const ReplyError&) {
        throw;
    } catch (...) {
        leave_unattended(message);
        m_channels.guards.drop(1);
        throw;
    }
    m_channels.guards.drop(1);
    return message->state == S::settled;
}

inline bool Session::holds(const DeliveryPtr& message) {
    const Lock lock(m_channels);
    return message->state != Delivery::State::lost &&
           Clock::now() < m_channels.lease_from() + m_options.lease;
}

inline void Session::await_settlement(Lock& lock, const DeliveryPtr& message,
                                      std::string_view what) {
    using S = Delivery::State;
    const TimePoint since = Clock::now();
    const auto answered = [&] {
        m_channels.hurry_acks();
        return message->state != S::wanted && message->state != S::sent;
    };
    while (!m_channels.drive(lock, patience(since), nullptr, answered)) {
        // Beats confirmed meanwhile extend the lease, and with it the wait.
        if (Clock::now() >= patience(since)) {
            throw_unanswered(joined({what, " a message"}));
        }
    }
    if (message->state == S::held) {
        throw_refused(message->refusal, what);
    }
}

inline void Session::take_back(const DeliveryPtr& message) noexcept {
    Lock lock(m_channels);
    m_channels.guards.drop(1);
    m_channels.mirror.take_back(message);
}

inline void Session::abandon(const DeliveryPtr& message) noexcept {
    using S = Delivery::State;
    if (m_channels.forked()) {
        return;
    }
    std::unique_ptr<Move> reject;
    try {
        reject = std::make_unique<Move>(push_body(), std::vector{keys().unack()},
                                        std::vector<std::string>());
    } catch (const std::bad_alloc&) {
        take_back(message);
        return;
    }
    Lock lock(m_channels);
    const auto gone = at_exit([&] { m_channels.guards.drop(1); });
    if (message->state != S::held) {
        return;
    }
    m_channels.mirror.want(message, std::move(reject));
    const auto answered = [&] { return message->state != S::wanted && message->state != S::sent; };
    try {
        const TimePoint until = Clock::now() + m_channels.endpoint().command_timeout();
        m_channels.drive(lock, until, nullptr, answered);
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
        // It goes on in the background, as after a timeout.
    }
    if (message->state != S::settled && message->state != S::lost) {
        m_gave_up = message->state == S::held ? TimePoint() : Clock::now();
        leave_unattended(message);
    }
}

inline std::optional<bool> Session::bury(const DeliveryPtr& message, const std::string& reason,
                                         const std::stop_token& token, TimePoint deadline) {
    using S = Delivery::State;
    std::unique_ptr<Move> bury;
    try {
        bury = std::make_unique<Move>(bury_body(), std::vector{keys().dead()},
                                      std::vector{joined({"undecodable: ", reason})});
    } catch (...) {
        put_back(message);
        throw;
    }
    Lock lock(m_channels);
    const auto gone = at_exit([this] { m_channels.guards.drop(1); });
    if (message->state == S::lost) {
        return false;
    }
    m_channels.mirror.want(message, std::move(bury));
    const auto answered = [&] { return message->state != S::wanted && message->state != S::sent; };
    try {
        m_channels.drive(lock, std::max(deadline, Clock::now() + grace), &m_fetcher.wake(),
                         [&] { return answered() || stopped() || token.stop_requested(); });
    } catch (...) {
        leave_unattended(message);
        throw;
    }
    if (!answered()) {
        leave_unattended(message);
        return std::nullopt;
    }
    if (message->state == S::held) {
        const std::string refusal = std::exchange(message->refusal, {});
        m_channels.mirror.take_back(message);
        throw_refused(refusal, "burying");
    }
    return message->state == S::settled;
}

inline void Session::throw_refused(std::string_view refusal, std::string_view what) const {
    throw reply_error(joined({address(), ": ", what, " a message of '", keys().source(), "'"}),
                      refusal);
}

inline void Session::throw_unanswered(std::string_view what) const {
    throw ConnectionError(
        joined({what, " of '", keys().source(), "': ", m_channels.last_failure()}),
        ConnectionError::Outcome::in_doubt);
}

inline std::size_t Session::flush() {
    using S = Delivery::State;
    m_channels.refuse_fork();
    Lock lock(m_channels);
    m_channels.take_acks();
    Unattended::retry(m_channels.mirror, m_channels.events);
    std::vector<DeliveryPtr> pending;
    for (const DeliveryPtr& message : m_channels.mirror.messages()) {
        if (message->deferred) {
            pending.push_back(message);
        }
    }
    const auto open = [](const DeliveryPtr& message) {
        return message->state == S::wanted || message->state == S::sent;
    };
    const TimePoint since = Clock::now();
    while (!m_channels.drive(lock, patience(since), nullptr, [&] {
        m_channels.hurry_acks();
        while (!pending.empty() && !open(pending.back())) {
            pending.pop_back();
        }
        return pending.empty();
    })) {
        if (Clock::now() >= patience(since)) {
            throw_unanswered("flushing the acks");
        }
    }
    for (const DeliveryPtr& message : m_channels.mirror.messages()) {
        if (message->deferred && message->state == S::held) {
            throw_refused(message->refusal, "acking");
        }
    }
    return m_channels.unattended.take_late_acks();
}

} // namespace orizuru::detail
