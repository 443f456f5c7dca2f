// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The commands of `orizuru` that change queues and messages.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/json.hpp>
#include <orizuru/detail/ops/cli/messages.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail::cli {

inline void pause(CliCall& call) {
    Pause(call.endpoint(), call.options().queue).pause();
    call.answer(
        [&] {
            return Json{{"queue", call.options().queue}, {"paused", true}};
        },
        [](std::ostream& out) { out << "paused\n"; });
}

inline void resume(CliCall& call) {
    Pause(call.endpoint(), call.options().queue).resume();
    call.answer(
        [&] {
            return Json{{"queue", call.options().queue}, {"paused", false}};
        },
        [](std::ostream& out) { out << "resumed\n"; });
}

[[nodiscard]] inline std::string messages_text(std::uint64_t count) {
    return joined({Digits(count), count == 1 ? " message" : " messages"});
}

inline void answer_with(CliCall& call, std::string_view done, std::uint64_t count) {
    call.answer(
        [&] {
            return Json{{"queue", call.options().queue}, {"messages", count}};
        },
        [&](std::ostream& out) { out << messages_text(count) << ' ' << done << '\n'; });
}

/// Calls `change`, which says whether it has, with each message of the job that no consumer holds.
/// Throws when nothing changes.
[[nodiscard]] inline std::uint64_t
change_job(CliCall& call, const std::function<bool(const PlacedMessage&)>& change) {
    std::uint64_t count = 0;
    std::string holder;
    for (const PlacedMessage& message : messages_of_job(call)) {
        if (message.place == Place::held) {
            holder = message.consumer;
        } else if (change(message)) {
            ++count;
        }
    }
    if (count == 0) {
        const std::string& id = call.options().id;
        throw std::runtime_error(holder.empty()
                                     ? joined({"job '", id, "' has gone from where it was"})
                                     : joined({"consumer '", holder, "' holds job '", id, "'"}));
    }
    return count;
}

/// When a message died, else when its job was enqueued first; nothing when that is not known.
[[nodiscard]] inline std::optional<JobTime> begin_of(const PlacedMessage& message,
                                                     const std::optional<Job<Raw>>& job) {
    if (message.place == Place::dead) {
        return message.time;
    }
    return job ? std::optional(job->first_enqueued_at) : std::nullopt;
}

/// Whether the arguments choose a message.
[[nodiscard]] inline std::function<bool(const PlacedMessage&)> choice(CliCall& call) {
    const CliOptions& options = call.options();
    std::optional<JobTime> latest;
    if (options.older) {
        const std::optional<JobTime> now = call.inspector().state(options.queue).now;
        latest = now.value_or(job_time()) - *options.older;
    }
    return [&options, latest](const PlacedMessage& message) {
        const std::optional<Job<Raw>> job = message.job();
        const std::string& reason =
            message.place == Place::dead || !job ? message.reason : job->last_error;
        if (options.reason && reason.find(*options.reason) == std::string::npos) {
            return false;
        }
        const std::optional<JobTime> begin = begin_of(message, job);
        return !latest || (begin && *begin <= *latest);
    };
}

/// A command for one job or for chosen messages was given neither.
inline void require_id_or_place(const CliOptions& options) {
    if (options.id.empty() && !options.where) {
        throw std::invalid_argument("the id of a job, or --where, is missing");
    }
}

inline void run_now(CliCall& call) {
    const CliOptions& options = call.options();
    require_id_or_place(options);
    Inspector& inspector = call.inspector();
    answer_with(call, "put back to be served",
                options.where
                    ? inspector.run_if(options.queue, *options.where, choice(call), options.limit)
                    : change_job(call, [&](const PlacedMessage& message) {
                          return inspector.run_now(options.queue, message);
                      }));
}

inline void remove(CliCall& call) {
    const CliOptions& options = call.options();
    require_id_or_place(options);
    if (options.where && !options.reason && !options.older) {
        throw std::invalid_argument("rm --where needs --reason or --older; clear removes all");
    }
    Inspector& inspector = call.inspector();
    answer_with(call, "removed",
                options.where ? inspector.remove_if(options.queue, *options.where, choice(call),
                                                    options.limit)
                              : change_job(call, [&](const PlacedMessage& message) {
                                    return inspector.remove(options.queue, message);
                                }));
}

inline void move_job(CliCall& call) {
    const CliOptions& options = call.options();
    answer_with(call, "moved", change_job(call, [&](const PlacedMessage& message) {
                    return call.inspector().move(options.queue, message, options.to);
                }));
}

inline void clear(CliCall& call) {
    const CliOptions& options = call.options();
    const Place place = options.where.value();
    if (!options.yes) {
        const QueueState state = call.inspector().state(options.queue);
        throw std::invalid_argument(
            joined({"this removes ", messages_text(count_in(state, place)), " (", place_name(place),
                    ") of queue '", options.queue, "': say --yes"}));
    }
    answer_with(call, "removed", call.inspector().clear(options.queue, place));
}

} // namespace orizuru::detail::cli
