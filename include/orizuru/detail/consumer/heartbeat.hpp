// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs the thread that keeps the leases of all consumers of a link: it beats three times per lease,
// on a connection that no handler and no other reply can block. In between it does work that no
// caller waits for: it sends deferred acks that have waited for a third of the lease, adopts lists
// after a doubt, and goes on with settlements that their callers have given up on.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/beat_callback.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace orizuru::detail {

class Heartbeat;

/// The heartbeats of one process for several nodes. Their links share a mutex, which
/// callers hold.
class Homes {
  public:
    virtual ~Homes() = default;
    /// The one for the node that has the lane's queue, which is astray at `here`. It may be a new
    /// one, or `here`, whose link then connects to that node. Throws as Heartbeat::start.
    virtual std::shared_ptr<Heartbeat> of_astray(Lane& lane, Heartbeat& here) = 0;
    /// Another one for the same node, which is to have the members of `here`; or null.
    virtual std::shared_ptr<Heartbeat> in_place_of(const Heartbeat& here) = 0;
};

/// Make it with std::make_shared.
class Heartbeat : public std::enable_shared_from_this<Heartbeat> {
  public:
    class Member;

    /// `homes`: if the link is among others.
    explicit Heartbeat(std::shared_ptr<Link> link, std::shared_ptr<Homes> homes = nullptr)
        : m_link(std::move(link)), m_homes(std::move(homes)) {}
    Heartbeat(const Heartbeat&) = delete;
    Heartbeat& operator=(const Heartbeat&) = delete;
    ~Heartbeat() = default;

    [[nodiscard]] const std::shared_ptr<Link>& link() const noexcept { return m_link; }
    /// Starts the thread of a new heartbeat, which gets its first member from another. Throws
    /// std::system_error when the process can have no more threads.
    [[gnu::cold]] void start() {
        m_stop = std::stop_source();
        m_stop_wake.clear();
        m_thread.start([own = shared_from_this(), token = m_stop.get_token()]() mutable {
            own->run(token);
            own.reset(); // before the thread counts as ended
        });
    }
    /// Callers hold the link's lock. While it has members, the thread runs.
    [[nodiscard]] bool has_members() const noexcept { return !m_members.empty(); }
    [[nodiscard]] bool has_one_member() noexcept {
        return has_members() && ++m_members.begin() == m_members.end();
    }

  private:
    // A member's constructor and destructor call these, which start and end the thread.
    [[gnu::cold]] void join(Member& member);
    [[gnu::cold]] [[nodiscard]] bool leave(Member& member) noexcept;
    // On the thread; what is given the lock holds it before and after.
    [[gnu::cold]] void run(const std::stop_token& token);
    [[gnu::cold]] void beat(Link::Lock& lock);
    [[gnu::cold]] int compose(std::string& commands, LeaseClock::time_point from, TimePoint& until);
    [[gnu::cold]] void take(int number, LeaseClock::time_point when, const Reply& reply);
    [[gnu::cold]] void serve(Link::Lock& lock, const std::stop_token& token);
    [[nodiscard]] [[gnu::cold]] TimePoint next_beat();
    [[nodiscard]] [[gnu::cold]] bool tell(Link::Lock& lock);
    [[gnu::cold]] void send_home();
    [[nodiscard]] [[gnu::cold]] bool retire();

    const std::shared_ptr<Link> m_link;
    const std::shared_ptr<Homes> m_homes;
    LinkedList<Member> m_members; ///< under the link's lock
    Wake m_wake;                  ///< there is something to do
    Wake m_stop_wake;             ///< ends a beat in flight
    std::unique_ptr<Stream> m_stream;
    int m_beats = 0; ///< in the last write; what is behind them looks for collectors

    std::mutex m_joining; ///< guards the thread; taken before the link's lock
    OwnThread m_thread;
    std::stop_source m_stop;
    std::atomic<std::thread::id> m_thread_id{};
};

/// Keeps the lease of a lane of the link.
class Heartbeat::Member : public Linked {
  public:
    /// `owner` contains the lane and this. The first member starts the thread: throws
    /// std::system_error when the process can have no more threads.
    [[gnu::cold]] Member(std::shared_ptr<Heartbeat> heartbeat, std::shared_ptr<const void> owner,
                         Lane& lane, const ConsumerOptions& options);
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    /// Waits for the member's on_beat, without a lock: that may end other members. The last member
    /// ends the thread and waits for it, except on that thread: the last guard may die in a
    /// callback.
    [[gnu::cold]] ~Member();

    /// True on the heartbeat's thread, which must not wait long for one lane. Callers hold the
    /// link's lock.
    [[nodiscard]] bool on_thread() const noexcept {
        return m_heartbeat->m_thread_id.load(std::memory_order_relaxed) ==
               std::this_thread::get_id();
    }
    /// In a forked child, where nothing is locked.
    void close_after_fork() noexcept { Stream::close_after_fork(m_heartbeat->m_stream); }

  private:
    friend class Heartbeat;

    // For the thread, under the link's lock.
    [[gnu::cold]] void move(std::shared_ptr<Heartbeat> home) noexcept;
    [[gnu::cold]] void append_beat(std::string& commands, int number);
    [[gnu::cold]] void take_back_beat() noexcept;
    [[gnu::cold]] void append_collector_check(std::string& commands, int number);
    [[gnu::cold]] void take_collector_check(const Reply& reply);
    [[nodiscard]] std::chrono::milliseconds between_collector_checks() const {
        return std::min<std::chrono::milliseconds>(10 * m_lease, std::chrono::minutes(5));
    }
    [[gnu::cold]] void repeat();
    [[gnu::cold]] void take(LeaseClock::time_point when, const Reply& reply, const Node& server);

    std::shared_ptr<Heartbeat> m_heartbeat; ///< that of the lane's link, or soon
    const std::shared_ptr<const void> m_owner;
    Lane& m_lane;
    const std::chrono::milliseconds m_lease;
    BeatCallback m_callback;
    Attendance::Watch m_watch;

    // Under the link's lock.
    LeaseClock::time_point m_due;
    JitteredPauses m_backoff;
    int m_asked = 0;        ///< the number of its beat in the last write, or 0
    std::string m_asked_id; ///< the consumer's then
    TimePoint m_check_at;   ///< time of the next check whether a collector visits the queue
    int m_check = 0;        ///< the number of that command in the last write, or 0
    bool m_missed = false;  ///< the last look found no collector
};

} // namespace orizuru::detail

#include <orizuru/detail/consumer/heartbeat_thread.inl>
