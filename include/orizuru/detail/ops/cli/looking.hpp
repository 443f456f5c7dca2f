// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The commands of `orizuru` that show queues and consumers.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/json.hpp>
#include <orizuru/detail/ops/cli/table.hpp>
#include <orizuru/detail/ops/cli/time_text.hpp>
#include <orizuru/detail/ops/cli/visible_text.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/ops/job_metrics.hpp>
#include <orizuru/ops/metrics.hpp>
#include <orizuru/ops/queue_counts.hpp>
#include <orizuru/ops/queue_state.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail::cli {

using Align = Table::Align;

[[nodiscard]] inline std::vector<QueueState> states_of(CliCall& call) {
    return call.inspector().states(call.queues(), call.leaving_out());
}

[[nodiscard]] inline std::string note_of(const QueueState& state) {
    if (is_served(state) == false) {
        return "nobody serves it";
    }
    switch (state.waits_for) {
    case LimitWait::slot:
        return joined({"waits for a slot: ", Digits(state.slots_taken), " run"});
    case LimitWait::permit:
        return "waits for its rate";
    case LimitWait::nothing:
        break;
    }
    return "";
}

[[nodiscard]] inline Table table_of(const std::vector<QueueState>& states) {
    Table table({{"queue"},
                 {"waiting", Align::right},
                 {"behind", Align::right},
                 {"held", Align::right},
                 {"scheduled", Align::right},
                 {"rejected", Align::right},
                 {"suspected", Align::right},
                 {"dead", Align::right},
                 {"groups", Align::right},
                 {"consumers", Align::right},
                 {"oldest", Align::right},
                 {"paused"},
                 {"note"}});
    for (const QueueState& state : states) {
        const auto if_any = [](std::uint64_t number, bool any) {
            return any ? std::to_string(number) : std::string();
        };
        table.add({state.queue, std::to_string(state.waiting),
                   if_any(state.behind, state.keys + state.behind > 0), std::to_string(state.held),
                   std::to_string(state.scheduled), std::to_string(state.rejected),
                   std::to_string(state.suspected), std::to_string(state.dead),
                   if_any(state.groups, state.groups > 0), std::to_string(state.consumers),
                   optional_text(age(state.oldest, state.now)), state.paused ? "yes" : "no",
                   note_of(state)});
    }
    return table;
}

inline void ls(CliCall& call) {
    call.repeat([&] {
        const std::vector<QueueState> states = states_of(call);
        call.answer(
            [&] {
                Json queues = Json::array();
                for (const QueueState& state : states) {
                    queues.push_back(json_of(state));
                }
                return Json{{"queues", queues}};
            },
            [&](std::ostream& out) {
                Table table = table_of(states);
                if (const auto screen = call.screen_to_fit()) {
                    table.fit(*screen);
                }
                out << table;
            });
    });
}

/// True if workers have ever reported something of the queue.
[[nodiscard]] inline bool has_counted(const QueueStatistics& statistics) noexcept {
    const WorkerStatistics& ended = statistics.outcomes;
    const auto has_any = [](const Durations& durations) {
        return std::ranges::any_of(durations.counts, [](std::uint64_t count) { return count > 0; });
    };
    return ended.succeeded + ended.failed + ended.died + ended.expired + ended.settled +
                   ended.requeued + ended.discarded >
               0 ||
           has_any(statistics.runs) || has_any(statistics.waits);
}

/// Prints one line for each queue at rest that has never counted anything: thousands cost little.
inline void metrics(CliCall& call) {
    if (call.options().json) {
        throw std::invalid_argument("metrics are Prometheus' text, not JSON");
    }
    std::vector<QueueState> states = states_of(call);
    std::vector<std::string> names;
    std::set<std::string> resting;
    for (const QueueState& state : states) {
        names.push_back(state.queue);
        if (is_at_rest(state)) {
            resting.insert(state.queue);
        }
    }
    std::vector<QueueStatistics> counts = call.inspector().all_counts(names, call.leaving_out());
    // A counter that goes while its queue rests would hide what happens before the next scrape.
    std::erase_if(counts, [&](const QueueStatistics& one) {
        return resting.contains(one.queue) && !has_counted(one);
    });
    // For Prometheus the label is the name as other programs have it.
    if (call.on_terminal()) {
        const auto show = [](auto& one) { one.queue = VisibleText(one.queue).text(); };
        std::ranges::for_each(states, show);
        std::ranges::for_each(counts, show);
    }
    call.answer([] { return Json(); },
                [&](std::ostream& out) { out << prometheus(states) << prometheus(counts); });
}

struct QueueConsumer {
    std::string queue;
    ConsumerState state;
    std::optional<WorkerReport> worker; ///< set if it is a worker's
};

inline void add_consumers(CliCall& call, const std::string& queue,
                          std::vector<QueueConsumer>& all) {
    std::map<std::string, WorkerReport> workers;
    for (WorkerReport& report : call.inspector().workers(queue)) {
        workers.emplace(report.consumer_id, std::move(report));
    }
    for (ConsumerState& state : call.inspector().consumers(queue)) {
        const auto report = workers.find(state.id);
        all.push_back({queue, std::move(state),
                       report == workers.end() ? std::nullopt : std::optional(report->second)});
    }
}

/// As an operator counts them.
[[nodiscard]] inline std::uint64_t done(const WorkerReport& report) {
    return report.jobs.outcomes.succeeded + report.jobs.outcomes.settled;
}

[[nodiscard]] inline std::string longest_run(const WorkerReport& report) {
    return report.runs.empty()
               ? std::string()
               : report.runs[0].id + " since " + optional_text(std::optional(report.runs[0].since));
}

[[nodiscard]] inline Table table_of(const std::vector<QueueConsumer>& consumers) {
    Table table({{"queue"},
                 {"consumer"},
                 {"alive"},
                 {"lease left", Align::right},
                 {"held", Align::right},
                 {"steps", Align::right},
                 {"running", Align::right},
                 {"done", Align::right},
                 {"failed", Align::right},
                 {"longest run"}});
    for (const auto& [queue, state, worker] : consumers) {
        const auto reported = [&report = worker](std::uint64_t number) {
            return report ? std::to_string(number) : std::string("-");
        };
        const WorkerReport report = worker.value_or(WorkerReport());
        table.add({queue, state.id, state.lease_left ? "yes" : "no",
                   optional_text(state.lease_left), std::to_string(state.held),
                   std::to_string(state.steps), reported(report.running), reported(done(report)),
                   reported(report.jobs.outcomes.failed), longest_run(report)});
    }
    return table;
}

[[nodiscard]] inline Json json_of(const std::vector<QueueConsumer>& consumers) {
    Json all = Json::array();
    for (const auto& [queue, state, worker] : consumers) {
        all.push_back(json_of(queue, state));
        all.back()["worker"] = worker ? json_of(*worker) : Json();
    }
    return all;
}

inline void workers(CliCall& call) {
    std::vector<QueueConsumer> consumers;
    call.each_queue([&](const std::string& queue) { add_consumers(call, queue, consumers); });
    call.answer(
        [&] {
            return Json{{"consumers", json_of(consumers)}};
        },
        [&](std::ostream& out) { out << table_of(consumers); });
}

// A scheduler looks every 5 s by default, and when the first message comes due.
inline constexpr std::chrono::seconds most_overdue{5};

[[nodiscard]] inline Table details_of(const QueueState& state) {
    Table table({{"queue"}, {state.queue}});
    table.add({"waiting", std::to_string(state.waiting)});
    table.add({"held", std::to_string(state.held)});
    table.add({"scheduled", std::to_string(state.scheduled)});
    table.add({"rejected", std::to_string(state.rejected)});
    table.add({"suspected", std::to_string(state.suspected)});
    table.add({"dead", std::to_string(state.dead)});
    if (state.keys + state.behind > 0) {
        table.add({"keys", std::to_string(state.keys)});
        table.add({"behind", std::to_string(state.behind)});
    }
    if (state.groups > 0) {
        table.add({"groups", std::to_string(state.groups)});
        table.add({"members", state.members ? std::to_string(*state.members) : "-"});
    }
    if (state.slots_taken > 0 || state.waits_for != LimitWait::nothing) {
        table.add({"slots", std::to_string(state.slots_taken)});
        table.add({"waits for", std::string(to_string(state.waits_for))});
    }
    table.add({"oldest", optional_text(age(state.oldest, state.now))});
    table.add({"next due", optional_text(state.next_due)});
    table.add({"paused", state.paused ? "yes" : "no"});
    table.add({"consumers", std::to_string(state.consumers)});
    if (is_served(state) == false) {
        table.add({"note", "nobody serves it"});
    }
    const auto overdue = age(state.next_due, state.now);
    if (overdue >= most_overdue) {
        table.add({"note", "overdue " + optional_text(overdue) + ": does a scheduler run?"});
    }
    if (state.uncollected) {
        table.add({"note", "rejected, and not put back: does a collector run?"});
    }
    return table;
}

inline void show(CliCall& call) {
    const QueueState state = call.inspector().state(call.options().queue);
    std::vector<QueueConsumer> consumers;
    add_consumers(call, state.queue, consumers);
    call.answer(
        [&] {
            Json document = json_of(state);
            document["consumer_list"] = json_of(consumers);
            return document;
        },
        [&](std::ostream& out) {
            out << details_of(state);
            if (!consumers.empty()) {
                out << '\n' << table_of(consumers);
            }
        });
}

} // namespace orizuru::detail::cli
