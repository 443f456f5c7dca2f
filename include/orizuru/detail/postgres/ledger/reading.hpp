// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Entries and their history, as a Ledger reads them.

#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/encoding.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/postgres/ledger_counts.hpp>
#include <orizuru/postgres/ledger_entry.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <cstddef>
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
        return unless_untranslatable(
            [&] { return execute(transaction, pool.sql(sql), std::string(id)); });
    });
}

/// Entries, as entry_of reads them.
[[nodiscard]] inline std::string select_entries() {
    return "SELECT id, queue, state, attempt, max_attempts, worker, " + as_time("due") +
           ", error, " + as_time("created_at") + ", " + as_time("changed_at") + ", changed_by, " +
           as_time("finished_at") + ", " + as_time("expires") + " FROM ";
}
template <class Row>
[[nodiscard]] LedgerEntry entry_of(const Row& row) {
    return LedgerEntry{.id = text_of(row[0]),
                       .queue = text_of(row[1]),
                       .state = ledger_state(text_of(row[2])),
                       .attempt = row[3].template as<int>(),
                       .max_attempts = row[4].template as<int>(),
                       .worker = text_of(row[5]),
                       .due = optional_time_of(row[6]),
                       .error = text_of(row[7]),
                       .created_at = time_of(row[8]),
                       .changed_at = time_of(row[9]),
                       .changed_by = text_of(row[10]),
                       .finished_at = optional_time_of(row[11]),
                       .expires_at = optional_time_of(row[12])};
}

[[nodiscard]] inline std::optional<LedgerEntry> find_in_ledger(Pool& pool, std::string_view id) {
    if (!storable(id)) {
        return std::nullopt;
    }
    const pqxx::result found = read_ledger(pool, select_entries() + "$p$ledger WHERE id = $1", id);
    return found.empty() ? std::nullopt : std::optional(entry_of(found[0]));
}

/// None: the job has left none, or is not completed.
[[nodiscard]] inline std::optional<std::string> result_in_ledger(Pool& pool, std::string_view id) {
    if (!storable(id)) {
        return std::nullopt;
    }
    const pqxx::result found = read_ledger(
        pool, "SELECT encode(result, 'hex') FROM $p$ledger WHERE id = $1 AND result IS NOT NULL",
        id);
    return found.empty() ? std::nullopt : std::optional(from_hex(text_of(found[0][0])));
}

/// Those of one state with an id above `after`, in the order of ids.
[[nodiscard]] inline std::vector<LedgerEntry> list_ledger(Pool& pool, const std::string& queue,
                                                          LedgerState state, std::size_t most,
                                                          const std::string& after) {
    // Jobs that have not ended are read by their index and sorted: by the order of ids the planner
    // might read all that have.
    const bool ended = state == LedgerState::completed || state == LedgerState::dead;
    const bool has_time = state == LedgerState::running || state == LedgerState::failed;
    const std::string sql = pool.sql(
        select_entries() + "(SELECT * FROM $p$ledger WHERE queue = $1 AND state = '" +
        std::string(to_string(state)) + "' AND id > $2" + (has_time ? " AND due IS NOT NULL" : "") +
        (ended ? "" : " OFFSET 0") + ") AS jobs ORDER BY id LIMIT $3");
    const pqxx::result found = attempt_own(pool, [&](pqxx::connection& connection) {
        pqxx::nontransaction transaction(connection);
        return execute(transaction, sql, queue, after, most);
    });
    std::vector<LedgerEntry> entries;
    for (const auto& row : found) {
        entries.push_back(entry_of(row));
    }
    return entries;
}

[[nodiscard]] inline LedgerCounts count_ledger(Pool& pool, const std::string& queue) {
    const pqxx::result found =
        read_ledger(pool,
                    "SELECT waits.total, " + as_time("waits.oldest") +
                        ", held.running, held.failed, dead.total, " + as_time("clock_timestamp()") +
                        R"sql(, waits.scheduled
FROM (SELECT count(*) FILTER (WHERE now) AS total,
             count(*) FILTER (WHERE NOT now) AS scheduled,
             min(coalesce(due, changed_at)) FILTER (WHERE now) AS oldest
      FROM (SELECT due, changed_at, due IS NULL OR due <= clock_timestamp() AS now FROM $p$ledger
            WHERE queue = $1 AND state = 'pending') AS jobs) AS waits,
     (SELECT count(*) FILTER (WHERE state = 'running') AS running,
             count(*) FILTER (WHERE state = 'failed') AS failed FROM $p$ledger
      WHERE queue = $1 AND due IS NOT NULL AND state <> 'pending') AS held,
     (SELECT count(*) AS total FROM $p$ledger WHERE queue = $1 AND state = 'dead') AS dead
)sql",
                    queue);
    const auto& row = found[0];
    return {.queue = queue,
            .pending = row[0].as<std::uint64_t>(),
            .scheduled = row[6].as<std::uint64_t>(),
            .running = row[2].as<std::uint64_t>(),
            .failed = row[3].as<std::uint64_t>(),
            .dead = row[4].as<std::uint64_t>(),
            .oldest = optional_time_of(row[1]),
            .now = time_of(row[5])};
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
