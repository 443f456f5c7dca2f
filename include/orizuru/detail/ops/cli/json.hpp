// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The output of the program `orizuru` with --json.

#include <orizuru/detail/base/utf8.hpp>
#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/time_text.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/ops/queue_counts.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail::cli {

[[nodiscard]] inline std::string to_hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const char byte : bytes) {
        text += digits[static_cast<unsigned char>(byte) >> 4U];
        text += digits[static_cast<unsigned char>(byte) & 0xfU];
    }
    return text;
}

[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        const std::size_t size = utf8_size(text);
        if (size == 0) {
            return false;
        }
        text.remove_prefix(size);
    }
    return true;
}

[[nodiscard]] inline Json json_of(std::optional<JobTime> time) {
    return time ? Json(iso_time(*time)) : Json();
}

/// Returns how long before the queue's `now`; nothing when one is not known.
[[nodiscard]] inline std::optional<std::chrono::milliseconds> age(std::optional<JobTime> since,
                                                                  std::optional<JobTime> now) {
    return since && now ? std::optional(*now - *since) : std::nullopt;
}

[[nodiscard]] inline Json json_of(std::optional<std::chrono::milliseconds> length) {
    return length ? Json(length->count()) : Json();
}

/// True if a live consumer serves the queue; empty for a paused queue without one, since workers
/// stay away from it.
[[nodiscard]] inline std::optional<bool> is_served(const QueueState& state) noexcept {
    const bool served = state.consumers > state.unheard;
    return served || !state.paused ? std::optional(served) : std::nullopt;
}

[[nodiscard]] inline Json json_of(std::optional<bool> known) {
    return known ? Json(*known) : Json();
}

[[nodiscard]] inline Json json_of(const QueueState& state) {
    return {{"queue", state.queue},
            {"waiting", state.waiting},
            {"held", state.held},
            {"scheduled", state.scheduled},
            {"rejected", state.rejected},
            {"suspected", state.suspected},
            {"dead", state.dead},
            {"consumers", state.consumers},
            {"served", json_of(is_served(state))},
            {"paused", state.paused},
            {"oldest", json_of(state.oldest)},
            {"oldest_ms", json_of(age(state.oldest, state.now))},
            {"next_due", json_of(state.next_due)},
            {"now", json_of(state.now)},
            {"keys", state.keys},
            {"behind", state.behind},
            {"groups", state.groups},
            {"members", state.members ? Json(*state.members) : Json()},
            {"slots", state.slots_taken},
            {"waits_for", to_string(state.waits_for)}};
}

[[nodiscard]] inline Json json_of(const std::string& queue, const ConsumerState& consumer) {
    return {{"queue", queue},
            {"id", consumer.id},
            {"alive", consumer.lease_left.has_value()},
            {"lease_left_ms", json_of(consumer.lease_left)},
            {"held", consumer.held},
            {"steps", consumer.steps}};
}

/// All but the payload.
[[nodiscard]] inline Json json_of(const WorkerReport& worker) {
    const auto& outcomes = worker.jobs.outcomes;
    Json jobs = Json::array();
    for (const ReportedJob& job : worker.runs) {
        jobs.push_back({{"id", job.id}, {"since", json_of(std::optional(job.since))}});
    }
    return {{"started", json_of(std::optional(worker.started))},
            {"running", worker.running},
            {"threads", worker.threads},
            {"in_batches", worker.in_batches},
            {"jobs", std::move(jobs)},
            {"succeeded", outcomes.succeeded},
            {"failed", outcomes.failed},
            {"died", outcomes.died},
            {"expired", outcomes.expired},
            {"discarded", outcomes.discarded},
            {"settled", outcomes.settled},
            {"requeued", outcomes.requeued}};
}

[[nodiscard]] inline Json json_of(const Job<Raw>& job) {
    return {{"id", job.id},
            {"kind", job.kind},
            {"attempt", job.attempt},
            {"first_enqueued_at", json_of(job.first_enqueued_at)},
            {"enqueued_at", json_of(job.enqueued_at)},
            {"first_failed_at", json_of(job.first_failed_at)},
            {"expires_at", json_of(job.expires_at)},
            {"last_error", job.last_error},
            {"unique_id", job.unique_id},
            {"key", job.key},
            {"attributes", job.attributes}};
}

/// With the job's payload, if it is a job.
[[nodiscard]] inline Json json_of(const CliCall& call, const PlacedMessage& message) {
    const std::optional<Job<Raw>> job = message.job();
    const std::string& payload = job ? job->payload.bytes : message.payload;
    const bool text = is_utf8(payload);
    Json document{
        {"place", place_name(message.place)},
        {"died_at", json_of(message.place == Place::dead ? message.time : std::nullopt)},
        {"due_at", json_of(message.place == Place::scheduled ? message.time : std::nullopt)},
        {"reason", message.reason},
        {"consumer", message.consumer},
        {"running_since", json_of(message.running_since)},
        {"blamed", message.blamed},
        {"job", job ? json_of(*job) : Json()},
        {"payload", text ? payload : to_hex(payload)},
        {"payload_encoding", text ? "utf-8" : "hex"}};
    if (call.has_format()) {
        document["formatted"] = call.formatted(message, payload);
    }
    return document;
}

} // namespace orizuru::detail::cli
