// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One connection to Redis that any number of queues share for their scripts, and the mutex that
// guards it and them. A thread that waits for a change calls `await_change`. One thread at a time
// leads: it reads for all and connects; the others sleep until something changes.
//
// An error reply concerns the member whose request it answers. Only the end of the connection, a
// reply that comes too late or one that cannot be right breaks the link. Each member with an
// unanswered request then recovers, a few at a time.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/control.hpp>
#include <orizuru/detail/consumer/leader_followers.hpp>
#include <orizuru/detail/consumer/link_member.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>

#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class Link {
  public:
    using Answer = Control::Answer;
    using Lock = std::unique_lock<std::mutex>;
    using Purpose = LinkMember::Purpose;

    /// Connects until the deadline; throws as Control does. `shared`: for a link to one of the
    /// nodes of a Cluster; members can move between links that share a mutex.
    [[gnu::cold]] Link(const Endpoint& endpoint, TimePoint deadline,
                       const std::shared_ptr<std::mutex>& shared = nullptr)
        : m_mutex(shared ? shared : std::make_shared<std::mutex>()),
          m_among_others(shared != nullptr),
          m_control(endpoint, deadline),
          m_in_outage(!connected()) {}
    /// The same with a shared mutex, but not connected yet.
    [[gnu::cold]] Link(const Endpoint& endpoint, std::shared_ptr<std::mutex> shared)
        : m_mutex(std::move(shared)),
          m_among_others(true),
          m_control(endpoint),
          m_in_outage(false),
          m_broken_at(Clock::now()) {}

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_control.endpoint(); }
    /// Lives as long as the link and its members.
    [[nodiscard]] const std::shared_ptr<std::mutex>& mutex() const noexcept { return m_mutex; }
    /// Whether there may be links to other nodes, for members that are astray on this one.
    [[nodiscard]] bool among_others() const noexcept { return m_among_others; }
    [[gnu::cold]] void close_after_fork() noexcept { m_control.close_after_fork(); }

    // Callers hold the lock for everything below.

    void join(LinkMember& member) noexcept { m_members.push_back(member); }
    /// Replies that are still owed to the member are discarded.
    void leave(LinkMember& member) noexcept {
        m_control.forget(member);
        m_members.erase(member);
    }

    /// Reads for all members or connects, or sleeps while another thread does: until something may
    /// have changed, `wake` is signalled, or it is `until`. Releases the lock meanwhile. `now`:
    /// when the caller began to look whether it may send.
    void await_change(Lock& lock, TimePoint until, const Wake* wake, TimePoint now);
    /// Makes every thread in `await_change` look again.
    void wake_all() noexcept { m_turns.wake_all(); }

    [[nodiscard]] bool connected() const noexcept { return m_control.connected(); }
    /// The server, while connected.
    [[nodiscard]] const Node& server() const noexcept { return m_control.stream().server(); }
    /// Connected to another server than this one.
    [[nodiscard]] bool elsewhere(const Node& server) const noexcept {
        return connected() && m_control.stream().server() != server;
    }
    /// True from a break of the connection, or the first failed attempt to replace one that was
    /// closed while idle, until there is a new one.
    [[nodiscard]] bool in_outage() const noexcept { return m_in_outage; }
    /// True when a request can be sent now.
    [[nodiscard]] bool ready() const noexcept { return m_control.ready(); }
    /// When a hold of all members ends, or `until`.
    [[nodiscard]] TimePoint hold_bound(TimePoint until, TimePoint now) const noexcept {
        return m_control.hold().bound(until, now);
    }
    /// True when the member's ADOPT can be sent now. A list can be long, and after a break all
    /// members may have to adopt theirs.
    [[nodiscard]] bool may_adopt(const LinkMember& member) const noexcept {
        return owes(member, Purpose::adopt) == 0 && m_control.owes(Purpose::adopt) < most_adopting;
    }
    [[nodiscard]] std::size_t owes(const LinkMember& member, Purpose purpose) const noexcept {
        return m_control.owes(purpose, &member);
    }

    /// Appends a request of the member, for `flush` to send, while connected.
    void send(LinkMember& member, Purpose purpose, FunctionRef<void(std::string&)> compose) {
        m_control.send(member, purpose, compose);
    }
    /// Sends a command that is no member's request, while connected. Its reply goes to `answer`
    /// until that is forgotten.
    void ask(Answer& answer, FunctionRef<void(std::string&)> compose) {
        m_control.ask(answer, compose);
        flush();
    }
    void forget(const Answer& answer) noexcept { m_control.forget(answer); }
    void flush() noexcept;
    /// Breaks the link, because a reply was one that cannot be.
    [[gnu::cold]] void lose(std::string_view reason) noexcept;
    /// Ends an idle connection that Redis has closed, before anything is sent on it. Nothing is
    /// then in doubt: the next connection needs no recovery. It is an outage only if that fails.
    void drop_closed() noexcept;

    /// Puts Redis' address in front of `reason`.
    [[nodiscard]] std::string at_address(std::string_view reason) const {
        return joined({endpoint().address(), ": ", reason});
    }
    [[nodiscard]] const std::string& last_failure() const noexcept {
        return m_control.last_failure();
    }

  private:
    static constexpr std::size_t most_adopting = 8;

    [[gnu::cold]] void connect(Lock& lock, TimePoint deadline, const Wake& wake);
    [[gnu::cold]] void on_failed_attempt(const std::exception& error) noexcept;
    [[gnu::cold]] void on_attempt_cut_short();
    void read(Lock& lock, TimePoint deadline, const Wake& wake);
    void take(Reply&& reply) {
        const Control::Owed owed = m_control.take_owed();
        if (owed.answer != nullptr) {
            owed.answer->reply = std::move(reply);
            return;
        }
        if (owed.member == nullptr || owed.incarnation != owed.member->incarnation()) {
            return;
        }
        try {
            const Verdict verdict =
                owed.member->on_reply(owed.purpose, std::move(reply), owed.sent);
            if (verdict.remedy != Remedy::none) {
                act_on(verdict);
            } else if (owed.purpose == Purpose::chain) {
                // Registering and adopting do not count: they can work where settling fails.
                m_control.succeeded();
            }
        } catch (const std::exception& error) {
            owed.member->on_failed_reply(error.what()); // the stream is whole
        }
    }
    [[gnu::cold]] void act_on(const Verdict& verdict) {
        if (verdict.remedy == Remedy::reconnect) {
            lose(at_address(verdict.reason));
        } else if (verdict.remedy == Remedy::back_off && holds_all(verdict.reason)) {
            m_control.note_failure(at_address(verdict.reason));
            std::chrono::milliseconds longest = std::chrono::milliseconds::max();
            for (const LinkMember& member : m_members) {
                longest = std::min(longest, member.longest_hold());
            }
            m_control.hold().begin(longest);
        }
    }
    [[gnu::cold]] void end(std::string_view reason) noexcept {
        for (LinkMember& member : m_members) {
            member.on_broken(reason);
        }
        if (connected()) {
            m_broken_at = Clock::now();
        }
        m_control.end(reason);
    }
    [[gnu::cold]] void begin_outage(std::string_view reason) noexcept {
        if (!std::exchange(m_in_outage, true)) {
            for (LinkMember& member : m_members) {
                member.on_outage(reason);
            }
        }
    }

    const std::shared_ptr<std::mutex> m_mutex;
    const bool m_among_others;
    LeaderFollowers m_turns;
    Control m_control;
    bool m_in_outage;
    LinkedList<LinkMember> m_members;
    TimePoint m_polls_until = TimePoint::min(); ///< while the leader polls
    TimePoint m_broken_at{};                    ///< the connection before this one
};

inline void Link::await_change(Lock& lock, TimePoint until, const Wake* wake, TimePoint now) {
    until = m_control.hold().bound(until, now);
    if (m_turns.has_leader()) {
        m_turns.follow(lock, until, wake);
        return;
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

inline void Link::connect(Lock& lock, TimePoint deadline, const Wake& wake) {
    if (Clock::now() < m_control.connect_at()) {
        const TimePoint until = std::min(deadline, m_control.connect_at());
        const Unlocked open(lock);
        wait_ready(-1, 0, &wake, until);
        return;
    }
    const Endpoint to = m_members.empty() ? endpoint() : (*m_members.begin()).endpoint();
    const TimePoint own = Clock::now() + to.connect_timeout();
    std::unique_ptr<Stream> stream;
    try {
        const Unlocked open(lock);
        stream = Stream::make(to, std::min(deadline, own), &wake);
    } catch (const GivenUp&) {
        return on_attempt_cut_short();
    } catch (const std::exception& error) {
        return deadline < own && Clock::now() >= deadline ? on_attempt_cut_short()
                                                          : on_failed_attempt(error);
    }
    m_control.use(std::move(stream));
    std::string repair;
    if (std::exchange(m_in_outage, false)) {
        repair = joined({endpoint().address(), ", after ", Digits(milliseconds_since(m_broken_at)),
                         " ms; the last error was: ", last_failure()});
    }
    for (LinkMember& member : m_members) {
        member.on_connected(repair);
    }
}

/// Called by the handler of `error`.
inline void Link::on_failed_attempt(const std::exception& error) noexcept {
    if (!m_members.empty()) { // the node may have lost the slot of the first alone
        LinkMember& first = *m_members.begin();
        m_members.erase(first);
        m_members.push_back(first);
    }
    m_control.note_failure(error.what());
    m_control.delay_connecting();
    begin_outage(error.what());
    try {
        throw;
    } catch (const ReplyError& refusal) {
        if (remedy_for(refusal) == Remedy::give_up) {
            for (LinkMember& member : m_members) {
                member.on_refused(std::current_exception());
            }
        }
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
    }
}

/// Says nothing about Redis, unless all attempts since the break end like this.
inline void Link::on_attempt_cut_short() {
    if (Clock::now() >=
        std::max(m_broken_at, m_control.connect_at()) + endpoint().connect_timeout()) {
        begin_outage(at_address("no connection within connect_timeout"));
    }
}

inline void Link::read(Lock& lock, TimePoint deadline, const Wake& wake) {
    const TimePoint reply_due = m_control.reply_due();
    const TimePoint until = std::min(deadline, reply_due);
    Stream& stream = m_control.stream();
    const short wanted = stream.flushed() ? POLLIN : POLLIN | POLLOUT;
    short ready = 0;
    m_polls_until = until;
    const auto done = at_exit([this] { m_polls_until = TimePoint::min(); });
    {
        const Unlocked open(lock);
        ready = stream.wait(wanted, &wake, until);
    }
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
            lose(at_address("no reply within command_timeout"));
        }
    } catch (const std::exception& error) {
        // A reader that ran out of memory inside a reply is as unusable as a broken connection.
        lose(error.what());
    }
}

inline void Link::flush() noexcept {
    try {
        // So that it polls for more room, and no longer than for a reply that it did not know of.
        if (!m_control.flush() || m_control.reply_due() < m_polls_until) {
            m_turns.wake_leader();
        }
    } catch (const std::exception& error) {
        lose(error.what());
    }
}

inline void Link::drop_closed() noexcept {
    if (!m_control.idle() || !m_control.stream().closed_by_peer()) {
        return;
    }
    end("the server closed the idle connection");
    if (!m_control.proven()) {
        m_control.delay_connecting(); // the peer accepts connections only to close them
    }
    m_turns.wake_all();
}

// A connection that breaks with nothing unanswered leaves no doubt and needs no recovery.
inline void Link::lose(std::string_view reason) noexcept {
    end(reason);
    m_control.delay_connecting();
    begin_outage(reason);
    m_turns.wake_all();
}

} // namespace orizuru::detail
