// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of core.hpp.

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/ledger/book.hpp>
#include <orizuru/detail/postgres/ledger/checks.hpp>
#include <orizuru/detail/postgres/ledger/reading.hpp>
#include <orizuru/detail/postgres/rights.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <stdexcept>
#include <utility>
#include <variant>

namespace orizuru::detail {

ORIZURU_INLINE std::string ordered_id(JobTime now) {
    std::string digits = random_hex<20>();
    for (auto rest = static_cast<std::uint64_t>(now.time_since_epoch().count()); digits.size() < 32;
         rest >>= 4U) {
        digits.insert(digits.begin(), "0123456789abcdef"[rest & 15U]);
    }
    return digits;
}

ORIZURU_INLINE LedgerOptions checked(LedgerOptions options) {
    check(options);
    return options;
}

ORIZURU_INLINE LedgerCore::LedgerCore(Database database, std::string queue, LedgerOptions options)
    : m_queue(checked_queue(std::move(queue))),
      m_options(checked(std::move(options))),
      m_book(std::make_unique<LedgerBook>(std::move(database), make_identity(m_options.name).id,
                                          m_options.lease)),
      m_insert(m_book->pool().sql(
          "INSERT INTO $p$ledger (id, queue, max_attempts, changed_by, payload) VALUES")) {
    check_tables(m_book->pool(), TableUse::ledger);
    attempt_own(m_book->pool(), [this](pqxx::connection& connection) {
        pqxx::nontransaction transaction(connection);
        return execute(transaction,
                       m_book->pool().sql("INSERT INTO $p$ledger_queue (name) VALUES ($1) "
                                          "ON CONFLICT DO NOTHING"),
                       m_queue);
    });
}

ORIZURU_INLINE LedgerCore::~LedgerCore() = default;

ORIZURU_INLINE void LedgerCore::insert(pqxx::transaction_base& transaction,
                                       std::span<const StoredMessage> jobs) const {
    insert_messages(transaction, m_insert, jobs, [&](const std::string& id) {
        return transaction.quote(id) + ", " + text_in_sql(m_queue) + ", " +
               std::to_string(m_options.retry.max_attempts) + ", " +
               transaction.quote(m_book->worker());
    });
}

ORIZURU_INLINE void LedgerCore::submit(std::span<const StoredMessage> jobs) {
    bool committing = false;
    attempt_own(m_book->pool(), [&](pqxx::connection& connection) {
        pqxx::work transaction(connection);
        try {
            insert(transaction, jobs);
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

ORIZURU_INLINE LedgerOutcome LedgerCore::run(std::string_view id,
                                             const std::function<void(pqxx::work&)>& effects) {
    check_id(id);
    const auto claimed = m_book->claim(id);
    if (const auto* outcome = std::get_if<LedgerOutcome>(&claimed)) {
        return *outcome;
    }
    const auto& claim = std::get<LedgerClaim>(claimed);
    const LedgerLeases::Hold hold(m_book->leases(), claim);
    try {
        return m_book->complete(claim, effects);
    } catch (const DatabaseError&) {
        throw;
    } catch (const DoNotRetry& error) {
        return m_book->fail_for_good(claim, error.what());
    } catch (...) {
        return tell_thrown(
            [&](std::string_view what) { return m_book->fail(claim, m_options.retry, what); });
    }
}

ORIZURU_INLINE std::optional<LedgerEntry> LedgerCore::find(std::string_view id) {
    check_id(id);
    return find_in_ledger(m_book->pool(), id);
}

ORIZURU_INLINE std::vector<LedgerChange> LedgerCore::history(std::string_view id) {
    check_id(id);
    return ledger_history(m_book->pool(), id);
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

ORIZURU_INLINE std::uint64_t LedgerCore::purge(std::chrono::seconds age) {
    check_age(age);
    const std::string sql = m_book->pool().sql("SELECT $p$ledger_purge($1, $2)");
    std::uint64_t purged = 0;
    while (true) {
        const auto step = attempt_own(m_book->pool(), [&](pqxx::connection& connection) {
            pqxx::nontransaction transaction(connection);
            return execute(transaction, sql, m_queue, age.count())[0][0].as<std::uint64_t>();
        });
        if (step == 0) {
            return purged;
        }
        purged += step;
    }
}

ORIZURU_INLINE bool LedgerCore::give_up(std::string_view id, std::string_view reason) {
    check_id(id);
    return m_book->give_up(id, reason);
}

ORIZURU_INLINE bool LedgerCore::revive(std::string_view id, int attempts) {
    check_id(id);
    if (attempts < 1 || attempts > 1'000'000) {
        throw std::invalid_argument("a job is revived for 1 to 1000000 attempts");
    }
    return m_book->revive(id, attempts);
}

} // namespace orizuru::detail
