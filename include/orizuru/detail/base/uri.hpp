// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Parses the address of a Redis; endpoint.hpp lists its forms.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/redacted.hpp>

#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// Removes the part of `text` up to the first `separator`, and that; returns the part.
[[nodiscard]] [[gnu::cold]] inline std::string_view cut_part(std::string_view& text,
                                                             char separator) noexcept {
    const std::string_view part = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    return part;
}

class UriParser {
  public:
    explicit UriParser(std::string_view uri) : m_uri(uri) {}

    /// Call it once. Throws std::invalid_argument: the address without a password, and the reason.
    [[gnu::cold]] std::shared_ptr<const Address> parse();

  private:
    [[noreturn]] [[gnu::cold]] void refuse(std::string_view reason) const {
        throw std::invalid_argument(joined({"Redis address '", redacted(m_uri), "': ", reason}));
    }
    [[nodiscard]] [[gnu::cold]] std::string decoded(std::string_view text) const {
        std::string out;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '%') {
                out += text[i];
                continue;
            }
            const std::string digits(text.substr(i + 1, 2));
            if (digits.size() < 2 ||
                digits.find_first_not_of("0123456789ABCDEFabcdef") != std::string::npos) {
                refuse("'%' is not followed by two hexadecimal digits");
            }
            out += static_cast<char>(std::stoi(digits, nullptr, 16));
            if (out.back() == '\0') {
                refuse("%00 is not allowed");
            }
            i += 2;
        }
        return out;
    }
    [[nodiscard]] [[gnu::cold]] int number(std::string_view text, std::string_view what, int least,
                                           int most = std::numeric_limits<int>::max()) const {
        const auto value = whole_number(text);
        if (!value || std::cmp_less(*value, least) || std::cmp_greater(*value, most)) {
            refuse(joined({what, " must be a number from ", Digits(least), " to ", Digits(most)}));
        }
        return static_cast<int>(*value);
    }

    [[gnu::cold]] void parse_credentials(std::string_view text) {
        const auto colon = text.find(':');
        if (colon == std::string_view::npos) {
            refuse("a user without a password; write user:password@ or :password@");
        }
        m_address->user = decoded(text.substr(0, colon));
        m_address->password = decoded(text.substr(colon + 1));
    }
    [[gnu::cold]] void parse_nodes(std::string_view text, int default_port) {
        const bool ends_with_comma = text.ends_with(','); // then the last host is missing
        do {
            m_address->nodes.push_back(parse_host(cut_part(text, ','), default_port));
        } while (!text.empty() || ends_with_comma);
    }
    [[nodiscard]] [[gnu::cold]] Node parse_host(std::string_view text, int default_port) const;
    [[gnu::cold]] void parse_query(std::string_view text);
    /// Null if there is no such key.
    [[nodiscard]] [[gnu::cold]] std::string* tls_text(std::string_view key) noexcept {
        TlsFiles& files = *m_address->tls;
        return key == "cacert"      ? &files.cacert
               : key == "cacertdir" ? &files.cacertdir
               : key == "cert"      ? &files.cert
               : key == "key"       ? &files.key
               : key == "sni"       ? &files.sni
                                    : nullptr;
    }

    std::string_view m_uri;
    std::shared_ptr<Address> m_address = std::make_shared<Address>();
};

inline std::shared_ptr<const Address> UriParser::parse() {
    if (const auto nul = m_uri.find('\0'); nul != std::string_view::npos) {
        m_uri = m_uri.substr(0, nul);
        refuse("a NUL byte follows");
    }
    const auto scheme_end = m_uri.find("://");
    if (scheme_end == std::string_view::npos) {
        refuse("it has no scheme; redis:// or unix:// is needed");
    }
    const std::string_view scheme = m_uri.substr(0, scheme_end);
    if (!is_scheme(scheme)) {
        refuse(
            "its scheme is none of redis://, rediss:// (each also with +sentinel or +cluster) and "
            "unix://");
    }
    if (scheme.starts_with("rediss") || scheme.starts_with("valkeys")) {
        m_address->tls.emplace();
    }
    std::string_view rest = m_uri.substr(scheme_end + 3);
    if (rest.find('#') != std::string_view::npos) {
        refuse("'#' must be percent-encoded");
    }
    // In a socket's path '@' is nothing special.
    const auto behind = rest.find_first_of(scheme == "unix" ? "?" : "/?");
    if (behind != std::string_view::npos && rest.find('@', behind) != std::string_view::npos) {
        refuse("'/' and '?' in a password, and '@' behind the host, must be percent-encoded");
    }
    std::string_view query = rest;
    rest = cut_part(query, '?');
    std::string_view authority = rest.substr(0, rest.find('/'));
    std::string_view tail = rest.substr(authority.size());
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
        parse_credentials(authority.substr(0, at));
        authority = authority.substr(at + 1);
    }
    if (scheme == "unix") {
        if (!authority.empty() || tail.size() < 2) {
            refuse("a socket's path is needed, as in unix:///run/redis.sock");
        }
        m_address->path = decoded(tail);
        if (m_address->path.size() >= sizeof(sockaddr_un::sun_path)) {
            refuse(
                joined({"its path is longer than the ", Digits(sizeof(sockaddr_un::sun_path) - 1),
                        " bytes that a Unix socket address can hold"}));
        }
    } else {
        if (scheme.ends_with("+cluster")) {
            m_address->topology = Topology::cluster;
            parse_nodes(authority, 6379);
            if (tail.size() > 1 && tail != "/0") {
                refuse("a Cluster has only the database 0");
            }
        } else if (scheme.ends_with("+sentinel")) {
            m_address->topology = Topology::sentinels;
            parse_nodes(authority, 26379);
            const auto end = std::min(tail.find('/', 1), tail.size());
            m_address->service = decoded(tail.empty() ? tail : tail.substr(1, end - 1));
            tail.remove_prefix(end);
            if (m_address->service.empty()) {
                refuse("the name of the service is missing, as in redis+sentinel://host/service");
            }
        } else {
            if (authority.find(',') != std::string_view::npos) {
                refuse("several hosts are the sentinels of redis+sentinel:// or nodes of "
                       "redis+cluster://");
            }
            m_address->server = parse_host(authority, 6379);
        }
        if (tail.size() > 1) {
            m_address->db = number(tail.substr(1), "the database", 0);
        }
    }
    parse_query(query);
    return m_address;
}

inline Node UriParser::parse_host(std::string_view text, int default_port) const {
    Node node{{}, default_port};
    auto end = text.find(':');
    if (text.starts_with('[')) {
        end = text.find(']');
        if (end == std::string_view::npos) {
            refuse("'[' without ']'");
        }
        node.host = decoded(text.substr(1, end - 1));
        ++end;
        if (end < text.size() && text[end] != ':') {
            refuse("only a port may follow ']'");
        }
    } else {
        if (end != text.rfind(':')) {
            refuse("an IPv6 address belongs in brackets, as in redis://[::1]:6379");
        }
        node.host = decoded(text.substr(0, end));
    }
    if (node.host.empty()) {
        refuse("the host is missing");
    }
    if (end < text.size()) {
        node.port = number(text.substr(end + 1), "the port", 1, 65535);
    }
    return node;
}

inline void UriParser::parse_query(std::string_view text) {
    const bool has_sentinels = m_address->topology == Topology::sentinels;
    while (!text.empty()) {
        std::string_view value = cut_part(text, '&');
        const bool has_equals = value.find('=') != std::string_view::npos;
        const std::string_view key = cut_part(value, '=');
        constexpr int longest = 24 * 60 * 60 * 1000;
        if (key == "connect_timeout") {
            m_address->connect_timeout = std::chrono::milliseconds(
                number(value, "connect_timeout (milliseconds)", 1, longest));
        } else if (key == "command_timeout") {
            m_address->command_timeout = std::chrono::milliseconds(
                number(value, "command_timeout (milliseconds)", 1, longest));
        } else if (key == "client_name") {
            m_address->client_name = decoded(value);
            if (std::ranges::any_of(m_address->client_name,
                                    [](char c) { return c < '!' || c > '~'; })) {
                refuse("client_name may hold only printable ASCII without spaces");
            }
        } else if (key == "db" && !m_address->path.empty()) {
            m_address->db = number(value, "db", 0);
        } else if (key == "sentinel_user" && has_sentinels) {
            m_address->sentinel_user = decoded(value);
        } else if (key == "sentinel_password" && has_sentinels) {
            m_address->sentinel_password = decoded(value);
        } else if (std::string* const path = m_address->tls ? tls_text(key) : nullptr) {
            *path = decoded(value);
            if (path->empty()) {
                refuse(joined({key, " is empty"}));
            }
        } else {
            // Names the key only if it can hardly be a part of a password.
            const bool plain =
                has_equals && !key.empty() && key.size() <= 32 &&
                key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_-") == std::string_view::npos;
            refuse(joined({"unknown query key", plain ? " '" : "", plain ? key : "",
                           plain ? "'" : "", "; known: ", m_address->path.empty() ? "" : "db, ",
                           "connect_timeout, command_timeout, client_name",
                           !has_sentinels ? "" : ", sentinel_user, sentinel_password",
                           m_address->tls ? ", cacert, cacertdir, cert, key, sni" : ""}));
        }
    }
}

} // namespace orizuru::detail
