// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Entries and their history, as a Ledger reads them.

#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/postgres/ledger_entry.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

[[nodiscard]] inline LedgerState ledger_state(std::string_view name) {
    for (const LedgerState state :
         {LedgerState::pending, LedgerState::running, LedgerState::completed, LedgerState::failed,
          LedgerState::dead}) {
        if (name == to_string(state)) {
            return state;
        }
    }
    throw std::logic_error("the ledger has an unknown state");
}

/// A column of times, as time_of reads it.
[[nodiscard]] inline std::string as_time(const std::string& column) {
    return "floor(extract(epoch FROM " + column + ") * 1000)::bigint";
}

template <class Field>
[[nodiscard]] JobTime time_of(const Field& field) {
    return JobTime(std::chrono::milliseconds(field.template as<std::int64_t>()));
}
template <class Field>
[[nodiscard]] std::optional<JobTime> optional_time_of(const Field& field) {
    return field.is_null() ? std::nullopt : std::optional(time_of(field));
}
template <class Field>
[[nodiscard]] std::string text_of(const Field& field) {
    return field.is_null() ? std::string() : field.template as<std::string>();
}

[[nodiscard]] inline pqxx::result read_ledger(Pool& pool, const std::string& sql,
                                              std::string_view id) {
    return attempt_own(pool, [&](pqxx::connection& connection) {
        pqxx::nontransaction transaction(connection);
        return execute(transaction, pool.sql(sql), std::string(id));
    });
}

[[nodiscard]] inline std::optional<LedgerEntry> find_in_ledger(Pool& pool, std::string_view id) {
    if (!storable(id)) {
        return std::nullopt;
    }
    const pqxx::result found =
        read_ledger(pool,
                    "SELECT id, queue, state, attempt, max_attempts, worker, " + as_time("due") +
                        ", error, " + as_time("created_at") + ", " + as_time("changed_at") +
                        ", changed_by, " + as_time("finished_at") + " FROM $p$ledger WHERE id = $1",
                    id);
    if (found.empty()) {
        return std::nullopt;
    }
    const auto& row = found[0];
    return LedgerEntry{.id = text_of(row[0]),
                       .queue = text_of(row[1]),
                       .state = ledger_state(text_of(row[2])),
                       .attempt = row[3].as<int>(),
                       .max_attempts = row[4].as<int>(),
                       .worker = text_of(row[5]),
                       .due = optional_time_of(row[6]),
                       .error = text_of(row[7]),
                       .created_at = time_of(row[8]),
                       .changed_at = time_of(row[9]),
                       .changed_by = text_of(row[10]),
                       .finished_at = optional_time_of(row[11])};
}

[[nodiscard]] inline std::vector<LedgerChange> ledger_history(Pool& pool, std::string_view id) {
    if (!storable(id)) {
        return {};
    }
    std::vector<LedgerChange> changes;
    for (const auto& row : read_ledger(pool,
                                       "SELECT " + as_time("at") +
                                           ", who, from_state, to_state, attempt, note "
                                           "FROM $p$ledger_history WHERE job = $1 ORDER BY number",
                                       id)) {
        changes.push_back(
            {.at = time_of(row[0]),
             .who = text_of(row[1]),
             .from = row[2].is_null() ? std::nullopt : std::optional(ledger_state(text_of(row[2]))),
             .to = ledger_state(text_of(row[3])),
             .attempt = row[4].as<int>(),
             .note = text_of(row[5])});
    }
    return changes;
}

} // namespace orizuru::detail
