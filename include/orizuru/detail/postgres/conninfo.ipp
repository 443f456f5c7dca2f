// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of conninfo.hpp.

#include <libpq-fe.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <utility>

namespace orizuru::detail {

// One encoding for all, whatever the environment says. A dead peer is noticed within 30 s; libpq's
// default is to wait for ever. Of several servers that one is taken which can be written to: libpq
// before version 10 takes the first, and before version 14 knows no "primary".
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 7> conninfo_defaults{
    {{"client_encoding", "UTF8"},
     {"connect_timeout", "5"},
     {"target_session_attrs", "read-write"},
     {"keepalives_idle", "15"},
     {"keepalives_interval", "5"},
     {"keepalives_count", "3"},
     {"tcp_user_timeout", "30000"}}};

/// Ids must be the same text for all, so there is one encoding. An address is shown to people, so a
/// URI, which may have a password in it, cannot be part of it.
ORIZURU_INLINE void check_conninfo(std::string_view keyword, std::string_view value) {
    if (value.find("://") != std::string_view::npos &&
        (keyword == "host" || keyword == "dbname" || keyword == "user")) {
        throw std::invalid_argument("a connection to PostgreSQL cannot have a URI as its " +
                                    std::string(keyword));
    }
    if (keyword == "client_encoding" && value != "UTF8" && value != "utf8" && value != "UTF-8" &&
        value != "utf-8") {
        throw std::invalid_argument("the client_encoding of a connection to PostgreSQL must be "
                                    "UTF8");
    }
}

/// True when libpq takes the option from the environment unless it is told.
ORIZURU_INLINE bool in_environment(const PQconninfoOption& option) {
    return option.envvar != nullptr && std::string_view(option.keyword) != "client_encoding" &&
           std::getenv(option.envvar) != nullptr; // NOLINT(concurrency-mt-unsafe)
}

/// True when libpq reads a file for what neither the string nor the environment says, such as which
/// of several servers to take. A string that said it would take its place.
ORIZURU_INLINE bool names_service(const PQconninfoOption* options) {
    for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
        if (option->keyword == std::string_view("service")) {
            return option->val != nullptr || in_environment(*option);
        }
    }
    return false;
}

ORIZURU_INLINE bool is_conninfo_uri(std::string_view conninfo) {
    return conninfo.starts_with("postgresql://") || conninfo.starts_with("postgres://");
}

/// True if a host of the list has an '@' behind its first character; one that begins with '@' is an
/// abstract socket.
ORIZURU_INLINE bool has_inner_at(std::string_view hosts) {
    for (std::size_t at = hosts.find('@'); at != std::string_view::npos;
         at = hosts.find('@', at + 1)) {
        if (at != 0 && hosts[at - 1] != ',') {
            return true;
        }
    }
    return false;
}

/// libpq takes a '/' or '@' in the password of a URI for the password's end, and what is behind
/// it for the host, the port or the database.
ORIZURU_INLINE void check_conninfo_parts(std::string_view conninfo, std::string_view keyword,
                                         std::string_view value) {
    const bool broken =
        (keyword == "port" && value.find_first_not_of("0123456789,") != std::string_view::npos) ||
        (keyword == "host" && has_inner_at(value)) ||
        (keyword == "dbname" &&
         value.find_first_of(is_conninfo_uri(conninfo) ? "=@" : "=") != std::string_view::npos);
    if (broken) {
        throw std::invalid_argument("the connection string for PostgreSQL has a " +
                                    std::string(keyword) +
                                    " that cannot be: what has a meaning in a URI must be "
                                    "percent-encoded in its password, '/' as %2F and '@' as "
                                    "%40");
    }
}

ORIZURU_INLINE Conninfo::Conninfo(const std::string& conninfo) {
    char* problem = nullptr;
    const std::unique_ptr<PQconninfoOption, decltype(&::PQconninfoFree)> options(
        ::PQconninfoParse(conninfo.c_str(), &problem), &::PQconninfoFree);
    ::PQfreemem(problem);
    if (!options || conninfo.find('\0') != std::string::npos) {
        throw std::invalid_argument("the connection string for PostgreSQL is neither "
                                    "keyword='value' pairs nor a postgresql:// URI that libpq "
                                    "understands");
    }
    const bool has_service = names_service(options.get());
    for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
        if (option->val != nullptr) {
            check_conninfo(option->keyword, option->val);
            check_conninfo_parts(conninfo, option->keyword, option->val);
            add(option->keyword, option->val);
            describe(option->keyword, option->val);
            continue;
        }
        for (const auto& [keyword, value] : conninfo_defaults) {
            if (keyword == option->keyword && !in_environment(*option) &&
                !(has_service && keyword == "target_session_attrs")) {
                add(keyword, value);
            }
        }
    }
    add("fallback_application_name", "orizuru");
}

ORIZURU_INLINE void Conninfo::add(std::string_view keyword, std::string_view value) {
    m_text += std::string(keyword) + "='";
    for (const char c : value) {
        m_text += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
    }
    m_text += "' ";
}

/// Takes only what says where the server is.
ORIZURU_INLINE void Conninfo::describe(std::string_view keyword, std::string_view value) {
    if (value.find_first_of(keyword == "host" ? "=" : "=@") != std::string_view::npos) {
        return;
    }
    for (const std::string_view told : {"host", "hostaddr", "port", "dbname", "user", "service"}) {
        if (keyword == told) {
            m_address += ' ' + std::string(keyword) + '=' + std::string(value);
        }
    }
}

} // namespace orizuru::detail
