// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The marks of an Inbox, and the transactions that have them.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/postgres/array.hpp>
#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/failure.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/detail/postgres/purge.hpp>
#include <orizuru/detail/postgres/rights.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/inbox_options.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Any thread. Blocks and throws as Inbox says.
class InboxMarks {
  public:
    using Effects = std::function<void(pqxx::work&)>;
    using BatchEffects = std::function<void(pqxx::work&, std::span<const std::size_t>)>;

    InboxMarks(Database database, std::string scope, InboxOptions options);

    InboxOutcome run(std::string_view id, const Effects& f);
    std::vector<InboxResult> run_batch(std::span<const std::string> ids, const BatchEffects& f);
    std::uint64_t purge(std::chrono::seconds age,
                        const std::function<void(std::string_view, std::string_view)>& on_held);

  private:
    /// Returns the transaction's id; nothing when there is nothing to do.
    using Mark = std::function<std::optional<std::string>(pqxx::work&)>;

    /// `ran`: what `mark` has marked, when it had something to do last, is committed with `f`.
    [[nodiscard]] InboxOutcome commit_once(const Mark& mark, const Effects& f);
    [[nodiscard]] std::optional<std::string> mark(pqxx::work& transaction,
                                                  std::string_view id) const;
    /// Leaves in `fresh` the positions of the ids that it has marked, unless there are none.
    [[nodiscard]] std::optional<std::string> mark_all(pqxx::work& transaction,
                                                      std::span<const std::string> ids,
                                                      std::vector<std::size_t>& fresh) const;
    [[nodiscard]] InboxResult run_one(std::span<const std::string> ids, std::size_t position,
                                      const BatchEffects& f);
    /// True if the mark's transaction still runs and can be committed: after a statement that
    /// failed COMMIT rolls back, and pqxx does not report that.
    [[nodiscard]] static bool is_unbroken(pqxx::work& transaction, const std::string& marked);

    std::string m_scope;
    InboxOptions m_options;
    Pool m_pool;
    std::string m_mark;
    std::string m_mark_all;
};

inline InboxMarks::InboxMarks(Database database, std::string scope, InboxOptions options)
    : m_scope(std::move(scope)),
      m_options(options),
      m_pool(std::move(database)),
      m_mark(m_pool.sql("SELECT $p$inbox_mark($1, $2, $3)")),
      // Sorted, so that two batches with the same ids do not wait for each other.
      m_mark_all(m_pool.sql(R"sql(
INSERT INTO $p$inbox (scope, id)
SELECT $1, id FROM unnest($2::text[]) AS fresh (id) ORDER BY id
ON CONFLICT DO NOTHING RETURNING id, txid_current()
)sql")) {
    check_text_id(m_scope);
    check_time("wait", m_options.wait, std::chrono::milliseconds(0));
    check_tables(m_pool, TableUse::inbox);
}

inline std::optional<std::string> InboxMarks::mark(pqxx::work& transaction,
                                                   std::string_view id) const {
    const pqxx::result marked =
        execute(transaction, m_mark, m_scope, std::string(id), m_options.wait.count());
    return marked[0][0].is_null() ? std::nullopt : std::optional(marked[0][0].as<std::string>());
}

inline bool InboxMarks::is_unbroken(pqxx::work& transaction, const std::string& marked) {
    try {
        return transaction
            .exec("SELECT txid_current_if_assigned() IS NOT DISTINCT FROM " + marked)[0][0]
            .as<bool>();
    } catch (const pqxx::usage_error&) {
        return false;
    } catch (const pqxx::sql_error& error) {
        if (error.sqlstate() != "25P02") { // in_failed_sql_transaction
            throw;
        }
        return false;
    }
}

inline std::optional<std::string> InboxMarks::mark_all(pqxx::work& transaction,
                                                       std::span<const std::string> ids,
                                                       std::vector<std::size_t>& fresh) const {
    constexpr const char* set = "SELECT set_config('lock_timeout', $1, true)";
    const auto wait = std::max<std::int64_t>(m_options.wait.count(), 1); // 0 would be for ever
    const auto users = execute(transaction, "SELECT current_setting('lock_timeout')");
    execute(transaction, set, std::to_string(wait));
    const pqxx::result marked =
        execute(transaction, m_mark_all, m_scope, to_array({ids.begin(), ids.end()}));
    execute(transaction, set, users[0][0].as<std::string>());
    if (marked.empty()) {
        return std::nullopt;
    }
    std::unordered_map<std::string_view, std::size_t> positions;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        positions.try_emplace(ids[i], i);
    }
    fresh.clear();
    for (const auto& row : marked) {
        fresh.push_back(positions.at(row[0].c_str()));
    }
    std::ranges::sort(fresh);
    return marked[0][1].as<std::string>();
}

inline InboxOutcome InboxMarks::run(std::string_view id, const Effects& f) {
    check_text_id(id);
    return commit_once([&](pqxx::work& transaction) { return mark(transaction, id); }, f);
}

inline std::vector<InboxResult> InboxMarks::run_batch(std::span<const std::string> ids,
                                                      const BatchEffects& f) {
    std::ranges::for_each(ids, check_text_id);
    std::vector<InboxResult> results(ids.size());
    if (ids.size() > 1) {
        std::vector<std::size_t> fresh;
        try {
            const InboxOutcome outcome = commit_once(
                [&](pqxx::work& transaction) { return mark_all(transaction, ids, fresh); },
                [&](pqxx::work& transaction) { f(transaction, fresh); });
            if (outcome != InboxOutcome::busy) {
                for (const std::size_t position : fresh) {
                    results[position].outcome = outcome;
                }
                return results;
            }
        } catch (const DatabaseError&) {
            throw;
        } catch (...) { // NOLINT(bugprone-empty-catch)
            // Which of them it is shows when they are run one by one.
        }
    }
    for (std::size_t position = 0; position < ids.size(); ++position) {
        results[position] = run_one(ids, position, f);
    }
    return results;
}

inline InboxResult InboxMarks::run_one(std::span<const std::string> ids, std::size_t position,
                                       const BatchEffects& f) {
    try {
        return {run(ids[position],
                    [&](pqxx::work& transaction) { f(transaction, std::array{position}); })};
    } catch (const DatabaseError&) {
        throw;
    } catch (...) {
        return {InboxOutcome::failed, std::current_exception()};
    }
}

inline InboxOutcome InboxMarks::commit_once(const Mark& mark, const Effects& f) {
    bool in_doubt = false; // whether the last attempt was committed
    bool called = false;
    const auto transact = [&](pqxx::connection& connection) {
        called = false;
        pqxx::work transaction(connection);
        std::optional<std::string> marked;
        try {
            marked = mark(transaction);
        } catch (const pqxx::sql_error& error) {
            if (failure_of(error.sqlstate()) == Failure::waited) {
                return InboxOutcome::busy;
            }
            throw;
        }
        if (!marked) {
            return in_doubt ? InboxOutcome::ran : InboxOutcome::repeated;
        }
        in_doubt = false;
        called = true;
        f(transaction);
        if (!is_unbroken(transaction, *marked)) {
            throw std::logic_error("an inbox's function has ended its transaction, or swallowed "
                                   "the failure of a statement");
        }
        const int backend = connection.backendpid();
        try {
            transaction.commit();
        } catch (...) {
            in_doubt = failure_of_current(connection, backend) == Failure::lost;
            throw;
        }
        return InboxOutcome::ran;
    };
    try {
        return attempt(m_pool, transact);
    } catch (const pqxx::failure& error) {
        if (called) {
            throw; // the function's, or what comes of its effects
        }
        throw database_error(m_pool.database(), error);
    }
}

inline std::uint64_t
InboxMarks::purge(std::chrono::seconds age,
                  const std::function<void(std::string_view, std::string_view)>& on_held) {
    check_age(age);
    return purge_all(m_pool, Purge(m_pool.database().prefix(), "inbox", m_scope, age), on_held);
}

} // namespace orizuru::detail
