// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The commands of `orizuru` that show messages.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/chosen_messages.hpp>
#include <orizuru/detail/ops/cli/json.hpp>
#include <orizuru/detail/ops/cli/table.hpp>
#include <orizuru/detail/ops/cli/time_text.hpp>
#include <orizuru/detail/ops/cli/visible_text.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/detail/ops/sought_id.hpp>
#include <orizuru/detail/ops/web/payload_text.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
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

/// Text as it is, and msgpack as JSON behind this word; of other bytes each shows as an escape.
[[nodiscard]] inline std::string readable(std::string_view payload) {
    constexpr std::size_t most_decoded = std::size_t{64} << 10;
    if (!is_plain_text(payload) && payload.size() <= most_decoded &&
        web::is_shallow_msgpack(payload)) {
        const auto value =
            nlohmann::json::from_msgpack(payload.begin(), payload.end(), true, false);
        if (!value.is_discarded()) {
            return "msgpack " + value.dump(-1, ' ', false, Json::error_handler_t::replace);
        }
    }
    return std::string(payload);
}

/// Why a message is where it is, since when its job runs, or why that has failed.
[[nodiscard]] inline std::string reason_of(const PlacedMessage& message,
                                           const std::optional<Job<Raw>>& job) {
    if (message.blamed > 0) {
        return joined(
            {"blamed for ", Digits(message.blamed), message.blamed == 1 ? " death" : " deaths"});
    }
    if (message.running_since) {
        return "runs since " + optional_text(message.running_since);
    }
    return message.place != Place::dead && job ? job->last_error : message.reason;
}

[[nodiscard]] inline Table::Row row_of(const CliCall& call, const PlacedMessage& message) {
    const std::optional<Job<Raw>> job = message.job();
    const std::string& payload = job ? job->payload.bytes : message.payload;
    const std::optional<JobTime> enqueued = job ? std::optional(job->enqueued_at) : std::nullopt;
    return {std::string(place_name(message.place)),
            job ? job->id : "-",
            job ? job->kind : "",
            job ? std::to_string(job->attempt) : "-",
            optional_text(message.time ? message.time : enqueued),
            message.consumer,
            excerpt(call, reason_of(message, job), 60),
            excerpt(call, call.has_format() ? call.formatted(message, payload) : readable(payload),
                    80)};
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
    if (!options.reason && !options.older) {
        answer_with(call, call.inspector().peek(options.queue, options.where.value(), options.skip,
                                                options.count));
        return;
    }
    std::vector<PlacedMessage> messages;
    std::int64_t left_out = 0;
    each_chosen(call, [&](PlacedMessage& message) {
        if (left_out < options.skip) {
            ++left_out;
        } else {
            messages.push_back(std::move(message));
        }
        return static_cast<std::int64_t>(messages.size()) < options.count;
    });
    answer_with(call, messages);
}

/// So many digits has an id that make_job has made.
inline constexpr std::size_t made_id_size = 32;

[[nodiscard]] inline bool is_lower_hex(std::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Refuses the beginning of the ids of several jobs, or of one when the search ended before it had
/// seen all.
[[noreturn]] inline void refuse_ambiguous(const CliOptions& options,
                                          const std::set<std::string>& ids, bool seen_all) {
    constexpr std::size_t most_named = 10;
    std::string named;
    std::size_t count = 0;
    for (const std::string& id : ids) {
        if (count++ == most_named) {
            break;
        }
        named += joined({named.empty() ? "'" : ", '", id, "'"});
    }
    named += ids.size() > most_named ? " and others" : seen_all ? "" : " and perhaps others";
    throw std::invalid_argument(joined({"ids of several jobs in queue '", options.queue,
                                        "' begin with '", options.id, "': ", named}));
}

struct FoundJob {
    std::string id;
    std::vector<PlacedMessage> messages; ///< one in most cases
};

[[nodiscard]] inline std::vector<PlacedMessage> messages_with_id(CliCall& call) {
    const CliOptions& options = call.options();
    return call.inspector().find(options.queue, options.id,
                                 std::numeric_limits<std::int64_t>::max());
}

/// The only job whose id begins with the argument; none if there is no such job. Throws when there
/// are several, or may be.
[[nodiscard]] inline std::optional<FoundJob> job_with_prefix(CliCall& call) {
    const CliOptions& options = call.options();
    std::vector<PlacedMessage> found = call.inspector().find_prefix(
        options.queue, options.id, std::numeric_limits<std::int64_t>::max());
    std::set<std::string> ids;
    for (const PlacedMessage& message : found) {
        ids.emplace(envelope_id(message.payload).value_or(""));
    }
    if (ids.empty()) {
        return std::nullopt;
    }
    const bool seen_all = !is_enough(found);
    if (ids.size() > 1 || !seen_all) {
        refuse_ambiguous(options, ids, seen_all);
    }
    return FoundJob{*ids.begin(), std::move(found)};
}

[[nodiscard]] inline std::string no_such_job(const CliOptions& options) {
    return joined({"queue '", options.queue, "' has no job '", options.id, "'"});
}

/// The job that the argument names, by its id or the beginning of it. Throws when there is none, or
/// more than one.
[[nodiscard]] inline FoundJob job_to_show(CliCall& call) {
    if (auto found = messages_with_id(call); !found.empty()) {
        return {call.options().id, std::move(found)};
    }
    if (auto found = job_with_prefix(call)) {
        return *std::move(found);
    }
    throw std::runtime_error(no_such_job(call.options()));
}

/// True if a job's id can begin so that make_job has made, and no such id ends there.
[[nodiscard]] inline bool may_begin_made_id(std::string_view text) {
    constexpr std::size_t shortest = 4; // one that is unique by chance is soon so no more
    return text.size() >= shortest && text.size() < made_id_size && is_lower_hex(text);
}

/// Returns the job for a command that changes it. An id of the user's own must be whole: one
/// whose job has gone may be what the ids of others begin with.
[[nodiscard]] inline FoundJob job_to_change(CliCall& call) {
    const CliOptions& options = call.options();
    if (auto found = messages_with_id(call); !found.empty()) {
        return {options.id, std::move(found)};
    }
    if (!may_begin_made_id(options.id)) {
        throw std::runtime_error(no_such_job(options));
    }
    auto found = job_with_prefix(call);
    if (!found) {
        throw std::runtime_error(no_such_job(options));
    }
    if (found->id.size() != made_id_size || !is_lower_hex(found->id)) {
        throw std::runtime_error(joined({no_such_job(options), "; '", found->id,
                                         "' begins with it, and is only changed by its whole id"}));
    }
    return *std::move(found);
}

inline void find(CliCall& call) { answer_with(call, job_to_show(call).messages); }

} // namespace orizuru::detail::cli
