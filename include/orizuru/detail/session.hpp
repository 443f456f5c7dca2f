// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a Consumer and its guards share: fetching, settling, stopping. It lives until the last of
// them is gone, and that one leaves the registry.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/channels.hpp>
#include <orizuru/detail/encoding.hpp>
#include <orizuru/detail/heartbeat.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class Session {
  public:
    /// Connects and registers. When the last copy of the pointer goes, what is held is given back
    /// and the registry left, for at most command_timeout.
    static std::shared_ptr<Session> open(Endpoint endpoint, const std::string& queue,
                                         ConsumerOptions options);

    /// The next message, handed out; null at the deadline or when stopped.
    DeliveryPtr next(const std::stop_token& token, TimePoint deadline);

    /// Settles a held message; `move` null = ack. False: the lease was lost.
    bool settle(const DeliveryPtr& message, std::unique_ptr<Move> move, std::string_view what);
    /// Rejects what its guard left unsettled; waits at most command_timeout.
    void abandon(const DeliveryPtr& message) noexcept;
    /// Hands a message that cannot be processed to the next call of `next`.
    void take_back(const DeliveryPtr& message);

    std::size_t flush();
    std::uint64_t size();
    std::string id();

    void stop() noexcept {
        m_stopped.store(true, std::memory_order_relaxed);
        m_wake.signal();
    }
    [[nodiscard]] bool stopped() const noexcept {
        return m_stopped.load(std::memory_order_relaxed);
    }
    /// Gives back what was fetched and not handed out. For the end of a consumer whose guards live
    /// on.
    void give_back() noexcept;

    [[nodiscard]] const ConsumerOptions& options() const noexcept { return m_options; }
    [[nodiscard]] const Keys& keys() const noexcept { return m_channels.window.keys(); }
    [[nodiscard]] std::string address() const { return m_channels.endpoint().address(); }
    void tell(EventKind kind, std::string_view detail, std::string_view payload);

  private:
    using Lock = Channels::Lock;

    // Long enough to be rare, short enough that the waiter of a vanished client is soon forgotten.
    static constexpr std::chrono::milliseconds longest_block{5000};
    static constexpr std::chrono::milliseconds shortest_oom_pause{50};
    static constexpr std::chrono::milliseconds longest_oom_pause{1000};
    // A waiter that is to stop within 20 ms can await Redis for a part of that; what is left over
    // is done by the next call or the destructor.
    static constexpr std::chrono::milliseconds stop_patience{15};
    static constexpr std::chrono::milliseconds timeout_patience{100};

    Session(Endpoint endpoint, const Keys& keys, const ConsumerOptions& options);

    void start();
    void check_eviction(Lock& lock);
    void finish() noexcept;

    template <class Interrupted>
    bool look(Lock& lock, TimePoint deadline, Interrupted interrupted);
    void block(Lock& lock, TimePoint deadline);
    void connect_wait(Lock& lock);
    void read_wait(Lock& lock, TimePoint deadline);
    void on_blocked_reply(Lock& lock, Reply reply);
    std::string source_type(Lock& lock);
    bool unblock(Lock& lock, TimePoint deadline);
    bool leave(Lock& lock, TimePoint deadline);

    [[nodiscard]] TimePoint patience(TimePoint since) const;

    ConsumerOptions m_options;
    std::atomic<bool> m_stopped{false};
    Wake m_wake; ///< ends the waiting of the thread in `next`
    Channels m_channels;

    // Of the thread in `next` alone.
    std::int64_t m_wait_id = 0; ///< Redis' number of the wait connection; 0 = not to be had
    TimePoint m_wait_due{};     ///< when the blocking fetch must have answered
    Backoff m_wait_backoff;
    TimePoint m_wait_at{};                   ///< no blocking fetch before
    std::chrono::milliseconds m_oom_pause{}; ///< not 0: memory is full, the script fetches
    bool m_looked = false;                   ///< this call has fetched without waiting
    bool m_finishing = false;                ///< there will be no other call

    Heartbeat m_heartbeat; // last: its thread uses all of the above
};

inline std::shared_ptr<Session> Session::open(Endpoint endpoint, const std::string& queue,
                                              ConsumerOptions options) {
    using std::chrono::milliseconds;
    check_label(options.name);
    if (options.lease < milliseconds(100) || options.lease > std::chrono::hours(24)) {
        throw std::invalid_argument("lease must be 100 ms to 24 h");
    }
    if (options.prefetch < 1 || options.prefetch > largest_batch) {
        throw std::invalid_argument("prefetch must be 1 to 1000");
    }
    check_max_payload(options.max_payload);
    std::shared_ptr<Session> session(new Session(std::move(endpoint), Keys(queue), options));
    session->start();
    session->m_heartbeat.start(session);
    // The handle that consumer and guards share; the heartbeat's thread holds the session itself.
    return {session.get(), [session](Session*) mutable {
                if (session->m_channels.forked()) {
                    // A copy without its threads: its locks may be held for ever.
                    session->m_channels.close_after_fork();
                    session->m_heartbeat.forget_after_fork();
                    static_cast<void>(new std::shared_ptr(std::move(session)));
                } else {
                    session->finish();
                }
            }};
}

inline Session::Session(Endpoint endpoint, const Keys& keys, const ConsumerOptions& options)
    : m_options(options),
      m_channels(
          std::move(endpoint),
          Window(keys, options.lease, [label = options.name] { return make_identity(label); }),
          EventQueue(keys.source(), options.on_event)),
      m_heartbeat(m_channels, m_options) {}

inline void Session::start() {
    Lock lock(m_channels);
    const TimePoint deadline = Clock::now() + m_channels.endpoint().connect_timeout();
    const bool answered = m_channels.drive(lock, deadline, nullptr, [this] {
        return m_channels.window.state() == Window::State::running || m_channels.has_refusal();
    });
    m_channels.throw_refusal();
    if (!answered) {
        throw ConnectionError("registering a consumer of '" + keys().source() + "': " +
                              (m_channels.last_failure().empty() ? address() + ": no reply in time"
                                                                 : m_channels.last_failure()));
    }
    check_eviction(lock);
}

inline void Session::check_eviction(Lock& lock) {
    const auto answer = m_channels.ask("INFO", "memory");
    const TimePoint deadline = Clock::now() + m_channels.endpoint().command_timeout();
    if (!answer || !m_channels.drive(lock, deadline, nullptr,
                                     [&] { return answer->reply || answer->failed; })) {
        return;
    }
    constexpr std::string_view field = "maxmemory_policy:";
    // Without the right to ask there is nothing to warn of.
    const std::string text = answer->reply ? answer->reply->text : std::string();
    const auto at = text.find(field);
    if (at == std::string::npos) {
        return;
    }
    const std::string policy =
        text.substr(at + field.size(), text.find('\r', at) - at - field.size());
    if (policy != "noeviction") {
        m_channels.events.note(EventKind::not_noeviction, m_channels.window.identity().id, policy);
    }
}

// One round of the loop does one thing and then looks at everything again, because whatever it
// waits for can be overtaken: by a stop, by a lost lease, by a guard that settles elsewhere.
inline DeliveryPtr Session::next(const std::stop_token& token, TimePoint deadline) {
    m_channels.refuse_fork();
    const std::stop_callback wake_up(token, [this] { m_wake.signal(); });
    Lock lock(m_channels);
    const Window& window = m_channels.window;
    const auto interrupted = [&] { return stopped() || token.stop_requested(); };
    m_looked = false;
    while (true) {
        m_wake.clear();
        if (interrupted()) {
            const TimePoint until = Clock::now() + stop_patience;
            stopped() ? leave(lock, until) : unblock(lock, until);
            return nullptr;
        }
        if (DeliveryPtr message = m_channels.window.hand_out()) {
            return message;
        }
        m_channels.throw_refusal();
        const bool late = Clock::now() >= deadline;
        if (window.state() != Window::State::running) {
            if (late) {
                return nullptr;
            }
            m_channels.drive(lock, deadline, &m_wake, [&] {
                return interrupted() || m_channels.has_refusal() ||
                       window.state() == Window::State::running;
            });
        } else if (window.fetching()) {
            // The reply is on its way, or the end of the connection.
            m_channels.drive(lock, TimePoint::max(), &m_wake, [&] {
                return interrupted() || !window.fetching() ||
                       window.state() != Window::State::running;
            });
        } else if (window.blocked()) {
            if (!late) {
                read_wait(lock, deadline);
            } else if (unblock(lock, Clock::now() + timeout_patience)) {
                m_looked = true;
            } else {
                return nullptr; // it stays outstanding, its message goes to the next call
            }
        } else if (!m_looked && (late || m_options.prefetch > 1 || window.has_acks() ||
                                 m_oom_pause.count() > 0)) {
            m_looked = look(lock, late ? Clock::now() + timeout_patience : deadline, interrupted);
            if (late && !m_looked) {
                return nullptr;
            }
        } else if (late) {
            return nullptr;
        } else {
            block(lock, deadline);
        }
    }
}

// One script settles what is due and fetches what is there, without waiting for more.
template <class Interrupted>
bool Session::look(Lock& lock, TimePoint deadline, Interrupted interrupted) {
    if (!m_channels.drive(lock, deadline, &m_wake, [&] {
            return interrupted() || m_channels.ready() || m_channels.has_refusal() ||
                   m_channels.window.state() != Window::State::running;
        })) {
        return false;
    }
    if (!m_channels.ready()) {
        return false;
    }
    m_channels.send(
        [this](std::string& out) { m_channels.window.send_settle(out, m_options.prefetch); });
    return true;
}

inline void Session::block(Lock& lock, TimePoint deadline) {
    const TimePoint now = Clock::now();
    if (now < m_wait_at) {
        const TimePoint until = std::min(deadline, m_wait_at);
        m_channels.unlocked(lock, [&] { wait_ready(-1, 0, &m_wake, until); });
        return;
    }
    if (m_channels.wait_doomed) {
        m_channels.wait.reset();
        m_channels.wait_doomed = false;
    }
    if (!m_channels.wait) {
        connect_wait(lock);
        return;
    }
    m_channels.window.send_blocking_fetch(m_channels.wait->output(), longest_block);
    m_wait_due = now + longest_block + m_channels.endpoint().command_timeout();
}

inline void Session::connect_wait(Lock& lock) {
    std::unique_ptr<Stream> stream;
    std::int64_t id = 0;
    std::string refusal;
    m_channels.unlocked(lock, [&] {
        const TimePoint until = Clock::now() + m_channels.endpoint().connect_timeout();
        try {
            stream = std::make_unique<Stream>(m_channels.endpoint(), until, &m_wake);
            append_command(stream->output(), "CLIENT", "ID");
            // Without the right to ask, a wait ends at its own time only.
            id = stream->await_reply(until, &m_wake).integer;
        } catch (const ReplyError& error) {
            stream.reset();
            if (classify(error.code()) == ReplyClass::rights) {
                refusal = error.code() + " " + error.what();
            }
        } catch (const Error&) {
            stream.reset(); // tried again below; control tells what is wrong
        }
    });
    if (!refusal.empty()) {
        m_channels.note_refusal(refusal);
    }
    if (!stream) {
        m_wait_at = Clock::now() + m_wait_backoff.next();
        return;
    }
    m_channels.wait = std::move(stream);
    m_wait_id = id;
}

inline void Session::read_wait(Lock& lock, TimePoint deadline) {
    Stream* const stream = m_channels.wait.get();
    short ready = 0;
    try {
        const short wanted = stream->flush() ? POLLIN : POLLIN | POLLOUT;
        const TimePoint until = std::min(deadline, m_wait_due);
        m_channels.unlocked(lock,
                            [&] { ready = wait_ready(stream->fd(), wanted, &m_wake, until); });
        if (m_channels.wait_doomed) {
            return; // a recovery came in between: what arrives now counts no more
        }
        if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) {
            stream->fill();
        }
        if (auto reply = stream->next_reply()) {
            on_blocked_reply(lock, std::move(*reply));
        } else if (Clock::now() >= m_wait_due) {
            m_channels.begin_recovery(address() + ": BLMOVE was not answered in time");
        }
    } catch (const Error& error) {
        if (!m_channels.wait_doomed) {
            m_channels.begin_recovery(error.what());
        }
    }
}

inline void Session::on_blocked_reply(Lock& lock, Reply reply) {
    using Action = Verdict::Action;
    const Verdict verdict = m_channels.window.on_blocking_fetch(std::move(reply));
    switch (verdict.action) {
    case Action::proceed:
        m_oom_pause = {};
        m_wait_backoff.reset();
        return;
    case Action::back_off:
        if (verdict.reason.starts_with("OOM")) {
            // Scripts may still run: a full queue must drain.
            m_oom_pause = std::clamp(m_oom_pause * 2, shortest_oom_pause, longest_oom_pause);
            m_wait_at = Clock::now() + m_oom_pause;
            m_looked = false;
            return;
        }
        m_wait_at = Clock::now() + m_wait_backoff.next();
        return;
    case Action::reconnect:
        m_channels.wait.reset();
        m_wait_at = Clock::now() + m_wait_backoff.next();
        return;
    case Action::recover:
        if (const std::string found = source_type(lock); found != "list" && found != "none") {
            m_channels.note_refusal("WRONGTYPE the source is a " + found);
            m_wait_at = Clock::now() + m_wait_backoff.next();
            return;
        }
        m_channels.begin_recovery(address() + ": " + verdict.reason);
        return;
    case Action::give_up:
        m_channels.note_refusal(verdict.reason);
        m_wait_at = Clock::now() + m_wait_backoff.next();
        return;
    }
}

// "none" when Redis does not say: a fence is then the likelier reason.
inline std::string Session::source_type(Lock& lock) {
    const auto answer = m_channels.ask("TYPE", keys().source());
    const TimePoint until = Clock::now() + m_channels.endpoint().command_timeout();
    if (answer) {
        m_channels.drive(lock, until, nullptr, [&] { return answer->reply || answer->failed; });
    }
    return answer && answer->reply && answer->reply->is(Reply::Type::status) ? answer->reply->text
                                                                             : "none";
}

// Ends an outstanding BLMOVE; true when there is none any more. It may have brought a message.
inline bool Session::unblock(Lock& lock, TimePoint deadline) {
    const Window& window = m_channels.window;
    while (window.blocked()) {
        m_wake.clear();
        if (m_wait_id == 0 || Clock::now() >= deadline) {
            return false;
        }
        const auto answer = m_channels.ask("CLIENT", "UNBLOCK", m_wait_id);
        if (!answer || !m_channels.drive(lock, deadline, nullptr,
                                         [&] { return answer->reply || answer->failed; })) {
            return false;
        }
        if (answer->failed || answer->reply->is(Reply::Type::error)) {
            m_wait_id = answer->failed ? m_wait_id : 0;
            return false;
        }
        if (window.blocked()) {
            // Redis may not have read the BLMOVE yet: then nothing was there to be ended.
            read_wait(lock, std::min(deadline, Clock::now() + std::chrono::milliseconds(5)));
        }
    }
    return true;
}

// Can be called again when it ran out of time.
inline bool Session::leave(Lock& lock, TimePoint deadline) {
    Window& window = m_channels.window;
    if (!unblock(lock, deadline)) {
        if (m_wait_id != 0 && Clock::now() < deadline + stop_patience && !m_finishing) {
            return false;
        }
        m_channels.wait.reset();
        window.forget_blocking_fetch();
    }
    while (true) {
        const bool reached = m_channels.drive(lock, deadline, nullptr, [&] {
            m_channels.hurry_acks();
            return window.state() == Window::State::left || m_channels.has_refusal() ||
                   (m_channels.ready() && !window.unanswered() && !window.has_acks() &&
                    !window.has_moves());
        });
        if (!reached || m_channels.has_refusal()) {
            return false;
        }
        const bool holds_nothing = window.messages().empty();
        if (window.state() == Window::State::left || (!window.has_ready() && !holds_nothing)) {
            return true;
        }
        m_channels.send([&](std::string& out) { window.send_release(out); });
    }
}

inline void Session::give_back() noexcept {
    try {
        if (!m_channels.forked()) {
            Lock lock(m_channels);
            leave(lock, Clock::now() + m_channels.endpoint().command_timeout());
        }
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // What could not be given back is the collector's, after the lease.
    }
}

inline void Session::finish() noexcept {
    m_stopped.store(true);
    try {
        Lock lock(m_channels);
        m_finishing = true;
        m_channels.window.forsake();
        leave(lock, Clock::now() + m_channels.endpoint().command_timeout());
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // What could not be given back is the collector's, after the lease.
    }
    m_heartbeat.stop();
}

inline TimePoint Session::patience(TimePoint since) const {
    return std::max(m_channels.lease_from() + m_options.lease,
                    since + m_channels.endpoint().command_timeout());
}

inline bool Session::settle(const DeliveryPtr& message, std::unique_ptr<Move> move,
                            std::string_view what) {
    using S = Delivery::State;
    m_channels.refuse_fork();
    Lock lock(m_channels);
    if (message->state == S::lost) {
        return false;
    }
    const bool deferred = m_options.ack == AckMode::deferred && move == nullptr;
    message->failures = 0;
    m_channels.window.want(message, std::move(move));
    if (deferred) {
        message->deferred = true;
        return true;
    }
    const TimePoint since = Clock::now();
    const auto answered = [&] {
        m_channels.hurry_acks();
        return message->state != S::wanted && message->state != S::sent;
    };
    while (!m_channels.drive(lock, patience(since), nullptr, answered)) {
        // Beats may have been confirmed meanwhile: the lease decides, not the first estimate.
        if (Clock::now() >= patience(since)) {
            m_channels.leave_unattended(message);
            m_heartbeat.attend();
            throw ConnectionError(std::string(what) + " a message of '" + keys().source() +
                                      "': " + m_channels.last_failure(),
                                  ConnectionError::Outcome::in_doubt);
        }
    }
    if (message->state == S::held) {
        const std::string refusal = std::exchange(message->refusal, {});
        throw ReplyError(refusal.substr(0, refusal.find(' ')),
                         address() + ": " + std::string(what) + " a message of '" +
                             keys().source() + "': " + refusal);
    }
    return message->state == S::settled;
}

inline void Session::abandon(const DeliveryPtr& message) noexcept {
    using S = Delivery::State;
    try {
        if (m_channels.forked()) {
            return;
        }
        Lock lock(m_channels);
        if (message->state != S::held) {
            return;
        }
        m_channels.window.want(message,
                               std::make_unique<Move>(push_body(), std::vector{keys().unack()},
                                                      std::vector<std::string>()));
        const TimePoint until = Clock::now() + m_channels.endpoint().command_timeout();
        m_channels.drive(lock, until, nullptr,
                         [&] { return message->state != S::wanted && message->state != S::sent; });
        if (message->state != S::settled && message->state != S::lost) {
            m_channels.leave_unattended(message);
            m_heartbeat.attend();
        }
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // Out of memory: the message stays in the list, for the collector once we are gone.
    }
}

inline void Session::take_back(const DeliveryPtr& message) {
    const Lock lock(m_channels);
    m_channels.window.take_back(message);
}

inline std::size_t Session::flush() {
    using S = Delivery::State;
    m_channels.refuse_fork();
    Lock lock(m_channels);
    std::vector<DeliveryPtr> pending;
    std::ranges::copy_if(m_channels.window.messages(), std::back_inserter(pending),
                         [](const DeliveryPtr& message) { return message->deferred; });
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
            throw ConnectionError("flushing the acks of '" + keys().source() +
                                      "': " + m_channels.last_failure(),
                                  ConnectionError::Outcome::in_doubt);
        }
    }
    return m_channels.take_late_acks();
}

inline std::uint64_t Session::size() {
    m_channels.refuse_fork();
    Lock lock(m_channels);
    const TimePoint until = Clock::now() + m_channels.endpoint().command_timeout();
    std::shared_ptr<Channels::Answer> answer;
    m_channels.drive(lock, until, nullptr, [&] {
        if (!answer) {
            answer = m_channels.ask("LLEN", keys().source());
        }
        return answer && (answer->reply || answer->failed);
    });
    const std::string about = address() + ": LLEN '" + keys().source() + "': ";
    if (!answer || !answer->reply) {
        throw ConnectionError(about + (m_channels.last_failure().empty()
                                           ? "no reply in time"
                                           : m_channels.last_failure()));
    }
    const Reply& reply = *answer->reply;
    if (reply.is(Reply::Type::error)) {
        throw ReplyError(std::string(reply.code()), about + reply.text);
    }
    if (!reply.is(Reply::Type::integer)) {
        m_channels.begin_recovery(about + "a reply of the wrong type");
        throw ProtocolError(about + "a reply of the wrong type");
    }
    return static_cast<std::uint64_t>(reply.integer);
}

inline std::string Session::id() {
    const Lock lock(m_channels);
    return m_channels.window.identity().id;
}

inline void Session::tell(EventKind kind, std::string_view detail, std::string_view payload) {
    m_channels.events.tell({kind, keys().source(), id(), detail, payload});
}

} // namespace orizuru::detail
