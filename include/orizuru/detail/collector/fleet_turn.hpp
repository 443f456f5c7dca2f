// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets the processes of a fleet share work that one does for all, such as a collector's passes.
// Each asks for a turn when the work is due, and gets it if no process had one for the interval
// that it asks with. Intervals may differ. A death in a turn delays the others by no more.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// Records a turn in the key's time to live, by Redis' clock. If that is longer than any turn sets,
/// something else has set it, and it does not count.
///
/// KEYS turn; ARGV how long ago the last turn must be (ms), how long a turn is remembered (ms), a
///   command that the user must have the right to, or ''
/// Returns 0 it is the caller's turn | time until it is due (ms) | NOPERM without that right
inline constexpr auto fleet_turn_text = moving_script(R"lua(
local turn = KEYS[1]
local commands = {{'PTTL', turn}, {'SET', turn, 'x', 'PX', '1'}}
if ARGV[3] ~= '' then commands[3] = {ARGV[3], '0'} end
local refused = refusal({}, commands)
if refused then return refused end
local apart, memory = tonumber(ARGV[1]), tonumber(ARGV[2])
local left = redis.call('PTTL', turn) - (memory - apart)
if left > 0 and left <= apart then return left end
redis.call('SET', turn, '', 'PX', ARGV[2])
return 0
)lua");
inline constinit const CachedScript fleet_turn_script(fleet_turn_text);

struct FleetTurn {
    std::string key;
    std::chrono::milliseconds memory; ///< must be the same for all users of the key
    std::string_view command = {};    ///< a turn needs the right to it

    /// Takes the turn if no process had one for `apart`, or for `memory` if that is less. Returns 0
    /// then, otherwise the time until it is due. A user without the rights cannot share: always
    /// returns 0. Redis: a script, O(1). Throws ConnectionError, ProtocolError, and ReplyError when
    /// Redis cannot serve at present.
    [[nodiscard]] std::chrono::milliseconds take(Connection& connection,
                                                 std::chrono::milliseconds apart) const {
        apart = std::min(apart, memory);
        try {
            const Reply reply = run_script(connection, key, fleet_turn_script, 1, key,
                                           apart.count(), memory.count(), command);
            if (!is_count(reply) || reply.integer > apart.count()) {
                refuse(connection, "EVALSHA");
            }
            return std::chrono::milliseconds(reply.integer);
        } catch (const ReplyError& error) {
            if (is_for_now(error)) {
                throw;
            }
            return std::chrono::milliseconds(0);
        }
    }
    /// Lets the next process that asks have the turn. Does nothing for a user without the right to
    /// it. If another process has had a turn since, this gives that turn back, and the work is done
    /// once too often. Redis: DEL. Throws as take().
    void give_back(Connection& connection) const {
        try {
            connection.command(key, "DEL", key);
        } catch (const ReplyError& error) {
            if (is_for_now(error)) {
                throw;
            }
        }
    }
};

/// Decides when a collector asks for a turn to make a pass; gives back a turn whose pass fails.
///
/// A turn is due 9/10 of an interval after the last one. Each collector asks at a random moment of
/// the tenth after that. So a pass begins within an interval of the last one even if the process
/// that made that is gone, each asks about once per interval, and a thousand do not ask at once.
class PassTurns {
  public:
    /// A longer interval counts as this one.
    static constexpr std::chrono::milliseconds longest_interval = std::chrono::hours(24);

    explicit PassTurns(std::string key) : m_turn{std::move(key), 2 * longest_interval} {}

    /// True if it is this collector's turn; then call done() or give_back(). Throws as FleetTurn.
    [[nodiscard]] bool take(Connection& connection, std::chrono::milliseconds interval) {
        const TimePoint now = Clock::now();
        if (now < m_rests_until) {
            m_next = m_rests_until + spread(interval);
            return false;
        }
        const auto left = m_turn.take(connection, apart(interval));
        m_interval = interval;
        m_taken = left.count() == 0;
        m_tries += m_taken ? 1 : 0;
        m_next = now + (m_taken ? apart(interval) : left) + spread(interval);
        return m_taken;
    }
    /// Notes that the pass is complete.
    void done() noexcept {
        m_taken = false;
        m_tries = 0;
        m_stands_back = false;
    }
    /// Gives back a turn that was taken and not done; stands back from the second in a row on.
    /// Throws as FleetTurn::give_back; can then be tried again.
    void give_back(Connection& connection) {
        if (!m_taken) {
            return;
        }
        m_turn.give_back(connection);
        m_taken = false;
        // A single failure is likely an outage. A collector that never completes a pass would hold
        // the turn most of the time, because it takes it again right after giving it back.
        if (m_tries > 1) {
            stand_back();
        }
    }
    /// Leaves turns to other collectors, as long as any take theirs, until a pass is done.
    void stand_back() {
        m_stands_back = true;
        m_rests_until = deadline_in(apart(m_interval));
    }
    /// Puts off asking for `time` or for an interval, whichever is shorter.
    void put_off(std::chrono::milliseconds time, std::chrono::milliseconds interval) {
        m_next = deadline_in(std::min(time, apart(interval)) + spread(interval));
    }

    /// Returns when to ask next, after take() or put_off().
    [[nodiscard]] TimePoint next() const noexcept { return m_next; }

  private:
    /// Returns how long ago the last turn must be. A collector that stands back asks after an
    /// interval, when all others have asked.
    [[nodiscard]] std::chrono::milliseconds apart(std::chrono::milliseconds interval) const {
        return m_stands_back ? interval + interval / 10 : interval - interval / 10;
    }
    std::chrono::milliseconds spread(std::chrono::milliseconds interval) {
        return std::chrono::milliseconds(m_random.up_to(interval.count() / 10));
    }

    FleetTurn m_turn;
    TimePoint m_next{};
    TimePoint m_rests_until{};
    std::chrono::milliseconds m_interval{}; ///< the last take()'s
    int m_tries = 0;                        ///< turns taken since a pass was done
    bool m_taken = false;
    bool m_stands_back = false;
    Random m_random;
};

} // namespace orizuru::detail
