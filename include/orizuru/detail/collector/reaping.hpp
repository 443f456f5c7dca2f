// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs the script that takes a dead consumer's messages, and reads what it says.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/collector/suspects_apart.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/garbage_collector_options.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Input of the script besides the options.
struct CollectorState {
    std::chrono::milliseconds allowance; ///< the part of a lease that there is time for
    bool stays;                          ///< it asks again by itself
    std::string since_refusal;           ///< see LastRefusal::age
    SuspectTakers::Found takers;         ///< takers of suspects among the living
};

/// Answer of the script about a consumer.
struct Absence {
    enum class Verdict {
        not_dead, ///< or another collector has reaped it
        not_yet,
        reaped
    } verdict = Verdict::not_dead;
    std::chrono::milliseconds wait{};     ///< not_yet: for how long Redis must go on to take writes
    std::chrono::milliseconds gap{};      ///< not_yet: within which time the next must come
    std::uint64_t requeued = 0;           ///< or put apart
    std::vector<std::string> buried = {}; ///< payloads
    struct Suspect {
        std::string payload;
        std::int64_t recoveries;
    };
    std::vector<Suspect> apart = {};
};

/// True for what the script returns when it has reaped.
[[nodiscard]] inline bool is_reaping(const std::vector<Reply>& parts) {
    if (parts.size() < 3 || !is_count(parts[0]) || !is_count(parts[1]) || !is_count(parts[2])) {
        return false;
    }
    const auto apart = static_cast<std::uint64_t>(parts[1].integer);
    const auto buried = static_cast<std::uint64_t>(parts[2].integer);
    if (std::cmp_less(parts[0].integer, apart) || apart > parts.size() || buried > parts.size() ||
        3 + buried + 2 * apart != parts.size()) {
        return false;
    }
    for (std::size_t i = 3; i < parts.size(); ++i) {
        const bool number = i >= 3 + buried && (i - 3 - buried) % 2 == 1;
        if (number ? !is_count(parts[i]) : !parts[i].is(Reply::Type::string)) {
            return false;
        }
    }
    return true;
}

[[nodiscard]] inline std::string_view argument_of(SuspectTakers::Found takers) noexcept {
    switch (takers) {
    case SuspectTakers::Found::some:
        return "1";
    case SuspectTakers::Found::none:
        return "0";
    case SuspectTakers::Found::nobody_lives:
        break;
    }
    return "";
}

/// Redis: a script, O(messages held). Throws as Connection::command.
inline Absence reap(Connection& connection, const Keys& keys,
                    const GarbageCollectorOptions& options, const CollectorState& state,
                    const std::string& id) {
    Reply reply = run_script(
        connection, keys.source(), reap_script, 9, keys.heartbeat(id), keys.processing(id),
        keys.source(), keys.consumers(), keys.recoveries(), keys.dead(), keys.writes(),
        keys.suspects(), keys.suspects_asked(), id, fence_time.count(), options.max_recoveries,
        recovery_memory.count(), options.dead_limit, options.blamed, options.grace.count(),
        state.allowance.count(), state.stays ? 1 : 0, milliseconds_since(connected_at(connection)),
        mark_gap.count(), suspects_patience.count(), argument_of(state.takers), state.since_refusal,
        connection.endpoint().command_timeout().count());
    std::vector<Reply>& parts = reply.elements;
    const bool is_number = !parts.empty() && parts[0].is(Reply::Type::integer);
    if (parts.size() == 1 && is_number && parts[0].integer < 0) {
        return {};
    }
    if (parts.size() == 3 && is_number && parts[0].integer == -3 && is_count(parts[1]) &&
        is_count(parts[2])) {
        return {.verdict = Absence::Verdict::not_yet,
                .wait = std::chrono::milliseconds(parts[1].integer),
                .gap = std::chrono::milliseconds(parts[2].integer)};
    }
    if (!is_reaping(parts)) {
        refuse(connection, "EVALSHA");
    }
    const auto buried = static_cast<std::size_t>(parts[2].integer);
    const auto apart = static_cast<std::size_t>(parts[1].integer);
    Absence absence{.verdict = Absence::Verdict::reaped,
                    .requeued = static_cast<std::uint64_t>(parts[0].integer)};
    auto part = parts.begin() + 3;
    for (std::size_t i = 0; i < buried; ++i, ++part) {
        absence.buried.push_back(std::move(part->text));
    }
    for (std::size_t i = 0; i < apart; ++i, part += 2) {
        absence.apart.push_back({std::move(part->text), part[1].integer});
    }
    return absence;
}

} // namespace orizuru::detail
