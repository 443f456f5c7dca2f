// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Ends the turns of jobs that went to the dead list with their tickets: a collector buries what has
// taken its workers along, and a consumer what it cannot decode, and neither knows of keys.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/jobs/order/order_removal.hpp>
#include <orizuru/detail/keyed/order_scripts.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Takes the ticket out of an entry, and brings the next job of its key, in one step. Returns
/// whether the entry was there.
inline bool end_dead_turn(Connection& connection, const Keys& keys, const DeadEntry& entry) {
    const std::optional<KeyTurn> turn = turn_of(entry.payload, keys);
    return turn &&
           is_yes(connection.command(keys.dead(), "EVAL", end_dead_turn_script, 4,
                                     order_keys(keys, turn->key, {keys.dead()}), turn->digits,
                                     entry.bytes, without_ticket(entry.payload)));
}

/// Chooses how far it looks.
enum class DeadTurns {
    newest, ///< until 100 entries, or a mebibyte of them, have none
    all     ///< to the end of the list
};
/// Ends those that there are. Redis: a script for each 100 entries or mebibyte, and one for each
/// turn. Throws as Connection::command; a key whose list is of another type keeps no other from its
/// turn: returns the ReplyError about the first one.
[[nodiscard]] inline std::exception_ptr end_dead_turns(Connection& connection, const Keys& keys,
                                                       DeadTurns which) {
    constexpr std::int64_t most = 100;
    const std::string dead = keys.dead();
    std::exception_ptr wrong_type;
    for (std::int64_t first = 0, looked_at = 0;; first += looked_at) {
        Reply reply = connection.command(dead, "EVAL_RO", dead_turns_script, 1, dead, first, most);
        std::vector<Reply>& parts = reply.elements;
        if (parts.size() != 2 || !is_count(parts[0]) || !parts[1].is(Reply::Type::array)) {
            refuse(connection, "EVAL_RO");
        }
        looked_at = parts[0].integer;
        bool any = false;
        for (Reply& element : parts[1].elements) {
            try {
                any = end_dead_turn(connection, keys, dead_entry_of(connection, element)) || any;
            } catch (const ReplyError& error) {
                if (error.code() != "WRONGTYPE") {
                    throw;
                }
                wrong_type = wrong_type ? wrong_type : std::current_exception();
            }
        }
        if (looked_at == 0 || (which == DeadTurns::newest && !any)) {
            return wrong_type;
        }
    }
}

} // namespace orizuru::detail
