// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of outbox_rows.hpp.

#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>

#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE OutboxRows::OutboxRows(std::string queue, const OutboxOptions& options)
    : m_insert(with_prefix("INSERT INTO $p$outbox (id, queue, ordered, payload) VALUES",
                           options.prefix)),
      m_columns(text_in_sql(checked_queue(std::move(queue))) +
                (options.order == OutboxOrder::commits ? ", true" : ", false")) {
    check_stored_payload(options.max_payload);
    // Its check of the prefix.
    static_cast<void>(Database("", {.prefix = options.prefix}));
}

ORIZURU_INLINE void OutboxRows::check_id(const std::string& id) { check_text_id(id); }

ORIZURU_INLINE void OutboxRows::insert(pqxx::transaction_base& transaction,
                                       std::span<const StoredMessage> messages) const {
    insert_messages(transaction, m_insert, messages,
                    [this](const std::string& id) { return text_in_sql(id) + ", " + m_columns; });
}

} // namespace orizuru::detail
