// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inspector.hpp that change many messages.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/jobs/own_lock.hpp>
#include <orizuru/detail/ops/change_scripts.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/detail/ops/places.hpp>
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

/// How many messages a script has changed, of at most `most`.
[[nodiscard]] inline std::uint64_t changed_by(Connection& connection, std::string_view script,
                                              const std::vector<std::string>& keys,
                                              const std::vector<std::string_view>& arguments,
                                              std::uint64_t most) {
    const Reply reply = connection.roundtrip(keys.front(), "EVAL", [&](std::string& out) {
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
    if (!is_count(reply) || static_cast<std::uint64_t>(reply.integer) > most) {
        connection.refuse("EVAL");
    }
    return static_cast<std::uint64_t>(reply.integer);
}

} // namespace detail

ORIZURU_INLINE std::int64_t Inspector::size_of(const Keys& keys, Place place) {
    const std::string key = detail::key_of(keys, place);
    const char* const name = place == Place::scheduled ? "ZCARD" : "LLEN";
    Connection& connection = *m_connections.of(keys);
    const Reply reply = connection.command(key, name, key);
    if (!detail::is_count(reply)) {
        connection.refuse(name);
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

// It counts from the end where messages come in: what is pushed meanwhile has it look at some once
// more, and what consumers take changes nothing. From the other end it would miss some.
ORIZURU_INLINE std::uint64_t
Inspector::change_if(const Keys& keys, Place place, Change change,
                     const std::function<bool(const PlacedMessage&)>& chosen, std::uint64_t limit) {
    const std::int64_t length = size_of(keys, place);
    std::uint64_t changed = 0;
    std::int64_t kept = 0; // at the back
    bool far = false;
    detail::ChunkSize chunk(detail::most_changed);
    // Pushes that are faster than this must not keep it from ever ending.
    for (std::int64_t unseen = 2 * length; unseen > 0 && changed < limit;) {
        // Those that it has put before all others it does not look at.
        const bool requeues = change == Change::run && place == Place::waiting;
        const std::int64_t in_front = requeues ? static_cast<std::int64_t>(changed) : 0;
        std::int64_t left = size_of(keys, place) - kept - in_front;
        const std::int64_t reached = std::max<std::int64_t>(detail::reach - in_front, 0);
        if (place != Place::scheduled && !far && kept >= detail::reach && left > reached) {
            far = true;
            kept += left - reached;
            left = reached;
        }
        std::vector<PlacedMessage> found;
        if (left > 0) {
            const auto most = static_cast<std::int64_t>(chunk.next());
            found = peek_back(keys, place, kept, std::min({left, unseen, most}));
        }
        if (found.empty()) {
            break;
        }
        std::uint64_t looked_at = 0;
        std::uint64_t bytes = 0;
        std::vector<PlacedMessage> some;
        for (PlacedMessage& message : found) {
            if (some.size() == limit - changed) {
                break;
            }
            ++looked_at;
            bytes += message.bytes.size();
            const bool has_payload = place != Place::dead || message.time;
            if ((change == Change::removal || has_payload) && chosen(message)) {
                some.push_back(std::move(message));
            }
        }
        chunk.learn(looked_at, bytes);
        // Others may have pushed since it looked.
        const std::uint64_t window = looked_at + std::max<std::uint64_t>(found.size(), 10);
        if (!some.empty()) {
            changed += change == Change::removal ? remove_some(keys, some, kept, window)
                                                 : run_some(keys, some, kept, window);
        }
        kept += static_cast<std::int64_t>(looked_at - some.size());
        unseen -= static_cast<std::int64_t>(looked_at);
    }
    if (far && changed < limit) {
        throw ReplyError(
            "FAR", detail::joined({detail::key_of(keys, place),
                                   ": only the elements at either end were looked at, and ",
                                   detail::Digits(changed), " changed; 10000 at either end stay"}));
    }
    return changed;
}

ORIZURU_INLINE std::uint64_t Inspector::clear(const std::string& queue, Place place) {
    const Keys keys(queue);
    std::uint64_t removed = 0;
    detail::ChunkSize chunk(detail::most_changed);
    for (std::int64_t unseen = size_of(keys, place); unseen > 0;) {
        const auto most = std::min(unseen, static_cast<std::int64_t>(chunk.next()));
        // Of the dead, peek has the newest first.
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
    const Place place = some.front().place;
    std::vector<std::optional<detail::OwnLock>> locks;
    locks.reserve(some.size());
    for (const PlacedMessage& message : some) {
        locks.push_back(detail::own_lock(message.payload, keys));
    }
    const auto remove = [&] {
        const std::string marker = detail::random_hex<32>();
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
        return detail::changed_by(*m_connections.of(keys), detail::remove_some_script(),
                                  script_keys, arguments, some.size());
    };
    try {
        return remove();
    } catch (const ReplyError& error) {
        if (error.code() != "CROSSSLOT") {
            throw;
        }
    }
    // A payload may name any queue for its lock.
    const std::string dead = keys.dead();
    const std::string_view own = std::string_view(dead).substr(0, dead.find('}') + 1);
    for (std::optional<detail::OwnLock>& lock : locks) {
        if (lock && !lock->key.starts_with(own)) {
            lock.reset();
        }
    }
    return remove();
}

ORIZURU_INLINE std::uint64_t Inspector::run_some(const Keys& keys,
                                                 const std::vector<PlacedMessage>& some,
                                                 std::int64_t first, std::uint64_t most) {
    const Place place = some.front().place;
    const std::string marker = detail::random_hex<32>();
    const detail::Digits at(first);
    const detail::Digits window(most);
    std::vector<std::string_view> arguments{detail::place_name(place), marker, at, window};
    for (const PlacedMessage& message : some) {
        arguments.emplace_back(message.bytes);
    }
    return detail::changed_by(*m_connections.of(keys), detail::run_some_script(),
                              {detail::key_of(keys, place), keys.source()}, arguments, some.size());
}

} // namespace orizuru
