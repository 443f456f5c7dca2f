// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A consumer's window and its two connections behind one mutex: control carries every script, wait
// only the blocking fetch. Whoever awaits something drives: one thread at a time, the pilot, reads
// control for all, connects and recovers; the others sleep until something has changed. Anyone may
// write to control under the mutex; only the pilot closes it, only the thread in `next` closes
// wait, and whoever finds a doubt shuts both down.

#include <orizuru/detail/at_exit.hpp>
#include <orizuru/detail/backoff.hpp>
#include <orizuru/detail/event_queue.hpp>
#include <orizuru/detail/fifo.hpp>
#include <orizuru/detail/fork_mark.hpp>
#include <orizuru/detail/reply_class.hpp>
#include <orizuru/detail/stream.hpp>
#include <orizuru/detail/unattended.hpp>
#include <orizuru/detail/wake.hpp>
#include <orizuru/detail/window.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

class Channels {
  public:
    /// Holds the mutex; tells the noted events after it has let go.
    class Lock : public std::unique_lock<std::mutex> {
      public:
        explicit Lock(Channels& channels) : unique_lock(channels.m_mutex), m_channels(channels) {}
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;
        ~Lock() {
            if (!m_channels.events.empty()) {
                const auto batch = m_channels.events.take();
                unlock();
                m_channels.events.tell(batch);
            }
        }

      private:
        Channels& m_channels;
    };

    /// The reply to a command that is no part of the window's chain.
    struct Answer {
        std::optional<Reply> reply;
        bool failed = false;
    };

    /// Connects control until the deadline; throws as Stream does, but for a Redis that is not
    /// ready yet: `drive` tries again.
    Channels(Endpoint endpoint, Window mirror, EventQueue queue, TimePoint deadline)
        : window(std::move(mirror)), events(std::move(queue)), m_endpoint(std::move(endpoint)) {
        try {
            m_control = std::make_unique<Stream>(m_endpoint, deadline);
        } catch (const ReplyError& error) {
            if (classify(error.code()) == ReplyClass::rights ||
                classify(error.code()) == ReplyClass::other) {
                throw;
            }
            m_last_failure = error.what();
            delay_connecting();
        }
    }

    Window window;         ///< under the lock
    EventQueue events;     ///< under the lock, but for `tell`
    Unattended unattended; ///< under the lock

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }
    [[nodiscard]] bool forked() const noexcept { return m_mark.forked(); }
    void refuse_fork() const;
    /// In a forked child: closes the descriptors and touches nothing else.
    void close_after_fork() noexcept;

    // All that follows is called under the lock.

    /// Until `done()` holds, composes, sends, reads, connects and recovers. False at the deadline.
    /// `wake`, when there is one, ends the caller's waiting so that `done` is asked again.
    template <class Done>
    bool drive(Lock& lock, TimePoint deadline, const Wake* wake, Done done);

    /// True when a request can be composed and sent now.
    [[nodiscard]] bool ready() const noexcept {
        return m_control && !m_doomed && window.can_send() && Clock::now() >= m_hold_until;
    }
    /// Sends what `compose` appends, a request of the window's chain.
    template <class Compose>
    void send(Compose compose);
    /// Sends a command outside the chain; null when there is no connection.
    template <class... Arguments>
    std::shared_ptr<Answer> ask(const Arguments&... arguments);

    /// Acks leave with the next chance instead of the next fetch.
    void hurry_acks() noexcept { m_hurry_acks = true; }

    /// What Redis has become is in doubt: both connections end, the list will be adopted.
    void begin_recovery(const std::string& reason);
    /// An error that only a person can mend, once; it is forgotten by the call.
    void throw_refusal() {
        if (m_refusal) {
            std::rethrow_exception(std::exchange(m_refusal, nullptr));
        }
    }
    void forget_refusal() noexcept { m_refusal = nullptr; }
    void note_refusal(const std::string& text);
    [[nodiscard]] bool has_refusal() const noexcept { return m_refusal != nullptr; }
    [[nodiscard]] const std::string& last_failure() const noexcept { return m_last_failure; }

    /// How many recoveries have ended. Without the lock.
    [[nodiscard]] std::uint64_t recoveries() const noexcept {
        return m_recoveries.load(std::memory_order_relaxed);
    }

    void confirm_lease(TimePoint asked) noexcept { m_lease_from = std::max(m_lease_from, asked); }
    /// When the lease that Redis last confirmed began; counted from the asking, so never too late.
    [[nodiscard]] TimePoint lease_from() const noexcept { return m_lease_from; }

    /// Runs `action` without the lock.
    template <class Action>
    void unlocked(Lock& lock, Action action);
    /// Tells what was noted, without the lock.
    void tell_events(Lock& lock);
    /// Who is woken when a recovery begins, so that it does not wait for a caller of `drive`.
    void set_caretaker(const Wake* wake) noexcept { m_caretaker = wake; }
    /// Wakes whoever sleeps in `drive`.
    void notify() noexcept;

    std::unique_ptr<Stream> wait; ///< made and closed by the thread in `next` only
    bool wait_doomed = false;     ///< shut down; what it still brings counts no more

  private:
    struct Expected {
        enum class Kind { start, adopt, chain, answer };
        Kind kind;
        TimePoint sent;
        std::shared_ptr<Answer> answer;
    };

    void advance();
    void flush();
    void expect(Expected::Kind kind, std::shared_ptr<Answer> answer = nullptr) {
        m_expected.push_back({kind, Clock::now(), std::move(answer)});
    }
    [[nodiscard]] bool expects(Expected::Kind kind) const noexcept {
        return std::ranges::any_of(m_expected, [=](const auto& e) { return e.kind == kind; });
    }
    void sleep(Lock& lock, TimePoint deadline, const Wake* wake);
    void pilot(Lock& lock, TimePoint deadline, const Wake& wake);
    void connect(Lock& lock, TimePoint deadline, const Wake& wake);
    void read(Lock& lock, TimePoint deadline, const Wake& wake);
    void take(Reply&& reply);
    void on_reply(Reply&& reply);
    void follow(const Verdict& verdict);
    void after_recovery(const Recovered& recovered);
    void lose_control(const std::string& reason);
    void delay_connecting();
    void doom_control(const std::string& reason);

    Endpoint m_endpoint;
    ForkMark m_mark;
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::vector<const Wake*> m_sleepers; ///< those who sleep on a Wake of their own

    const Wake* m_caretaker = nullptr;

    std::unique_ptr<Stream> m_control;
    bool m_doomed = false; ///< control is shut down; the pilot is to close it
    bool m_piloted = false;
    Wake m_nudge; ///< wakes a pilot that has no Wake of its own
    const Wake* m_pilot_wake = nullptr;
    Fifo<Expected> m_expected;

    Backoff m_backoff;
    TimePoint m_hold_until{}; ///< nothing is composed before
    TimePoint m_connect_at{}; ///< nothing is connected before
    bool m_was_lost = false;
    bool m_hurry_acks = false;
    std::atomic<std::uint64_t> m_recoveries{0};
    TimePoint m_lease_from{};
    std::string m_last_failure;
    std::exception_ptr m_refusal;
};

inline void Channels::refuse_fork() const {
    if (forked()) {
        throw std::logic_error("a consumer of '" + window.keys().source() +
                               "' is used in a forked child; make a new one there");
    }
}

inline void Channels::close_after_fork() noexcept {
    for (std::unique_ptr<Stream>* const stream : {&m_control, &wait}) {
        if (*stream) {
            stream->release()->close_after_fork();
        }
    }
}

template <class Action>
void Channels::unlocked(Lock& lock, Action action) {
    lock.unlock();
    const auto relock = at_exit([&lock] { lock.lock(); });
    action();
}

inline void Channels::tell_events(Lock& lock) {
    if (!events.empty()) {
        const auto batch = events.take();
        unlocked(lock, [&] { events.tell(batch); });
    }
}

inline void Channels::notify() noexcept {
    m_changed.notify_all();
    for (const Wake* sleeper : m_sleepers) {
        sleeper->signal();
    }
    if (m_pilot_wake != nullptr) {
        m_pilot_wake->signal();
    }
}

template <class Done>
bool Channels::drive(Lock& lock, TimePoint deadline, const Wake* wake, Done done) {
    while (true) {
        if (wake != nullptr) {
            wake->clear();
        }
        if (done()) {
            return true;
        }
        if (Clock::now() >= deadline) {
            return false;
        }
        if (!events.empty()) {
            // Not by a pilot: a callback may settle a guard, and would wait for itself.
            tell_events(lock);
            continue;
        }
        advance();
        if (m_piloted) {
            sleep(lock, deadline, wake);
        } else {
            pilot(lock, deadline, wake == nullptr ? m_nudge : *wake);
        }
    }
}

inline void Channels::sleep(Lock& lock, TimePoint deadline, const Wake* wake) {
    if (wake == nullptr) {
        m_changed.wait_until(lock, deadline);
        return;
    }
    m_sleepers.push_back(wake);
    unlocked(lock, [&] { wait_ready(-1, 0, wake, deadline); });
    std::erase(m_sleepers, wake);
}

inline void Channels::pilot(Lock& lock, TimePoint deadline, const Wake& wake) {
    m_piloted = true;
    m_pilot_wake = &wake;
    const auto landing = at_exit([this] {
        m_piloted = false;
        m_pilot_wake = nullptr;
        notify();
    });
    if (&wake == &m_nudge) {
        m_nudge.clear();
    }
    if (m_doomed) {
        m_control.reset();
        m_doomed = false;
    }
    if (!m_control) {
        connect(lock, deadline, wake);
    } else {
        read(lock, deadline, wake);
    }
}

inline void Channels::connect(Lock& lock, TimePoint deadline, const Wake& wake) {
    if (Clock::now() < m_connect_at) {
        const TimePoint until = std::min(deadline, m_connect_at);
        unlocked(lock, [&] { wait_ready(-1, 0, &wake, until); });
        return;
    }
    const TimePoint own = Clock::now() + m_endpoint.connect_timeout();
    const TimePoint until = std::min(deadline, own);
    std::unique_ptr<Stream> stream;
    std::exception_ptr refusal;
    std::string failure;
    bool given_up = false;
    unlocked(lock, [&] {
        try {
            stream = std::make_unique<Stream>(m_endpoint, until, &wake);
        } catch (const GivenUp&) {
            given_up = true;
        } catch (const ReplyError& error) {
            failure = error.what();
            refusal =
                classify(error.code()) == ReplyClass::rights ? std::current_exception() : nullptr;
        } catch (const std::exception& error) {
            failure = error.what();
        }
    });
    if (stream) {
        m_control = std::move(stream);
        if (std::exchange(m_was_lost, false)) {
            events.note(EventKind::reconnected, window.identity().id,
                        m_endpoint.address() + ", after: " + m_last_failure);
        }
        return;
    }
    if (given_up || (deadline < own && Clock::now() >= deadline)) {
        return; // the caller's haste says nothing about Redis
    }
    m_last_failure = failure;
    m_refusal = refusal ? refusal : m_refusal;
    delay_connecting();
}

inline void Channels::read(Lock& lock, TimePoint deadline, const Wake& wake) {
    TimePoint until = deadline;
    const TimePoint reply_due = m_expected.empty()
                                    ? TimePoint::max()
                                    : m_expected.front().sent + m_endpoint.command_timeout();
    until = std::min(until, reply_due);
    if (Clock::now() < m_hold_until) {
        until = std::min(until, m_hold_until);
    }
    const int fd = m_control->fd();
    const short events_wanted = m_control->flushed() ? POLLIN : POLLIN | POLLOUT;
    short ready = 0;
    unlocked(lock, [&] { ready = wait_ready(fd, events_wanted, &wake, until); });
    if (m_doomed) {
        return;
    }
    try {
        if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) {
            m_control->fill();
            while (m_control && !m_doomed) {
                Reply* const reply = m_control->next_reply();
                if (reply == nullptr) {
                    break;
                }
                take(std::move(*reply));
            }
        }
        if (ready == 0 && Clock::now() >= reply_due) {
            lose_control(m_endpoint.address() + ": no reply within command_timeout");
        }
    } catch (const std::exception& error) {
        // A reader that ran out of memory in the middle of a reply is as broken as a connection.
        lose_control(error.what());
    }
}

// What stops half-way, for want of memory, may have changed a part of the window: only the list
// itself can tell what it holds.
inline void Channels::take(Reply&& reply) {
    try {
        on_reply(std::move(reply));
    } catch (const std::exception& error) {
        begin_recovery(error.what());
        throw;
    }
}

inline void Channels::advance() {
    if (!m_control || m_doomed || Clock::now() < m_hold_until) {
        flush();
        return;
    }
    if (window.state() == Window::State::unregistered && !expects(Expected::Kind::start)) {
        window.send_start(m_control->output());
        expect(Expected::Kind::start);
    } else if (window.state() == Window::State::recovering && !expects(Expected::Kind::adopt)) {
        window.send_adopt(m_control->output());
        expect(Expected::Kind::adopt);
    }
    while (window.can_send() && window.has_moves()) {
        window.send_move(m_control->output());
        expect(Expected::Kind::chain);
    }
    if (!window.has_acks()) {
        m_hurry_acks = false;
    } else if (m_hurry_acks && window.can_send()) {
        window.send_settle(m_control->output(), 0);
        expect(Expected::Kind::chain);
    }
    flush();
}

inline void Channels::flush() {
    if (!m_control || m_doomed || m_control->flushed()) {
        return;
    }
    try {
        if (!m_control->flush() && m_pilot_wake != nullptr) {
            m_pilot_wake->signal(); // to poll for more room
        }
    } catch (const Error& error) {
        lose_control(error.what());
    }
}

template <class Compose>
void Channels::send(Compose compose) {
    compose(m_control->output());
    expect(Expected::Kind::chain);
    flush();
}

template <class... Arguments>
std::shared_ptr<Channels::Answer> Channels::ask(const Arguments&... arguments) {
    if (!m_control || m_doomed) {
        return nullptr;
    }
    auto answer = std::make_shared<Answer>();
    append_command(m_control->output(), arguments...);
    expect(Expected::Kind::answer, answer);
    flush();
    return answer;
}

inline void Channels::on_reply(Reply&& reply) {
    if (m_expected.empty()) {
        lose_control(m_endpoint.address() + ": a reply that nothing asked for");
        return;
    }
    const Expected expected = m_expected.pop_front();
    switch (expected.kind) {
    case Expected::Kind::answer:
        expected.answer->reply = std::move(reply);
        break;
    case Expected::Kind::start:
        follow(window.on_start(reply));
        if (window.state() == Window::State::running) {
            confirm_lease(expected.sent);
            forget_refusal();
        }
        break;
    case Expected::Kind::adopt:
        follow(window.on_adopt(reply));
        if (const auto recovered = window.take_recovered()) {
            if (window.state() == Window::State::running) {
                confirm_lease(expected.sent);
                forget_refusal();
            }
            after_recovery(*recovered);
        }
        break;
    case Expected::Kind::chain: {
        const Verdict verdict = window.on_reply(std::move(reply));
        if (verdict.action == Verdict::Action::proceed) {
            // Registering and adopting work even where settling does not.
            m_backoff.reset();
        }
        follow(verdict);
        break;
    }
    }
    unattended.tell(events, window.identity().id);
}

inline void Channels::follow(const Verdict& verdict) {
    switch (verdict.action) {
    case Verdict::Action::proceed:
        return;
    case Verdict::Action::back_off:
        m_last_failure = m_endpoint.address() + ": " + verdict.reason;
        m_hold_until = Clock::now() + m_backoff.next();
        return;
    case Verdict::Action::reconnect:
        lose_control(m_endpoint.address() + ": " + verdict.reason);
        return;
    case Verdict::Action::recover:
        delay_connecting();
        begin_recovery(m_endpoint.address() + ": " + verdict.reason);
        return;
    case Verdict::Action::give_up:
        m_hold_until = Clock::now() + m_backoff.next();
        note_refusal(verdict.reason);
        return;
    }
}

inline void Channels::note_refusal(const std::string& text) {
    m_last_failure = m_endpoint.address() + ": " + text;
    m_refusal = std::make_exception_ptr(
        reply_error(m_endpoint.address() + ": queue '" + window.keys().source() + "'", text));
}

inline void Channels::after_recovery(const Recovered& recovered) {
    m_recoveries.fetch_add(1, std::memory_order_relaxed);
    const std::string& id = window.identity().id;
    if (recovered.reaped || !recovered.lost.empty()) {
        events.note(EventKind::lease_lost, id,
                    std::to_string(recovered.lost.size()) + " messages are with others now");
    }
    unattended.on_lost(recovered.lost);
    for (const DeliveryPtr& message : recovered.surfaced) {
        events.note(EventKind::redelivered, id, "the reply to its fetch was lost",
                    message->payload);
    }
}

inline void Channels::begin_recovery(const std::string& reason) {
    if (window.state() != Window::State::running) {
        return;
    }
    window.begin_recovery();
    if (m_caretaker != nullptr) {
        m_caretaker->signal();
    }
    doom_control(reason);
    if (wait) {
        wait_doomed = true;
        wait->shutdown();
    }
    notify();
}

// A connection that breaks with nothing unanswered leaves no doubt: the next one goes on.
inline void Channels::lose_control(const std::string& reason) {
    if (window.unanswered()) {
        begin_recovery(reason);
    }
    doom_control(reason);
    delay_connecting();
}

inline void Channels::delay_connecting() {
    constexpr std::chrono::seconds calm(10);
    const TimePoint now = Clock::now();
    if (now - m_connect_at > calm) {
        m_backoff.reset();
    }
    m_connect_at = now + m_backoff.next();
}

inline void Channels::doom_control(const std::string& reason) {
    if (m_control && !m_doomed) {
        m_doomed = true;
        m_was_lost = true;
        m_last_failure = reason;
        m_control->shutdown();
    }
    for (const Expected& expected : std::exchange(m_expected, {})) {
        if (expected.answer) {
            expected.answer->failed = true;
        }
    }
    notify();
}

} // namespace orizuru::detail
