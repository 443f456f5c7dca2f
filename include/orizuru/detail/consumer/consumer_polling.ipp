// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Asks Redis for a message in steps, for a thread that waits for several consumers at once. Only a
// worker has one.

#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/consumer/consumer_core.ipp>
#include <orizuru/detail/consumer/fetcher.hpp>
#include <orizuru/detail/consumer/session.hpp>
#include <orizuru/detail/consumer/waiter.hpp>

namespace orizuru::detail {

ORIZURU_INLINE ConsumerCore::ConsumerCore(std::shared_ptr<Heartbeat> heartbeat, const Keys& keys,
                                          ConsumerOptions&& options,
                                          std::shared_ptr<const Wake> news, TrialShare share) {
    validate(options);
    const TimePoint deadline = Clock::now() + heartbeat->link()->endpoint().connect_timeout();
    m_session =
        Session::open(std::move(heartbeat), keys, std::move(options), deadline, std::move(share));
    m_session->watch(std::move(news));
}

ORIZURU_INLINE bool ConsumerCore::poll(const std::stop_token& token, Awaited* awaited,
                                       Decode decode, StandIn stand_in) {
    Timeout timeout(std::chrono::milliseconds(0));
    return take(
        [&] {
            Fetcher& fetcher = m_session->fetcher();
            return awaited == nullptr ? fetcher.ask_once(token) : fetcher.poll(token, *awaited);
        },
        token, timeout, decode, stand_in);
}

ORIZURU_INLINE bool ConsumerCore::expects_message() {
    return m_session->fetcher().expects_message();
}

inline void Session::watch(std::shared_ptr<const Wake> news) {
    m_fetcher.share_link();
    m_news = std::move(news);
    m_watch.emplace(m_lane.mutex(), m_lane.attendance(), *m_news);
}

inline DeliveryPtr Fetcher::ask_once(const std::stop_token& token) {
    if (m_run.empty() && are_large()) {
        m_wake.clear();
        const std::stop_callback wake_up(token, [this] { m_wake.signal(); }); // connecting may hang
        m_lane.locked([&](Lock& lock) {
            if (!stopped() && !token.stop_requested() && m_lane.mirror().running() &&
                !m_waiter.connected()) {
                Awaited step;
                m_waiter.connect(lock, TimePoint::min(), step);
            }
        });
    }
    Timeout timeout(std::chrono::milliseconds(0));
    return next(token, timeout);
}

inline bool Fetcher::expects_message() {
    return m_lane.locked([this](Lock&) {
        const Mirror& mirror = m_lane.mirror();
        return mirror.has_ready() || mirror.fetching() || mirror.blocked() ||
               mirror.state() == Mirror::State::recovering;
    });
}

inline DeliveryPtr Fetcher::poll(const std::stop_token& token, Awaited& awaited) {
    const auto inside = enter();
    awaited = {};
    return poll_run(token, awaited) ? m_run.pop_front() : nullptr;
}

/// True when the first message of the run can be handed out.
inline bool Fetcher::poll_run(const std::stop_token& token, Awaited& awaited) {
    const std::stop_callback wake_up(token, [this] { m_wake.signal(); });
    const bool some = m_lane.locked([&](Lock& lock) {
        m_token = &token;
        drop_lost_of_run();
        while (m_run.empty() || interrupted()) {
            if (!take_step(lock, awaited)) {
                return false;
            }
        }
        return true;
    });
    if (!some) {
        return false;
    }
    const Delivery& first = *m_run.front();
    if (first.postponed() && Clock::now() < first.not_before) {
        awaited.until = first.not_before;
        return false;
    }
    return true;
}

/// Takes one step. Returns false when only waiting is left.
inline bool Fetcher::take_step(Lock& lock, Awaited& awaited) {
    StepInputs now = begin_step(lock);
    const TimePoint time = now.ready ? TimePoint() : Clock::now();
    now.time = time >= m_lane.limit() ? StepInputs::Time::over : StepInputs::Time::left;
    switch (const Step next = step(now)) {
    case Step::stop:
    case Step::give_up:
    case Step::recover: // the heartbeat does, and a Watch hears of its end
        return false;
    case Step::hand_out:
        take_run();
        return true;
    case Step::block:
        return m_waiter.start(lock, TimePoint::min(), awaited);
    case Step::await_waiter:
        carry_out(next, lock, time);
        awaited = m_waiter.awaited().value_or(Awaited());
        return awaited.fd < 0 || m_lane.mirror().has_ready();
    case Step::fetch:
        awaited.until = m_lane.backoff_bound(TimePoint::max(), time);
        if (awaited.until != TimePoint::max()) {
            return false;
        }
        [[fallthrough]];
    case Step::await_fetch:
        if (!carry_out(next, lock, time + link_patience)) {
            // The link may be down or slow. Other queues have connections of their own that bring
            // messages: the heartbeat goes on with it.
            m_lane.attendance().await_link();
            return false;
        }
        return true;
    default:
        carry_out(next, lock, time + link_patience);
        return true;
    }
}

} // namespace orizuru::detail
