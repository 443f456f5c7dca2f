// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue's part of a link, under the link's lock: the mirror of the consumer's list, the messages
// that users hold, the lease and the events not yet told. Composes what is due, acts on the replies
// and recovers after a doubt.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/attendance.hpp>
#include <orizuru/detail/consumer/held_messages.hpp>
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
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/event.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <atomic>
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
    class Watch;

    [[gnu::cold]] Lane(std::shared_ptr<Link> link, FunctionRef<Mirror()> make_mirror,
                       EventQueue&& events);
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    [[gnu::cold]] ~Lane();

    // Without the lock.

    /// Leads to the queue's key.
    [[nodiscard]] const Endpoint& endpoint() const noexcept override { return m_endpoint; }
    [[nodiscard]] const Keys& keys() const noexcept { return m_mirror.keys(); }
    [[nodiscard]] std::mutex& mutex() const noexcept { return *m_mutex; }
    [[nodiscard]] bool forked() const noexcept { return m_mark.forked(); }
    void refuse_fork() const {
        if (forked()) {
            throw_forked();
        }
    }
    /// Returns how many recoveries have ended.
    [[nodiscard]] std::uint64_t recoveries() const noexcept {
        return m_recoveries.load(std::memory_order_relaxed);
    }
    /// Only `tell` is for those who do not hold the lock.
    [[nodiscard]] LaneEvents& events() noexcept { return m_events; }
    /// Calls `action(lock)` with the lock held, then delivers the events that were noted. The
    /// consumer may then be gone, so the caller keeps alive what it uses afterwards.
    template <std::invocable<Lock&> Action>
    auto locked(Action&& action) -> std::invoke_result_t<Action, Lock&>;

    // Callers hold the lock for everything below.

    [[nodiscard]] Link& link() noexcept { return *m_link; }
    /// A node that may serve others has refused a request, since it has not this queue's slot: the
    /// lane sends nothing until it moves to another link, or the link loses this connection.
    [[gnu::cold]] void stray(std::string_view error, const Node& teller);
    [[nodiscard]] bool astray() const noexcept { return m_home == Home::elsewhere; }
    /// Moves to another link with the same mutex.
    [[gnu::cold]] void move(std::shared_ptr<Link> link) noexcept;

    [[nodiscard]] Mirror& mirror() noexcept { return m_mirror; }
    [[nodiscard]] bool running() const noexcept {
        return m_mirror.state() == Mirror::State::running;
    }

    [[nodiscard]] HeldMessages& held() noexcept { return m_held; }
    /// No thread awaits the message's settlement any more: the heartbeat goes on with it.
    void leave_unattended(const DeliveryPtr& message) noexcept;
    [[nodiscard]] Lease& lease() noexcept { return m_lease; }
    /// An error that only a person can fix, of the queue or of the connection.
    [[nodiscard]] KeptRefusal& refusal() noexcept { return m_refusal; }

    // Requests.

    /// Composes, sends, reads, connects and recovers until `done()` holds. Returns false at the
    /// deadline. Signalling `wake`, if there is one, makes the caller ask `done` again.
    bool drive(Lock& lock, TimePoint deadline, const Wake* wake, FunctionRef<bool()> done);
    /// While the result exists, acks are sent at each chance instead of with the next fetch.
    [[nodiscard]] auto hurry_acks() noexcept { return m_attendance.hurrying(); }
    /// Returns when a hold ends, of this lane or of the link, during which it sends nothing, or
    /// `until`.
    [[nodiscard]] TimePoint hold_bound(TimePoint until, TimePoint now) const noexcept {
        return m_link->hold_bound(m_hold.bound(until, now), now);
    }
    /// Sends a command outside the chain and returns the reply. Returns nullopt at the deadline,
    /// when `interrupted()`, or if the connection breaks.
    [[gnu::cold]] std::optional<Reply> query(Lock& lock, TimePoint deadline, const Wake* wake,
                                             FunctionRef<bool()> interrupted,
                                             FunctionRef<void(std::string&)> compose);
    std::optional<Reply> query(Lock& lock, TimePoint deadline, std::string_view command,
                               std::string_view argument) {
        return query(
            lock, deadline, nullptr, [] { return false; },
            [&](std::string& out) { append_command(out, command, argument); });
    }
    /// From now on every call of `drive` ends by this time, even if its own deadline is later.
    void limit(TimePoint time) noexcept {
        m_limit = time;
        m_link->wake_all();
    }
    [[nodiscard]] TimePoint limit() const noexcept { return m_limit; }

    /// True when a request can be composed and sent now.
    [[nodiscard]] bool ready() const noexcept {
        return m_mirror.can_send() && m_hold.over() && m_link->ready();
    }
    /// Sends the due acks and asks for up to `most` messages. Has the heartbeat beat at once when
    /// the lease is over: the host was asleep.
    void fetch(int most) {
        if (LeaseClock::now() >= m_lease.end()) {
            ask_attention();
        }
        send([&](std::string& out) { m_mirror.send_settle(out, most); });
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
        wake_own();
    }
    /// Requeues what was not handed out; leaves the registry if nothing else is held.
    [[gnu::cold]] void release() {
        send([&](std::string& out) { m_mirror.send_release(out); });
    }

    // Doubts and refusals.

    /// Redis' state is in doubt: `drive` then adopts the list. Unanswered requests and an
    /// outstanding blocking fetch no longer count.
    [[gnu::cold]] void begin_recovery(std::string_view reason) noexcept;
    /// The connection of all blocking fetches from now on.
    void set_waiters_client(RedisClient client) noexcept { m_waiters_client = std::move(client); }
    /// Grows with each recovery.
    [[nodiscard]] std::uint64_t incarnation() const noexcept override {
        return m_mirror.incarnation();
    }
    /// Notes an error that only a person can fix.
    [[gnu::cold]] void keep_refusal(std::string_view text);
    /// Why the queue makes no progress; empty if no failure is known.
    [[nodiscard]] const std::string& last_failure() const noexcept {
        return m_failure.empty() || !m_link->connected() ? m_link->last_failure() : m_failure;
    }

    // Events.

    /// True when there is something to deliver, or the last guard has ended.
    [[nodiscard]] bool has_news() const noexcept { return m_held.has_ended() || !m_events.empty(); }
    /// Unlocks, then delivers the noted events. Leaves it unlocked: the consumer may be gone.
    void deliver(Lock& lock) noexcept;

    // Work that no caller waits for.

    /// Sends what is due, as `drive` would, for a thread that serves several lanes and calls
    /// `deliver` for each. Returns true while more is to be done, false if it need not be called
    /// before the next request for attention.
    [[nodiscard]] [[gnu::cold]] bool attend(TimePoint now);
    void request_attention() noexcept { m_attendance.request(); }
    /// Does the same, and wakes the heartbeat.
    void ask_attention() noexcept { wake(m_attendance.ask()); }
    /// For a thread that polls: has the heartbeat connect the link and take the reply to a fetch.
    /// Then signals the Watches.
    void await_link() noexcept { wake(m_attendance.await_link()); }

  private:
    /// Where the queue's slot is, as far as it is known.
    enum class Home : std::uint8_t {
        here,
        elsewhere, ///< it sends nothing until it moves, or the link loses this connection
        doubtful   ///< it was sent here; the next time that it is sent on, it waits before
    };
    /// `wait`: suspects wait, and nobody of this process has asked for them since that was heard.
    enum class Suspects : std::uint8_t { none, wait };

    // Without `inline` here, the first of these would have every file that includes this emit them
    // all with what they call, whether it uses a consumer or not.
    inline Verdict on_reply(Purpose purpose, Reply&& reply) override;
    [[gnu::cold]] inline void on_broken(std::string_view reason) noexcept override;
    [[gnu::cold]] inline void on_outage(std::string_view reason) noexcept override;
    [[gnu::cold]] inline void on_connected(std::string_view repair) noexcept override;
    [[gnu::cold]] inline void on_refused(const std::exception_ptr& refusal) noexcept override;
    // A consumer that has to recover does not beat until it has: it may not wait for longer.
    [[nodiscard]] std::chrono::milliseconds longest_hold() const noexcept override {
        return attempts_apart(m_mirror.lease());
    }
    [[gnu::cold]] void on_cut_adoption() noexcept override { m_cuts.cut(); }
    [[gnu::cold]] void on_failed_reply(std::string_view reason) noexcept override {
        begin_recovery(reason);
    }

    [[noreturn]] [[gnu::cold]] void throw_forked() const;
    /// Composes and sends what is due now.
    void advance();
    void send(FunctionRef<void(std::string&)> compose) {
        m_link->send(*this, Purpose::chain, compose);
        m_link->flush();
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
    void wake_own() noexcept;
    void wake(Attendance::Wakes whom) noexcept {
        if (whom == Attendance::Wakes::watchers) {
            wake_own();
        }
    }
    /// Signals the Watches once there is nothing that `await_link` waits for.
    void wake_poller() noexcept {
        if (m_link->connected() && !m_mirror.fetching()) {
            wake(m_attendance.link_is_free());
        }
    }
    /// For what the user has to hear of.
    void wake_unless_driven() noexcept { wake(m_attendance.tell()); }

    std::shared_ptr<Link> m_link;
    const std::shared_ptr<std::mutex> m_mutex; ///< shared by all links that it can move to
    ForkMark m_mark;
    Mirror m_mirror;
    const Endpoint m_endpoint;
    LaneEvents m_events;
    HeldMessages m_held;
    LinkedList<Watch> m_watches;
    Hold m_hold;
    CutAdoptions m_cuts;
    Home m_home = Home::here;
    Attendance m_attendance;
    Suspects m_suspects = Suspects::none;
    RedisClient m_waiters_client;
    std::int64_t m_sought = 0; ///< the waiter's id while this recovery asks for it
    std::atomic<std::uint64_t> m_recoveries{0};
    Lease m_lease;
    TimePoint m_limit = TimePoint::max();
    KeptRefusal m_refusal;
    std::string m_failure; ///< the queue's last; while the link is down, the link's is newer
};

} // namespace orizuru::detail

#include <orizuru/detail/consumer/lane_driving.ipp>
#include <orizuru/detail/consumer/lane_replies.ipp>
