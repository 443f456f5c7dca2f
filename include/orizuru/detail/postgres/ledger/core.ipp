// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of core.hpp.

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/ledger/batch.hpp>
#include <orizuru/detail/postgres/ledger/book.hpp>
#include <orizuru/detail/postgres/ledger/care.hpp>
#include <orizuru/detail/postgres/ledger/checks.hpp>
#include <orizuru/detail/postgres/ledger/reading.hpp>
#include <orizuru/detail/postgres/ledger/run.hpp>
#include <orizuru/detail/postgres/purge.hpp>
#include <orizuru/detail/postgres/rights.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger_job_options.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE std::string ordered_id(JobTime now) {
    std::string digits = random_hex(20);
    for (auto rest = static_cast<std::uint64_t>(now.time_since_epoch().count()); digits.size() < 32;
         rest >>= 4U) {
        digits.insert(digits.begin(), "0123456789abcdef"[rest & 15U]);
    }
    return digits;
}

ORIZURU_INLINE LedgerOptions checked(LedgerOptions options) {
    validate(options);
    return options;
}

ORIZURU_INLINE LedgerCore::LedgerCore(Database database, std::string queue, LedgerOptions options)
    : m_queue(checked_queue(std::move(queue))),
      m_options(checked(std::move(options))),
      m_book(std::make_unique<LedgerBook>(std::move(database), make_identity(m_options.name).id,
                                          m_options.lease)) {
    check_tables(m_book->pool(), TableUse::ledger);
    m_book->work_in(attempt_own(m_book->pool(), [this](pqxx::connection& connection) {
        pqxx::nontransaction transaction(connection);
        execute(transaction,
                m_book->pool().sql("INSERT INTO $p$ledger_queue (name) VALUES ($1) "
                                   "ON CONFLICT DO NOTHING"),
                m_queue);
        return transaction.exec(m_book->pool().sql("SELECT quote_ident($p$home())"))[0][0]
            .as<std::string>();
    }));
}

ORIZURU_INLINE LedgerCore::~LedgerCore() = default;

// Leaves out columns that have their default: each value of each row costs.
ORIZURU_INLINE SharedColumns LedgerCore::columns_of(const LedgerJobOptions& options,
                                                    std::string_view who) const {
    validate(options);
    SharedColumns columns;
    columns.add("queue", text_in_sql(m_queue));
    columns.add("max_attempts",
                std::to_string(options.max_attempts.value_or(m_options.retry.max_attempts)));
    columns.add("changed_by", text_in_sql(who));
    if (m_options.history == LedgerHistory::failures) {
        columns.add("whole_history", "false");
    }
    const auto later = [](const std::string& time, std::chrono::milliseconds by) {
        return time + " + " + std::to_string(by.count()) + " * interval '1 ms'";
    };
    std::string due = "clock_timestamp()";
    if (options.at || options.delay.count() > 0) {
        due = options.at ? later("timestamptz 'epoch'", options.at->time_since_epoch())
                         : later(due, options.delay);
        columns.add("due", due);
        columns.add("sent_epoch", "9223372036854775807");
    }
    if (options.expires_after) {
        columns.add("expires", later(due, *options.expires_after));
    }
    return columns;
}

ORIZURU_INLINE std::size_t LedgerCore::insert(pqxx::transaction_base& transaction,
                                              std::span<const StoredMessage> jobs,
                                              const SharedColumns& columns,
                                              std::string_view end) const {
    return insert_messages(transaction, m_book->pool().sql("$p$ledger"), columns, jobs, end);
}

ORIZURU_INLINE void LedgerCore::insert(pqxx::transaction_base& transaction,
                                       std::span<const StoredMessage> jobs,
                                       const LedgerJobOptions& options) const {
    insert(transaction, jobs, columns_of(options, m_book->worker()), {});
}

ORIZURU_INLINE bool LedgerCore::insert_new(pqxx::transaction_base& transaction,
                                           const StoredMessage& job,
                                           const SharedColumns& columns) const {
    return insert(transaction, {&job, 1}, columns, " ON CONFLICT (id) DO NOTHING") == 1;
}

ORIZURU_INLINE bool LedgerCore::insert_new(pqxx::transaction_base& transaction,
                                           const StoredMessage& job,
                                           const LedgerJobOptions& options) const {
    return insert_new(transaction, job, columns_of(options, m_book->worker()));
}

ORIZURU_INLINE bool LedgerCore::submit_new(const StoredMessage& job,
                                           const LedgerJobOptions& options) {
    const std::string name = m_book->next_name();
    SharedColumns columns = columns_of(options, name);
    columns.add("submitted_by", text_in_sql(name));
    return attempt_own(m_book->pool(), [&](pqxx::connection& connection) {
        pqxx::work transaction(connection);
        if (!insert_new(transaction, job, columns)) {
            // It may be there by a COMMIT of this call that was not answered.
            return !execute(transaction,
                            m_book->pool().sql("SELECT FROM $p$ledger "
                                               "WHERE id = $1 AND submitted_by = $2"),
                            job.id, name)
                        .empty();
        }
        transaction.commit();
        return true;
    });
}

ORIZURU_INLINE void LedgerCore::submit(std::span<const StoredMessage> jobs,
                                       const LedgerJobOptions& options) {
    const SharedColumns columns = columns_of(options, m_book->worker());
    bool committing = false;
    attempt_own(m_book->pool(), [&](pqxx::connection& connection) {
        pqxx::work transaction(connection);
        try {
            insert(transaction, jobs, columns, {});
        } catch (const pqxx::unique_violation&) {
            if (committing) {
                return true; // by the COMMIT that was not answered
            }
            throw;
        }
        committing = true;
        transaction.commit();
        return true;
    });
}

ORIZURU_INLINE LedgerOutcome LedgerCore::run(std::string_view id, const Effects& effects) {
    check_id(id);
    return run_job(*m_book, id, m_book->next_name(), m_options.retry, effects);
}

ORIZURU_INLINE std::vector<LedgerOutcome> LedgerCore::run_batch(std::span<const std::string> ids,
                                                                const BatchEffects& effects) {
    std::ranges::for_each(ids, check_id);
    return LedgerBatch(*m_book, m_options.retry, ids, effects).run();
}

ORIZURU_INLINE std::optional<LedgerEntry> LedgerCore::find(std::string_view id) {
    check_id(id);
    return find_in_ledger(m_book->pool(), id);
}

ORIZURU_INLINE std::vector<LedgerChange> LedgerCore::history(std::string_view id) {
    check_id(id);
    return ledger_history(m_book->pool(), id);
}

ORIZURU_INLINE std::optional<std::string> LedgerCore::result(std::string_view id) {
    check_id(id);
    return result_in_ledger(m_book->pool(), id);
}

ORIZURU_INLINE std::vector<LedgerEntry> LedgerCore::list(LedgerState state, std::size_t most,
                                                         const std::string& after) {
    if (most < 1 || most > 10'000) {
        throw std::invalid_argument("a ledger lists 1 to 10000 jobs at a time");
    }
    if (!after.empty()) {
        check_text_id(after);
    }
    return list_ledger(m_book->pool(), m_queue, state, most, after);
}

ORIZURU_INLINE LedgerCounts LedgerCore::count() { return count_ledger(m_book->pool(), m_queue); }

ORIZURU_INLINE std::uint64_t
LedgerCore::purge(std::chrono::seconds age,
                  const std::function<void(std::string_view, std::string_view)>& on_held) {
    check_age(age);
    Pool& pool = m_book->pool();
    return purge_all(pool, Purge(pool.database().prefix(), "ledger", m_queue, age), on_held);
}

ORIZURU_INLINE bool LedgerCore::give_up(std::string_view id, std::string_view reason) {
    check_id(id);
    return give_up_in_ledger(m_book->pool(), id, m_book->next_name(), reason);
}

ORIZURU_INLINE bool LedgerCore::cancel(std::string_view id, std::string_view reason) {
    check_id(id);
    return cancel_in_ledger(m_book->pool(), id, m_book->next_name(), reason);
}

ORIZURU_INLINE bool LedgerCore::revive(std::string_view id, int attempts) {
    check_id(id);
    if (attempts < 1 || attempts > 1'000'000) {
        throw std::invalid_argument("a job is revived for 1 to 1000000 attempts");
    }
    return revive_in_ledger(m_book->pool(), id, m_book->next_name(), attempts);
}

} // namespace orizuru::detail
