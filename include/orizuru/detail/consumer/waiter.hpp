// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Waits in Redis for a queue's messages: sends BLMOVE with a finite timeout on a connection of its
// own. CLIENT UNBLOCK on the link ends it early (waiter_connecting.inl). Also fetches by LMOVE,
// without waiting, what is too large for the link. A recovery makes this connection worthless: its
// replies no longer count. One thread at a time uses this, under the lock.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/unblocking.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

class Waiter {
  public:
    using Lock = Lane::Lock;

    /// `wake` ends every wait of the thread that uses this.
    Waiter(Lane& lane, const Wake& wake) : m_lane(lane), m_wake(wake) {}

    /// Takes one step towards an outstanding BLMOVE: appends it, for `read` to send, or connects
    /// first. Returns false when it has set what to await before the next step. No marker is due.
    bool start(Lock& lock, TimePoint deadline, Awaited& awaited);
    /// Appends LMOVE, for `read` to send. Call it only while `may_look`, and neither a reply nor a
    /// marker is due.
    void look() {
        m_stream->append([this](std::string& out) { m_lane.mirror().send_look(out); });
        m_due = Clock::now() + m_lane.endpoint().command_timeout();
    }
    /// Takes the replies that are due; waits for one until the deadline, or a signal of `wake`.
    void read(Lock& lock, TimePoint deadline);
    /// Ends the outstanding BLMOVE, which may still bring a message, or awaits the reply to LMOVE.
    /// Returns true when none is outstanding. Returns false at the deadline, or while the link is
    /// not connected, or without the right to CLIENT UNBLOCK, or if `interrupted()`, which it asks
    /// again when `wake` is signalled; BLMOVE then stays outstanding.
    bool stop(
        Lock& lock, TimePoint deadline, FunctionRef<bool()> interrupted = [] { return false; });
    /// Closes the connection even with a BLMOVE outstanding, for the end of a consumer.
    void abort() {
        m_stream.reset();
        m_lane.mirror().forget_blocking_fetch();
    }
    void close_after_fork() noexcept {
        Stream::close_after_fork(m_stream);
        Stream::close_after_fork(m_attempt.stream);
    }

    /// True when `start` need not connect first.
    [[nodiscard]] bool connected() const noexcept { return m_stream && !worthless(); }
    /// Begins to connect, or goes on. Returns false when it has set what to await, true when an
    /// attempt has ended or failed. Waits only as Stream's constructor does, with this deadline.
    [[gnu::cold]] bool connect(Lock& lock, TimePoint deadline, Awaited& awaited);
    /// True when `look` can be called, if nothing is outstanding.
    [[nodiscard]] bool may_look() const noexcept {
        return connected() && Clock::now() >= std::max(m_not_before, m_look_at);
    }
    /// True when a reply is due to what was sent behind a BLMOVE that was ended.
    [[nodiscard]] bool marker_due() const noexcept { return connected() && m_unblocking.pending(); }
    /// Returns when to call `read` again; nothing if no reply is due.
    [[nodiscard]] std::optional<Awaited> awaited() const noexcept {
        const bool due = m_lane.mirror().blocked() || marker_due();
        return due ? std::optional(Awaited{m_stream->fd(), m_due, m_stream->greeting_events()})
                   : std::nullopt;
    }

    /// Redis' memory is full: it refuses BLMOVE and LMOVE but runs a script that fetches.
    [[nodiscard]] bool refused_for_memory() const noexcept { return m_oom_pause.count() > 0; }

  private:
    // Long enough to repeat rarely, short enough that Redis soon forgets a vanished client.
    static constexpr std::chrono::milliseconds longest{5000};
    static constexpr std::chrono::milliseconds shortest_oom_pause{50};
    static constexpr std::chrono::milliseconds longest_oom_pause{1000};
    // Without the right to LMOVE, what it would fetch comes by the link.
    static constexpr std::chrono::minutes refused_look_pause{1};
    // The user gets a refusal that recovery does not cure.
    static constexpr int most_failures = 4;

    // Time to wait for a reply that may be on its way before asking Redis again.
    static constexpr std::chrono::milliseconds transit{5};

    struct Attempt {
        std::unique_ptr<Stream> stream;
        std::uint64_t incarnation = 0; ///< the lane's when it began
        TimePoint until{};             ///< by when Redis must have answered
    };

    static constexpr auto ask_for_id = [](std::string& out) {
        append_command(out, "CLIENT", "ID");
    };

    [[gnu::cold]] void begin_attempt(Lock& lock, TimePoint deadline);
    [[gnu::cold]] void use(Attempt attempt, const Reply& id);
    [[gnu::cold]] void on_failed_attempt();
    void on_reply(Lock& lock, Reply&& reply) {
        switch (m_unblocking.read(reply, m_lane.mirror().blocked())) {
        case Unblocking::Meaning::result:
            on_result(lock, std::move(reply));
            return;
        case Unblocking::Meaning::ended:
            on_result(lock, Reply());
            return;
        case Unblocking::Meaning::unblocked:
            m_stream->append(ask_for_id);
            return;
        case Unblocking::Meaning::nothing:
            return;
        case Unblocking::Meaning::doubt:
            m_lane.begin_recovery(m_lane.link().at_address("an unexpected reply beside BLMOVE"));
            return;
        }
    }
    void on_result(Lock& lock, Reply&& reply);
    /// The connection broke, or was silent, with a reply due: `use` tells of the repair.
    [[gnu::cold]] void on_break(std::string_view reason) noexcept {
        m_lane.begin_recovery(reason);
        m_lane.events().note_break(reason);
        keep_failure(m_broken_by.emplace(), reason);
        m_broken_at = Clock::now();
    }
    // Returns "none" if Redis gives no type: a fence is then the likelier reason.
    [[gnu::cold]] std::string source_type(Lock& lock) {
        const TimePoint until = Clock::now() + m_lane.endpoint().command_timeout();
        const auto reply = m_lane.query(lock, until, [this](std::string& out) {
            append_command(out, "TYPE", m_lane.keys().source());
        });
        return reply && reply->is(Reply::Type::status) ? reply->text : "none";
    }
    void pause() { m_not_before = Clock::now() + m_backoff.next(); }
    /// A recovery has begun since it was connected.
    [[nodiscard]] bool worthless() const noexcept {
        return m_incarnation != m_lane.mirror().incarnation();
    }

    Lane& m_lane;
    const Wake& m_wake;
    std::unique_ptr<Stream> m_stream;
    Attempt m_attempt;                      ///< to connect
    std::uint64_t m_incarnation = 0;        ///< the lane's when it connected
    std::optional<std::string> m_broken_by; ///< why the stream before broke, until that is repaired
    TimePoint m_broken_at{};                ///< time that it broke
    std::int64_t m_connection_id = 0;       ///< from CLIENT ID; 0 = BLMOVE cannot be ended early
    Unblocking m_unblocking;
    TimePoint m_due{}; ///< by when Redis must answer what is outstanding
    TimePoint m_not_before{};
    JitteredPauses m_backoff;
    std::chrono::milliseconds m_oom_pause{};
    int m_failures = 0;    ///< in a row, which only recovery could cure
    TimePoint m_look_at{}; ///< earliest next LMOVE after a refusal
};

inline bool Waiter::start(Lock& lock, TimePoint deadline, Awaited& awaited) {
    if (!connected()) {
        return connect(lock, deadline, awaited);
    }
    const TimePoint now = Clock::now();
    if (now < m_not_before) {
        awaited.until = m_not_before;
        return false;
    }
    m_stream->append(
        [this](std::string& out) { m_lane.mirror().send_blocking_fetch(out, longest); });
    m_due = now + longest + m_lane.endpoint().command_timeout();
    return true;
}

inline void Waiter::read(Lock& lock, TimePoint deadline) {
    Stream* const stream = m_stream.get();
    const Mirror& mirror = m_lane.mirror();
    short ready = 0;
    try {
        const short wanted = stream->flush() ? POLLIN : POLLIN | POLLOUT;
        const TimePoint until = std::min(deadline, m_due);
        {
            const Unlocked open(lock);
            ready = stream->wait(wanted, &m_wake, until);
        }
        if (worthless()) {
            m_stream.reset();
            return;
        }
        if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) {
            stream->fill();
        }
        bool answered = false;
        while (Reply* const reply = worthless() ? nullptr : stream->next_reply()) {
            answered = true;
            on_reply(lock, std::move(*reply));
        }
        if (!answered && Clock::now() >= m_due) {
            on_break(m_lane.link().at_address(
                joined({mirror.looking() ? "LMOVE" : "BLMOVE", " was not answered in time"})));
        }
    } catch (const std::exception& error) {
        // A reader that ran out of memory inside a reply is as unusable as a broken connection.
        pause();
        if (worthless()) {
            m_stream.reset();
            return;
        }
        on_break(error.what());
    }
}

inline void Waiter::on_result(Lock& lock, Reply&& reply) {
    const bool looked = m_lane.mirror().looking();
    const Verdict verdict = m_lane.mirror().on_blocking_fetch(std::move(reply));
    switch (verdict.remedy) {
    case Remedy::none:
        m_oom_pause = {};
        m_failures = 0;
        m_backoff.reset();
        m_lane.events().forget_migration();
        return;
    case Remedy::back_off:
        if (verdict.reason.starts_with("OOM")) {
            // Scripts may still run: a full queue must drain.
            m_oom_pause = std::clamp(m_oom_pause * 2, shortest_oom_pause, longest_oom_pause);
            m_not_before = Clock::now() + m_oom_pause;
            return;
        }
        m_lane.events().note_migration(verdict.reason);
        pause();
        return;
    case Remedy::reconnect:
        pause();
        // Redis' role has changed, so it may have gone back in time: check the list.
        m_lane.begin_recovery(m_lane.link().at_address(verdict.reason));
        return;
    case Remedy::recover:
        pause();
        if (const std::string found = source_type(lock); found != "list" && found != "none") {
            m_lane.keep_refusal(joined({"WRONGTYPE the source is a ", found}));
        } else if (++m_failures < most_failures) {
            m_lane.begin_recovery(m_lane.link().at_address(verdict.reason));
        } else {
            m_failures = 0;
            m_lane.keep_refusal(verdict.reason);
        }
        return;
    case Remedy::give_up:
        if (looked) {
            m_look_at = Clock::now() + refused_look_pause;
        } else {
            m_lane.keep_refusal(verdict.reason);
            pause();
        }
        return;
    case Remedy::send_body:
        return; // never: these are no scripts
    }
}

} // namespace orizuru::detail

#include <orizuru/detail/consumer/waiter_connecting.inl>
