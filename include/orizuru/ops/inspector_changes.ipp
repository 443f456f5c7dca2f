// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inspector.hpp that change one message.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/error_text.hpp>
#include <orizuru/detail/jobs/order/order_removal.hpp>
#include <orizuru/detail/jobs/own_lock.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/ops/cancel_scripts.hpp>
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

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>

namespace orizuru {

namespace detail {

/// In bytes: each worker of a queue reads it again and again.
inline constexpr std::size_t longest_cancel_reason = 200;

} // namespace detail

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
    return detail::remove_message(*connection, detail::remove_dead_script,
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
    return detail::is_yes(connection->command(list, "EVAL", detail::move_element_script, 2, list,
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
        return connection.command(from, "EVAL", detail::move_message_script, 2, from,
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

ORIZURU_INLINE CancelResult Inspector::cancel(const std::string& queue, const std::string& job_id,
                                              std::string_view reason, std::int64_t most) {
    const Keys keys(queue);
    const std::string_view why =
        reason.empty() ? "cancelled" : detail::cut_text(reason, detail::longest_cancel_reason);
    constexpr int most_rounds = 3; // a job that goes on meanwhile is looked for again
    for (int round = 0; round < most_rounds; ++round) {
        bool moved = false;
        for (const PlacedMessage& message : find(queue, job_id, most)) {
            if (message.place == Place::held) {
                request_cancel(keys, job_id, message.consumer, why);
                return CancelResult::requested;
            }
            if (message.place != Place::dead) {
                if (cancel_placed(keys, message, why)) {
                    return CancelResult::buried;
                }
                moved = true;
            }
        }
        if (!moved) {
            break;
        }
    }
    return CancelResult::not_found;
}

ORIZURU_INLINE bool Inspector::cancel_placed(const Keys& keys, const PlacedMessage& message,
                                             std::string_view reason) {
    Connection& connection = *m_connections->of(keys);
    const std::string place = detail::key_of(keys, message.place);
    std::vector<std::string> script_keys{place, keys.dead()};
    const auto run = [&](std::string_view payload, std::string_view digits,
                         std::string_view value) {
        return detail::is_yes(connection.command(place, "EVAL", detail::cancel_script,
                                                 script_keys.size(), script_keys, message.bytes,
                                                 reason, payload, digits, value));
    };
    if (const auto turn = detail::turn_of(message.payload, keys)) {
        for (std::string& key : detail::order_keys(keys, turn->key)) {
            script_keys.push_back(std::move(key));
        }
        return run(detail::without_ticket(message.payload), turn->digits, "");
    }
    std::optional<detail::OwnLock> lock = detail::own_lock(message.payload, keys);
    return detail::without_foreign_locks({&lock, 1}, keys, [&] {
        script_keys.resize(2);
        if (lock) {
            script_keys.push_back(lock->key);
        }
        return run(message.payload, "", lock ? std::string_view(lock->value) : "");
    });
}

ORIZURU_INLINE void Inspector::request_cancel(const Keys& keys, const std::string& job_id,
                                              const std::string& consumer,
                                              std::string_view reason) {
    constexpr std::chrono::milliseconds expiry = std::chrono::minutes(10);
    constexpr int most = 100; // each worker reads them all
    const std::string key = keys.cancelled();
    if (!detail::is_yes(m_connections->of(keys)->command(key, "EVAL", detail::request_cancel_script,
                                                         2, key, keys.worker(consumer), job_id,
                                                         reason, expiry.count(), most))) {
        throw std::invalid_argument(
            detail::joined({"job '", job_id, "' of queue '", keys.source(),
                            "' cannot be cancelled: its worker handles it in a batch"}));
    }
}

} // namespace orizuru
