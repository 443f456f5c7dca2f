// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Settles messages and waits for Redis' replies, up to a deadline.

namespace orizuru::detail {

/// The settlement that was asked for has an outcome.
[[nodiscard]] inline bool is_answered(const Delivery& message) noexcept {
    using S = Delivery::State;
    return message.state != S::wanted && message.state != S::sent;
}

/// False if not in time. Beats confirmed meanwhile extend the lease, and with it the wait.
inline bool Session::await(Lock& lock, FunctionRef<bool()> answered) {
    const TimePoint since = Clock::now();
    const auto hurry = m_lane.attendance().hurrying();
    while (!m_lane.drive(lock, m_lane.patience(since), nullptr, answered)) {
        if (Clock::now() >= m_lane.patience(since)) {
            return false;
        }
    }
    return true;
}

inline bool Session::accept_ack(const DeliveryPtr& message) noexcept {
    const bool held = message->state != Delivery::State::lost;
    if (held) {
        message->failures = 0;
        m_lane.mirror().want_deferred(message);
    }
    m_lane.held().let_go();
    return held;
}

inline bool Session::settle(Lock& lock, const DeliveryPtr& message, std::unique_ptr<Move> move,
                            std::string_view what) {
    if (m_options.ack == AckMode::deferred && move == nullptr) {
        return accept_ack(message);
    }
    begin_settling(message, std::move(move));
    return finish(lock, message, what);
}

inline void Session::begin_settling(const DeliveryPtr& message,
                                    std::unique_ptr<Move> move) noexcept {
    if (message->state != Delivery::State::lost) {
        message->failures = 0;
        m_lane.mirror().want(message, std::move(move));
    }
}

inline bool Session::finish(Lock& lock, const DeliveryPtr& message, std::string_view what) {
    using S = Delivery::State;
    try {
        // The reply to a fetch behind it may have been awaited: then to drive costs a system call.
        const auto answered = [&] { return is_answered(*message); };
        if (!answered() && !await(lock, answered)) {
            throw m_lane.unanswered_settlement(joined({what, " a message"}), m_lane.last_failure());
        }
        if (message->state == S::held) {
            throw m_lane.refused_settlement(what, message->refusal);
        }
    } catch (const ReplyError&) {
        throw;
    } catch (...) {
        m_lane.held().leave_unattended(message);
        throw;
    }
    m_lane.held().let_go();
    return message->state == S::settled;
}

inline void Session::abandon(const DeliveryPtr& message) noexcept {
    if (m_process.forked()) {
        return;
    }
    std::unique_ptr<Move> reject;
    try {
        reject = std::make_unique<Move>(push_body(), std::vector{keys().unack()},
                                        std::vector<std::string>());
    } catch (const std::bad_alloc&) {
        put_back(message);
        return;
    }
    m_lane.locked([&](Lock& lock) { reject_unattended(lock, message, std::move(reject)); });
}

inline void Session::reject_unattended(Lock& lock, const DeliveryPtr& message,
                                       std::unique_ptr<Move> reject) noexcept {
    using S = Delivery::State;
    if (!is_answered(*message)) { // its guard has begun a settlement
        m_lane.held().leave_unattended(message);
        return;
    }
    if (message->state != S::held) {
        m_lane.held().let_go();
        return;
    }
    m_lane.mirror().want(message, std::move(reject));
    try {
        const TimePoint until = Clock::now() + m_lane.endpoint().command_timeout();
        m_lane.drive(lock, until, nullptr, [&] { return is_answered(*message); });
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
        // It goes on in the background, as after a timeout.
    }
    if (message->state == S::settled || message->state == S::lost) {
        m_lane.held().let_go();
        return;
    }
    m_gave_up = message->state == S::held ? TimePoint() : Clock::now();
    m_lane.held().leave_unattended(message);
}

inline std::optional<bool> Session::bury(const DeliveryPtr& message, const std::string& reason,
                                         const std::stop_token& token, TimePoint deadline) {
    std::unique_ptr<Move> move;
    try {
        move = std::make_unique<Move>(bury_body(), std::vector{keys().dead()},
                                      std::vector{joined({"undecodable: ", reason})});
    } catch (...) {
        put_back(message);
        throw;
    }
    return m_lane.locked(
        [&](Lock& lock) { return bury(lock, message, std::move(move), token, deadline); });
}

inline std::optional<bool> Session::bury(Lock& lock, const DeliveryPtr& message,
                                         std::unique_ptr<Move> move, const std::stop_token& token,
                                         TimePoint deadline) {
    using S = Delivery::State;
    if (message->state == S::lost) {
        m_lane.held().let_go();
        return false;
    }
    m_lane.mirror().want(message, std::move(move));
    try {
        m_lane.drive(lock, std::max(deadline, Clock::now() + grace), &m_fetcher.wake(), [&] {
            return is_answered(*message) || m_fetcher.stopped() || token.stop_requested();
        });
    } catch (...) {
        m_lane.held().leave_unattended(message);
        throw;
    }
    if (!is_answered(*message)) {
        m_lane.held().leave_unattended(message);
        return std::nullopt;
    }
    if (message->state == S::held) {
        const std::string refusal = std::exchange(message->refusal, {});
        m_lane.held().put_back(message);
        throw m_lane.refused_settlement("burying", refusal);
    }
    m_lane.held().let_go();
    return message->state == S::settled;
}

inline std::size_t Session::flush() {
    refuse_fork();
    return m_lane.locked([this](Lock& lock) { return flush(lock); });
}

inline std::size_t Session::flush(Lock& lock) {
    using S = Delivery::State;
    m_lane.held().take_acks();
    m_lane.held().retry_refused();
    Fifo<DeliveryPtr> pending;
    for (const DeliveryPtr& message : m_lane.mirror().messages()) {
        if (message->deferred) {
            pending.push_back(message);
        }
    }
    const auto open = [](const DeliveryPtr& message) { return !is_answered(*message); };
    if (!await(lock, [&] { return std::ranges::none_of(pending, open); })) {
        throw m_lane.unanswered_settlement("flushing the acks", m_lane.last_failure());
    }
    for (const DeliveryPtr& message : m_lane.mirror().messages()) {
        if (message->deferred && message->state == S::held) {
            throw m_lane.refused_settlement("acking", message->refusal);
        }
    }
    return m_lane.held().take_late_acks();
}

} // namespace orizuru::detail
