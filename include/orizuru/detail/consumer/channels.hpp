// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Guards a consumer's mirror and its two connections with one mutex: control carries every script,
// wait only the blocking fetch. A thread that awaits a reply calls `drive`. One thread at a time
// leads: it reads control for all, connects and recovers. The others sleep until something changes.
// Only the leader closes control, only the thread in `next` closes wait. Any thread that finds a
// doubt shuts both down.

#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/control.hpp>
#include <orizuru/detail/consumer/keep_alive.hpp>
#include <orizuru/detail/consumer/leader_followers.hpp>
#include <orizuru/detail/consumer/mirror.hpp>
#include <orizuru/detail/consumer/unattended.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class Channels {
  public:
    /// Holds the mutex. Delivers the noted events after unlocking; the session may then be gone.
    class Lock : public std::unique_lock<std::mutex> {
      public:
        explicit Lock(Channels& channels) : unique_lock(channels.m_mutex), m_channels(channels) {}
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;
        ~Lock() {
            const auto ended = m_channels.guards.take_ended();
            if (ended || !m_channels.events.empty()) {
                const auto batch = m_channels.events.take();
                unlock();
                m_channels.events.tell(batch);
            }
        }

      private:
        Channels& m_channels;
    };

    using Answer = Control::Answer;

    /// Connects control until the deadline; throws as Control does.
    [[gnu::cold]] Channels(Endpoint endpoint, Mirror mirror, EventQueue queue, TimePoint deadline)
        : mirror(std::move(mirror)),
          events(std::move(queue)),
          m_control(std::move(endpoint), deadline) {}

    Mirror mirror;         ///< under the lock
    EventQueue events;     ///< under the lock, except `tell`
    Unattended unattended; ///< under the lock
    KeepAlive guards;      ///< under the lock; counts messages handed out, not settled

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_control.endpoint(); }
    [[nodiscard]] bool forked() const noexcept { return m_mark.forked(); }
    void refuse_fork() const;
    /// In a forked child: closes the descriptors and touches nothing else.
    [[gnu::cold]] void close_after_fork() noexcept;

    /// How many recoveries have ended. Needs no lock.
    [[nodiscard]] std::uint64_t recoveries() const noexcept {
        return m_recoveries.load(std::memory_order_relaxed);
    }

    // Callers hold the lock for everything below.

    /// Composes, sends, reads, connects and recovers until `done()` holds. Returns false at the
    /// deadline. Signalling `wake`, if there is one, makes the caller ask `done` again.
    bool drive(Lock& lock, TimePoint deadline, const Wake* wake, FunctionRef<bool()> done);

    /// From now on every call of `drive` ends by this time, even if its own deadline is later.
    void limit(TimePoint time) noexcept {
        m_limit = time;
        m_turns.wake_all();
    }
    [[nodiscard]] TimePoint limit() const noexcept { return m_limit; }

    /// True when a request can be composed and sent now.
    [[nodiscard]] bool ready() const noexcept { return mirror.can_send() && m_control.ready(); }
    /// Sends what `compose` appends: a request of the mirror's chain.
    void send(FunctionRef<void(std::string&)> compose) {
        m_control.send(Control::Purpose::chain, compose);
        flush();
    }
    /// Sends a command outside the chain; returns null without a connection.
    template <class... Arguments>
    std::shared_ptr<Answer> ask(const Arguments&... arguments) {
        return ask_with([&](std::string& out) { append_command(out, arguments...); });
    }
    /// Ends an idle control connection that Redis has closed, before anything is sent on it.
    /// Nothing is then in doubt, and the next connection needs no recovery.
    void drop_closed() noexcept;
    /// Takes over the acks that guards have given without the lock.
    void take_acks() noexcept { guards.drop(mirror.take_acks()); }
    /// Has acks sent at the next chance instead of with the next fetch.
    void hurry_acks() noexcept { m_hurry_acks = true; }

    /// Ends both connections because Redis' state is in doubt; `drive` then adopts the list.
    [[gnu::cold]] void begin_recovery(std::string_view reason) noexcept;

    /// Throws the noted error that only a person can fix, if any, and forgets it.
    void throw_refusal() {
        if (m_refusal) {
            std::rethrow_exception(std::exchange(m_refusal, nullptr));
        }
    }
    void forget_refusal() noexcept { m_refusal = nullptr; }
    [[gnu::cold]] void note_refusal(std::string_view text);
    /// Puts Redis' address in front of `reason`.
    [[nodiscard]] std::string at_address(std::string_view reason) const {
        return joined({endpoint().address(), ": ", reason});
    }
    [[nodiscard]] bool has_refusal() const noexcept { return m_refusal != nullptr; }
    [[nodiscard]] const std::string& last_failure() const noexcept {
        return m_control.last_failure();
    }

    void confirm_lease(TimePoint asked) noexcept { m_lease_from = std::max(m_lease_from, asked); }
    /// When the lease that Redis last confirmed began. Counts from the request, so never too late.
    [[nodiscard]] TimePoint lease_from() const noexcept { return m_lease_from; }

    /// Delivers the noted events, with the lock released.
    void tell_events(Lock& lock);
    /// A recovery signals `wake` when it begins, so that it need not wait for a caller of `drive`.
    void set_caretaker(const Wake* wake) noexcept { m_caretaker = wake; }

    std::unique_ptr<Stream> wait; ///< only the thread in `next` makes and closes it
    bool wait_doomed = false;     ///< shut down; further replies do not count

  private:
    [[noreturn]] [[gnu::cold]] void throw_forked() const;
    std::shared_ptr<Answer> ask_with(FunctionRef<void(std::string&)> compose);
    void advance();
    void flush();
    [[gnu::cold]] void connect(Lock& lock, TimePoint deadline, const Wake& wake);
    void read(Lock& lock, TimePoint deadline, const Wake& wake);
    void take(Reply&& reply);
    void on_reply(Reply&& reply);
    [[gnu::cold]] void on_registered(TimePoint asked);
    void follow(const Verdict& verdict);
    [[gnu::cold]] void after_recovery(const Recovered& recovered);
    [[gnu::cold]] void lose_control(std::string_view reason) noexcept;

    ForkMark m_mark;
    std::mutex m_mutex;
    LeaderFollowers m_turns;
    const Wake* m_caretaker = nullptr;
    Control m_control;
    bool m_hurry_acks = false;
    std::atomic<std::uint64_t> m_recoveries{0};
    TimePoint m_lease_from{};
    TimePoint m_limit = TimePoint::max();
    std::exception_ptr m_refusal;
};

inline void Channels::refuse_fork() const {
    if (forked()) {
        throw_forked();
    }
}

inline void Channels::throw_forked() const {
    throw std::logic_error(joined({"a consumer of '", mirror.keys().source(),
                                   "' is used in a forked child; make a new one there"}));
}

inline void Channels::close_after_fork() noexcept {
    m_control.close_after_fork();
    if (wait) {
        wait.release()->close_after_fork();
    }
}

inline void Channels::tell_events(Lock& lock) {
    if (!events.empty()) {
        const auto batch = events.take();
        unlocked(lock, [&] { events.tell(batch); });
    }
}

inline bool Channels::drive(Lock& lock, TimePoint deadline, const Wake* wake,
                            FunctionRef<bool()> done) {
    drop_closed();
    while (true) {
        if (wake != nullptr) {
            wake->clear();
        }
        take_acks();
        if (done()) {
            return true;
        }
        const TimePoint until = std::min(deadline, m_limit);
        if (Clock::now() >= until) {
            return false;
        }
        if (!events.empty()) {
            // A leader must not do this: a callback that settles a guard would wait for itself.
            tell_events(lock);
            continue;
        }
        advance();
        if (m_turns.has_leader()) {
            m_turns.follow(lock, until, wake);
            continue;
        }
        m_turns.lead(wake, [&](const Wake& own) {
            m_control.close_ended();
            if (m_control.closed()) {
                connect(lock, until, own);
            } else {
                read(lock, until, own);
            }
        });
    }
}

inline void Channels::connect(Lock& lock, TimePoint deadline, const Wake& wake) {
    if (Clock::now() < m_control.connect_at()) {
        const TimePoint until = std::min(deadline, m_control.connect_at());
        unlocked(lock, [&] { wait_ready(-1, 0, &wake, until); });
        return;
    }
    Control::Attempt attempt;
    unlocked(lock, [&] { attempt = Control::attempt(endpoint(), deadline, wake); });
    if (attempt.stream) {
        if (m_control.use(std::move(attempt.stream))) {
            events.note(EventKind::reconnected, mirror.identity().id,
                        joined({endpoint().address(), ", after: ", last_failure()}));
        }
    } else if (!attempt.given_up) {
        m_control.note_failure(attempt.failure);
        m_refusal = attempt.refusal ? attempt.refusal : m_refusal;
        m_control.delay_connecting();
    }
}

inline void Channels::read(Lock& lock, TimePoint deadline, const Wake& wake) {
    const TimePoint reply_due = m_control.reply_due();
    TimePoint until = std::min(deadline, reply_due);
    if (Clock::now() < m_control.hold_until()) {
        until = std::min(until, m_control.hold_until());
    }
    Stream& stream = m_control.stream();
    const short wanted = stream.flushed() ? POLLIN : POLLIN | POLLOUT;
    short ready = 0;
    unlocked(lock, [&] { ready = stream.wait(wanted, &wake, until); });
    if (!m_control.connected()) {
        return;
    }
    try {
        if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) {
            stream.fill();
            while (m_control.connected()) {
                Reply* const reply = stream.next_reply();
                if (reply == nullptr) {
                    break;
                }
                take(std::move(*reply));
            }
        }
        if (ready == 0 && Clock::now() >= reply_due) {
            lose_control(at_address("no reply within command_timeout"));
        }
    } catch (const std::exception& error) {
        // A reader that ran out of memory inside a reply is as unusable as a broken connection.
        lose_control(error.what());
    }
}

inline void Channels::advance() {
    using Purpose = Control::Purpose;
    if (!m_control.ready()) {
        flush();
        return;
    }
    if (mirror.state() == Mirror::State::unregistered && !m_control.expects(Purpose::start)) {
        m_control.send(Purpose::start, [this](std::string& out) { mirror.send_start(out); });
    } else if (mirror.state() == Mirror::State::recovering && !m_control.expects(Purpose::adopt)) {
        m_control.send(Purpose::adopt, [this](std::string& out) { mirror.send_adopt(out); });
    }
    while (mirror.can_send() && mirror.has_moves()) {
        m_control.send(Purpose::chain, [this](std::string& out) { mirror.send_move(out); });
    }
    if (!mirror.has_acks()) {
        m_hurry_acks = false;
    } else if (m_hurry_acks && mirror.can_send()) {
        m_control.send(Purpose::chain, [this](std::string& out) { mirror.send_settle(out, 0); });
    }
    flush();
}

inline void Channels::flush() {
    try {
        if (!m_control.flush()) {
            m_turns.wake_leader(); // so that it polls for more room
        }
    } catch (const std::exception& error) {
        lose_control(error.what());
    }
}

inline std::shared_ptr<Channels::Answer>
Channels::ask_with(FunctionRef<void(std::string&)> compose) {
    if (!m_control.connected()) {
        return nullptr;
    }
    auto answer = m_control.ask(compose);
    flush();
    return answer;
}

} // namespace orizuru::detail
