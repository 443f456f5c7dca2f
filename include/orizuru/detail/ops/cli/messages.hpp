// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The commands of `orizuru` that show messages.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/json.hpp>
#include <orizuru/detail/ops/cli/table.hpp>
#include <orizuru/detail/ops/cli/time_text.hpp>
#include <orizuru/detail/ops/cli/visible_text.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail::cli {

/// Without --full at most so many columns, and the size of a text that is longer.
[[nodiscard]] inline VisibleText excerpt(const CliCall& call, std::string_view text,
                                         std::size_t most_columns) {
    if (call.options().full) {
        return text;
    }
    VisibleText shown(text, most_columns);
    if (shown.cut()) {
        shown += joined({" (", Digits(text.size()), " bytes)"});
    }
    return shown;
}

[[nodiscard]] inline Table::Row row_of(const CliCall& call, const PlacedMessage& message) {
    const std::optional<Job<Raw>> job = message.job();
    const std::string& payload = job ? job->payload.bytes : message.payload;
    const bool dead = message.place == Place::dead;
    const std::optional<JobTime> enqueued = job ? std::optional(job->enqueued_at) : std::nullopt;
    return {std::string(place_name(message.place)),
            job ? job->id : "-",
            job ? job->kind : "",
            job ? std::to_string(job->attempt) : "-",
            optional_text(message.time ? message.time : enqueued),
            message.consumer,
            excerpt(call, !dead && job ? job->last_error : message.reason, 60),
            excerpt(call, call.has_format() ? call.formatted(message, payload) : payload, 80)};
}

/// The time is when a message died or is due, else when it was enqueued.
[[nodiscard]] inline Table table_of(const CliCall& call,
                                    const std::vector<PlacedMessage>& messages) {
    Table table({{"place"},
                 {"id"},
                 {"kind"},
                 {"attempt", Table::Align::right},
                 {"time"},
                 {"consumer"},
                 {"reason"},
                 {"payload"}});
    for (const PlacedMessage& message : messages) {
        table.add(row_of(call, message));
    }
    return table;
}

inline void answer_with(CliCall& call, const std::vector<PlacedMessage>& messages) {
    call.answer(
        [&] {
            Json all = Json::array();
            for (const PlacedMessage& message : messages) {
                all.push_back(json_of(call, message));
            }
            return Json{{"queue", call.options().queue}, {"messages", all}};
        },
        [&](std::ostream& out) { out << table_of(call, messages); });
}

inline void peek(CliCall& call) {
    const CliOptions& options = call.options();
    answer_with(call, call.inspector().peek(options.queue, options.where.value(), options.skip,
                                            options.count));
}

/// The messages of the job that the arguments name: one in most cases. Throws when there is none.
[[nodiscard]] inline std::vector<PlacedMessage> messages_of_job(CliCall& call) {
    const CliOptions& options = call.options();
    std::vector<PlacedMessage> messages =
        call.inspector().find(options.queue, options.id, std::numeric_limits<std::int64_t>::max());
    if (messages.empty()) {
        throw std::runtime_error(
            joined({"queue '", options.queue, "' has no job '", options.id, "'"}));
    }
    return messages;
}

inline void find(CliCall& call) { answer_with(call, messages_of_job(call)); }

} // namespace orizuru::detail::cli
