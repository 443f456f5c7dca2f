// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Inserts the messages of a ledger or an outbox, many with one statement.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/postgres/statement.hpp>

#include <pqxx/pqxx>

#include <cstddef>
#include <optional>
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

/// An INSERT of several messages. No parameters: with libpqxx 6 they do not begin a subtransaction.
class MessageInsert {
  public:
    MessageInsert(const std::string& table, const SharedColumns& shared)
        : m_begin("INSERT INTO " + table + " (" + shared.names() + "id, payload) "),
          m_shared(shared.values()) {}

    void add(const StoredMessage& message) {
        m_ids.push_back(to_hex(message.id));
        m_payloads.push_back(to_hex(message.payload));
        m_bytes += m_ids.back().size() + m_payloads.back().size();
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return m_bytes; }

    /// Ends with `end`.
    [[nodiscard]] std::string text(std::string_view end) const {
        return m_begin + (m_bytes / m_ids.size() < large ? arrays() : values()) + std::string(end);
    }

  private:
    // The digits of a row from which on VALUES are faster. The server plans each value of each row,
    // so that 100 rows of 100 bytes take 1.7 times as long as with two arrays; but it copies what
    // comes out of an array, and 100 rows of 6,000 bytes take half as long.
    static constexpr std::size_t large = 2048;

    [[nodiscard]] std::string arrays() const {
        return "SELECT " + m_shared + row("m.id", "m.payload") + " FROM unnest('{" +
               separated(m_ids) + "}'::text[], '{" + separated(m_payloads) +
               "}'::text[]) AS m (id, payload)";
    }
    [[nodiscard]] std::string values() const {
        std::string text;
        for (std::size_t i = 0; i < m_ids.size(); ++i) {
            text.append(text.empty() ? "VALUES (" : ", (").append(m_shared);
            text.append(row("'" + m_ids[i] + "'", "'" + m_payloads[i] + "'")).append(")");
        }
        return text;
    }
    [[nodiscard]] static std::string row(const std::string& id, const std::string& payload) {
        return "convert_from(decode(" + id + ", 'hex'), 'UTF8'), decode(" + payload + ", 'hex')";
    }
    [[nodiscard]] static std::string separated(const std::vector<std::string>& texts) {
        std::string all;
        for (const std::string& text : texts) {
            all.append(all.empty() ? "" : ",").append(text);
        }
        return all;
    }

    std::string m_begin;
    std::string m_shared;
    std::vector<std::string> m_ids;
    std::vector<std::string> m_payloads;
    std::size_t m_bytes = 0;
};

/// `end` follows the rows of each statement. Returns how many were inserted.
inline std::size_t insert_messages(pqxx::transaction_base& transaction, const std::string& table,
                                   const SharedColumns& shared,
                                   std::span<const StoredMessage> messages,
                                   std::string_view end = {}) {
    constexpr std::size_t most = std::size_t{1} << 20; // the server parses a statement as a whole
    std::size_t inserted = 0;
    std::optional<MessageInsert> insert;
    for (const StoredMessage& message : messages) {
        if (!insert) {
            insert.emplace(table, shared);
        }
        insert->add(message);
        if (insert->bytes() >= most || &message == &messages.back()) {
            inserted += narrow<std::size_t>(transaction.exec(insert->text(end)).affected_rows());
            insert.reset();
        }
    }
    return inserted;
}

} // namespace orizuru::detail
