// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Moves a queue's scheduled messages to its source when they are due, alone or beside other
// schedulers.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

// One step moves at most this many messages, and this many bytes unless one message has more, so
// that it never holds up Redis for long.
inline constexpr int most_moved = 100;
inline constexpr int most_bytes_moved = 1 << 20;

// KEYS[1] scheduled, [2] source, [3] schedulers; ARGV[1] the most messages that one step moves, [2]
// the most bytes, [3] own id, [4] how long the others may go unheard. Returns how many it has
// moved, in how many milliseconds the next is due (-1: there is none), and how many schedulers
// there are. Reads one message after the other, as messages that are read together take their
// memory together.
inline constexpr auto move_due_script = moving_script(R"lua(
local scheduled, source, schedulers = unpack(KEYS)
local refused = refusal({{scheduled, 'zset'}, {source, 'list'}, {schedulers, 'zset'}},
    {{'TIME'}, {'ZRANGE', scheduled, '0', '0'}, {'LPUSH', source, 'x'},
        {'ZREMRANGEBYRANK', scheduled, '0', '0'}, {'ZADD', schedulers, '0', 'x'},
        {'ZREMRANGEBYSCORE', schedulers, '0', '0'}, {'ZCARD', schedulers}})
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most, most_bytes = tonumber(ARGV[1]), tonumber(ARGV[2])
local messages, bytes = {}, 0
local function look()
    return unpack(redis.call('ZRANGE', scheduled, #messages, #messages, 'WITHSCORES'))
end
local element, due = look()
while element and tonumber(due) <= now and #messages < most
        and (#messages == 0 or bytes + #element <= most_bytes) do
    bytes = bytes + #element
    messages[#messages + 1] = string.sub(element, 9)
    element, due = look()
end
if #messages > 0 then
    redis.call('LPUSH', source, unpack(messages))
    redis.call('ZREMRANGEBYRANK', scheduled, 0, #messages - 1)
end
redis.call('ZADD', schedulers, now, ARGV[3])
redis.call('ZREMRANGEBYSCORE', schedulers, '-inf', now - ARGV[4])
local wait = element and math.max(0, tonumber(due) - now) or -1
return {#messages, wait, redis.call('ZCARD', schedulers)}
)lua");

/// One thread's at a time.
class DueMessages {
  public:
    /// `poll` is that of SchedulerOptions.
    DueMessages(Keys keys, std::shared_ptr<Connection> connection, std::chrono::milliseconds poll)
        : m_keys(std::move(keys)),
          m_poll(poll),
          m_id(make_identity("scheduler").id),
          m_connection(std::move(connection)) {}

    /// Moves all that is due.
    std::uint64_t move();
    /// Makes one step. Returns when to make the next one, unless somebody schedules something
    /// earlier: at once while more is due.
    TimePoint look() { return look(m_poll); }
    /// Does the same with another `poll`.
    TimePoint look(std::chrono::milliseconds poll);
    /// True if the last look has left messages for later.
    [[nodiscard]] bool any_left() const noexcept { return m_any_left; }

  private:
    // A scheduler that has not looked for this long is taken for dead.
    static constexpr std::chrono::milliseconds memory = std::chrono::seconds(60);

    struct Step {
        std::int64_t moved;
        std::chrono::milliseconds next; ///< negative: nothing is scheduled
        std::int64_t schedulers;
    };

    Step step();
    std::chrono::milliseconds pause(std::chrono::milliseconds poll, std::int64_t schedulers);

    Keys m_keys;
    std::chrono::milliseconds m_poll;
    std::string m_id;
    std::shared_ptr<Connection> m_connection;
    bool m_any_left = false;
    std::minstd_rand m_random{narrow<std::minstd_rand::result_type>(entropy())};
};

inline std::uint64_t DueMessages::move() {
    std::uint64_t moved = 0;
    while (true) {
        const Step last = step();
        moved += static_cast<std::uint64_t>(last.moved);
        if (last.next.count() != 0) {
            return moved;
        }
    }
}

inline DueMessages::Step DueMessages::step() {
    const Reply reply = m_connection->command(
        m_keys.scheduled(), "EVAL", move_due_script, 3, m_keys.scheduled(), m_keys.source(),
        m_keys.schedulers(), most_moved, most_bytes_moved, m_id, (memory + 3 * m_poll).count());
    const std::vector<Reply>& parts = reply.elements;
    if (parts.size() != 3 || !is_count(parts[0]) || parts[0].integer > most_moved ||
        !parts[1].is(Reply::Type::integer) || !is_count(parts[2])) {
        refuse(*m_connection, "EVAL");
    }
    return {parts[0].integer, std::chrono::milliseconds(parts[1].integer), parts[2].integer};
}

// The time is measured here, since Redis ends a short block up to 100 ms late.
inline TimePoint DueMessages::look(std::chrono::milliseconds poll) {
    const Step last = step();
    const std::chrono::milliseconds longest = pause(poll, last.schedulers);
    m_any_left = last.next.count() >= 0;
    return deadline_in(m_any_left ? std::min(longest, last.next) : longest);
}

/// Half to one and a half of the time that has all schedulers together look once in `poll`.
inline std::chrono::milliseconds DueMessages::pause(std::chrono::milliseconds poll,
                                                    std::int64_t schedulers) {
    const auto average = static_cast<double>(poll.count()) *
                         static_cast<double>(std::max<std::int64_t>(schedulers, 1));
    std::uniform_real_distribution<double> spread(0.5, 1.5);
    return std::chrono::milliseconds(static_cast<std::int64_t>(average * spread(m_random)));
}

} // namespace orizuru::detail
