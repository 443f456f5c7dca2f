// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads since when workers run the messages that they hold.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/ops/cancel_scripts.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/detail/worker/reports/reported_jobs.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/ops/queue_state.hpp>
#include <orizuru/reply.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace orizuru::detail {

/// Fills in since when held messages of a queue run. Redis: a script, O(their consumers). Throws as
/// Connection does.
inline void read_running(Connection& connection, const Keys& keys,
                         std::vector<PlacedMessage>& messages) {
    using Runs = std::map<std::string, JobTime, std::less<>>; // by the ids of jobs
    std::map<std::string, Runs> consumers;
    for (const PlacedMessage& message : messages) {
        if (message.place == Place::held) {
            consumers[message.consumer];
        }
    }
    if (consumers.empty()) {
        return;
    }
    const std::string key = keys.consumers();
    const Reply reply = exchange(connection, key, "EVAL_RO", [&](std::string& out) {
        begin_command(out, 5 + consumers.size());
        append_argument(out, "EVAL_RO");
        append_argument(out, running_jobs_script);
        append_argument(out, 1);
        append_argument(out, key);
        append_argument(out, keys.worker(""));
        for (const auto& [id, runs] : consumers) {
            append_argument(out, id);
        }
    });
    if (!reply.is(Reply::Type::array) || reply.elements.size() != consumers.size()) {
        refuse(connection, "EVAL_RO");
    }
    std::size_t i = 0;
    for (auto& [id, runs] : consumers) {
        for (ReportedJob& job : reported_jobs(reply.elements[i++].text)) {
            runs.emplace(std::move(job.id), job.since);
        }
    }
    for (PlacedMessage& message : messages) {
        if (message.place == Place::held) {
            const Runs& runs = consumers[message.consumer];
            const auto id = envelope_id(message.payload);
            const auto run = id ? runs.find(*id) : runs.end();
            if (run != runs.end()) {
                message.running_since = run->second;
            }
        }
    }
}

} // namespace orizuru::detail
