// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes the rows of an Outbox, whatever the type of its jobs.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/postgres/stored_messages.hpp>
#include <orizuru/postgres/outbox_options.hpp>

#include <pqxx/pqxx>

#include <span>
#include <string>

namespace orizuru::detail {

/// The rows of one queue. A value; any thread.
class OutboxRows {
  public:
    /// Throws std::invalid_argument as Outbox does.
    OutboxRows(std::string queue, const OutboxOptions& options);

    /// Throws std::invalid_argument for an id that no inbox takes.
    static void check_id(const std::string& id);

    void insert(pqxx::transaction_base& transaction, std::span<const StoredMessage> messages) const;

  private:
    std::string m_table;
    SharedColumns m_columns;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/postgres/outbox_rows.ipp>
#endif
