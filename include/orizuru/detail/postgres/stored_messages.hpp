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

/// The columns of an INSERT that have the same value in all rows.
class SharedColumns {
  public:
    /// `value` is SQL.
    void add(std::string_view name, std::string_view value) {
        m_names.append(name).append(", ");
        m_values.append(value).append(", ");
    }
    /// With a comma behind each.
    [[nodiscard]] const std::string& names() const noexcept { return m_names; }
    [[nodiscard]] const std::string& values() const noexcept { return m_values; }

  private:
    std::string m_names;
    std::string m_values;
};

/// `end` follows the rows. Returns how many were inserted. The rows are two arrays: with a list of
/// VALUES the server reads and plans each value of each row, and 100 rows take 1.7 times as long.
/// No parameters: with libpqxx 6 they do not begin a subtransaction.
inline std::size_t insert_messages(pqxx::transaction_base& transaction, const std::string& table,
                                   const SharedColumns& shared,
                                   std::span<const StoredMessage> messages,
                                   std::string_view end = {}) {
    constexpr std::size_t most = std::size_t{1} << 20; // the server parses a statement as a whole
    std::size_t inserted = 0;
    std::string ids;
    std::string payloads;
    for (const StoredMessage& message : messages) {
        ids.append(ids.empty() ? "" : ",").append(to_hex(message.id));
        payloads.append(payloads.empty() ? "" : ",").append(to_hex(message.payload));
        if (ids.size() + payloads.size() >= most || &message == &messages.back()) {
            const pqxx::result result = transaction.exec(
                "INSERT INTO " + table + " (" + shared.names() + "id, payload) SELECT " +
                shared.values() + "convert_from(decode(m.id, 'hex'), 'UTF8'), " +
                "decode(m.payload, 'hex') FROM unnest('{" + ids + "}'::text[], '{" + payloads +
                "}'::text[]) AS m (id, payload)" + std::string(end));
            inserted += static_cast<std::size_t>(result.affected_rows());
            ids.clear();
            payloads.clear();
        }
    }
    return inserted;
}

} // namespace orizuru::detail
