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

ORIZURU_INLINE ConsumerCore::ConsumerCore(std::shared_ptr<Heartbeat> link, const Keys& keys,
                                          ConsumerOptions&& options,
                                          std::shared_ptr<const Wake> news, TrialShare share) {
    check(options);
    const TimePoint deadline = Clock::now() + link->link()->endpoint().connect_timeout();
    m_session =
        Session::open(std::move(link), keys, std::move(options), deadline, std::move(share));
    m_session->watch(std::move(news));
}

ORIZURU_INLINE bool ConsumerCore::poll(const std::stop_token& token, Awaited* awaited,
                                       Decode decode, StandIn stand_in) {
    Timeout timeout(std::chrono::milliseconds(0));
    return take(
        [&] {
            Fetcher& fetcher = m_session->fetcher();
            return awaited == nullptr ? fetcher.look(token) : fetcher.poll(token, *awaited);
        },
        token, timeout, decode, stand_in);
}

inline void Session::watch(std::shared_ptr<const Wake> news) {
    m_fetcher.share_link();
    m_news = std::move(news);
    m_watch.emplace(m_lane, *m_news);
}

inline DeliveryPtr Fetcher::look(const std::stop_token& token) {
    if (m_run.empty() && are_large()) {
        m_lane.refuse_fork();
        m_wake.clear();
        const std::stop_callback wake_up(token, [this] { m_wake.signal(); }); // a sentinel may hang
        Lock lock(m_lane);
        if (!stopped() && !token.stop_requested() && m_lane.running() && !m_waiter.connected() &&
            Clock::now() >= m_waiter.not_before()) {
            Awaited step;
            m_waiter.advance_connecting(lock, step);
        }
    }
    Timeout timeout(std::chrono::milliseconds(0));
    return next(token, timeout);
}

inline DeliveryPtr Fetcher::poll(const std::stop_token& token, Awaited& awaited) {
    const auto inside = enter();
    awaited = {};
    return poll_run(token, awaited) ? m_run.pop_front() : nullptr;
}

/// True when the first message of the run can be handed out.
inline bool Fetcher::poll_run(const std::stop_token& token, Awaited& awaited) {
    {
        const std::stop_callback wake_up(token, [this] { m_wake.signal(); });
        Lock lock(m_lane);
        drop_lost_of_run();
        while (m_run.empty() || stopped() || token.stop_requested()) {
            if (!advance(lock, token, awaited)) {
                return false;
            }
        }
    }
    const Delivery& first = *m_run.front();
    if (first.postponed() && Clock::now() < first.not_before) {
        awaited.until = first.not_before;
        return false;
    }
    return true;
}

/// Does one thing, after which everything is to be checked again. Returns false when only waiting
/// is left.
inline bool Fetcher::advance(Lock& lock, const std::stop_token& token, Awaited& awaited) {
    const auto interrupted = [&] { return stopped() || token.stop_requested(); };
    const Mirror& mirror = m_lane.mirror();
    m_wake.clear();
    m_lane.take_acks();
    m_lane.tell_events(lock);
    if (interrupted()) {
        return false;
    }
    if (mirror.has_ready()) {
        take_run();
        return true;
    }
    m_lane.throw_refusal();
    const TimePoint now = Clock::now();
    if (!m_lane.running() || now >= m_lane.limit()) {
        return false; // the heartbeat recovers, and a Watch hears of its end
    }
    if (wants_suspect() && try_suspect(lock, now + link_patience, interrupted)) {
        return true;
    }
    if (m_waiter.reading()) {
        m_waiter.read(lock, now);
        m_looked = m_looked && !m_waiter.refused_for_memory();
        if (m_waiter.reading()) {
            awaited = m_waiter.awaited();
            return mirror.has_ready();
        }
        return true;
    }
    const bool look =
        !m_looked && (m_most > 1 || mirror.has_acks() || m_waiter.refused_for_memory());
    if (mirror.fetching() || (look && (!by_waiter() || mirror.has_acks()))) {
        return advance_fetch(lock, interrupted, awaited);
    }
    if (now < m_waiter.not_before()) {
        awaited.until = m_waiter.not_before();
        return false;
    }
    if (!m_waiter.connected()) {
        return m_waiter.advance_connecting(lock, awaited);
    }
    m_waiter.start(lock, now);
    return true;
}

/// Sends a fetch when none is outstanding, and takes its reply. The link may be held back or down,
/// or answer late: the heartbeat goes on with it then, since other queues have connections of their
/// own that bring messages.
inline bool Fetcher::advance_fetch(Lock& lock, FunctionRef<bool()> interrupted, Awaited& awaited) {
    const Mirror& mirror = m_lane.mirror();
    const TimePoint now = Clock::now();
    const auto drive = [&](FunctionRef<bool()> done) {
        return m_lane.drive(lock, now + link_patience, &m_wake, [&] {
            return interrupted() || !m_lane.running() || m_lane.has_refusal() || done();
        });
    };
    if (mirror.fetching()) {
        fetch_behind();
    } else {
        awaited.until = m_lane.hold_bound(TimePoint::max(), now);
        if (awaited.until != TimePoint::max()) {
            return false;
        }
        if (drive([&] { return m_lane.ready(); }) && m_lane.ready() && !interrupted()) {
            m_looked = send_fetch() > 0 && !mirror.has_acks();
        }
    }
    const bool answered = drive([&] { return !mirror.fetching() && m_lane.ready(); });
    if (!answered) {
        m_lane.await_link();
    }
    return answered;
}

inline Awaited Waiter::awaited() const noexcept {
    return {m_stream->fd(), m_due, m_stream->greeting_events()};
}

inline bool Waiter::advance_connecting(Lock& lock, Awaited& awaited) {
    try {
        if (!m_attempt.stream) {
            m_attempt.incarnation = m_lane.incarnation();
            m_attempt.until = Clock::now() + m_lane.endpoint().connect_timeout();
            const Unlocked open(lock);
            m_attempt.stream =
                std::make_unique<Stream>(m_lane.endpoint(), TimePoint::min(), &m_wake);
            m_attempt.stream->append(ask_for_id);
        }
        Stream& stream = *m_attempt.stream;
        const Reply* const id = stream.greet() ? stream.next_reply() : nullptr;
        if (id != nullptr) {
            use(std::exchange(m_attempt, {}), *id);
            return true;
        }
        if (Clock::now() < m_attempt.until) {
            awaited = {stream.fd(), m_attempt.until, stream.greeting_events()};
            return false;
        }
        pause();
    } catch (const Error&) {
        on_failed_attempt();
    }
    m_attempt = {};
    return true;
}

} // namespace orizuru::detail
