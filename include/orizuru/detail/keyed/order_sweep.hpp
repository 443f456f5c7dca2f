// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds keys that stand still: somebody has taken the job that was out from Redis by hand, and the
// next one did not come. A turn ends when two passes have found its job nowhere. A pass may miss a
// job that moves meanwhile, so it reads all places twice, in opposite orders. At its end it mends
// what is counted of keys.

#include <orizuru/connection.hpp>
#include <orizuru/detail/collector/lost_consumers.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/keyed/order_scripts.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// For one thread.
class OrderSweep {
  public:
    explicit OrderSweep(Keys keys) : m_keys(std::move(keys)) {}

    /// Returns how many turns it has ended. Throws as Connection::command.
    std::uint64_t pass(Connection& connection) {
        Turns missing = read_turns(connection);
        if (!missing.empty()) {
            leave_out_found(connection, missing);
        }
        Turns again;
        std::ranges::set_intersection(missing, m_missing, std::inserter(again, again.end()));
        std::uint64_t ended = 0;
        for (const auto& [key, digits] : again) {
            if (is_yes(connection.command(m_keys.order(key), "EVAL", end_turn_script, 3,
                                          order_keys(m_keys, key), digits))) {
                ++ended;
            }
        }
        m_missing = std::move(missing);
        recount(connection);
        return ended;
    }

  private:
    /// The key of each list, and the digits of the job that is out.
    using Turns = std::set<std::pair<std::string, std::string>>;

    static constexpr std::int64_t most_read = 1000;

    Turns read_turns(Connection& connection) {
        const std::string prefix = m_keys.order("");
        Turns turns;
        scan_lists(connection, prefix, [&](const std::vector<std::string>& lists) {
            const Reply reply =
                connection.command(prefix, "EVAL_RO", first_digits_script, lists.size(), lists);
            if (!is_strings(reply) || reply.elements.size() != lists.size()) {
                refuse(connection, "EVAL_RO");
            }
            for (std::size_t i = 0; i < lists.size(); ++i) {
                if (!reply.elements[i].text.empty()) {
                    turns.emplace(lists[i].substr(prefix.size()), reply.elements[i].text);
                }
            }
        });
        return turns;
    }
    /// Reads the places against the way of a job, and then along it.
    void leave_out_found(Connection& connection, Turns& turns) {
        std::vector<std::string> places{m_keys.dead(), m_keys.suspects(), m_keys.unack(),
                                        m_keys.scheduled()};
        for (const std::string& id : Orphans().search(connection, m_keys)) {
            places.push_back(m_keys.processing(id));
        }
        places.push_back(m_keys.source());
        for (const std::string& place : places) {
            leave_out(connection, place, turns);
        }
        for (auto place = places.rbegin(); place != places.rend() && !turns.empty(); ++place) {
            leave_out(connection, *place, turns);
        }
    }
    /// Those whose jobs are in this place.
    static void leave_out(Connection& connection, const std::string& place, Turns& turns) {
        std::int64_t first = 0;
        std::int64_t looked_at = 0;
        do {
            const Reply reply = connection.command(place, "EVAL_RO", digits_in_place_script, 1,
                                                   place, first, most_read);
            const std::vector<Reply>& parts = reply.elements;
            if (parts.size() != 2 || !is_count(parts[0]) || !is_strings(parts[1])) {
                refuse(connection, "EVAL_RO");
            }
            looked_at = parts[0].integer;
            first += looked_at;
            std::set<std::string_view> found;
            for (const Reply& digits : parts[1].elements) {
                found.insert(digits.text);
            }
            std::erase_if(turns, [&](const auto& turn) { return found.contains(turn.second); });
        } while (looked_at > 0);
    }

    /// Those that come to other places meanwhile are left to the next pass.
    void recount(Connection& connection) {
        const std::string keyed = m_keys.keyed();
        std::int64_t first = 0;
        std::int64_t looked_at = 0;
        do {
            const Reply reply = connection.command(keyed, "EVAL", recount_keys_script, 1, keyed,
                                                   m_keys.order(""), first, first + most_read - 1);
            if (!is_count(reply)) {
                refuse(connection, "EVAL");
            }
            looked_at = reply.integer;
            first += looked_at;
        } while (looked_at == most_read);
    }

    Keys m_keys;
    Turns m_missing; ///< at the pass before
};

} // namespace orizuru::detail
