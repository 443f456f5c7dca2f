// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The workers of some queues, as a Dashboard's page gets to see them.

#include <orizuru/detail/ops/web/dashboard_json.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/ops/queue_counts.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace orizuru::detail::web {

/// Lists, of very many queues, those that are found within half a second, and says `more`.
[[nodiscard]] inline Json worker_rows(Inspector& inspector, std::span<const std::string> queues) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t most = 500;
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(500);
    Json rows = Json::array();
    bool more = false;
    for (const std::string& queue : queues) {
        more = !rows.empty() && (rows.size() >= most || Clock::now() > end);
        if (more) {
            break;
        }
        const auto reports = inspector.workers(queue); // sorted by the ids
        for (const ConsumerState& consumer : inspector.consumers(queue)) {
            const auto report =
                std::ranges::lower_bound(reports, consumer.id, {}, &WorkerReport::consumer_id);
            const bool found = report != reports.end() && report->consumer_id == consumer.id;
            rows.push_back(json_of(queue, consumer, found ? &*report : nullptr));
        }
    }
    return {{"workers", std::move(rows)}, {"more", more}};
}

} // namespace orizuru::detail::web
