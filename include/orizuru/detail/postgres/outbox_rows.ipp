// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of outbox_rows.hpp.

#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>

#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE OutboxRows::OutboxRows(std::string queue, const std::string& prefix,
                                      std::int64_t max_payload)
    : m_queue(checked_queue(std::move(queue))),
      m_insert(with_prefix("INSERT INTO $p$outbox (id, queue, payload) VALUES", prefix)) {
    check_stored_payload(max_payload);
    // Its check of the prefix.
    static_cast<void>(Database("", {.prefix = prefix}));
}

ORIZURU_INLINE void OutboxRows::check_id(const std::string& id) { check_text_id(id); }

ORIZURU_INLINE void OutboxRows::insert(pqxx::transaction_base& transaction,
                                       std::span<const StoredMessage> messages) const {
    insert_messages(transaction, m_insert, messages, [this](const std::string& id) {
        return text_in_sql(id) + ", " + text_in_sql(m_queue);
    });
}

} // namespace orizuru::detail
