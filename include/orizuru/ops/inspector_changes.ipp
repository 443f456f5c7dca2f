// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inspector.hpp that change one message.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/order/order_removal.hpp>
#include <orizuru/detail/jobs/own_lock.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/ops/change_scripts.hpp>
#include <orizuru/detail/ops/lock_queue.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/detail/ops/places.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/scheduled_list.hpp>
#include <orizuru/reply.hpp>

#include <stdexcept>

namespace orizuru {

ORIZURU_INLINE bool Inspector::remove(const std::string& queue, const PlacedMessage& message) {
    const Keys keys(queue);
    const std::shared_ptr<Connection>& connection = m_connections->of(keys);
    if (message.place != Place::held) {
        if (const auto turn = detail::turn_of(message.payload, keys)) {
            return detail::take_out_of_order(*connection, keys, *turn,
                                             detail::key_of(keys, message.place), message.bytes);
        }
    }
    switch (message.place) {
    case Place::held:
        detail::refuse_held();
    case Place::scheduled:
        return ScheduledList(connection, queue)
            .cancel({.payload = message.payload, .bytes = message.bytes});
    case Place::waiting:
    case Place::rejected:
    case Place::suspected:
    case Place::dead:
        break;
    }
    return detail::remove_message(*connection, detail::remove_dead_script(),
                                  detail::key_of(keys, message.place), message.bytes,
                                  message.payload, keys);
}

ORIZURU_INLINE bool Inspector::run_now(const std::string& queue, const PlacedMessage& message) {
    const Keys keys(queue);
    const std::shared_ptr<Connection>& connection = m_connections->of(keys);
    switch (message.place) {
    case Place::held:
        detail::refuse_held();
    case Place::scheduled:
        return ScheduledList(connection, queue)
            .run_now({.payload = message.payload, .bytes = message.bytes});
    case Place::dead: {
        DeadEntry entry;
        entry.bytes = message.bytes;
        return DeadList(connection, queue).redrive(entry);
    }
    case Place::waiting:
    case Place::rejected:
    case Place::suspected:
        break;
    }
    const std::string list = detail::key_of(keys, message.place);
    const char* const end = message.place == Place::rejected ? "last" : "first";
    return detail::is_yes(connection->command(list, "EVAL", detail::move_element_script(), 2, list,
                                              keys.source(), message.bytes, end));
}

ORIZURU_INLINE bool Inspector::move(const std::string& queue, const PlacedMessage& message,
                                    const std::string& to) {
    const Keys keys(queue);
    const Keys target(to);
    const std::string from = detail::key_of(keys, message.place);
    Connection& connection = *m_connections->of(keys);
    const auto turn = queue == to ? std::nullopt : detail::turn_of(message.payload, keys);
    const auto move = [&](const auto&... lock_queue) {
        return connection.command(from, "EVAL", detail::move_message_script(), 2, from,
                                  target.source(), message.bytes, detail::place_name(message.place),
                                  lock_queue...);
    };
    Reply reply;
    try {
        if (turn) {
            return detail::move_out_of_order(connection, keys, *turn, from, message.bytes, target,
                                             detail::without_ticket(message.payload));
        }
        const auto before = queue == to ? std::nullopt : detail::before_lock_queue(message.payload);
        reply = before ? move(*before, detail::packed_name(queue)) : move();
    } catch (const ReplyError& error) {
        if (error.code() != "CROSSSLOT") {
            throw;
        }
        throw ReplyError(
            error.code(),
            detail::joined({"queues '", queue, "' and '", to,
                            "' must be in one slot of the Cluster to move a message"}));
    }
    if (!detail::is_count(reply, -1) || reply.integer > 1) {
        detail::refuse(connection, "EVAL");
    }
    if (reply.integer < 0) {
        throw std::invalid_argument("what has no payload cannot be moved to a queue");
    }
    return reply.integer == 1;
}

} // namespace orizuru
