// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inspector.hpp that look at one queue, or at the list of all.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/due_time.hpp>
#include <orizuru/detail/jobs/group/group_numbers.hpp>
#include <orizuru/detail/jobs/job_in.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/ops/blame.hpp>
#include <orizuru/detail/ops/inspector_scripts.hpp>
#include <orizuru/detail/ops/places.hpp>
#include <orizuru/detail/ops/running_jobs.hpp>
#include <orizuru/detail/ops/sought_id.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/scheduled_list.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>

namespace orizuru {

ORIZURU_INLINE std::optional<Job<Raw>> PlacedMessage::job() const {
    return detail::job_in(payload);
}

ORIZURU_INLINE std::vector<std::string> Inspector::queues() {
    Connection& connection = *m_connections->of_queues();
    const Reply reply = connection.command(Keys::queues(), "SMEMBERS", Keys::queues());
    if (!detail::is_strings(reply)) {
        detail::refuse(connection, "SMEMBERS");
    }
    std::vector<std::string> names;
    for (const Reply& name : reply.elements) {
        names.push_back(name.text);
    }
    std::ranges::sort(names);
    return names;
}

ORIZURU_INLINE bool Inspector::forget(const std::string& queue) {
    Connection& connection = *m_connections->of_queues();
    return detail::is_yes(connection.command(Keys::queues(), "SREM", Keys::queues(), queue));
}

ORIZURU_INLINE std::vector<KeyState> Inspector::keys(const std::string& queue, std::int64_t first,
                                                     std::int64_t count) {
    const Keys keys(queue);
    detail::check_range(first, count);
    const std::string keyed = keys.keyed();
    Connection& connection = *m_connections->of(keys);
    const Reply reply =
        connection.command(keyed, "ZRANGE", keyed, first, first + count - 1, "REV", "WITHSCORES");
    if (!detail::is_strings(reply) || reply.elements.size() % 2 != 0) {
        detail::refuse(connection, "ZRANGE");
    }
    std::vector<KeyState> found;
    for (std::size_t i = 0; count > 0 && i < reply.elements.size(); i += 2) {
        const auto behind = detail::whole_number(reply.elements[i + 1].text);
        if (!reply.elements[i].text.empty()) { // the sum of all comes last
            found.push_back({reply.elements[i].text, behind.value_or(0)});
        }
    }
    return found;
}

ORIZURU_INLINE std::optional<KeyState> Inspector::key(const std::string& queue,
                                                      const std::string& key, std::int64_t most) {
    const Keys keys(queue);
    const std::string order = keys.order(key);
    Connection& connection = *m_connections->of(keys);
    const Reply first = connection.command(order, "LINDEX", order, 0);
    const Reply size = connection.command(order, "LLEN", order);
    if (!detail::is_count(size)) {
        detail::refuse(connection, "LLEN");
    }
    if (size.integer == 0 || first.is(Reply::Type::nil)) {
        return std::nullopt;
    }
    const detail::SoughtId sought{detail::ticket_of(first.text, keys),
                                  detail::SoughtId::Match::ticket};
    return KeyState{key, static_cast<std::uint64_t>(size.integer - 1),
                    find_everywhere(queue, sought, most)};
}

ORIZURU_INLINE std::vector<QueueGroup> Inspector::groups(const std::string& queue,
                                                         std::int64_t first, std::int64_t count) {
    const Keys keys(queue);
    detail::check_range(first, count);
    return count == 0 ? std::vector<QueueGroup>() : read_groups(keys, first, first + count - 1, "");
}

ORIZURU_INLINE std::optional<QueueGroup> Inspector::group(const std::string& queue,
                                                          const std::string& id) {
    const Keys keys(queue);
    std::vector<QueueGroup> found = read_groups(keys, 0, 0, id);
    return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

ORIZURU_INLINE std::vector<QueueGroup> Inspector::read_groups(const Keys& keys, std::int64_t first,
                                                              std::int64_t last,
                                                              const std::string& id) {
    const std::string groups = keys.groups();
    std::vector<std::string> one;
    if (!id.empty()) {
        one.push_back(id);
    }
    Connection& connection = *m_connections->of(keys);
    const Reply reply = connection.command(groups, "EVAL_RO", detail::group_states_script, 1,
                                           groups, keys.group(""), first, last, one);
    detail::require_type(connection, reply, Reply::Type::array, "EVAL_RO");
    std::vector<QueueGroup> found;
    for (const Reply& group : reply.elements) {
        const std::span<const Reply> parts = group.elements;
        if (parts.size() != 8 || !detail::is_count(parts[1], -2)) {
            detail::refuse(connection, "EVAL_RO");
        }
        found.push_back({.id = parts[0].text,
                         .state = detail::group_state(parts.subspan<2, 4>()),
                         .then_queue = parts[7].text});
        if (const auto made = detail::whole_number(parts[6].text)) {
            found.back().made = JobTime(std::chrono::milliseconds(*made));
        }
        if (parts[1].integer >= 0) {
            found.back().expires_in = std::chrono::milliseconds(parts[1].integer);
        }
    }
    return found;
}

ORIZURU_INLINE std::vector<ConsumerState> Inspector::consumers(const std::string& queue) {
    const Keys keys(queue);
    Connection& connection = *m_connections->of(keys);
    const std::string key = keys.consumers();
    Reply reply = connection.command(key, "EVAL_RO", detail::consumer_states_script, 1, key,
                                     keys.heartbeat(""), keys.processing(""));
    detail::require_type(connection, reply, Reply::Type::array, "EVAL_RO");
    std::vector<ConsumerState> found;
    for (Reply& one : reply.elements) {
        std::vector<Reply>& parts = one.elements;
        if (parts.size() != 4 || !parts[0].is(Reply::Type::string) ||
            !detail::is_count(parts[1], -2) || !detail::is_count(parts[2]) ||
            !parts[3].is(Reply::Type::string)) {
            detail::refuse(connection, "EVAL_RO");
        }
        ConsumerState state{.id = std::move(parts[0].text),
                            .held = static_cast<std::uint64_t>(parts[2].integer)};
        if (parts[1].integer >= 0) {
            state.lease_left = std::chrono::milliseconds(parts[1].integer);
        }
        const std::string_view header = parts[3].text;
        state.steps = detail::whole_number(header.substr(header.rfind(':') + 1)).value_or(0);
        found.push_back(std::move(state));
    }
    std::ranges::sort(found, {}, &ConsumerState::id);
    return found;
}

ORIZURU_INLINE std::vector<PlacedMessage> Inspector::peek(const std::string& queue, Place place,
                                                          std::int64_t first, std::int64_t count) {
    const Keys keys(queue);
    detail::check_range(first, count);
    if (count == 0) {
        return {};
    }
    switch (place) {
    case Place::held:
        return peek_held(keys, first, count);
    case Place::dead:
        return peek_dead(keys, first, first + count - 1);
    case Place::scheduled:
        return peek_scheduled(keys, first, first + count - 1);
    case Place::waiting:
    case Place::rejected:
    case Place::suspected:
        break;
    }
    std::vector<PlacedMessage> found = peek_list(keys, place, -first - count, -first - 1);
    if (place == Place::suspected) {
        detail::read_blame(*m_connections->of(keys), keys, found);
    }
    std::ranges::reverse(found); // the right end is served next
    return found;
}

ORIZURU_INLINE std::vector<PlacedMessage>
Inspector::peek_list(const Keys& keys, Place place, std::int64_t first, std::int64_t last) {
    const std::string list = detail::key_of(keys, place);
    Connection& connection = *m_connections->of(keys);
    Reply reply = connection.command(list, "LRANGE", list, first, last);
    if (!detail::is_strings(reply)) {
        detail::refuse(connection, "LRANGE");
    }
    std::vector<PlacedMessage> found;
    for (Reply& element : reply.elements) {
        std::string payload = element.text;
        found.push_back({place, std::move(payload), std::move(element.text)});
    }
    return found;
}

ORIZURU_INLINE std::vector<PlacedMessage> Inspector::peek_dead(const Keys& keys, std::int64_t first,
                                                               std::int64_t last) {
    const std::string dead = keys.dead();
    Connection& connection = *m_connections->of(keys);
    Reply reply =
        connection.command(dead, "EVAL_RO", detail::list_dead_script, 1, dead, first, last);
    detail::require_type(connection, reply, Reply::Type::array, "EVAL_RO");
    std::vector<PlacedMessage> found;
    for (Reply& element : reply.elements) {
        found.push_back(dead_message(keys, element));
    }
    return found;
}

ORIZURU_INLINE PlacedMessage Inspector::dead_message(const Keys& keys, Reply& reply) {
    DeadEntry entry = detail::dead_entry_of(*m_connections->of(keys), reply);
    PlacedMessage message{Place::dead, std::move(entry.payload), std::move(entry.bytes),
                          std::move(entry.reason)};
    if (entry.readable) {
        message.time = entry.time;
    }
    return message;
}

ORIZURU_INLINE std::vector<PlacedMessage>
Inspector::peek_scheduled(const Keys& keys, std::int64_t first, std::int64_t last) {
    const std::string scheduled = keys.scheduled();
    Connection& connection = *m_connections->of(keys);
    Reply reply = connection.command(scheduled, "ZRANGE", scheduled, first, last, "WITHSCORES");
    if (!detail::is_strings(reply) || reply.elements.size() % 2 != 0) {
        detail::refuse(connection, "ZRANGE");
    }
    std::vector<PlacedMessage> found;
    for (std::size_t i = 0; i < reply.elements.size(); i += 2) {
        found.push_back(scheduled_message(connection, reply.elements[i], reply.elements[i + 1]));
    }
    return found;
}

ORIZURU_INLINE PlacedMessage Inspector::scheduled_message(Connection& connection, Reply& element,
                                                          const Reply& score) {
    const std::optional<JobTime> due = detail::due_time(score.text);
    if (!due) {
        detail::refuse(connection, "ZRANGE");
    }
    std::string& bytes = element.text;
    std::string payload = bytes.substr(std::min(bytes.size(), detail::scheduled_number));
    return {Place::scheduled, std::move(payload), std::move(bytes), "", due};
}

ORIZURU_INLINE PlacedMessage Inspector::message_of(const Keys& keys, Place place, Reply& reply) {
    if (place == Place::dead) {
        return dead_message(keys, reply);
    }
    Connection& connection = *m_connections->of(keys);
    std::vector<Reply>& parts = reply.elements;
    if (!detail::is_strings(reply) || parts.size() != (place == Place::scheduled ? 2 : 1)) {
        detail::refuse(connection, "EVAL_RO");
    }
    return place == Place::scheduled ? scheduled_message(connection, parts[0], parts[1])
                                     : PlacedMessage{place, parts[0].text, parts[0].text};
}

ORIZURU_INLINE std::vector<PlacedMessage> Inspector::peek_held(const Keys& keys, std::int64_t first,
                                                               std::int64_t count) {
    const std::string key = keys.consumers();
    Connection& connection = *m_connections->of(keys);
    // Lua writes larger numbers in a form that Redis does not read; no more can be held.
    constexpr std::int64_t most = std::int64_t{1} << 40;
    Reply reply =
        connection.command(key, "EVAL_RO", detail::held_messages_script, 1, key,
                           keys.processing(""), std::min(first, most), std::min(count, most));
    detail::require_type(connection, reply, Reply::Type::array, "EVAL_RO");
    std::vector<PlacedMessage> found;
    for (Reply& one : reply.elements) {
        if (!detail::is_strings(one) || one.elements.size() != 2) {
            detail::refuse(connection, "EVAL_RO");
        }
        std::string& bytes = one.elements[1].text;
        PlacedMessage message{Place::held, bytes, bytes};
        message.consumer = std::move(one.elements[0].text);
        found.push_back(std::move(message));
    }
    detail::read_running(connection, keys, found);
    return found;
}

} // namespace orizuru
