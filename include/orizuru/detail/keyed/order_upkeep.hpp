// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Looks after the order of a queue's keys, for all processes that serve it: one of them does it
// until it is not heard, since a sweep needs to know what the one before has seen.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/keyed/dead_turns.hpp>
#include <orizuru/detail/keyed/order_scripts.hpp>
#include <orizuru/detail/keyed/order_sweep.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace orizuru::detail {

/// For one thread.
class OrderUpkeep {
  public:
    OrderUpkeep(Keys keys, std::shared_ptr<Connection> connection,
                std::chrono::milliseconds interval, std::chrono::milliseconds sweep_interval)
        : m_keys(std::move(keys)),
          m_connection(std::move(connection)),
          m_interval(std::max(interval, std::chrono::milliseconds(1))),
          m_sweep_interval(sweep_interval),
          m_sweep(m_keys) {}

    /// Returns when the next step is due. Redis: a script, and where this process has the turn
    /// those of end_dead_turns and OrderSweep. Throws as Connection::command; about one key whose
    /// list is of another type when all else is done.
    TimePoint step() {
        if (is_mine()) {
            const bool sweeps = Clock::now() >= m_next_sweep;
            const std::exception_ptr wrong_type =
                end_dead_turns(*m_connection, m_keys, sweeps ? DeadTurns::all : DeadTurns::newest);
            if (sweeps) {
                m_sweep.pass(*m_connection);
                m_next_sweep = deadline_in(m_sweep_interval);
            }
            if (wrong_type) {
                std::rethrow_exception(wrong_type);
            }
        }
        return deadline_in(m_interval);
    }

  private:
    bool is_mine() {
        const std::string key = m_keys.keyed_upkeep();
        const std::chrono::milliseconds unheard =
            3 * std::max<std::chrono::milliseconds>(m_interval, std::chrono::seconds(1));
        return is_yes(
            m_connection->command(key, "EVAL", order_turn_script, 1, key, m_id, unheard.count()));
    }

    Keys m_keys;
    std::shared_ptr<Connection> m_connection;
    std::chrono::milliseconds m_interval;
    std::chrono::milliseconds m_sweep_interval;
    OrderSweep m_sweep;
    std::string m_id = random_hex(32);
    TimePoint m_next_sweep{};
};

} // namespace orizuru::detail
