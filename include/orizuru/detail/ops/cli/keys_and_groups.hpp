// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The commands of `orizuru` that show what waits for other jobs: behind their keys, and in groups.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/ops/cli/call.hpp>
#include <orizuru/detail/ops/cli/json.hpp>
#include <orizuru/detail/ops/cli/messages.hpp>
#include <orizuru/detail/ops/cli/table.hpp>
#include <orizuru/detail/ops/cli/time_text.hpp>
#include <orizuru/detail/ops/stage_name.hpp>
#include <orizuru/jobs/group/group_state.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace orizuru::detail::cli {

/// Those of a page, or the one that an argument names: throws when there is none.
template <class One, class All>
[[nodiscard]] auto one_or_all(const CliOptions& options, const char* what, One one, All all) {
    if (options.id.empty()) {
        return all();
    }
    const auto found = one();
    if (!found) {
        throw std::runtime_error(
            joined({"queue '", options.queue, "' has no ", what, " '", options.id, "'"}));
    }
    return std::vector{*found};
}

/// Shows the keys of a queue, or one of them with its job that is out.
inline void keys(CliCall& call) {
    const CliOptions& options = call.options();
    Inspector& inspector = call.inspector();
    const std::vector<KeyState> found = one_or_all(
        options, "job of the key", [&] { return inspector.key(options.queue, options.id); },
        [&] { return inspector.keys(options.queue, options.skip, options.count); });
    call.answer(
        [&] {
            Json all = Json::array();
            for (const KeyState& key : found) {
                all.push_back({{"key", key.key}, {"behind", key.behind}});
                if (!options.id.empty()) {
                    all.back()["out"] = Json::array();
                }
                for (const PlacedMessage& message : key.out) {
                    all.back()["out"].push_back(json_of(call, message));
                }
            }
            return Json{{"queue", options.queue}, {"keys", std::move(all)}};
        },
        [&](std::ostream& out) {
            Table table({{"key"}, {"behind", Table::Align::right}, {"note"}});
            for (const KeyState& key : found) {
                const bool lost = !options.id.empty() && key.out.empty();
                table.add({key.key, std::to_string(key.behind),
                           lost ? "its job that is out was not found" : ""});
            }
            out << table;
            if (!options.id.empty() && !found.front().out.empty()) {
                out << '\n' << table_of(call, found.front().out);
            }
        });
}

/// Shows the groups of a queue, or one of them.
inline void groups(CliCall& call) {
    const CliOptions& options = call.options();
    Inspector& inspector = call.inspector();
    const std::vector<QueueGroup> found = one_or_all(
        options, "group", [&] { return inspector.group(options.queue, options.id); },
        [&] { return inspector.groups(options.queue, options.skip, options.count); });
    call.answer(
        [&] {
            Json all = Json::array();
            for (const QueueGroup& group : found) {
                all.push_back({{"id", group.id},
                               {"stage", stage_name(group.state.stage)},
                               {"jobs", group.state.jobs},
                               {"pending", group.state.pending},
                               {"failed", group.state.failed},
                               {"made", json_of(group.made)},
                               {"expires_ms", json_of(group.expires_in)},
                               {"then", group.then_queue}});
            }
            return Json{{"queue", options.queue}, {"groups", std::move(all)}};
        },
        [&](std::ostream& out) {
            Table table({{"group"},
                         {"stage"},
                         {"jobs", Table::Align::right},
                         {"pending", Table::Align::right},
                         {"failed", Table::Align::right},
                         {"made"},
                         {"expires in", Table::Align::right},
                         {"then"}});
            for (const QueueGroup& group : found) {
                table.add({group.id, stage_name(group.state.stage),
                           std::to_string(group.state.jobs), std::to_string(group.state.pending),
                           std::to_string(group.state.failed), optional_text(group.made),
                           optional_text(group.expires_in), group.then_queue});
            }
            out << table;
        });
}

} // namespace orizuru::detail::cli
