// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A connection string of libpq, read by libpq, with what we set unless the user has.

#include <libpq-fe.h>

#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class Conninfo {
  public:
    /// Throws std::invalid_argument. libpq's own words may repeat a password: they are not told.
    /// Nor is it given a host, a port or a database that may be part of one: what it says
    /// when it cannot connect is told.
    explicit Conninfo(const std::string& conninfo);

    [[nodiscard]] const std::string& text() const noexcept { return m_text; }
    [[nodiscard]] const std::string& address() const noexcept { return m_address; }

  private:
    // One encoding for all, whatever the environment says; and a dead peer is noticed within 30 s;
    // libpq's default is to wait for ever.
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> defaults{
        {{"client_encoding", "UTF8"},
         {"connect_timeout", "5"},
         {"keepalives_idle", "15"},
         {"keepalives_interval", "5"},
         {"keepalives_count", "3"},
         {"tcp_user_timeout", "30000"}}};

    /// An id has to be the same text for all. What is told as an address has no place for a URI,
    /// which may have a password in it.
    static void check(std::string_view keyword, std::string_view value) {
        if (value.find("://") != std::string_view::npos &&
            (keyword == "host" || keyword == "dbname" || keyword == "user")) {
            throw std::invalid_argument("a connection to PostgreSQL cannot have a URI as its " +
                                        std::string(keyword));
        }
        if (keyword == "client_encoding" && value != "UTF8" && value != "utf8" &&
            value != "UTF-8" && value != "utf-8") {
            throw std::invalid_argument("the client_encoding of a connection to PostgreSQL must be "
                                        "UTF8");
        }
    }
    [[nodiscard]] static bool is_uri(std::string_view conninfo) {
        return conninfo.starts_with("postgresql://") || conninfo.starts_with("postgres://");
    }
    /// Of several hosts; a host that begins with one is an abstract socket.
    [[nodiscard]] static bool has_inner_at(std::string_view hosts) {
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
    static void check_parts(std::string_view conninfo, std::string_view keyword,
                            std::string_view value) {
        const bool broken =
            (keyword == "port" &&
             value.find_first_not_of("0123456789,") != std::string_view::npos) ||
            (keyword == "host" && has_inner_at(value)) ||
            (keyword == "dbname" &&
             value.find_first_of(is_uri(conninfo) ? "=@" : "=") != std::string_view::npos);
        if (broken) {
            throw std::invalid_argument("the connection string for PostgreSQL has a " +
                                        std::string(keyword) +
                                        " that cannot be: what has a meaning in a URI must be "
                                        "percent-encoded in its password, '/' as %2F and '@' as "
                                        "%40");
        }
    }
    void add(std::string_view keyword, std::string_view value) {
        m_text += std::string(keyword) + "='";
        for (const char c : value) {
            m_text += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
        }
        m_text += "' ";
    }
    /// As far as it says where the server is, and is no more than that.
    void describe(std::string_view keyword, std::string_view value) {
        if (value.find_first_of(keyword == "host" ? "=" : "=@") != std::string_view::npos) {
            return;
        }
        for (const std::string_view told :
             {"host", "hostaddr", "port", "dbname", "user", "service"}) {
            if (keyword == told) {
                m_address += ' ' + std::string(keyword) + '=' + std::string(value);
            }
        }
    }

    std::string m_text;
    std::string m_address = "PostgreSQL";
};

inline Conninfo::Conninfo(const std::string& conninfo) {
    char* problem = nullptr;
    const std::unique_ptr<PQconninfoOption, decltype(&::PQconninfoFree)> options(
        ::PQconninfoParse(conninfo.c_str(), &problem), &::PQconninfoFree);
    ::PQfreemem(problem);
    if (!options || conninfo.find('\0') != std::string::npos) {
        throw std::invalid_argument("the connection string for PostgreSQL is neither "
                                    "keyword='value' pairs nor a postgresql:// URI that libpq "
                                    "understands");
    }
    for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
        if (option->val != nullptr) {
            check(option->keyword, option->val);
            check_parts(conninfo, option->keyword, option->val);
            add(option->keyword, option->val);
            describe(option->keyword, option->val);
            continue;
        }
        for (const auto& [keyword, value] : defaults) {
            if (keyword == option->keyword) {
                add(keyword, value);
            }
        }
    }
    add("fallback_application_name", "orizuru");
}

} // namespace orizuru::detail
