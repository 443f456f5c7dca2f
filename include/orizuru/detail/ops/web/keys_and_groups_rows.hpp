// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The keys and groups of a queue, as a Dashboard's page gets to see them: a page of each.

#include <orizuru/detail/ops/stage_name.hpp>
#include <orizuru/detail/ops/web/dashboard_json.hpp>
#include <orizuru/detail/ops/web/percent.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace orizuru::detail::web {

inline constexpr std::int64_t rows_of_page = 50;

[[nodiscard]] inline Json key_rows(Inspector& inspector, const std::string& queue,
                                   std::int64_t first) {
    Json rows = Json::array();
    for (const KeyState& key : inspector.keys(queue, first, rows_of_page)) {
        rows.push_back(
            {{"key", percent_encoded(key.key)}, {"name", key.key}, {"behind", key.behind}});
    }
    const bool more = !inspector.keys(queue, first + rows_of_page, 1).empty();
    return {{"rows", std::move(rows)}, {"more", more}};
}

[[nodiscard]] inline Json group_rows(Inspector& inspector, const std::string& queue,
                                     std::int64_t first) {
    Json rows = Json::array();
    for (const QueueGroup& group : inspector.groups(queue, first, rows_of_page)) {
        rows.push_back({{"key", percent_encoded(group.id)},
                        {"name", group.id},
                        {"stage", stage_name(group.state.stage)},
                        {"jobs", group.state.jobs},
                        {"pending", group.state.pending},
                        {"failed", group.state.failed},
                        {"made", json_of(group.made)},
                        {"expiresIn", group.expires_in ? Json(group.expires_in->count()) : Json()},
                        {"then", group.then_queue}});
    }
    const bool more = !inspector.groups(queue, first + rows_of_page, 1).empty();
    return {{"rows", std::move(rows)}, {"more", more}};
}

} // namespace orizuru::detail::web
