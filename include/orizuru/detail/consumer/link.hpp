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
//
// Any thread may send or shut the connection down. Only the leader closes it: a descriptor closed
// during a poll may already belong to another file.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/leader_followers.hpp>
#include <orizuru/detail/consumer/link_member.hpp>
#include <orizuru/detail/consumer/owed_replies.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// Keeps why something failed.
[[gnu::cold]] inline void keep_failure(std::string& kept, std::string_view reason) noexcept {
    try {
        kept = reason;
    } catch (const std::bad_alloc&) {
        kept.clear(); // no reason is better than a wrong one
    }
}

class Link {
  public:
    using Answer = OwedReplies::Answer;
    using Lock = std::unique_lock<std::mutex>;
    using Purpose = LinkMember::Purpose;

    /// Connects until the deadline. Throws as Stream does, except when Redis is not ready yet.
    /// `shared`: for a link to one of several nodes; members can move between links that
    /// share a mutex.
    [[gnu::cold]] Link(const Endpoint& endpoint, TimePoint deadline,
                       const std::shared_ptr<std::mutex>& shared = nullptr);
    /// Does the same with a shared mutex, but not connected yet.
    [[gnu::cold]] Link(Endpoint endpoint, std::shared_ptr<std::mutex> shared)
        : m_mutex(std::move(shared)),
          m_among_others(true),
          m_endpoint(std::move(endpoint)),
          m_in_outage(false),
          m_broken_at(Clock::now()) {}

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }
    /// Lives as long as the link and its members.
    [[nodiscard]] const std::shared_ptr<std::mutex>& mutex() const noexcept { return m_mutex; }
    /// True if there may be links to other nodes, for members that are astray on this one.
    [[nodiscard]] bool among_others() const noexcept { return m_among_others; }
    [[gnu::cold]] void close_after_fork() noexcept { Stream::close_after_fork(m_stream); }

    // Callers hold the lock for everything below.

    void join(LinkMember& member) noexcept { m_members.push_back(member); }
    /// Replies that are still owed to the member are discarded.
    void leave(LinkMember& member) noexcept {
        m_owed.forget(member);
        m_members.erase(member);
    }

    /// Reads for all members or connects, or sleeps while another thread does: until something may
    /// have changed, `wake` is signalled, or it is `until`. Releases the lock meanwhile. `now`:
    /// when the caller began to look whether it may send.
    void await_change(Lock& lock, TimePoint until, const Wake* wake, TimePoint now);
    /// Makes every thread in `await_change` look again.
    void wake_all() noexcept { m_turns.wake_all(); }

    [[nodiscard]] bool connected() const noexcept { return m_stream && !m_shut_down; }
    /// The server, while connected.
    [[nodiscard]] const Node& server() const noexcept { return m_stream->server(); }
    /// Connected to another server than this one.
    [[nodiscard]] bool elsewhere(const Node& server) const noexcept {
        return connected() && m_stream->server() != server;
    }
    /// True from a break of the connection, or the first failed attempt to replace one that was
    /// closed while idle, until there is a new one.
    [[nodiscard]] bool in_outage() const noexcept { return m_in_outage; }
    /// True when a request can be sent now.
    [[nodiscard]] bool ready() const noexcept { return connected() && m_backoff.over(); }
    /// Returns when the back-off of all members ends, or `until`.
    [[nodiscard]] TimePoint backoff_bound(TimePoint until, TimePoint now) const noexcept {
        return m_backoff.bound(until, now);
    }
    /// True when the member's ADOPT can be sent now. A list can be long, and after a break all
    /// members may have to adopt theirs.
    [[nodiscard]] bool may_adopt(const LinkMember& member) const noexcept {
        return owes(member, Purpose::adopt) == 0 && m_owed.count(Purpose::adopt) < m_most_adopting;
    }
    [[nodiscard]] std::size_t owes(const LinkMember& member, Purpose purpose) const noexcept {
        return m_owed.count(purpose, &member);
    }

    /// Appends a request of the member, for `flush` to send, while connected. If `compose` throws,
    /// nothing is sent or owed.
    void send(LinkMember& member, Purpose purpose, FunctionRef<void(std::string&)> compose) {
        m_owed.add(OwedReplies::to(member, purpose), [&] { m_stream->append(compose); });
    }
    /// Sends a command that is no member's request, while connected. Its reply goes to `answer`
    /// until that is forgotten.
    void ask(Answer& answer, FunctionRef<void(std::string&)> compose) {
        m_owed.add(OwedReplies::to(answer), [&] { m_stream->append(compose); });
        flush();
    }
    void forget(const Answer& answer) noexcept { m_owed.forget(answer); }
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
    [[nodiscard]] const std::string& last_failure() const noexcept { return m_last_failure; }

  private:
    static constexpr std::size_t most_adopting = 8;

    [[gnu::cold]] void connect(Lock& lock, TimePoint deadline, const Wake& wake);
    [[gnu::cold]] void on_failed_attempt(const std::exception& error) noexcept;
    [[gnu::cold]] void on_attempt_cut_short();
    void read(Lock& lock, TimePoint deadline, const Wake& wake);
    void take(Reply&& reply);
    [[gnu::cold]] void on_cut(const ConnectionError& error) noexcept;
    [[gnu::cold]] void act_on(const Verdict& verdict);
    [[gnu::cold]] void end(std::string_view reason) noexcept;
    [[gnu::cold]] void begin_outage(std::string_view reason) noexcept;
    /// By when the oldest reply must come.
    [[nodiscard]] TimePoint reply_due() const noexcept {
        return m_owed.empty() ? TimePoint::max() : m_owed.oldest() + endpoint().command_timeout();
    }

    const std::shared_ptr<std::mutex> m_mutex;
    const bool m_among_others;
    const Endpoint m_endpoint;
    LeaderFollowers m_turns;
    LinkedList<LinkMember> m_members;

    std::unique_ptr<Stream> m_stream;
    bool m_shut_down = false; ///< for the leader to close
    bool m_proven = false;    ///< a reply has come on this connection
    OwedReplies m_owed;
    std::size_t m_most_adopting = most_adopting;
    TimePoint m_polls_until = TimePoint::min(); ///< while the leader polls

    Backoff m_backoff; ///< before its end, nothing is composed
    ConnectPauses m_pauses;
    bool m_in_outage;
    TimePoint m_broken_at{}; ///< the connection before this one
    std::string m_last_failure;
};

inline Link::Link(const Endpoint& endpoint, TimePoint deadline,
                  const std::shared_ptr<std::mutex>& shared)
    : m_mutex(shared ? shared : std::make_shared<std::mutex>()),
      m_among_others(shared != nullptr),
      m_endpoint(endpoint),
      m_in_outage(false) {
    try {
        m_stream = Stream::make(endpoint, deadline);
    } catch (const ReplyError& error) {
        if (remedy_for(error) == Remedy::give_up || remedy_for(error) == Remedy::recover) {
            throw;
        }
        keep_failure(m_last_failure, error.what());
        m_pauses.begin();
        m_in_outage = true;
    }
}

inline void Link::await_change(Lock& lock, TimePoint until, const Wake* wake, TimePoint now) {
    until = m_backoff.bound(until, now);
    if (m_turns.has_leader()) {
        m_turns.follow(lock, until, wake);
        return;
    }
    m_turns.lead(wake, [&](const Wake& own) {
        if (std::exchange(m_shut_down, false)) {
            m_stream.reset();
        }
        if (m_stream) {
            read(lock, until, own);
        } else {
            connect(lock, until, own);
        }
    });
}

inline void Link::connect(Lock& lock, TimePoint deadline, const Wake& wake) {
    if (Clock::now() < m_pauses.next()) {
        const TimePoint until = std::min(deadline, m_pauses.next());
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
    m_stream = std::move(stream);
    m_proven = false;
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
    keep_failure(m_last_failure, error.what());
    m_pauses.begin();
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
    if (Clock::now() >= std::max(m_broken_at, m_pauses.next()) + endpoint().connect_timeout()) {
        begin_outage(at_address("no connection within connect_timeout"));
    }
}

inline void Link::read(Lock& lock, TimePoint deadline, const Wake& wake) {
    const TimePoint due = reply_due();
    const TimePoint until = std::min(deadline, due);
    Stream& stream = *m_stream;
    const short wanted = stream.flushed() ? POLLIN : POLLIN | POLLOUT;
    const std::size_t replies = m_owed.size();
    short ready = 0;
    m_polls_until = until;
    const auto done = at_exit([this] { m_polls_until = TimePoint::min(); });
    {
        const Unlocked open(lock);
        ready = stream.wait(wanted, &wake, until, replies);
    }
    if (!connected()) {
        return;
    }
    try {
        if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) {
            stream.fill();
            while (connected()) {
                Reply* const reply = stream.next_reply();
                if (reply == nullptr) {
                    break;
                }
                take(std::move(*reply));
            }
        }
        if (ready == 0 && Clock::now() >= due) {
            lose(at_address("no reply within command_timeout"));
        }
    } catch (const ConnectionError& error) {
        on_cut(error);
    } catch (const std::exception& error) {
        // A reader that ran out of memory inside a reply is as unusable as a broken connection.
        lose(error.what());
    }
}

/// The server has ended the connection, or the network has.
inline void Link::on_cut(const ConnectionError& error) noexcept {
    if (LinkMember* const only = m_owed.only(Purpose::adopt)) {
        only->on_cut_adoption();
    }
    lose(error.what());
}

inline void Link::take(Reply&& reply) {
    if (m_owed.empty()) {
        throw ProtocolError(at_address("a reply that nothing asked for"));
    }
    m_proven = true;
    const OwedReplies::Owed owed = m_owed.take();
    if (owed.answer != nullptr) {
        owed.answer->reply = std::move(reply);
        return;
    }
    if (owed.member == nullptr || owed.incarnation != owed.member->incarnation()) {
        return;
    }
    try {
        const Verdict verdict = owed.member->on_reply(owed.purpose, std::move(reply));
        if (verdict.remedy != Remedy::none) {
            act_on(verdict);
        } else if (owed.purpose == Purpose::chain) {
            // Registering and adopting do not count: they can work where settling fails.
            m_backoff.succeeded();
            m_pauses.succeeded();
        }
    } catch (const std::exception& error) {
        owed.member->on_failed_reply(error.what()); // the stream is whole
    }
}

inline void Link::act_on(const Verdict& verdict) {
    if (verdict.remedy == Remedy::reconnect) {
        lose(at_address(verdict.reason));
    } else if (verdict.remedy == Remedy::back_off && holds_all(verdict.reason)) {
        keep_failure(m_last_failure, at_address(verdict.reason));
        std::chrono::milliseconds longest = std::chrono::milliseconds::max();
        for (const LinkMember& member : m_members) {
            longest = std::min(longest, member.longest_backoff());
        }
        m_backoff.begin(longest);
    }
}

inline void Link::flush() noexcept {
    try {
        // Wake the leader: it must also wait for room to send, and only until the new reply is due.
        const bool sent = !connected() || m_stream->flushed() || m_stream->flush();
        if (!sent || reply_due() < m_polls_until) {
            m_turns.wake_leader();
        }
    } catch (const ConnectionError& error) {
        on_cut(error);
    } catch (const std::exception& error) {
        lose(error.what());
    }
}

inline void Link::drop_closed() noexcept {
    const bool idle = connected() && m_owed.empty() && m_stream->flushed();
    if (!idle || !m_stream->closed_by_peer()) {
        return;
    }
    end("the server closed the idle connection");
    if (!m_proven) {
        m_pauses.begin(); // the peer accepts connections only to close them
    }
    m_turns.wake_all();
}

inline void Link::lose(std::string_view reason) noexcept {
    end(reason);
    m_pauses.begin();
    begin_outage(reason);
    m_turns.wake_all();
}

/// Shuts the connection down, for the leader to close: no owed reply will come.
inline void Link::end(std::string_view reason) noexcept {
    for (LinkMember& member : m_members) {
        member.on_broken(reason);
    }
    if (connected()) {
        m_broken_at = Clock::now();
        m_shut_down = true;
        keep_failure(m_last_failure, reason);
        m_stream->shutdown();
        // Where one of them ends each connection, this shows which one it is.
        m_most_adopting = m_owed.count(Purpose::adopt) > 0 ? 1 : most_adopting;
    }
    m_owed.fail();
}

inline void Link::begin_outage(std::string_view reason) noexcept {
    if (!std::exchange(m_in_outage, true)) {
        for (LinkMember& member : m_members) {
            member.on_outage(reason);
        }
    }
}

} // namespace orizuru::detail
