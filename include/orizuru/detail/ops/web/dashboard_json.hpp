// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes queues as JSON for a Dashboard's page. Names are of any bytes, which JSON does not have:
// each goes with its percent-encoded form, by which the page names it again.

#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/detail/ops/web/percent.hpp>
#include <orizuru/detail/ops/web/queue_sampler.hpp>
#include <orizuru/ops/queue_counts.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
            {"suspected", state.suspected},
            {"dead", state.dead},
            {"consumers", state.consumers},
            {"unheard", state.unheard},
            {"keys", state.keys},
            {"behind", state.behind},
            {"groups", state.groups},
            {"waitsFor", to_string(state.waits_for)},
            {"paused", state.paused},
            {"oldest", json_of(state.oldest)},
            {"nextDue", json_of(state.next_due)},
            {"now", json_of(state.now)},
            {"error", row.error}};
}

[[nodiscard]] inline Json sums_of(std::span<const QueueSample::Row* const> rows) {
    Json sums = Json::object();
    for (const Place place : every_place) {
        std::uint64_t sum = 0;
        for (const QueueSample::Row* const row : rows) {
            sum += count_in(row->state, place);
        }
        sums[std::string(place_name(place))] = sum;
    }
    std::uint64_t behind = 0;
    for (const QueueSample::Row* const row : rows) {
        behind += row->state.behind;
    }
    sums["behind"] = behind;
    return sums;
}

/// A worker with its report, if it has sent one.
[[nodiscard]] inline Json json_of(const std::string& queue, const ConsumerState& consumer,
                                  const WorkerReport* report) {
    const auto of_report = [&](auto read) { return report != nullptr ? Json(read()) : Json(); };
    return {{"queue", queue},
            {"key", percent_encoded(queue)},
            {"id", consumer.id},
            {"leaseLeft", consumer.lease_left ? Json(consumer.lease_left->count()) : Json()},
            {"held", consumer.held},
            {"running", of_report([&] { return report->running; })},
            {"threads", of_report([&] { return report->threads; })},
            {"done", of_report([&] {
                 return report->jobs.outcomes.succeeded + report->jobs.outcomes.settled;
             })}};
}

/// Returns how many jobs were done from point to point, and which part of the attempts has failed.
[[nodiscard]] inline Json json_of(const QueueHistory& history) {
    Json line = Json::array();
    std::uint64_t done = 0;
    std::uint64_t failed = 0;
    for (std::size_t i = 1; i < history.size(); ++i) {
        const auto& before = history[i - 1];
        const auto& now = history[i];
        if (!before || !now || now->done < before->done || now->failed < before->failed) {
            line.push_back(nullptr); // unknown, or somebody has emptied Redis
            continue;
        }
        line.push_back(now->done - before->done);
        done += now->done - before->done;
        failed += now->failed - before->failed;
    }
    const std::uint64_t all = done + failed;
    const double part = all > 0 ? static_cast<double>(failed) / static_cast<double>(all) : 0;
    return {{"done", std::move(line)}, {"failed", all > 0 ? Json(part) : Json()}};
}
/// `last_step`: how many jobs of all queues were done from the last point but one to the last.
[[nodiscard]] inline std::string json_of(const QueueHistories& histories,
                                         std::optional<std::uint64_t> last_step) {
    Json queues = Json::object();
    for (const auto& [queue, history] : histories.queues) {
        queues[percent_encoded(queue)] = json_of(history);
    }
    return json_text({{"step", histories.step.count()},
                      {"most", QueueSampler::most_points},
                      {"lastStep", last_step ? Json(*last_step) : Json()},
                      {"queues", std::move(queues)}});
}

[[nodiscard]] inline Json json_of(const DayCounts& day) {
    const std::chrono::sys_time<std::chrono::milliseconds> begin = day.day;
    return {{"day", begin.time_since_epoch().count()},
            {"done", day.outcomes.succeeded + day.outcomes.settled},
            {"failed", day.outcomes.failed},
            {"died", day.outcomes.died}};
}

} // namespace orizuru::detail::web
