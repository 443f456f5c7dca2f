// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A Consumer and its guards share a Session, which fetches, settles and stops. It lives until the
// last of them is gone, then leaves the registry.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/fetcher.hpp>
#include <orizuru/detail/consumer/heartbeat.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/server_info.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class SettlementWaiter;

class Session {
  public:
    /// Registers until the deadline, on the heartbeat's link. When the last copy of the pointer
    /// goes, the session requeues what it holds and leaves the registry, for at most
    /// command_timeout.
    [[gnu::cold]] static std::shared_ptr<Session> open(std::shared_ptr<Heartbeat> heartbeat,
                                                       const Keys& keys, ConsumerOptions&& options,
                                                       TimePoint deadline, TrialShare share = {});

    /// Hands out messages. Each keeps the session alive until settle(), abandon(), put_back() or
    /// bury().
    [[nodiscard]] Fetcher& fetcher() noexcept { return m_fetcher; }
    /// Once, for a thread that polls the queues of a link; see ConsumerCore's constructor.
    inline void watch(std::shared_ptr<const Wake> news);

    /// Settles a held message; `move` null = ack. Returns false if the lease was lost. After a
    /// ReplyError the message is still held; after others the settlement goes on in the background.
    bool settle(const DeliveryPtr& message, std::unique_ptr<Move> move, std::string_view what) {
        return m_lane.locked(
            [&](Lock& lock) { return settle(lock, message, std::move(move), what); });
    }
    /// Does the same in two steps: between them the settlements of other messages may begin.
    void begin(const DeliveryPtr& message, std::unique_ptr<Move> move) {
        m_lane.locked([&](Lock&) { begin_settling(message, std::move(move)); });
    }
    /// Sends those that have begun.
    void send_due() noexcept {
        m_lane.locked([this](Lock&) {
            try {
                m_lane.send_due();
            } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
                // `finish` sends them.
            }
        });
    }
    bool finish(const DeliveryPtr& message, std::string_view what) {
        return m_lane.locked([&](Lock& lock) { return finish(lock, message, what); });
    }
    /// Begins one whose end `waiter` is told of, as `settle` would return or throw; after a
    /// ReplyError the message is held again. `what`: a literal. Throws std::bad_alloc; then nothing
    /// has happened.
    inline void begin(const DeliveryPtr& message, std::unique_ptr<Move> move,
                      std::unique_ptr<SettlementWaiter> waiter, std::string_view what);
    /// Accepts an ack of a held message, which goes out with the next flush or fetch, or after a
    /// third of the lease. Returns false if the lease was lost.
    bool ack_later(const DeliveryPtr& message) {
        return m_lane.locked([&](Lock&) { return accept_ack(message); });
    }
    /// Rejects a message that its guard left unsettled; waits at most command_timeout.
    [[gnu::cold]] void abandon(const DeliveryPtr& message) noexcept;
    /// Puts the message back: `next` returns it again behind those it has already taken over.
    void put_back(const DeliveryPtr& message) noexcept {
        m_lane.locked([&](Lock&) { m_lane.held().put_back(message); });
    }
    void put_back(const Fifo<DeliveryPtr>& messages) noexcept {
        m_lane.locked([&](Lock&) { m_lane.held().put_back(messages); });
    }
    /// Moves an undecodable message to the dead list; for the thread in `next`. Returns true once
    /// it is there, false if the lease was lost. Returns nullopt if the deadline or a stop came
    /// first; the move then goes on in the background. If Redis refuses, throws ReplyError, and
    /// `next` returns the message again behind those it has already taken over. Throws
    /// std::bad_alloc before anything has happened, and puts the message back.
    [[gnu::cold]] std::optional<bool> bury(const DeliveryPtr& message, const std::string& reason,
                                           const std::stop_token& token, TimePoint deadline);

    /// True if no other consumer can have this handed-out message.
    [[nodiscard]] bool holds(const DeliveryPtr& message) {
        const Lock lock(m_lane.mutex()); // before the clock: this may wait
        return message->state != Delivery::State::lost && LeaseClock::now() < m_lane.lease().end();
    }

    void mark_suspects() noexcept {
        const Lock lock(m_lane.mutex());
        m_lane.mark_suspects();
    }
    std::size_t flush();
    std::uint64_t size();
    std::string id() {
        refuse_fork();
        const Lock lock(m_lane.mutex());
        return m_lane.mirror().identity().id;
    }
    [[nodiscard]] bool connected() {
        refuse_fork();
        const Lock lock(m_lane.mutex());
        return !m_lane.link().in_outage();
    }

    /// Until `close` has returned, every wait for Redis ends by this time.
    void end_by(TimePoint time) noexcept {
        {
            const Lock lock(m_lane.mutex());
            m_lane.limit(time);
        }
        m_fetcher.wake().signal();
    }
    /// Ends a consumer: requeues the messages not handed out, and leaves the registry unless guards
    /// live on. The last copy of the pointer may go later, on a thread that tells of an event.
    [[gnu::cold]] void close() noexcept;

    void refuse_fork() const {
        if (m_process.forked()) {
            throw_forked();
        }
    }
    [[nodiscard]] const ConsumerOptions& options() const noexcept { return m_options; }
    [[nodiscard]] const Keys& keys() const noexcept { return m_lane.keys(); }
    [[nodiscard]] std::string address() const { return m_lane.endpoint().address(); }
    [[gnu::cold]] void tell(EventKind kind, std::string_view detail, std::string_view payload) {
        m_lane.events().tell({kind, keys().source(), id(), detail, payload});
    }

  private:
    using Lock = Lane::Lock;

    // For a reply that may be on its way when a time is over.
    static constexpr std::chrono::milliseconds grace{100};

    [[gnu::cold]] Session(std::shared_ptr<Link> link, const Keys& keys, ConsumerOptions&& options,
                          TrialShare share);

    [[gnu::cold]] void start(Lock& lock, TimePoint deadline);
    [[gnu::cold]] void finish() noexcept;

    [[gnu::cold]] void end(Lock& lock);
    std::uint64_t ask_size(Lock& lock);
    std::optional<Reply> ask(Lock& lock, TimePoint deadline, std::string_view command,
                             std::string_view argument) {
        return m_lane.query(lock, deadline,
                            [&](std::string& out) { append_command(out, command, argument); });
    }

    bool accept_ack(const DeliveryPtr& message) noexcept;
    void begin_settling(const DeliveryPtr& message, std::unique_ptr<Move> move) noexcept;
    bool finish(Lock& lock, const DeliveryPtr& message, std::string_view what);
    bool settle(Lock& lock, const DeliveryPtr& message, std::unique_ptr<Move> move,
                std::string_view what);
    [[gnu::cold]] void reject_unattended(Lock& lock, const DeliveryPtr& message,
                                         std::unique_ptr<Move> reject) noexcept;
    [[gnu::cold]] std::optional<bool> bury(Lock& lock, const DeliveryPtr& message,
                                           std::unique_ptr<Move> move, const std::stop_token& token,
                                           TimePoint deadline);
    std::size_t flush(Lock& lock);
    bool await(Lock& lock, FunctionRef<bool()> answered);
    [[noreturn]] [[gnu::cold]] void throw_forked() const {
        throw std::logic_error(joined({"a consumer of '", keys().source(),
                                       "' is used in a forked child; make a new one there"}));
    }

    ForkMark m_process; ///< that made it
    ConsumerOptions m_options;
    Lane m_lane;
    Fetcher m_fetcher;
    std::shared_ptr<const Wake> m_news;
    std::optional<Attendance::Watch> m_watch;
    std::optional<Heartbeat::Member> m_membership;
    TimePoint m_gave_up{}; ///< last time that a destructor waited in vain
};

inline std::shared_ptr<Session> Session::open(std::shared_ptr<Heartbeat> heartbeat,
                                              const Keys& keys, ConsumerOptions&& options,
                                              TimePoint deadline, TrialShare share) {
    std::shared_ptr<Session> session(
        new Session(heartbeat->link(), keys, std::move(options), std::move(share)));
    // First of all: the heartbeat finds the link to the queue's node.
    session->m_membership.emplace(std::move(heartbeat), session, session->m_lane,
                                  session->m_options);
    try {
        session->m_lane.locked([&](Lock& lock) { session->start(lock, deadline); });
    } catch (...) {
        session->m_membership.reset();
        throw;
    }
    // The consumer and its guards hold this; the session holds itself as a member of the heartbeat.
    std::shared_ptr<Session> handle(session.get(), [session](Session*) mutable {
        // Moved out of this function object, which lives as long as the session's weak pointer.
        const std::shared_ptr<Session> own = std::move(session);
        if (own->m_process.forked()) {
            // A fork copied the session without its threads: its locks may be held for ever.
            own->m_lane.link().close_after_fork();
            own->m_fetcher.close_after_fork();
            own->m_membership->close_after_fork();
            static_cast<void>(new std::shared_ptr(own));
        } else {
            own->finish();
        }
    });
    const Lock lock(session->m_lane.mutex());
    session->m_lane.held().keep_alive(handle);
    return handle;
}

inline Session::Session(std::shared_ptr<Link> link, const Keys& keys, ConsumerOptions&& options,
                        TrialShare share)
    : m_options(std::move(options)),
      m_lane(
          std::move(link),
          [&] {
              return Mirror(
                  keys, m_options.lease,
                  [label = m_options.name, lease = m_options.lease, at_once = share.at_once] {
                      Identity identity = make_identity(label);
                      identity.nonce.append("l").append(Digits(lease.count()));
                      if (at_once > 0) {
                          identity.nonce.append("n").append(Digits(at_once));
                      }
                      return identity;
                  });
          },
          EventQueue(keys.source(), m_options.on_event)),
      m_fetcher(m_lane, m_options, std::move(share)) {}

inline void Session::start(Lock& lock, TimePoint deadline) {
    const bool answered = m_lane.drive(lock, deadline, nullptr, [this] {
        return m_lane.mirror().running() || m_lane.refusal().kept();
    });
    m_lane.refusal().rethrow();
    if (!answered) {
        throw ConnectionError(
            joined({"registering a consumer of '", keys().source(), "': ",
                    m_lane.last_failure().empty() ? m_lane.link().at_address("no reply in time")
                                                  : m_lane.last_failure()}));
    }
    const auto memory = ask(lock, deadline, "INFO", "memory");
    // Without the right to INFO there is nothing to warn of.
    if (memory && !evicting_policy(memory->text).empty()) {
        m_lane.events().note(EventKind::not_noeviction, evicting_policy(memory->text));
    }
}

inline void Session::end(Lock& lock) {
    const TimePoint now = Clock::now();
    // A guard's destructor has just waited in vain: once is enough.
    const bool waited = now - m_gave_up < grace;
    // The heartbeat's thread has the leases of other consumers to keep.
    const TimePoint until = waited                      ? now
                            : m_membership->on_thread() ? now + grace
                                                        : now + m_lane.endpoint().command_timeout();
    m_lane.refusal().forget(); // no caller is left to tell
    m_lane.adopt_at_once();
    m_fetcher.stop_waiting(lock, std::min(until, now + grace));
    if (!m_fetcher.leave(lock, until)) {
        m_gave_up = Clock::now();
    }
}

inline void Session::close() noexcept {
    m_fetcher.stop();
    try {
        if (!m_process.forked()) {
            m_lane.locked([this](Lock& lock) {
                m_lane.held().close_acks();
                m_fetcher.put_back_run();
                end(lock);
                if (const auto& awaits = m_lane.held().awaits()) {
                    awaits->end_all();
                }
                if (m_lane.held().any()) {
                    m_lane.limit(TimePoint::max()); // it was for the consumer, not for its guards
                    m_lane.attendance().ask();
                }
            });
        }
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // The collector requeues the rest after the lease.
    }
}

inline void Session::finish() noexcept {
    m_fetcher.stop();
    try {
        m_lane.locked([this](Lock& lock) {
            m_lane.held().take_acks();
            m_lane.mirror().forsake();
            end(lock);
            if (m_lane.mirror().running()) { // Redis may have refused what was still wanted
                m_lane.mirror().forsake();
                end(lock);
            }
        });
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // The collector requeues the rest after the lease.
    }
    m_membership.reset();
}

inline std::uint64_t Session::size() {
    refuse_fork();
    return m_lane.locked([this](Lock& lock) { return ask_size(lock); });
}

inline std::uint64_t Session::ask_size(Lock& lock) {
    const TimePoint until = Clock::now() + m_lane.endpoint().command_timeout();
    const auto reply = ask(lock, until, "LLEN", keys().source());
    const auto about = [this] { return joined({address(), ": LLEN '", keys().source(), "'"}); };
    if (!reply) {
        const std::string& failure = m_lane.last_failure();
        throw ConnectionError(
            joined({about(), ": ", failure.empty() ? "no reply in time" : failure}));
    }
    if (reply->is(Reply::Type::error)) {
        throw reply_error(about(), reply->text);
    }
    if (!is_count(*reply)) {
        const std::string doubt = joined({about(), ": a reply of the wrong type"});
        m_lane.begin_recovery(doubt);
        m_lane.link().lose(doubt);
        throw ProtocolError(doubt);
    }
    return static_cast<std::uint64_t>(reply->integer);
}

} // namespace orizuru::detail

#include <orizuru/detail/consumer/session_settling.inl>
