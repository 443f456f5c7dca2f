// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Sends what transactions have left in the outbox (outbox.hpp) to Redis, each queue's messages in
// the order of the commits. Any number of relays may run, on any host: each step is one queue's,
// whose row is locked, and which others skip meanwhile.
//
//   BEGIN ─► lock the queue ─► its next messages ─► LPUSH ─► DELETE ─► COMMIT
//                                                     └ a crash in between: sent again ┘
//
// A message is sent at least once, always with its id. One that is sent again may come behind later
// ones, but it was in front of them first. A relay that hangs in a step loses its session, and with
// it the queue: others send its messages then, and it sends them once more when it wakes. (Not
// while it is being sent a step's messages over a Unix socket: PostgreSQL waits there without an
// end.)

#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/postgres/notifications.hpp>
#include <orizuru/detail/postgres/outbox_stepper.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/outbox_event.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

struct OutboxRelayOptions {
    /// The most messages of a step, 1 to 1000. There are fewer when these have over 1 MiB.
    int batch = 1000;
    /// A relay looks at least this often, for the case that nobody has woken it: 100 ms to 24 h.
    std::chrono::milliseconds sweep = std::chrono::seconds(30);
    /// Called by the thread that is in the relay.
    std::function<void(const OutboxEvent&)> on_event = write_outbox_event;
};

/// A relay for all queues of an outbox: a connection to Redis, one to PostgreSQL, and another one
/// in `run`. Used by one thread at a time.
class OutboxRelay {
  public:
    /// Connects. Throws DatabaseError when PostgreSQL cannot be reached or refuses, SchemaError
    /// when tables or rights (TableUse::relay) are missing; ConnectionError and ReplyError as
    /// Connection does; std::invalid_argument for an option that cannot be.
    OutboxRelay(Database database, Endpoint redis, OutboxRelayOptions options = {});

    /// Sends all that is committed, but for what other relays are at; returns how many messages.
    ///
    /// PostgreSQL: for a step 5 round trips; a queue's lock is held until its COMMIT, and the
    ///     session is ended when it waits in a step for 30 s, or twice as long as Redis may take.
    ///     A look at which queues wait, O(queues ever used), for each round of a step for each.
    ///     Redis: an LPUSH for a step; a PING when one fails.
    /// Blocks: for the statements, and at most connect_timeout and command_timeout for each LPUSH.
    /// Throws: ReplyError when Redis has refused a queue, the first ConnectionError, ProtocolError
    ///     or DatabaseError when a queue's step has failed: those of the others are sent. Without a
    ///     server nothing more is. What is not sent, or in doubt, is still in the outbox, and the
    ///     next call sends it.
    std::uint64_t relay();

    /// Sends what is committed when it is committed, until a stop is requested: woken by NOTIFY,
    /// which needs a session of its own (no pool that shares sessions by transactions).
    /// What fails is told to on_event and tried again, after 5 s at most; a queue that fails holds
    /// up no other. What a relay has left that died is looked for within a second.
    /// Blocks after a stop: for the step under way. Throws std::system_error when the process can
    /// have no more descriptors.
    void run(const std::stop_token& token);

  private:
    /// Of a queue that has failed.
    struct Pause {
        detail::JitteredPauses lengths = {};
        detail::TimePoint until = {};
    };
    /// A step for each queue that something waits for.
    struct Round {
        bool worked = false;                                 ///< there may be more
        bool busy = false;                                   ///< others have locked a queue
        std::uint64_t sent = 0;                              ///< messages
        std::exception_ptr error = {};                       ///< the first
        detail::TimePoint resume = detail::TimePoint::max(); ///< a pause ends
    };

    static OutboxRelayOptions checked(OutboxRelayOptions options);
    Round round(detail::TimePoint now, const std::stop_token& token);
    void attend(const std::string& queue, Round& round);
    void pause(OutboxEventKind kind, const std::string& queue, const Error& error, Round& round);
    [[nodiscard]] detail::TimePoint next_look(const Round& last) const;
    void wait_out(OutboxEventKind kind, std::string_view why,
                  std::optional<detail::Notifications>& notifications,
                  const std::stop_token& token);
    void tell(const OutboxEvent& event) const noexcept;

    OutboxRelayOptions m_options;
    detail::OutboxStepper m_stepper;
    std::map<std::string, Pause> m_paused;
    detail::JitteredPauses m_outage;
};

inline OutboxRelay::OutboxRelay(Database database, Endpoint redis, OutboxRelayOptions options)
    : m_options(checked(std::move(options))),
      m_stepper(std::move(database), std::move(redis), m_options.batch) {}

inline OutboxRelayOptions OutboxRelay::checked(OutboxRelayOptions options) {
    if (options.batch < 1 || options.batch > static_cast<int>(detail::PushChunk::most_messages)) {
        throw std::invalid_argument("batch must be 1 to 1000");
    }
    if (options.sweep < std::chrono::milliseconds(100) || options.sweep > std::chrono::hours(24)) {
        throw std::invalid_argument("sweep must be 100 ms to 24 h");
    }
    return options;
}

inline std::uint64_t OutboxRelay::relay() {
    m_paused.clear();
    std::uint64_t sent = 0;
    std::exception_ptr error;
    for (Round last{.worked = true}; last.worked;) {
        // Before all pauses: what has failed is left to the next call.
        last = round(detail::TimePoint::min(), {});
        sent += last.sent;
        error = error ? error : last.error;
    }
    if (error) {
        std::rethrow_exception(error);
    }
    return sent;
}

inline void OutboxRelay::run(const std::stop_token& token) {
    std::optional<detail::Notifications> notifications;
    while (!token.stop_requested()) {
        try {
            if (!notifications) {
                notifications.emplace(m_stepper.database(), "outbox");
            }
            notifications->drain(detail::TimePoint::min(), token);
            const Round last = round(detail::Clock::now(), token);
            m_outage.reset();
            if (!last.worked) {
                notifications->wait(next_look(last), token);
            }
        } catch (const DatabaseError& error) {
            wait_out(OutboxEventKind::postgres_failed, error.what(), notifications, token);
        } catch (const Error& error) {
            wait_out(OutboxEventKind::redis_failed, error.what(), notifications, token);
        } catch (const pqxx::failure& error) {
            notifications.reset();
            wait_out(OutboxEventKind::postgres_failed, error.what(), notifications, token);
        }
    }
}

inline OutboxRelay::Round OutboxRelay::round(detail::TimePoint now, const std::stop_token& token) {
    Round round;
    for (const std::string& queue : m_stepper.waiting()) {
        if (token.stop_requested()) {
            break;
        }
        const auto paused = m_paused.find(queue);
        if (paused != m_paused.end() && paused->second.until > now) {
            round.resume = std::min(round.resume, paused->second.until);
        } else {
            attend(queue, round);
        }
    }
    return round;
}

/// Throws when it is not the queue that fails, but a server.
inline void OutboxRelay::attend(const std::string& queue, Round& round) {
    try {
        if (const auto sent = m_stepper.step(queue)) {
            m_paused.erase(queue);
            round.worked = true;
            round.sent += *sent;
        } else {
            round.busy = true;
        }
    } catch (const ReplyError& error) {
        pause(OutboxEventKind::refused, queue, error, round);
    } catch (const DatabaseError& error) {
        if (!m_stepper.postgres_answers()) {
            throw;
        }
        pause(OutboxEventKind::postgres_failed, queue, error, round);
    } catch (const Error& error) {
        if (!m_stepper.redis_answers()) {
            throw;
        }
        pause(OutboxEventKind::redis_failed, queue, error, round);
    }
}

inline void OutboxRelay::pause(OutboxEventKind kind, const std::string& queue, const Error& error,
                               Round& round) {
    Pause& pause = m_paused[queue];
    const std::chrono::milliseconds length = pause.lengths.next();
    pause.until = detail::deadline_in(length);
    round.resume = std::min(round.resume, pause.until);
    round.error = round.error ? round.error : std::current_exception();
    tell({kind, queue, error.what(), length});
}

/// What others have locked may be left by them in a crash, which nobody tells.
inline detail::TimePoint OutboxRelay::next_look(const Round& last) const {
    constexpr std::chrono::milliseconds others_take(1000);
    return std::min(
        last.resume,
        detail::deadline_in(last.busy ? std::min(m_options.sweep, others_take) : m_options.sweep));
}

inline void OutboxRelay::wait_out(OutboxEventKind kind, std::string_view why,
                                  std::optional<detail::Notifications>& notifications,
                                  const std::stop_token& token) {
    const std::chrono::milliseconds pause = m_outage.next();
    tell({kind, {}, why, pause});
    const detail::TimePoint end = detail::deadline_in(pause);
    if (notifications) {
        try {
            return notifications->drain(end, token);
        } catch (const pqxx::failure&) {
            notifications.reset();
        }
    }
    detail::sleep_until(end, token);
}

inline void OutboxRelay::tell(const OutboxEvent& event) const noexcept {
    if (!m_options.on_event) {
        return;
    }
    try {
        m_options.on_event(event);
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // A logger's failure must not become the relay's; the user was told so.
    }
}

} // namespace orizuru
