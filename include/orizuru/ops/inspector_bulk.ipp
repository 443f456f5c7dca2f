// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inspector.hpp that change many messages.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/jobs/group/member_removal.hpp>
#include <orizuru/detail/jobs/order/order_removal.hpp>
#include <orizuru/detail/jobs/own_lock.hpp>
#include <orizuru/detail/ops/blame.hpp>
#include <orizuru/detail/ops/change_scripts.hpp>
#include <orizuru/detail/ops/choice.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/detail/ops/places.hpp>
#include <orizuru/detail/ops/search_position.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <optional>
#include <string_view>

namespace orizuru {

namespace detail {

/// So far from either end of a list `take` searches it, and a step may remove messages.
inline constexpr std::int64_t reach = 10'000;
inline constexpr std::uint64_t most_changed = 100;

/// Returns what EVAL answers to a script with many arguments.
[[nodiscard]] inline Reply evaluate(Connection& connection, std::string_view script,
                                    const std::vector<std::string>& keys,
                                    const std::vector<std::string_view>& arguments) {
    return detail::exchange(connection, keys.front(), "EVAL", [&](std::string& out) {
        begin_command(out, 3 + keys.size() + arguments.size());
        append_argument(out, "EVAL");
        append_argument(out, script);
        append_argument(out, keys.size());
        for (const std::string& key : keys) {
            append_argument(out, key);
        }
        for (const std::string_view argument : arguments) {
            append_argument(out, argument);
        }
    });
}
/// A number of messages, of at most `most`.
[[nodiscard]] inline std::uint64_t count_up_to(Connection& connection, const Reply& reply,
                                               std::uint64_t most) {
    if (!is_count(reply) || static_cast<std::uint64_t>(reply.integer) > most) {
        detail::refuse(connection, "EVAL");
    }
    return static_cast<std::uint64_t>(reply.integer);
}

} // namespace detail

ORIZURU_INLINE std::int64_t Inspector::size_of(const Keys& keys, Place place) {
    const std::string key = detail::key_of(keys, place);
    const char* const name = place == Place::scheduled ? "ZCARD" : "LLEN";
    Connection& connection = *m_connections->of(keys);
    const Reply reply = connection.command(key, name, key);
    if (!detail::is_count(reply)) {
        detail::refuse(connection, name);
    }
    return reply.integer;
}

ORIZURU_INLINE std::uint64_t
Inspector::remove_if(const std::string& queue, Place place,
                     const std::function<bool(const PlacedMessage&)>& chosen, std::uint64_t limit) {
    return change_if(Keys(queue), place, Change::removal, chosen, limit);
}

ORIZURU_INLINE std::uint64_t
Inspector::run_if(const std::string& queue, Place place,
                  const std::function<bool(const PlacedMessage&)>& chosen, std::uint64_t limit) {
    return change_if(Keys(queue), place, Change::run, chosen, limit);
}

/// Reads `most` and one more.
ORIZURU_INLINE std::vector<PlacedMessage> Inspector::look_back(const Keys& keys, Place place,
                                                               detail::SearchPosition& position,
                                                               std::int64_t most,
                                                               std::int64_t& length) {
    const std::string key = detail::key_of(keys, place);
    Connection& connection = *m_connections->of(keys);
    while (true) {
        Reply reply =
            connection.command(key, "EVAL_RO", detail::look_back_script, 1, key,
                               detail::place_name(place), position.at, most, position.next,
                               position.kept.last(), position.in_front, position.boundary);
        std::vector<Reply>& parts = reply.elements;
        const auto is_number = [](const Reply& part) { return part.is(Reply::Type::integer); };
        if (parts.size() != 4 || !std::all_of(parts.begin(), parts.begin() + 3, is_number) ||
            parts[0].integer < -1 || parts[1].integer < 0 || parts[2].integer < 0 ||
            !parts[3].is(Reply::Type::array) ||
            static_cast<std::int64_t>(parts[3].elements.size()) > most + 1) {
            detail::refuse(connection, "EVAL_RO");
        }
        length = parts[1].integer;
        position.in_front = parts[2].integer;
        if (parts[0].integer < 0) {
            position.fall_back();
            continue;
        }
        position.at = parts[0].integer;
        std::vector<PlacedMessage> found;
        found.reserve(parts[3].elements.size());
        for (Reply& one : parts[3].elements) {
            found.push_back(message_of(keys, place, one));
        }
        if (place == Place::suspected) {
            detail::read_blame(connection, keys, found);
        }
        return found;
    }
}

// It goes from the end where messages come in to the other. Others change both ends meanwhile, so
// it finds its place again by the elements there. When a step does not find all that were chosen,
// it looks at these once more.
ORIZURU_INLINE std::uint64_t
Inspector::change_if(const Keys& keys, Place place, Change change,
                     const std::function<bool(const PlacedMessage&)>& chosen, std::uint64_t limit) {
    std::int64_t length = size_of(keys, place);
    bool ended = length == 0;
    detail::SearchPosition position;
    std::uint64_t changed = 0;
    detail::ChunkSize chunk(detail::most_changed);
    const auto wanted = [&](const PlacedMessage& message) {
        const bool has_payload = place != Place::dead || message.time;
        return (change == Change::removal || has_payload) && chosen(message);
    };
    // Messages that it must look at again must not keep it from ever ending.
    for (std::int64_t unseen = 2 * length + 1000; !ended && unseen > 0 && changed < limit;) {
        const auto most = std::min(unseen, static_cast<std::int64_t>(chunk.next()));
        std::vector<PlacedMessage> found = look_back(keys, place, position, most, length);
        const std::int64_t left = length - position.in_front - position.at;
        if (place != Place::scheduled && !position.jumped && position.at >= detail::reach &&
            left > std::max<std::int64_t>(detail::reach - position.in_front, 0)) {
            position.skip_middle();
            continue;
        }
        ended = static_cast<std::int64_t>(found.size()) <= most;
        std::string next;
        if (!ended) {
            next = std::move(found.back().bytes);
            found.pop_back();
        }
        const std::string first = found.empty() ? std::string() : found.front().bytes;
        const detail::Choice choice = detail::choose(found, wanted, limit - changed);
        chunk.learn(choice.looked_at, choice.bytes);
        unseen -= std::max<std::int64_t>(static_cast<std::int64_t>(choice.looked_at), 1);
        const std::vector<PlacedMessage>& some = choice.messages;
        std::uint64_t done = 0;
        if (!some.empty()) {
            const std::int64_t begin = position.at + static_cast<std::int64_t>(choice.begin);
            const std::uint64_t window = choice.end - choice.begin;
            done = change == Change::removal ? remove_some(keys, some, begin, window)
                                             : run_some(keys, some, begin, window, position);
            changed += done;
        }
        if (done == some.size()) {
            position.at += static_cast<std::int64_t>(choice.looked_at - done);
            position.next = std::move(next);
            if (!choice.last_kept.empty()) {
                position.kept.add(position.at - 1, choice.last_kept);
            }
        } else {
            position.next = first;
            ended = false;
        }
    }
    if (changed < limit && (position.jumped || !ended)) {
        throw ReplyError(
            "FAR", detail::joined({detail::key_of(keys, place),
                                   position.jumped
                                       ? ": only the elements at either end were looked at, and "
                                       : ": others change it faster than it is looked at, and ",
                                   detail::Digits(changed),
                                   position.jumped ? " changed; 10000 at either end stay"
                                                   : " changed; some may be left"}));
    }
    return changed;
}

ORIZURU_INLINE std::uint64_t Inspector::clear(const std::string& queue, Place place) {
    const Keys keys(queue);
    std::uint64_t removed = 0;
    detail::ChunkSize chunk(detail::most_changed);
    for (std::int64_t unseen = size_of(keys, place); unseen > 0;) {
        const auto most = std::min(unseen, static_cast<std::int64_t>(chunk.next()));
        // The dead come from peek newest first.
        const std::vector<PlacedMessage> found =
            place == Place::dead ? peek_dead(keys, -most, -1) : peek(queue, place, 0, most);
        if (found.empty()) {
            break;
        }
        std::uint64_t bytes = 0;
        for (const PlacedMessage& message : found) {
            bytes += message.bytes.size();
        }
        chunk.learn(found.size(), bytes);
        removed +=
            remove_some(keys, found, -1, found.size() + std::max<std::uint64_t>(found.size(), 10));
        unseen -= static_cast<std::int64_t>(found.size());
    }
    return removed;
}

ORIZURU_INLINE std::uint64_t Inspector::remove_some(const Keys& keys,
                                                    const std::vector<PlacedMessage>& some,
                                                    std::int64_t first, std::uint64_t most) {
    const std::string list = detail::key_of(keys, some.front().place);
    std::vector<PlacedMessage> others;
    std::uint64_t removed = 0;
    for (const PlacedMessage& message : some) {
        if (const auto turn = detail::turn_of(message.payload, keys)) {
            Connection& connection = *m_connections->of(keys);
            removed +=
                detail::take_out_of_order(connection, keys, *turn, list, message.bytes) ? 1U : 0U;
        } else if (detail::may_be_member(message.payload)) {
            Connection& connection = *m_connections->of(keys);
            removed += detail::remove_member(connection, list, message.bytes, message.payload, keys)
                           ? 1U
                           : 0U;
        } else {
            others.push_back(message);
        }
    }
    return removed + (others.empty() ? 0 : remove_others(keys, others, first, most));
}

/// Does so for those that have no turn in the order of a key, and are in no group, in one step.
ORIZURU_INLINE std::uint64_t Inspector::remove_others(const Keys& keys,
                                                      const std::vector<PlacedMessage>& some,
                                                      std::int64_t first, std::uint64_t most) {
    const Place place = some.front().place;
    std::vector<std::optional<detail::OwnLock>> locks;
    locks.reserve(some.size());
    for (const PlacedMessage& message : some) {
        locks.push_back(detail::own_lock(message.payload, keys));
    }
    return detail::without_foreign_locks(locks, keys, [&] {
        const std::string marker = detail::random_hex(32);
        const detail::Digits at(first);
        const detail::Digits window(most);
        std::vector<std::string> script_keys{detail::key_of(keys, place)};
        std::vector<std::string> numbers;
        numbers.reserve(some.size()); // its texts must not move
        std::vector<std::string_view> arguments{detail::place_name(place), marker, at, window};
        for (std::size_t i = 0; i < some.size(); ++i) {
            if (locks[i]) {
                script_keys.push_back(locks[i]->key);
                numbers.emplace_back(std::to_string(script_keys.size()));
            } else {
                numbers.emplace_back("0");
            }
            arguments.emplace_back(some[i].bytes);
            arguments.emplace_back(numbers.back());
            arguments.emplace_back(locks[i] ? std::string_view(locks[i]->value) : "");
        }
        Connection& connection = *m_connections->of(keys);
        const Reply reply =
            detail::evaluate(connection, detail::remove_some_script, script_keys, arguments);
        return detail::count_up_to(connection, reply, some.size());
    });
}

ORIZURU_INLINE std::uint64_t Inspector::run_some(const Keys& keys,
                                                 const std::vector<PlacedMessage>& some,
                                                 std::int64_t first, std::uint64_t most,
                                                 detail::SearchPosition& position) {
    const Place place = some.front().place;
    const std::string marker = detail::random_hex(32);
    const detail::Digits at(first);
    const detail::Digits window(most);
    const detail::Digits in_front(position.in_front);
    std::vector<std::string_view> arguments{detail::place_name(place), marker, at, window, in_front,
                                            position.boundary};
    for (const PlacedMessage& message : some) {
        arguments.emplace_back(message.bytes);
    }
    Connection& connection = *m_connections->of(keys);
    const Reply reply = detail::evaluate(connection, detail::run_some_script,
                                         {detail::key_of(keys, place), keys.source()}, arguments);
    const std::vector<Reply>& parts = reply.elements;
    if (parts.size() != 3 || !detail::is_count(parts[2])) {
        detail::refuse(connection, "EVAL");
    }
    const std::uint64_t done = detail::count_up_to(connection, parts[0], some.size());
    const std::uint64_t leftmost = detail::count_up_to(connection, parts[1], some.size());
    if (place == Place::waiting && done > 0 && leftmost > 0) {
        if (parts[2].integer == 0) {
            position.boundary = some[detail::narrow<std::size_t>(leftmost) - 1].bytes;
        }
        position.in_front = parts[2].integer + static_cast<std::int64_t>(done);
    }
    return done;
}

} // namespace orizuru
