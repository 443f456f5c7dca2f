// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Fetches messages for the thread in `next`: by script in batches, ahead of the handler when there
// are many; by a blocking fetch when there are none, and large ones where other queues share the
// link. Also puts back and requeues.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/timeout.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/step.hpp>
#include <orizuru/detail/consumer/waiter.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/detail/redis/place/route.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <utility>

namespace orizuru::detail {

/// `poll` counts as `next`.
class Fetcher {
  public:
    using Lock = Lane::Lock;

    Fetcher(Lane& lane, const ConsumerOptions& options, TrialShare share)
        : m_lane(lane),
          m_options(options),
          m_most(options.prefetch),
          m_ahead(options.prefetch > 1),
          m_share(std::move(share)),
          m_waiter(lane, m_wake) {}

    /// Hands out the next message; returns null at the timeout or when stopped.
    DeliveryPtr next(const std::stop_token& token, Timeout& timeout);
    /// For a thread that polls several consumers, in place of `next`: returns the next message, or
    /// asks Redis for one and sets `awaited`. Waits for a fetch only, at most 10 ms or to a stop.
    inline DeliveryPtr poll(const std::stop_token& token, Awaited& awaited);
    /// Does the same in place of `next` without a time: asks Redis once. A waiter that large
    /// messages should come by is connected in steps, one for each call; the link brings them
    /// meanwhile.
    inline DeliveryPtr ask_once(const std::stop_token& token);
    /// True when a message that was asked for may still come, or has come meanwhile. For the thread
    /// that polls.
    [[nodiscard]] inline bool expects_message();
    /// Puts the message that `next` has returned last back in front, because there is no memory to
    /// hand it out. `next` returns it again after a pause: 1 s once there was twice in a row none
    /// to decode it, else 100 ms. For the thread in `next`.
    [[gnu::cold]] void postpone(DeliveryPtr message) noexcept {
        message->not_before =
            Clock::now() + (message->shortages < 2 ? first_shortage_pause : later_shortage_pause);
        m_run.push_front(std::move(message)); // into its old place, so this allocates nothing
    }

    void stop() noexcept {
        m_stopped.store(true, std::memory_order_relaxed);
        m_wake.signal();
    }
    [[nodiscard]] bool stopped() const noexcept {
        return m_stopped.load(std::memory_order_relaxed);
    }
    void close_after_fork() noexcept { m_waiter.close_after_fork(); }
    /// From now on a fetch takes at most `most` messages, none ahead. For the thread in `next`.
    void limit(int most) {
        if (most < 1 || most > m_options.prefetch) {
            throw std::invalid_argument("a fetch must be limited to 1 to prefetch messages");
        }
        m_most = most;
        m_ahead = false;
    }
    /// From now on at most about 1 MiB of messages is on its way on the link, or one message: other
    /// queues' settlements wait behind them. Earlier fetches tell the size. For `next`'s thread.
    void share_link() noexcept { m_shares_link = true; }
    /// Returns how many messages `next` hands out without asking Redis; for the thread in `next`.
    [[nodiscard]] std::size_t in_hand() const noexcept { return m_run.size(); }
    /// Ends every wait of the thread in `next`, which then checks everything again.
    [[nodiscard]] const Wake& wake() const noexcept { return m_wake; }

    // Under the lock. While a thread is in `next`, only that thread calls these.

    /// Puts messages that were taken over but not handed out back into the mirror.
    [[gnu::cold]] void put_back_run() {
        drop_lost_of_run();
        m_lane.held().put_back(m_run);
        m_run.clear();
    }
    /// Ends the waiting in Redis; closes its connection if no answer comes in time.
    [[gnu::cold]] void stop_waiting(Lock& lock, TimePoint deadline) {
        const auto cut_off = [this] { return is_cut_off(); };
        if (!m_waiter.stop(lock, deadline, cut_off) &&
            !(await_connection(lock, deadline) && m_waiter.stop(lock, deadline, cut_off))) {
            m_waiter.abort();
        }
    }
    /// Sends due settlements and requeues messages not handed out; with nothing held it leaves the
    /// registry. Can be called again after it ran out of time.
    [[gnu::cold]] bool leave(Lock& lock, TimePoint deadline);

  private:
    // A waiter must stop within 20 ms, and awaits Redis for a part. The next call or the end goes
    // on.
    static constexpr std::chrono::milliseconds stop_patience{15};
    static constexpr std::chrono::milliseconds timeout_patience{100};
    // Other queues wait for the thread that polls.
    static constexpr std::chrono::milliseconds link_patience{10};

    // On a link that others share.
    static constexpr std::size_t most_bytes = 1 << 19; ///< a fetch's; another may be ahead
    static constexpr std::size_t large = 1 << 16;      ///< a message, on average

    // Time to wait for memory to become free.
    static constexpr std::chrono::milliseconds first_shortage_pause{100};
    static constexpr std::chrono::milliseconds later_shortage_pause{1000};

    [[noreturn]] [[gnu::cold]] void throw_two_threads() const {
        throw std::logic_error(
            joined({"two threads are in next() of a consumer of '", m_lane.keys().source(),
                    "'; hand the guards to other threads instead"}));
    }
    /// The caller is inside `next` while it keeps the result.
    [[nodiscard]] auto enter() {
        // No atomic exchange: catching every misuse is not worth its cost per message.
        if (m_in_next.load(std::memory_order_relaxed)) {
            throw_two_threads();
        }
        m_in_next.store(true, std::memory_order_relaxed);
        return at_exit([this] { m_in_next.store(false, std::memory_order_relaxed); });
    }
    bool await_run(const std::stop_token& token, Timeout& timeout);
    inline bool poll_run(const std::stop_token& token, Awaited& awaited);
    /// Needs no memory. A stop ends it.
    void pause(const std::stop_token& token, TimePoint until) {
        const std::stop_callback wake_up(token, [this] { m_wake.signal(); });
        m_wake.clear();
        if (!stopped() && !token.stop_requested()) {
            wait_ready(-1, 0, &m_wake, until);
        }
    }
    bool wait_for_message(Lock& lock, const std::stop_token& token, TimePoint deadline);
    [[gnu::cold]] void end_wait(Lock& lock);
    inline bool take_step(Lock& lock, Awaited& awaited);
    /// By a stop of the call that runs.
    [[nodiscard]] bool interrupted() const noexcept {
        return stopped() || m_token->stop_requested();
    }
    StepInputs begin_step(Lock& lock);
    bool carry_out(Step step, Lock& lock, TimePoint deadline);
    /// Drives the link until `done()`, or until another step comes first. False at the deadline.
    template <class Done>
    bool drive_lane(Lock& lock, TimePoint deadline, Done done) {
        return m_lane.drive(lock, deadline, &m_wake, [&] {
            return interrupted() || m_lane.refusal().kept() || !m_lane.mirror().running() || done();
        });
    }
    /// True when the link could be connected only by resolving a name. A DNS server may hang, and
    /// nothing ends that: no thread that stops a consumer begins it.
    [[nodiscard]] [[gnu::cold]] bool is_cut_off() const noexcept {
        return !m_lane.link().connected() && Route::has_names(m_lane.endpoint());
    }
    [[gnu::cold]] bool await_connection(Lock& lock, TimePoint deadline);
    [[gnu::cold]] bool ask_suspect(Lock& lock, TimePoint deadline);
    /// Keeps Redis busy by a second fetch behind the awaited one, where the handler was faster than
    /// Redis and has acked its whole batch.
    void fetch_behind() {
        if (m_lane.mirror().all_acked()) {
            fetch_more();
        }
    }
    /// Fetches a batch ahead, only after a full one: after a short one the source is likely empty,
    /// and new messages are for other consumers too.
    void fetch_more() {
        const Mirror& mirror = m_lane.mirror();
        if (m_lane.suspects_wait()) {
            return; // they come between two batches
        }
        if (mirror.more_to_fetch() && m_ahead && !are_large() && !mirror.blocked() &&
            m_lane.ready()) {
            send_fetch();
        }
    }
    /// Sends the due acks with it. Has the heartbeat beat at once when the lease is over: the host
    /// was asleep.
    void send_fetch() {
        if (LeaseClock::now() >= m_lane.lease().end()) {
            m_lane.attendance().ask();
        }
        m_lane.send([this](std::string& out) { m_lane.mirror().send_settle(out, admitted()); });
    }
    [[nodiscard]] bool are_large() const noexcept { return m_shares_link && m_average > large; }
    /// Large messages come on the waiter's connection while that is of use; the link then carries
    /// acks only. After a refusal a fetch on the link tells the user.
    [[nodiscard]] bool by_waiter() const noexcept {
        return are_large() && m_waiter.may_look() && !m_lane.mirror().last_refused();
    }
    /// Returns how many messages the next request on the link may fetch.
    [[nodiscard]] int admitted() const noexcept {
        if (!m_shares_link) {
            return m_most;
        }
        if (by_waiter()) {
            return 0;
        }
        const std::size_t most = most_bytes / std::max<std::size_t>(m_average, 1);
        return static_cast<int>(std::clamp<std::size_t>(most, 1, static_cast<std::size_t>(m_most)));
    }

    void take_run();
    void drop_lost_of_run() {
        m_lane.held().drop_lost(m_run);
        m_run_recoveries = m_lane.held().recoveries();
    }

    Lane& m_lane;
    const ConsumerOptions& m_options;
    int m_most;   ///< messages that one fetch takes
    bool m_ahead; ///< fetch the next batch while one is handled
    const TrialShare m_share;
    std::atomic<bool> m_stopped{false};
    const std::stop_token* m_token = nullptr; ///< the running call's
    Wake m_wake;
    Attendance::Watch m_watch{m_lane.mutex(), m_lane.attendance(), m_wake};
    Waiter m_waiter;

    // The messages that the thread in `next` has taken over and hands out without the lock: two
    // lock operations per message take a tenth of a batch's time.
    Fifo<DeliveryPtr> m_run;
    bool m_shares_link = false;
    std::size_t m_average = large; ///< bytes of a message; follows the last runs
    bool m_looked = false; ///< asked without waiting since the last message, and found nothing
    bool m_asked_in_vain = false;       ///< for a suspect, in the last step
    std::uint64_t m_fetches = 0;        ///< the mirror's count in the last step
    std::uint64_t m_run_recoveries = 0; ///< recoveries() when lost messages were last dropped
    std::atomic<bool> m_in_next{false};
};

inline DeliveryPtr Fetcher::next(const std::stop_token& token, Timeout& timeout) {
    const auto inside = enter();
    // await_run() checks the same, but is not inlined.
    const bool in_hand = !m_run.empty() && !m_run.front()->postponed() &&
                         m_run_recoveries == m_lane.held().recoveries() && !stopped() &&
                         !token.stop_requested();
    return in_hand || await_run(token, timeout) ? m_run.pop_front() : nullptr;
}

inline bool Fetcher::leave(Lock& lock, TimePoint deadline) {
    const Mirror& mirror = m_lane.mirror();
    const auto hurry = m_lane.attendance().hurrying();
    while (await_connection(lock, deadline)) {
        m_lane.mirror().requeue_suspects();
        const bool reached = m_lane.drive(lock, deadline, nullptr, [&] {
            return mirror.state() == Mirror::State::left || m_lane.refusal().kept() ||
                   is_cut_off() ||
                   (m_lane.ready() && !mirror.unanswered() && !mirror.has_acks() &&
                    !mirror.has_moves());
        });
        if (!reached || m_lane.refusal().kept()) {
            return false;
        }
        if (is_cut_off()) {
            continue;
        }
        const bool holds_nothing = mirror.messages().empty();
        if (mirror.state() == Mirror::State::left || (!mirror.has_ready() && !holds_nothing)) {
            return true;
        }
        m_lane.send([this](std::string& out) { m_lane.mirror().send_release(out); });
    }
    return false;
}

} // namespace orizuru::detail

#include <orizuru/detail/consumer/fetcher_waiting.inl>
