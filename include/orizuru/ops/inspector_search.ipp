// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inspector.hpp that search a queue for a job, and Redis for queues.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/ops/inspector_scripts.hpp>
#include <orizuru/detail/ops/masters.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/detail/ops/places.hpp>
#include <orizuru/detail/ops/queue_of_key.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace orizuru {

namespace detail {

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
            connection.refuse("SCAN");
        }
        cursor = page.elements[0].text;
        for (const Reply& key : page.elements[1].elements) {
            if (auto queue = queue_of_key(key.text)) {
                queues.insert(*std::move(queue));
            }
        }
    } while (cursor != "0" && !token.stop_requested());
}

} // namespace detail

ORIZURU_INLINE std::vector<std::string> Inspector::find_queues(const std::stop_token& token) {
    const Endpoint& endpoint = m_connections.endpoint();
    std::set<std::string> found;
    const auto topology = detail::EndpointParts::of(endpoint).address->topology;
    if (topology != detail::Topology::cluster) {
        detail::scan_queues(*m_connections.of_queues(), token, found);
        return {found.begin(), found.end()};
    }
    for (const detail::Node& master : detail::masters_of(endpoint)) {
        if (token.stop_requested()) {
            break;
        }
        Connection connection(detail::endpoint_of(endpoint, master));
        detail::scan_queues(connection, token, found);
    }
    return {found.begin(), found.end()};
}

ORIZURU_INLINE std::vector<PlacedMessage>
Inspector::find(const std::string& queue, const std::string& job_id, std::int64_t most) {
    const Keys keys(queue);
    detail::check_range(0, most);
    if (job_id.empty()) {
        throw std::invalid_argument("a job's id is not empty");
    }
    std::vector<PlacedMessage> found;
    // In the order in which a job goes through them, so that one which goes on is not missed.
    find_in_place(keys, Place::scheduled, job_id, most, found);
    find_in_place(keys, Place::waiting, job_id, most, found);
    find_held(keys, job_id, most, found);
    find_in_place(keys, Place::rejected, job_id, most, found);
    find_in_place(keys, Place::dead, job_id, most, found);
    return found;
}

ORIZURU_INLINE void Inspector::find_in_place(const Keys& keys, Place place,
                                             const std::string& job_id, std::int64_t most,
                                             std::vector<PlacedMessage>& found) {
    const std::string key = detail::key_of(keys, place);
    Connection& connection = *m_connections.of(keys);
    detail::ChunkSize chunk(100);
    std::int64_t looked_at = 0;
    while (looked_at < most) {
        const auto count = std::min(most - looked_at, static_cast<std::int64_t>(chunk.next()));
        Reply reply =
            connection.command(key, "EVAL_RO", detail::find_messages_script(), 1, key, looked_at,
                               looked_at + count - 1, job_id, detail::place_name(place));
        std::vector<Reply>& parts = reply.elements;
        if (parts.size() != 3 || !detail::is_count(parts[0]) || parts[0].integer > count ||
            !detail::is_count(parts[1]) || !parts[2].is(Reply::Type::array)) {
            connection.refuse("EVAL_RO");
        }
        for (Reply& one : parts[2].elements) {
            PlacedMessage message = message_of(keys, place, one);
            if (detail::envelope_id(message.payload) == job_id) {
                found.push_back(std::move(message));
            }
        }
        looked_at += parts[0].integer;
        if (parts[0].integer < count) {
            break;
        }
        chunk.learn(static_cast<std::uint64_t>(parts[0].integer),
                    static_cast<std::uint64_t>(parts[1].integer));
    }
}

ORIZURU_INLINE void Inspector::find_held(const Keys& keys, const std::string& job_id,
                                         std::int64_t most, std::vector<PlacedMessage>& found) {
    detail::ChunkSize chunk(100);
    std::int64_t looked_at = 0;
    while (looked_at < most) {
        const auto count = std::min(most - looked_at, static_cast<std::int64_t>(chunk.next()));
        std::vector<PlacedMessage> held = peek_held(keys, looked_at, count);
        const auto size = static_cast<std::int64_t>(held.size());
        std::uint64_t bytes = 0;
        for (PlacedMessage& message : held) {
            bytes += message.bytes.size();
            if (detail::envelope_id(message.payload) == job_id) {
                found.push_back(std::move(message));
            }
        }
        looked_at += size;
        if (size < count) {
            break;
        }
        chunk.learn(held.size(), bytes);
    }
}

} // namespace orizuru
