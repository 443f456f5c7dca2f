// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs the thread that keeps the leases of all consumers of a link: it beats three times per lease,
// on a connection that no handler and no other reply can block. In between it does work that no
// caller waits for: it sends deferred acks that have waited for a third of the lease, adopts lists
// after a doubt, and goes on with settlements that their callers have given up on.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/beat_callback.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Make it with std::make_shared.
class Heartbeat : public std::enable_shared_from_this<Heartbeat> {
  public:
    explicit Heartbeat(std::shared_ptr<Link> link) : m_link(std::move(link)) {}
    Heartbeat(const Heartbeat&) = delete;
    Heartbeat& operator=(const Heartbeat&) = delete;
    ~Heartbeat() = default;

    [[nodiscard]] const std::shared_ptr<Link>& link() const noexcept { return m_link; }

    /// Keeps the lease of a lane of the link. `owner` contains the lane and the options, and stays
    /// alive until leave(). The first member starts the thread: throws std::system_error when the
    /// process can have no more threads.
    [[gnu::cold]] void join(std::shared_ptr<const void> owner, Lane& lane,
                            const ConsumerOptions& options);
    /// Once for each member. Waits for the member's on_beat. The last one ends the thread and waits
    /// for it, except on that thread: the last guard may die in a callback.
    [[gnu::cold]] void leave(const Lane& lane) noexcept;
    /// True on the thread, which must not wait long for one lane.
    [[nodiscard]] bool on_thread() const noexcept {
        return m_thread_id.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

    /// For a forked child, where the thread does not exist.
    void forget_after_fork() noexcept {
        if (m_stream) {
            m_stream.release()->close_after_fork();
        }
        static_cast<void>(m_thread.release()); // can be neither joined nor detached
    }

  private:
    struct Member {
        Member(std::shared_ptr<const void> its_owner, Lane& its_lane,
               const ConsumerOptions& its_options, const Wake& wake)
            : owner(std::move(its_owner)),
              lane(its_lane),
              options(its_options),
              watch(its_lane, wake),
              due(Clock::now() + options.lease / 3) {
            if (options.on_beat) {
                callback.emplace(options.on_beat);
            }
        }

        std::shared_ptr<const void> owner;
        Lane& lane;
        const ConsumerOptions& options;
        Lane::Watch watch;

        // For the thread.
        TimePoint due;
        JitteredPauses backoff;
        bool beaten = false; ///< its other work is due as well

        // Under the lock.
        std::optional<BeatCallback> callback;
        std::optional<Lane::Attendance> attendance; ///< while there is work for the thread
        bool left = false;
    };
    using Members = std::vector<std::shared_ptr<Member>>;

    struct Asked {
        Member& member;
        std::string id; ///< of the consumer then
    };

    void run(const std::stop_token& token);
    [[nodiscard]] Members members();
    void beat(const Members& members);
    [[gnu::cold]] std::vector<Asked> compose(const Members& members, std::string& commands);
    [[gnu::cold]] void take(const Asked& asked, TimePoint when, const Reply& reply);
    [[gnu::cold]] static void repeat(const Asked& asked) {
        asked.member.due =
            Clock::now() + std::min(asked.member.options.lease / 3, asked.member.backoff.next());
    }
    [[gnu::cold]] void serve(const Members& members, const std::stop_token& token);
    [[nodiscard]] static bool tell(const Members& members, Link::Lock& lock);
    [[nodiscard]] static bool attend(Member& member, TimePoint now);

    const std::shared_ptr<Link> m_link;
    Wake m_wake;      ///< there is something to do
    Wake m_stop_wake; ///< ends a beat in flight
    std::unique_ptr<Stream> m_stream;

    std::mutex m_joining; ///< guards the thread; taken before the link's lock
    std::unique_ptr<std::thread> m_thread;
    std::stop_source m_stop;
    std::atomic<std::thread::id> m_thread_id{};

    // Under the link's lock.
    Members m_members;
    bool m_joined = false; ///< a member has joined since the thread looked
};

} // namespace orizuru::detail

#include <orizuru/detail/consumer/heartbeat_thread.ipp>
