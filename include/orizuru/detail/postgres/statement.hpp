// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One statement with parameters, in the words of each libpqxx; the prefix of the names in it.

#include <orizuru/detail/jobs/error_text.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/keys.hpp>

#include <pqxx/pqxx>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// SQL in which each `$p$` stands for the prefix.
[[nodiscard]] inline std::string with_prefix(std::string_view sql, std::string_view prefix) {
    constexpr std::string_view mark = "$p$";
    std::string text;
    while (true) {
        const auto at = sql.find(mark);
        text += sql.substr(0, at);
        if (at == std::string_view::npos) {
            return text;
        }
        text += prefix;
        sql.remove_prefix(at + mark.size());
    }
}

/// Text ends at a null byte for PostgreSQL, which would make one of two ids; all else is UTF-8.
[[nodiscard]] inline bool storable(std::string_view text) {
    return text.find('\0') == std::string_view::npos && to_utf8(text) == text;
}

/// Throws std::invalid_argument.
inline void check_text_id(std::string_view id) {
    check_id(id);
    if (!storable(id)) {
        throw std::invalid_argument("an id in PostgreSQL must be UTF-8 without a null byte");
    }
}

/// A queue's name has the length of an id, for the indexes. Throws std::invalid_argument.
[[nodiscard]] inline std::string checked_queue(std::string queue) {
    if (Keys(queue).source().size() > 512 || !storable(queue)) {
        throw std::invalid_argument(
            "the name of a queue in PostgreSQL must be at most 512 bytes of "
            "UTF-8 without a null byte");
    }
    return queue;
}

/// An envelope in hexadecimal digits has to be below the 1 GiB that PostgreSQL takes.
inline void check_stored_payload(std::int64_t max_payload) {
    if (max_payload < 1 || max_payload > std::int64_t{256} << 20) {
        throw std::invalid_argument("max_payload must be 1 byte to 256 MiB");
    }
}

/// Parameters are strings and numbers.
template <class... Parameters>
pqxx::result execute(pqxx::transaction_base& transaction, const std::string& sql,
                     const Parameters&... parameters) {
#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR >= 710
    return transaction.exec(sql, pqxx::params{parameters...});
#else
    return transaction.exec_params(sql, parameters...);
#endif
}

/// Transactions on this connection see what others commit meanwhile, whatever the database's
/// default is.
inline void read_committed(pqxx::connection& connection) {
#if !defined(PQXX_VERSION_MAJOR) || PQXX_VERSION_MAJOR < 7
    // Which connects by itself when the connection was lost, and sets it again.
    connection.set_variable("default_transaction_isolation", "'read committed'");
#else
    pqxx::nontransaction(connection).exec("SET default_transaction_isolation = 'read committed'");
#endif
}

/// Bytes as the parameter of decode($n, 'hex'), which every libpqxx can pass on.
[[nodiscard]] inline std::string to_hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += digits[byte >> 4U];
        text += digits[byte & 15U];
    }
    return text;
}

/// UTF-8 as an expression that is the same text whatever client_encoding a user's connection has.
[[nodiscard]] inline std::string text_in_sql(std::string_view text) {
    return "convert_from(decode('" + to_hex(text) + "', 'hex'), 'UTF8')";
}

/// Bytes from what encode(..., 'hex') has returned.
[[nodiscard]] inline std::string from_hex(std::string_view text) {
    const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
    std::string bytes;
    bytes.reserve(text.size() / 2);
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        bytes += static_cast<char>(value(text[i]) * 16 + value(text[i + 1]));
    }
    return bytes;
}

} // namespace orizuru::detail
