// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a Dashboard's page gets to see of queues, as JSON. Names are of any bytes, which JSON does
// not have: each goes with its percent-encoded form, by which the page names it again.

#include <orizuru/detail/ops/web/percent.hpp>
#include <orizuru/detail/ops/web/queue_sampler.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail::web {

using Json = nlohmann::json;

[[nodiscard]] inline std::string json_text(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Milliseconds since 1970, or null.
[[nodiscard]] inline Json json_of(std::optional<JobTime> time) {
    return time ? Json(time->time_since_epoch().count()) : Json();
}

[[nodiscard]] inline Json json_of(const QueueSample::Row& row) {
    const QueueState& state = row.state;
    return {{"key", percent_encoded(state.queue)},
            {"name", state.queue},
            {"waiting", state.waiting},
            {"held", state.held},
            {"scheduled", state.scheduled},
            {"rejected", state.rejected},
            {"dead", state.dead},
            {"consumers", state.consumers},
            {"paused", state.paused},
            {"oldest", json_of(state.oldest)},
            {"nextDue", json_of(state.next_due)},
            {"now", json_of(state.now)},
            {"error", row.error}};
}

[[nodiscard]] inline Json json_of(const std::string& queue, const ConsumerState& consumer) {
    return {{"queue", queue},
            {"key", percent_encoded(queue)},
            {"id", consumer.id},
            {"leaseLeft", consumer.lease_left ? Json(consumer.lease_left->count()) : Json()},
            {"held", consumer.held},
            {"steps", consumer.steps}};
}

/// The sparklines.
[[nodiscard]] inline std::string json_of(const QueueHistories& histories) {
    Json queues = Json::object();
    for (const auto& [queue, history] : histories.queues) {
        Json line = Json::array();
        for (const auto& point : history) {
            line.push_back(point ? Json(*point) : Json());
        }
        queues[percent_encoded(queue)] = std::move(line);
    }
    return json_text({{"step", histories.step.count()},
                      {"most", QueueSampler::most_points},
                      {"queues", std::move(queues)}});
}

} // namespace orizuru::detail::web
