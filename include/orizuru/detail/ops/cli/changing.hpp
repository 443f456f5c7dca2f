// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The commands of `orizuru` that change queues and messages.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/chosen_messages.hpp>
#include <orizuru/detail/ops/cli/json.hpp>
#include <orizuru/detail/ops/cli/messages.hpp>
#include <orizuru/detail/ops/cli/visible_text.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail::cli {

/// True if anybody serves the queue, or did before it was paused; empty when Redis refuses to tell.
[[nodiscard]] inline std::optional<bool> is_served(CliCall& call) {
    const std::string& queue = call.options().queue;
    try {
        if (const auto served = is_served(call.inspector().state(queue))) {
            return served;
        }
        const std::vector<std::string> listed = call.inspector().queues();
        return std::ranges::find(listed, queue) != listed.end();
    } catch (const ReplyError&) {
        return std::nullopt;
    }
}

inline void pause(CliCall& call) {
    const std::string& queue = call.options().queue;
    const std::optional<bool> served = is_served(call); // before its consumers leave
    Pause(call.endpoint(), queue).pause();
    call.answer(
        [&] {
            return Json{{"queue", queue}, {"paused", true}, {"served", json_of(served)}};
        },
        [&](std::ostream& out) {
            out << "paused";
            if (served == false) {
                out << "; nobody serves '" << VisibleText(queue) << '\'';
            }
            out << '\n';
        });
}

inline void resume(CliCall& call) {
    const std::string& queue = call.options().queue;
    Pause pause(call.endpoint(), queue);
    const bool was_paused = pause.paused();
    pause.resume();
    call.answer(
        [&] {
            return Json{{"queue", queue}, {"paused", false}, {"was_paused", was_paused}};
        },
        [&](std::ostream& out) {
            was_paused ? out << "resumed\n"
                       : out << "'" << VisibleText(queue) << "' was not paused\n";
        });
}

inline void forget(CliCall& call) {
    const std::string& name = call.options().queue;
    Inspector& inspector = call.inspector();
    std::optional<std::string> forgotten;
    if (inspector.forget(name)) {
        forgotten = name;
    } else {
        // Nobody can type each name that somebody may add.
        for (const std::string& listed : inspector.queues()) {
            if (!forgotten && VisibleText(listed).text() == name && inspector.forget(listed)) {
                forgotten = listed;
            }
        }
    }
    if (!forgotten) {
        throw std::runtime_error(joined({"'", name, "' is not on the list of queues"}));
    }
    call.answer(
        [&] {
            return Json{{"queue", *forgotten}, {"forgotten", true}};
        },
        [](std::ostream& out) { out << "forgotten\n"; });
}

[[nodiscard]] inline std::string messages_text(std::uint64_t count) {
    return joined({Digits(count), count == 1 ? " message" : " messages"});
}

/// Changes that a command has made, or with --dry-run would make.
struct Changed {
    std::uint64_t messages = 0;
    std::optional<std::string> id = std::nullopt; ///< the job's, if they are one job's
};

/// Names the job: the arguments may have only what its id begins with.
inline void answer_with(CliCall& call, std::string_view done, const Changed& changed) {
    const bool dry = call.options().dry_run;
    call.answer(
        [&] {
            Json document{{"queue", call.options().queue}, {"messages", changed.messages}};
            if (changed.id) {
                document["id"] = *changed.id;
            }
            if (dry) {
                document["dry_run"] = true;
            }
            return document;
        },
        [&](std::ostream& out) {
            out << messages_text(changed.messages) << (dry ? " would be " : " ") << done;
            if (changed.id) {
                out << ": job '" << VisibleText(*changed.id) << '\'';
            }
            out << '\n';
        });
}

/// Calls `change`, which says whether it has, with each message of the job that no consumer holds.
/// With --dry-run it only counts these. Throws when nothing changes.
[[nodiscard]] inline Changed change_job(CliCall& call,
                                        const std::function<bool(const PlacedMessage&)>& change) {
    const FoundJob job = job_to_change(call);
    std::uint64_t count = 0;
    std::string holder;
    for (const PlacedMessage& message : job.messages) {
        if (message.place == Place::held) {
            holder = message.consumer;
        } else if (call.options().dry_run || change(message)) {
            ++count;
        }
    }
    if (count == 0) {
        throw std::runtime_error(
            holder.empty() ? joined({"job '", job.id, "' has gone from where it was"})
                           : joined({"consumer '", holder, "' holds job '", job.id, "'"}));
    }
    return {count, job.id};
}

/// Counts the messages of the place that the arguments choose and that `possible` is true for.
[[nodiscard]] inline std::uint64_t
count_chosen(CliCall& call, const std::function<bool(const PlacedMessage&)>& possible) {
    std::uint64_t count = 0;
    each_chosen(call, [&](const PlacedMessage& message) {
        count += possible(message) ? 1U : 0U;
        return count < call.options().limit;
    });
    return count;
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
    const auto run_chosen = [&] {
        // A dead element that is no entry has nothing that could be served.
        return options.dry_run
                   ? count_chosen(call,
                                  [](const PlacedMessage& message) {
                                      return message.place != Place::dead ||
                                             message.time.has_value();
                                  })
                   : inspector.run_if(options.queue, *options.where, choice(call), options.limit);
    };
    answer_with(call, "put back to be served",
                options.where ? Changed{run_chosen()}
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
    const auto remove_chosen = [&] {
        return options.dry_run ? count_chosen(call, [](const PlacedMessage&) { return true; })
                               : inspector.remove_if(options.queue, *options.where, choice(call),
                                                     options.limit);
    };
    answer_with(call, "removed",
                options.where ? Changed{remove_chosen()}
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

inline void cancel(CliCall& call) {
    const CliOptions& options = call.options();
    const std::string id = job_to_change(call).id;
    const CancelResult result = call.inspector().cancel(options.queue, id, options.why,
                                                        std::numeric_limits<std::int64_t>::max());
    if (result == CancelResult::not_found) {
        throw std::runtime_error(
            joined({"job '", id, "' of queue '", options.queue, "' neither waits nor runs"}));
    }
    const bool buried = result == CancelResult::buried;
    call.answer(
        [&] {
            return Json{{"queue", options.queue},
                        {"id", id},
                        {"cancelled", buried ? "buried" : "requested"}};
        },
        [&](std::ostream& out) {
            out << "job '" << VisibleText(id)
                << (buried ? "' is on the dead list\n" : "' is asked to stop\n");
        });
}

inline void clear(CliCall& call) {
    const CliOptions& options = call.options();
    const Place place = options.where.value();
    if (options.dry_run) {
        answer_with(call, "removed",
                    Changed{count_in(call.inspector().state(options.queue), place)});
        return;
    }
    if (!options.yes) {
        const QueueState state = call.inspector().state(options.queue);
        throw std::invalid_argument(
            joined({"this removes ", messages_text(count_in(state, place)), " (", place_name(place),
                    ") of queue '", options.queue, "': say --yes"}));
    }
    answer_with(call, "removed", Changed{call.inspector().clear(options.queue, place)});
}

} // namespace orizuru::detail::cli
