// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of outbox_rows.hpp.

#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>

#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE OutboxRows::OutboxRows(std::string queue, const OutboxOptions& options)
    : m_table(options.prefix + "outbox") {
    m_columns.add("queue", text_in_sql(checked_queue(std::move(queue))));
    m_columns.add("ordered", options.order == OutboxOrder::commits ? "true" : "false");
    check_stored_payload(options.max_payload);
    // Its check of the prefix.
    static_cast<void>(Database("", {.prefix = options.prefix}));
}

ORIZURU_INLINE void OutboxRows::check_id(const std::string& id) { check_text_id(id); }

ORIZURU_INLINE void OutboxRows::insert(pqxx::transaction_base& transaction,
                                       std::span<const StoredMessage> messages) const {
    insert_messages(transaction, m_table, m_columns, messages);
}

} // namespace orizuru::detail
