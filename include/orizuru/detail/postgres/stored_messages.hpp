// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Inserts the messages of a ledger or an outbox, many with one statement.

#include <orizuru/detail/postgres/statement.hpp>

#include <pqxx/pqxx>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

struct StoredMessage {
    std::string id;
    std::string payload;
};

[[nodiscard]] inline std::vector<std::string> ids_of(std::vector<StoredMessage> messages) {
    std::vector<std::string> ids;
    ids.reserve(messages.size());
    for (StoredMessage& message : messages) {
        ids.push_back(std::move(message.id));
    }
    return ids;
}

/// `insert` ends with VALUES; `row` begins a row with the columns before the payload, which is the
/// last; `end` follows the rows. Returns how many were inserted. No parameters: with libpqxx 6 they
/// do not begin a subtransaction.
inline std::size_t insert_messages(pqxx::transaction_base& transaction, const std::string& insert,
                                   std::span<const StoredMessage> messages,
                                   const std::function<std::string(const std::string& id)>& row,
                                   std::string_view end = {}) {
    constexpr std::size_t most = std::size_t{1} << 20; // the server parses a statement as a whole
    std::size_t inserted = 0;
    std::string statement;
    for (const StoredMessage& message : messages) {
        statement += (statement.empty() ? insert + " (" : ", (") + row(message.id) + ", decode('" +
                     to_hex(message.payload) + "', 'hex'))";
        if (statement.size() >= most || &message == &messages.back()) {
            statement += end;
            inserted += static_cast<std::size_t>(transaction.exec(statement).affected_rows());
            statement.clear();
        }
    }
    return inserted;
}

} // namespace orizuru::detail
