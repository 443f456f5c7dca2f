// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inspector.hpp that search a queue for a job, and Redis for queues.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/ops/blame.hpp>
#include <orizuru/detail/ops/inspector_scripts.hpp>
#include <orizuru/detail/ops/masters.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/detail/ops/places.hpp>
#include <orizuru/detail/ops/queue_of_key.hpp>
#include <orizuru/detail/ops/running_jobs.hpp>
#include <orizuru/detail/ops/sought_id.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>

namespace orizuru {

namespace detail {

/// So many messages one step of a search looks at.
inline constexpr std::int64_t most_searched = 1000;

/// Adds the queues whose keys a node has.
inline void scan_queues(Connection& connection, const std::stop_token& token,
                        std::set<std::string>& queues) {
    static constexpr const char* pattern = "orizuru:{*";
    std::string cursor = "0";
    do {
        const Reply page =
            connection.command(pattern, "SCAN", cursor, "MATCH", pattern, "COUNT", 1000);
        if (page.elements.size() != 2 || !page.elements[0].is(Reply::Type::string) ||
            !is_strings(page.elements[1])) {
            detail::refuse(connection, "SCAN");
        }
        cursor = page.elements[0].text;
        for (const Reply& key : page.elements[1].elements) {
            if (auto queue = queue_of_key(key.text)) {
                queues.insert(*std::move(queue));
            }
        }
    } while (cursor != "0" && !token.stop_requested());
}

/// Returns the first bytes of the next message of each list; '' if the list has gone or the user
/// may not read it. Without the right to EVAL_RO all are ''.
[[nodiscard]] inline std::vector<Reply> next_starts(Connection& connection,
                                                    const std::vector<std::string>& lists) {
    Reply reply;
    try {
        reply = detail::exchange(connection, "*", "EVAL_RO", [&](std::string& out) {
            begin_command(out, 4 + lists.size());
            append_argument(out, "EVAL_RO");
            append_argument(out, next_starts_script());
            append_argument(out, 0);
            append_argument(out, longest_envelope_start);
            for (const std::string& list : lists) {
                append_argument(out, list);
            }
        });
    } catch (const ReplyError& error) {
        if (error.code() != "NOPERM") {
            throw;
        }
        return std::vector<Reply>(lists.size());
    }
    if (!is_strings(reply) || reply.elements.size() != lists.size()) {
        detail::refuse(connection, "EVAL_RO");
    }
    return std::move(reply.elements);
}

/// Adds the queues of a node that have no key of this library but hold jobs.
inline void scan_jobs(Connection& connection, const std::stop_token& token,
                      std::set<std::string>& queues) {
    std::string cursor = "0";
    while (!token.stop_requested()) {
        Reply page = connection.command("*", "SCAN", cursor, "TYPE", "list", "COUNT", 1000);
        if (page.elements.size() != 2 || !page.elements[0].is(Reply::Type::string) ||
            !is_strings(page.elements[1])) {
            detail::refuse(connection, "SCAN");
        }
        std::vector<std::string> lists;
        for (Reply& key : page.elements[1].elements) {
            if (!key.text.starts_with("orizuru:") && !queues.contains(key.text)) {
                lists.push_back(std::move(key.text));
            }
        }
        if (!lists.empty() && !token.stop_requested()) {
            const std::vector<Reply> starts = next_starts(connection, lists);
            for (std::size_t i = 0; i < lists.size(); ++i) {
                if (envelope_time(starts[i].text)) {
                    queues.insert(std::move(lists[i]));
                }
            }
        }
        cursor = page.elements[0].text;
        if (cursor == "0") {
            return;
        }
    }
}

} // namespace detail

ORIZURU_INLINE std::vector<std::string> Inspector::find_queues(const std::stop_token& token) {
    const Endpoint& endpoint = m_connections->endpoint();
    std::set<std::string> found;
    const auto topology = detail::EndpointParts::of(endpoint).address->topology;
    if (topology != detail::Topology::cluster) {
        detail::scan_queues(*m_connections->of_queues(), token, found);
        detail::scan_jobs(*m_connections->of_queues(), token, found);
        return {found.begin(), found.end()};
    }
    for (const detail::Node& master : detail::masters_of(endpoint)) {
        if (token.stop_requested()) {
            break;
        }
        Connection connection(detail::Route::to_node(endpoint, master));
        detail::scan_queues(connection, token, found);
        detail::scan_jobs(connection, token, found);
    }
    return {found.begin(), found.end()};
}

ORIZURU_INLINE std::vector<PlacedMessage>
Inspector::find(const std::string& queue, const std::string& job_id, std::int64_t most) {
    return find_everywhere(queue, {job_id, detail::SoughtId::Match::whole}, most);
}

ORIZURU_INLINE std::vector<PlacedMessage>
Inspector::find_prefix(const std::string& queue, const std::string& id_prefix, std::int64_t most) {
    return find_everywhere(queue, {id_prefix, detail::SoughtId::Match::prefix}, most);
}

ORIZURU_INLINE std::vector<PlacedMessage> Inspector::find_everywhere(const std::string& queue,
                                                                     const detail::SoughtId& sought,
                                                                     std::int64_t most) {
    const Keys keys(queue);
    detail::check_range(0, most);
    if (sought.text.empty()) {
        throw std::invalid_argument("a job's id is not empty");
    }
    std::vector<PlacedMessage> found;
    // In the order in which a job goes through them, so that one which goes on is not missed.
    find_in_place(keys, Place::scheduled, sought, most, found);
    find_in_place(keys, Place::waiting, sought, most, found);
    find_in_place(keys, Place::suspected, sought, most, found);
    find_held(keys, sought, most, found);
    find_in_place(keys, Place::rejected, sought, most, found);
    find_in_place(keys, Place::dead, sought, most, found);
    return found;
}

ORIZURU_INLINE void Inspector::find_in_place(const Keys& keys, Place place,
                                             const detail::SoughtId& sought, std::int64_t most,
                                             std::vector<PlacedMessage>& found) {
    const std::string key = detail::key_of(keys, place);
    Connection& connection = *m_connections->of(keys);
    bool ended = detail::is_enough(found);
    const std::size_t before = found.size();
    for (std::int64_t looked_at = 0; !ended && looked_at < most;) {
        const std::int64_t count = std::min(most - looked_at, detail::most_searched);
        Reply reply = connection.command(key, "EVAL_RO", detail::find_messages_script, 1, key,
                                         looked_at, count, sought.text, detail::place_name(place));
        std::vector<Reply>& parts = reply.elements;
        if (parts.size() != 3 || !detail::is_count(parts[0]) || parts[0].integer > count ||
            !detail::is_count(parts[1]) || !parts[2].is(Reply::Type::array)) {
            detail::refuse(connection, "EVAL_RO");
        }
        for (Reply& one : parts[2].elements) {
            PlacedMessage message = message_of(keys, place, one);
            if (!detail::is_enough(found) && sought.is_of(message.payload)) {
                found.push_back(std::move(message));
            }
        }
        looked_at += parts[0].integer;
        ended = parts[1].integer == 1 || parts[0].integer == 0 || detail::is_enough(found);
    }
    if (place == Place::suspected) {
        detail::read_blame(connection, keys, std::span(found).subspan(before));
    }
}

ORIZURU_INLINE void Inspector::find_held(const Keys& keys, const detail::SoughtId& sought,
                                         std::int64_t most, std::vector<PlacedMessage>& found) {
    const std::string key = keys.consumers();
    Connection& connection = *m_connections->of(keys);
    const Reply members = connection.command(key, "SMEMBERS", key);
    if (!detail::is_strings(members)) {
        detail::refuse(connection, "SMEMBERS");
    }
    const std::vector<Reply>& ids = members.elements;
    std::size_t consumer = 0;
    std::int64_t at = 0;   // in this one's list, where it has looked last at
    std::string last;      // this message
    std::int64_t left = 0; // so many more at most: who settles fast must not hold it up
    for (std::int64_t looked_at = 0;
         looked_at < most && consumer < ids.size() && !detail::is_enough(found);) {
        const std::int64_t count = std::min(most - looked_at, detail::most_searched);
        const std::size_t some = std::min<std::size_t>(ids.size() - consumer, 100);
        Reply reply = detail::exchange(connection, key, "EVAL_RO", [&](std::string& out) {
            detail::begin_command(out, 9 + some);
            detail::append_argument(out, "EVAL_RO");
            detail::append_argument(out, detail::find_held_script);
            detail::append_argument(out, 1);
            detail::append_argument(out, key);
            detail::append_argument(out, keys.processing(""));
            detail::append_argument(out, sought.text);
            detail::append_argument(out, count);
            detail::append_argument(out, at);
            detail::append_argument(out, last);
            for (std::size_t i = 0; i < some; ++i) {
                detail::append_argument(out, ids[consumer + i].text);
            }
        });
        std::vector<Reply>& parts = reply.elements;
        const auto is_number = [&](std::size_t part) { return detail::is_count(parts[part]); };
        if (parts.size() != 7 || !is_number(0) || !is_number(1) || !is_number(3) || !is_number(4) ||
            !is_number(5) || static_cast<std::uint64_t>(parts[0].integer) > some ||
            !parts[2].is(Reply::Type::string) || !parts[6].is(Reply::Type::array)) {
            detail::refuse(connection, "EVAL_RO");
        }
        if (parts[5].integer == 1) {
            std::erase_if(found, [&](const PlacedMessage& message) {
                return message.consumer == ids[consumer].text;
            });
        }
        const auto done = static_cast<std::size_t>(parts[0].integer);
        for (Reply& one : parts[6].elements) {
            if (!detail::is_strings(one) || one.elements.size() != 2) {
                detail::refuse(connection, "EVAL_RO");
            }
            const std::string& id = one.elements[0].text;
            std::string& bytes = one.elements[1].text;
            if (!detail::is_enough(found) && sought.is_of(bytes)) {
                PlacedMessage message{Place::held, bytes, bytes};
                message.consumer = id;
                found.push_back(std::move(message));
            }
        }
        looked_at += parts[4].integer;
        left = done == 0 && at > 0 ? left - parts[4].integer : 2 * parts[3].integer;
        at = parts[1].integer;
        last = std::move(parts[2].text);
        consumer += done;
        if (at > 0 && left <= 0) {
            ++consumer;
            at = 0;
        }
    }
    detail::read_running(connection, keys, found);
}

} // namespace orizuru
