// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Does the work of a Ledger, whatever the type of its jobs.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/postgres/stored_messages.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/ledger_counts.hpp>
#include <orizuru/postgres/ledger_entry.hpp>
#include <orizuru/postgres/ledger_job_options.hpp>
#include <orizuru/postgres/ledger_options.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

class LedgerBook;

/// 12 hexadecimal digits of time, 20 random ones.
[[nodiscard]] std::string ordered_id(JobTime now);

/// Any thread. Blocks and throws as Ledger says.
class LedgerCore {
  public:
    /// Returns the encoded result, if there is one.
    using Effects = std::function<std::optional<std::string>(pqxx::work&, const std::stop_token&)>;
    using BatchEffects = std::function<void(pqxx::work&, std::span<const std::size_t>)>;

    LedgerCore(Database database, std::string queue, LedgerOptions options);
    LedgerCore(const LedgerCore&) = delete;
    LedgerCore& operator=(const LedgerCore&) = delete;
    ~LedgerCore();

    [[nodiscard]] std::int64_t max_payload() const noexcept { return m_options.max_payload; }
    [[nodiscard]] const std::string& kind() const noexcept { return m_options.kind; }

    void insert(pqxx::transaction_base& transaction, std::span<const StoredMessage> jobs,
                const LedgerJobOptions& options) const;
    void submit(std::span<const StoredMessage> jobs, const LedgerJobOptions& options);
    /// Inserts nothing and returns false if the ledger has a job of that id.
    bool insert_new(pqxx::transaction_base& transaction, const StoredMessage& job,
                    const LedgerJobOptions& options) const;
    bool submit_new(const StoredMessage& job, const LedgerJobOptions& options);
    LedgerOutcome run(std::string_view id, const Effects& effects);
    std::vector<LedgerOutcome> run_batch(std::span<const std::string> ids,
                                         const BatchEffects& effects);
    [[nodiscard]] std::optional<LedgerEntry> find(std::string_view id);
    [[nodiscard]] std::vector<LedgerChange> history(std::string_view id);
    [[nodiscard]] std::optional<std::string> result(std::string_view id);
    [[nodiscard]] std::vector<LedgerEntry> list(LedgerState state, std::size_t most,
                                                const std::string& after);
    [[nodiscard]] LedgerCounts count();
    bool cancel(std::string_view id, std::string_view reason);
    bool give_up(std::string_view id, std::string_view reason);
    bool revive(std::string_view id, int attempts);
    std::uint64_t purge(std::chrono::seconds age,
                        const std::function<void(std::string_view, std::string_view)>& on_held);

  private:
    /// Returns how many were inserted; `end` ends the statement.
    std::size_t insert(pqxx::transaction_base& transaction, std::span<const StoredMessage> jobs,
                       const SharedColumns& columns, std::string_view end) const;
    bool insert_new(pqxx::transaction_base& transaction, const StoredMessage& job,
                    const SharedColumns& columns) const;
    /// Returns all columns except the id and the payload; `who` is in the history.
    [[nodiscard]] SharedColumns columns_of(const LedgerJobOptions& options,
                                           std::string_view who) const;

    std::string m_queue;
    LedgerOptions m_options;
    std::unique_ptr<LedgerBook> m_book;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/postgres/ledger/core.ipp>
#endif
