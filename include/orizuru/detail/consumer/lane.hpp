// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue's part of a link, under the link's lock: the mirror of the consumer's list, the messages
// that users hold, the lease and the events not yet told. Composes what is due, acts on the replies
// and recovers after a doubt.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/attendance.hpp>
#include <orizuru/detail/consumer/held/awaits.hpp>
#include <orizuru/detail/consumer/held/held_messages.hpp>
#include <orizuru/detail/consumer/kept_refusal.hpp>
#include <orizuru/detail/consumer/lane_events.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/consumer/link_member.hpp>
#include <orizuru/detail/mirror/cut_adoptions.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/lease.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/redis/place/whereabouts.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace orizuru::detail {

/// A connection as Redis knows it.
struct RedisClient {
    std::int64_t id = 0; ///< CLIENT ID; 0: not known
    Node server;
};

class Lane final : private LinkMember {
  public:
    using Lock = Link::Lock;

    [[gnu::cold]] Lane(std::shared_ptr<Link> link, FunctionRef<Mirror()> make_mirror,
                       EventQueue&& events);
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    [[gnu::cold]] ~Lane();

    // Without the lock.

    /// Leads to the queue's key.
    [[nodiscard]] const Endpoint& endpoint() const noexcept override {
        return m_whereabouts.endpoint();
    }
    [[nodiscard]] std::mutex& mutex() const noexcept { return *m_mutex; }
    [[nodiscard]] const Keys& keys() const noexcept { return m_mirror.keys(); }
    /// Only `tell` is for those who do not hold the lock.
    [[nodiscard]] LaneEvents& events() noexcept { return m_events; }
    /// Only `recoveries` is for those who do not hold the lock.
    [[nodiscard]] HeldMessages& held() noexcept { return m_held; }
    /// Calls `action(lock)` with the lock held, then delivers the events that were noted. The
    /// consumer may then be gone, so the caller keeps alive what it uses afterwards.
    template <std::invocable<Lock&> Action>
    auto locked(Action&& action) -> std::invoke_result_t<Action, Lock&>;

    // Callers hold the lock for everything below.

    [[nodiscard]] Link& link() noexcept { return *m_link; }
    /// A node that may serve others has refused a request, since it has not this queue's slot: the
    /// lane sends nothing until it moves to another link, or the link loses this connection.
    [[gnu::cold]] void stray(std::string_view error, const Node& teller);
    [[nodiscard]] bool astray() const noexcept { return m_whereabouts.astray(); }
    /// Moves to another link with the same mutex.
    [[gnu::cold]] void move(std::shared_ptr<Link> link) noexcept;

    [[nodiscard]] Mirror& mirror() noexcept { return m_mirror; }
    [[nodiscard]] Lease& lease() noexcept { return m_lease; }
    /// An error that only a person can fix, of the queue or of the connection.
    [[nodiscard]] KeptRefusal& refusal() noexcept { return m_refusal; }

    // Requests.

    /// Composes, sends, reads, connects and recovers until `done()` holds. Returns false at the
    /// deadline. Signalling `wake`, if there is one, makes the caller ask `done` again.
    bool drive(Lock& lock, TimePoint deadline, const Wake* wake, FunctionRef<bool()> done);
    /// Returns when the back-off ends, of this lane or of the link, in which it sends nothing; or
    /// `until`.
    [[nodiscard]] TimePoint backoff_bound(TimePoint until, TimePoint now) const noexcept {
        return m_link->backoff_bound(own_bound(until, now), now);
    }
    /// Sends what is due now, acks included, and waits for nothing.
    void send_due() {
        const auto hurry = m_attendance.hurrying();
        advance();
    }
    /// Sends a command outside the chain and returns the reply. Returns nullopt at the deadline,
    /// when `interrupted()`, or if the connection breaks.
    [[gnu::cold]] std::optional<Reply> query(
        Lock& lock, TimePoint deadline, FunctionRef<void(std::string&)> compose,
        const Wake* wake = nullptr, FunctionRef<bool()> interrupted = [] { return false; });
    /// From now on every call of `drive` ends by this time, even if its own deadline is later.
    void limit(TimePoint time) noexcept {
        m_limit = time;
        m_link->wake_all();
    }
    [[nodiscard]] TimePoint limit() const noexcept { return m_limit; }

    /// True when a request can be composed and sent now.
    [[nodiscard]] bool ready() const noexcept {
        return m_mirror.can_send() && m_backoff.over() && m_link->ready();
    }
    /// Sends a request of the mirror's, while ready(). If `compose` throws, nothing is sent.
    void send(FunctionRef<void(std::string&)> compose) {
        m_link->send(*this, Purpose::chain, compose);
        m_link->flush();
    }
    /// Asks for a suspect, if one could fit beside those that the process holds.
    [[gnu::cold]] void try_suspect(const TrialShare& share) {
        m_suspects = Suspects::none;
        if (const auto trial = Trials::ask(share.trials, share.limits)) {
            send([&](std::string& out) { m_mirror.send_try_suspect(out, trial, share.limits); });
        }
    }
    [[nodiscard]] bool suspects_wait() const noexcept { return m_suspects == Suspects::wait; }
    /// Wakes the thread that fetches.
    [[gnu::cold]] void mark_suspects() noexcept {
        m_suspects = Suspects::wait;
        m_attendance.wake_watchers();
    }

    // Doubts and refusals.

    /// The next attempt to adopt the list is the last one: it does not wait.
    [[gnu::cold]] void adopt_at_once() noexcept { m_cuts.end_pause(); }
    /// Redis' state is in doubt: `drive` then adopts the list. Unanswered requests and an
    /// outstanding blocking fetch no longer count.
    [[gnu::cold]] void begin_recovery(std::string_view reason) noexcept;
    /// The connection of all blocking fetches from now on.
    void set_waiters_client(RedisClient client) noexcept { m_waiters_client = std::move(client); }
    /// Notes an error that only a person can fix.
    [[gnu::cold]] void keep_refusal(std::string_view text);
    /// Why the queue makes no progress; empty if no failure is known.
    [[nodiscard]] const std::string& last_failure() const noexcept {
        return m_failure.empty() || !m_link->connected() ? m_link->last_failure() : m_failure;
    }

    // Events.

    /// True when there is something to deliver, or the last guard has ended.
    [[nodiscard]] bool has_news() const noexcept { return m_held.has_ended() || has_told(); }
    /// Tells what is noted, with the lock released meanwhile.
    void tell_news(Lock& lock) noexcept;
    /// Unlocks, then delivers the noted events. Leaves it unlocked: the consumer may be gone.
    void deliver(Lock& lock) noexcept;

    // Work that no caller waits for.

    /// Knows who works for the lane, and whom to wake.
    [[nodiscard]] Attendance& attendance() noexcept { return m_attendance; }

    [[nodiscard]] [[gnu::cold]] ReplyError refused_settlement(std::string_view what,
                                                              std::string_view refusal) const {
        return reply_error(
            joined({endpoint().address(), ": ", what, " a message of '", keys().source(), "'"}),
            refusal);
    }
    [[nodiscard]] [[gnu::cold]] ConnectionError
    unanswered_settlement(std::string_view what, std::string_view reason) const {
        return ConnectionError(joined({what, " of '", keys().source(), "': ", reason}),
                               ConnectionError::Outcome::in_doubt);
    }
    /// By when a settlement that was begun then must have an outcome. Beats confirmed meanwhile
    /// extend the lease, and with it the wait.
    [[nodiscard]] TimePoint patience(TimePoint since) const {
        const TimePoint own = std::max(Clock::now() + (m_lease.end() - LeaseClock::now()),
                                       since + endpoint().command_timeout());
        return std::min(own, m_limit);
    }

    /// Sends what is due, as `drive` would, for a thread that serves several lanes and calls
    /// `deliver` for each. Returns true while more is to be done, false if it need not be called
    /// before the next request for attention.
    [[nodiscard]] [[gnu::cold]] bool attend(TimePoint now);

  private:
    /// `wait`: suspects wait, and nobody of this process has asked for them since that was heard.
    enum class Suspects : std::uint8_t { none, wait };

    // Without `inline` here, the first of these would have every file that includes this emit them
    // all with what they call, whether it uses a consumer or not.
    inline Verdict on_reply(Purpose purpose, Reply&& reply) override;
    [[gnu::cold]] inline void on_broken(std::string_view reason) noexcept override;
    [[gnu::cold]] inline void on_outage(std::string_view reason) noexcept override;
    [[gnu::cold]] inline void on_connected(std::string_view repair) noexcept override;
    [[gnu::cold]] inline void on_refused(const std::exception_ptr& refusal) noexcept override;
    [[nodiscard]] std::uint64_t incarnation() const noexcept override {
        return m_mirror.incarnation();
    }
    // A consumer that has to recover does not beat until it has: it may not wait for longer.
    [[nodiscard]] std::chrono::milliseconds longest_backoff() const noexcept override {
        return attempts_apart(m_mirror.lease());
    }
    [[gnu::cold]] void on_cut_adoption() noexcept override { m_cuts.cut(); }
    [[gnu::cold]] void on_failed_reply(std::string_view reason) noexcept override {
        begin_recovery(reason);
    }

    /// Events and outcomes that are to be told.
    struct News {
        EventQueue::Batch events;
        AwaitedOutcomes outcomes;
    };

    [[nodiscard]] bool has_told() const noexcept {
        return !m_events.empty() || m_held.has_outcomes();
    }
    [[nodiscard]] News take_news() noexcept;
    /// Without the lock.
    void tell(News news) const noexcept;
    /// Composes and sends what is due now.
    void advance();
    [[gnu::cold]] void recover();
    /// Returns when the lane goes on by itself if that is before `until`, else `until`.
    [[nodiscard]] TimePoint own_bound(TimePoint until, TimePoint now) const noexcept {
        return m_cuts.bound(m_backoff.bound(until, now), now);
    }
    /// True while Redis can still be asked whether the waiter of a fetch in doubt is gone. Another
    /// server than the waiter's cannot know.
    [[nodiscard]] bool must_seek_waiter() const {
        return m_mirror.has_late_fetch() && m_sought != 0 &&
               !m_link->elsewhere(m_waiters_client.server);
    }
    Verdict apply(Purpose purpose, Reply&& reply);
    [[gnu::cold]] void on_registered();
    [[gnu::cold]] void on_measured(const Reply& reply);
    [[gnu::cold]] void after_recovery(const Recovered& recovered);
    [[gnu::cold]] void act_on(const Verdict& verdict);
    void wake_poller() noexcept {
        if (m_link->connected() && !m_mirror.fetching()) {
            m_attendance.link_is_free();
        }
    }

    std::shared_ptr<Link> m_link;
    const std::shared_ptr<std::mutex> m_mutex; ///< shared by all links that it can move to
    Mirror m_mirror;
    Whereabouts m_whereabouts;
    Attendance m_attendance;
    LaneEvents m_events;
    HeldMessages m_held;
    Backoff m_backoff;
    CutAdoptions m_cuts;
    Suspects m_suspects = Suspects::none;
    RedisClient m_waiters_client;
    std::int64_t m_sought = 0; ///< the waiter's id while this recovery asks for it
    Lease m_lease;
    TimePoint m_limit = TimePoint::max();
    KeptRefusal m_refusal;
    std::string m_failure; ///< the queue's last; while the link is down, the link's is newer
};

} // namespace orizuru::detail

#include <orizuru/detail/consumer/lane_driving.inl>
#include <orizuru/detail/consumer/lane_replies.inl>
