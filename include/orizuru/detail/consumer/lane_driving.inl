// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Composes a lane's requests, waits for their replies and delivers its events.

#include <orizuru/detail/base/unlocked.hpp>

namespace orizuru::detail {

inline Lane::Lane(std::shared_ptr<Link> link, FunctionRef<Mirror()> make_mirror,
                  EventQueue&& events)
    : m_link(std::move(link)),
      m_mutex(m_link->mutex()),
      m_mirror(make_mirror()),
      m_whereabouts(m_link->endpoint(), m_mirror.keys().source()),
      m_events(std::move(events), m_mirror),
      m_held(m_mirror, m_events, m_attendance),
      m_lease(m_mirror.lease()) {
    const Link::Lock lock(*m_mutex);
    m_link->join(*this);
}

inline Lane::~Lane() {
    const Link::Lock lock(*m_mutex);
    m_link->leave(*this);
}

template <std::invocable<Lane::Lock&> Action>
auto Lane::locked(Action&& action) -> std::invoke_result_t<Action, Lock&> {
    static_assert(
        !std::is_reference_v<std::invoke_result_t<Action, Lock&>>); // the lane may be gone
    Lock lock(*m_mutex);
    const auto tell = [&] {
        if (has_news()) { // seldom
            deliver(lock);
        }
    };
    try {
        if constexpr (std::is_void_v<std::invoke_result_t<Action, Lock&>>) {
            action(lock);
            tell();
        } else {
            auto result = action(lock);
            tell();
            return result;
        }
    } catch (...) {
        tell();
        throw;
    }
}

inline bool Lane::drive(Lock& lock, TimePoint deadline, const Wake* wake,
                        FunctionRef<bool()> done) {
    m_link->drop_closed();
    const auto driving = m_attendance.driving();
    while (true) {
        if (wake != nullptr) {
            wake->clear();
        }
        m_held.take_acks();
        // Read the clock first: a back-off that ends while done() runs must not be slept through.
        const TimePoint now = Clock::now();
        if (done()) {
            return true;
        }
        const TimePoint until = std::min(deadline, m_limit);
        if (Clock::now() >= until) {
            return false;
        }
        if (has_told()) {
            // A leader must not do this: a callback that settles a guard would wait for itself.
            tell_news(lock);
            continue;
        }
        const bool connected = m_link->connected();
        advance();
        if (connected && !m_link->connected()) {
            continue; // to connect may be worse than to give up
        }
        const std::shared_ptr<Link> link = m_link; // another thread may move the lane away from it
        link->await_change(lock, own_bound(until, now), wake, now);
    }
}

inline std::optional<Reply> Lane::query(Lock& lock, TimePoint deadline,
                                        FunctionRef<void(std::string&)> compose, const Wake* wake,
                                        FunctionRef<bool()> interrupted) {
    drive(lock, deadline, wake, [&] { return interrupted() || m_link->connected(); });
    if (!m_link->connected() || interrupted()) {
        return std::nullopt;
    }
    const std::shared_ptr<Link> link = m_link;
    Link::Answer answer;
    const auto forget = at_exit([&] { link->forget(answer); });
    link->ask(answer, compose);
    drive(lock, deadline, wake,
          [&] { return interrupted() || answer.reply || answer.failed || link != m_link; });
    return std::move(answer.reply);
}

inline void Lane::advance() {
    if (astray() || !m_backoff.over() || !m_link->ready()) {
        m_link->flush();
        return;
    }
    if (m_mirror.state() == Mirror::State::unregistered) {
        if (m_link->owes(*this, Purpose::start) == 0) {
            m_lease.ask();
            m_link->send(*this, Purpose::start,
                         [this](std::string& out) { m_mirror.send_start(out); });
        }
    } else if (m_mirror.state() == Mirror::State::recovering) {
        recover();
    }
    while (m_mirror.can_move() && m_mirror.has_moves()) {
        m_link->send(*this, Purpose::chain, [this](std::string& out) { m_mirror.send_move(out); });
    }
    if (m_attendance.hurries() && m_mirror.has_acks() && m_mirror.can_send()) {
        m_link->send(*this, Purpose::chain,
                     [this](std::string& out) { m_mirror.send_settle(out, 0); });
    }
    m_link->flush();
}

/// Sends the next request of a recovery, one at a time.
inline void Lane::recover() {
    if (!m_link->may_adopt(*this) || m_link->owes(*this, Purpose::seek) > 0 ||
        m_link->owes(*this, Purpose::measure) > 0) {
        return;
    }
    if (must_seek_waiter()) {
        m_link->send(*this, Purpose::seek, [this](std::string& out) {
            append_command(out, "CLIENT", "LIST", "ID", m_sought);
        });
        return;
    }
    switch (m_cuts.next(Clock::now())) {
    case CutAdoptions::Next::adopt:
        m_lease.ask();
        m_link->send(*this, Purpose::adopt, [this](std::string& out) { m_mirror.send_adopt(out); });
        return;
    case CutAdoptions::Next::measure:
        m_link->send(*this, Purpose::measure,
                     [this](std::string& out) { m_mirror.send_measure(out); });
        return;
    case CutAdoptions::Next::wait:
        return;
    }
}

inline bool Lane::attend(TimePoint now) {
    if (!m_attendance.wanted()) {
        return false;
    }
    if (m_attendance.begin()) {
        m_held.retry_refused();
    }
    m_held.take_acks();
    wake_poller();
    const bool settled = m_mirror.running() || m_mirror.state() == Mirror::State::left;
    const bool at_rest = settled && !m_mirror.has_acks() && !m_mirror.has_moves() &&
                         m_held.all_attended() && !m_attendance.link_is_awaited();
    if (at_rest || now >= m_limit) {
        m_attendance.end();
        return false;
    }
    advance();
    return true;
}

inline void Lane::deliver(Lock& lock) noexcept {
    const auto ended = m_held.take_ended();
    News news = take_news();
    // Another thread may settle the last guard while a callback runs.
    const auto alive = m_held.consumer();
    lock.unlock();
    tell(std::move(news));
}

inline void Lane::tell_news(Lock& lock) noexcept {
    if (has_told()) {
        News news = take_news();
        const Unlocked open(lock);
        tell(std::move(news));
    }
}

inline Lane::News Lane::take_news() noexcept {
    const auto& awaits = m_held.awaits();
    return {m_events.noted().take(), awaits ? awaits->take_outcomes() : AwaitedOutcomes()};
}

inline void Lane::tell(News news) const noexcept {
    m_events.tell(news.events);
    while (const auto outcome = news.outcomes.pop()) {
        outcome->tell();
    }
}

} // namespace orizuru::detail
