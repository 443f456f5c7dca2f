// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The rounds of an OutboxRelay: a step for each queue that something waits for.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/postgres/notifications.hpp>
#include <orizuru/detail/postgres/outbox_stepper.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/outbox_event.hpp>
#include <orizuru/postgres/outbox_relay_options.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// One thread's at a time. Blocks and throws as OutboxRelay says.
class OutboxRounds {
  public:
    OutboxRounds(Database database, Endpoint redis, OutboxRelayOptions options);

    std::uint64_t relay();
    void run(const std::stop_token& token);

  private:
    /// Pause of a queue that has failed.
    struct Pause {
        JitteredPauses lengths = {};
        TimePoint until = {};
    };
    /// A step for each queue that something waits for.
    struct Round {
        bool worked = false;                 ///< there may be more
        bool busy = false;                   ///< others have locked a queue
        std::uint64_t sent = 0;              ///< messages
        std::exception_ptr error = {};       ///< the first
        TimePoint resume = TimePoint::max(); ///< a pause ends
    };

    // Time until another relay goes on with the work of one that died.
    static constexpr std::chrono::milliseconds others_take{1000};

    static OutboxRelayOptions checked(OutboxRelayOptions options);
    Round round(TimePoint now, const std::stop_token& token);
    void sleep(TimePoint until, Notifications& notifications, const std::stop_token& token);
    void attend(const std::string& queue, Round& round);
    void pause(OutboxEventKind kind, const std::string& queue, const Error& error, Round& round);
    [[nodiscard]] TimePoint next_look(const Round& last) const;
    void wait_out(OutboxEventKind kind, std::string_view why,
                  std::optional<Notifications>& notifications, const std::stop_token& token);
    void tell(const OutboxEvent& event) const noexcept;

    OutboxRelayOptions m_options;
    OutboxStepper m_stepper;
    std::map<std::string, Pause> m_paused;
    JitteredPauses m_outage;
};

inline OutboxRounds::OutboxRounds(Database database, Endpoint redis, OutboxRelayOptions options)
    : m_options(checked(std::move(options))),
      m_stepper(std::move(database), std::move(redis), m_options.batch) {}

inline OutboxRelayOptions OutboxRounds::checked(OutboxRelayOptions options) {
    check_count("batch", options.batch, static_cast<int>(PushChunk::most_messages));
    check_time("sweep", options.sweep, std::chrono::milliseconds(100));
    return options;
}

inline std::uint64_t OutboxRounds::relay() {
    m_paused.clear();
    std::uint64_t sent = 0;
    std::exception_ptr error;
    for (Round last{.worked = true}; last.worked;) {
        // Before all pauses: what has failed is left to the next call.
        last = round(TimePoint::min(), {});
        sent += last.sent;
        error = error ? error : last.error;
    }
    if (error) {
        std::rethrow_exception(error);
    }
    return sent;
}

inline void OutboxRounds::run(const std::stop_token& token) {
    std::optional<Notifications> notifications;
    const auto gone = at_exit([this, &notifications] {
        if (notifications) { // else PostgreSQL is away
            m_stepper.leave();
        }
    });
    while (!token.stop_requested()) {
        try {
            if (!notifications) {
                notifications.emplace(m_stepper.database(), "outbox");
            }
            notifications->drain(TimePoint::min(), token);
            m_stepper.wake();
            const Round last = round(Clock::now(), token);
            m_outage.reset();
            if (!last.worked) {
                sleep(next_look(last), *notifications, token);
            }
        } catch (const DatabaseError& error) {
            notifications.reset(); // another server may have taken over
            wait_out(OutboxEventKind::postgres_failed, error.what(), notifications, token);
        } catch (const Error& error) {
            wait_out(OutboxEventKind::redis_failed, error.what(), notifications, token);
        } catch (const pqxx::failure& error) {
            notifications.reset();
            wait_out(OutboxEventKind::postgres_failed, error.what(), notifications, token);
        }
    }
}

inline void OutboxRounds::sleep(TimePoint until, Notifications& notifications,
                                const std::stop_token& token) {
    // Commits under way that take too long to wait for do not wake it.
    constexpr std::chrono::milliseconds next_look_at_missed(500);
    const bool told_of_all = m_stepper.doze(until);
    const Round last = round(Clock::now(), token);
    if (last.worked || token.stop_requested()) {
        return;
    }
    until = std::min(told_of_all ? until : deadline_in(next_look_at_missed), next_look(last));
    if (told_of_all) {
        m_stepper.fall_asleep();
    }
    while (Clock::now() < until && !token.stop_requested()) {
        if (notifications.wait(std::min(until, deadline_in(others_take)), token) ||
            m_stepper.lapsed()) {
            return;
        }
    }
}

inline OutboxRounds::Round OutboxRounds::round(TimePoint now, const std::stop_token& token) {
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
inline void OutboxRounds::attend(const std::string& queue, Round& round) {
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

inline void OutboxRounds::pause(OutboxEventKind kind, const std::string& queue, const Error& error,
                                Round& round) {
    Pause& pause = m_paused[queue];
    const std::chrono::milliseconds length = pause.lengths.next();
    pause.until = deadline_in(length);
    round.resume = std::min(round.resume, pause.until);
    round.error = round.error ? round.error : std::current_exception();
    tell({kind, queue, error.what(), length});
}

/// A relay that died in a step leaves its queue to others without a word: they look soon.
inline TimePoint OutboxRounds::next_look(const Round& last) const {
    return std::min(last.resume, deadline_in(last.busy ? std::min(m_options.sweep, others_take)
                                                       : m_options.sweep));
}

inline void OutboxRounds::wait_out(OutboxEventKind kind, std::string_view why,
                                   std::optional<Notifications>& notifications,
                                   const std::stop_token& token) {
    const std::chrono::milliseconds pause = m_outage.next();
    tell({kind, {}, why, pause});
    const TimePoint end = deadline_in(pause);
    m_stepper.forget();
    if (notifications) {
        try {
            return notifications->drain(end, token);
        } catch (const pqxx::failure&) {
            notifications.reset();
        }
    }
    sleep_until(end, token);
}

inline void OutboxRounds::tell(const OutboxEvent& event) const noexcept {
    if (!m_options.on_event) {
        return;
    }
    try {
        m_options.on_event(event);
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // A logger's failure must not become the relay's; the user was told so.
    }
}

} // namespace orizuru::detail
