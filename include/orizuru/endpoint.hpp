// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where Redis is and how to greet it, parsed from a URI:
//
//   redis://[[user]:password@]host[:port][/db][?query]     redis://[::1]:6379/2
//   unix://[[user]:password@]/path/to.sock[?db=N&query]
//
// Query: connect_timeout=ms (5000), command_timeout=ms (5000), client_name=text.
// User, password, host, path and client_name may be percent-encoded.

#include <sys/un.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace orizuru {

/// An address and the credentials for it: a cheap value, no connection. Not changed once made, so
/// it may be read by any number of threads.
class Endpoint {
  public:
    /// Parses `uri`. Throws std::invalid_argument that names the address (without the password)
    /// and the reason. `rediss://` is refused: TLS is not built yet.
    Endpoint(const char* uri) : Endpoint(std::string_view(uri)) {}
    Endpoint(const std::string& uri) : Endpoint(std::string_view(uri)) {}
    Endpoint(std::string_view uri) { parse(uri); }

    /// The socket's path; empty for TCP.
    [[nodiscard]] const std::string& path() const noexcept { return m_path; }
    [[nodiscard]] const std::string& host() const noexcept { return m_host; }
    [[nodiscard]] int port() const noexcept { return m_port; }
    [[nodiscard]] int db() const noexcept { return m_db; }
    [[nodiscard]] const std::string& user() const noexcept { return m_user; }
    [[nodiscard]] const std::optional<std::string>& password() const noexcept { return m_password; }
    [[nodiscard]] const std::string& client_name() const noexcept { return m_client_name; }

    /// Bound on connecting and greeting, name resolution excluded.
    [[nodiscard]] std::chrono::milliseconds connect_timeout() const noexcept {
        return m_connect_timeout;
    }
    /// Bound on waiting for a reply, on top of the time that a command blocks by itself.
    [[nodiscard]] std::chrono::milliseconds command_timeout() const noexcept {
        return m_command_timeout;
    }

    /// The address for messages: scheme, host and port or path, database; no user, no password.
    [[nodiscard]] std::string address() const {
        if (!m_path.empty()) {
            return "unix://" + m_path + (m_db == 0 ? "" : "?db=" + std::to_string(m_db));
        }
        const bool v6 = m_host.find(':') != std::string::npos;
        return "redis://" + (v6 ? "[" + m_host + "]" : m_host) + ":" + std::to_string(m_port) +
               (m_db == 0 ? "" : "/" + std::to_string(m_db));
    }

  private:
    [[noreturn]] static void refuse(std::string_view uri, const std::string& reason);
    static std::string redacted(std::string_view uri);
    static std::string decoded(std::string_view uri, std::string_view text);
    static long number(std::string_view uri, std::string_view text, const std::string& what,
                       long least, long most);

    void parse(std::string_view uri);
    void parse_credentials(std::string_view uri, std::string_view text);
    void parse_host(std::string_view uri, std::string_view text);
    void parse_query(std::string_view uri, std::string_view text);

    std::string m_path;
    std::string m_host;
    std::string m_user;
    std::optional<std::string> m_password;
    std::string m_client_name;
    int m_port = 6379;
    int m_db = 0;
    std::chrono::milliseconds m_connect_timeout{5000};
    std::chrono::milliseconds m_command_timeout{5000};
};

inline void Endpoint::parse(std::string_view uri) {
    if (const auto nul = uri.find('\0'); nul != std::string_view::npos) {
        refuse(uri.substr(0, nul), "a NUL byte follows");
    }
    const auto scheme_end = uri.find("://");
    if (scheme_end == std::string_view::npos) {
        refuse(uri, "it has no scheme; redis:// or unix:// is needed");
    }
    const std::string_view scheme = uri.substr(0, scheme_end);
    if (scheme == "rediss") {
        refuse(uri, "rediss:// (TLS) is not supported yet; use a TLS tunnel or a Unix socket");
    }
    if (scheme != "redis" && scheme != "unix") {
        refuse(uri, "its scheme is neither redis:// nor unix://");
    }
    std::string_view rest = uri.substr(scheme_end + 3);
    if (rest.find('#') != std::string_view::npos) {
        refuse(uri, "'#' must be percent-encoded");
    }
    // In a socket's path '@' is nothing special.
    const auto behind = rest.find_first_of(scheme == "unix" ? "?" : "/?");
    if (behind != std::string_view::npos && rest.find('@', behind) != std::string_view::npos) {
        refuse(uri, "'/' and '?' in a password, and '@' behind the host, must be percent-encoded");
    }
    std::string_view query;
    if (const auto mark = rest.find('?'); mark != std::string_view::npos) {
        query = rest.substr(mark + 1);
        rest = rest.substr(0, mark);
    }
    const auto slash = rest.find('/');
    std::string_view authority = rest.substr(0, slash);
    const std::string_view tail =
        slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
        parse_credentials(uri, authority.substr(0, at));
        authority = authority.substr(at + 1);
    }
    if (scheme == "unix") {
        if (!authority.empty() || tail.size() < 2) {
            refuse(uri, "a socket's path is needed, as in unix:///run/redis.sock");
        }
        m_path = decoded(uri, tail);
        if (m_path.size() >= sizeof(sockaddr_un::sun_path)) {
            refuse(uri, "its path is longer than the " +
                            std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                            " bytes that a Unix socket address can hold");
        }
    } else {
        parse_host(uri, authority);
        if (tail.size() > 1) {
            m_db = static_cast<int>(
                number(uri, tail.substr(1), "the database", 0, std::numeric_limits<int>::max()));
        }
    }
    if (!query.empty()) {
        parse_query(uri, query);
    }
}

inline void Endpoint::parse_credentials(std::string_view uri, std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) {
        refuse(uri, "a user without a password; write user:password@ or :password@");
    }
    m_user = decoded(uri, text.substr(0, colon));
    m_password = decoded(uri, text.substr(colon + 1));
}

inline void Endpoint::parse_host(std::string_view uri, std::string_view text) {
    std::string_view port;
    bool has_port = false;
    if (text.starts_with('[')) {
        const auto close = text.find(']');
        if (close == std::string_view::npos) {
            refuse(uri, "'[' without ']'");
        }
        m_host = decoded(uri, text.substr(1, close - 1));
        text = text.substr(close + 1);
        if (!text.empty() && !text.starts_with(':')) {
            refuse(uri, "only a port may follow ']'");
        }
        has_port = !text.empty();
        port = has_port ? text.substr(1) : text;
    } else {
        const auto colon = text.find(':');
        if (colon != text.rfind(':')) {
            refuse(uri, "an IPv6 address belongs in brackets, as in redis://[::1]:6379");
        }
        m_host = decoded(uri, text.substr(0, colon));
        has_port = colon != std::string_view::npos;
        port = has_port ? text.substr(colon + 1) : std::string_view();
    }
    if (m_host.empty()) {
        refuse(uri, "the host is missing");
    }
    if (has_port) {
        m_port = static_cast<int>(number(uri, port, "the port", 1, 65535));
    }
}

inline void Endpoint::parse_query(std::string_view uri, std::string_view text) {
    while (!text.empty()) {
        const auto amp = text.find('&');
        const std::string_view pair = text.substr(0, amp);
        text = amp == std::string_view::npos ? std::string_view() : text.substr(amp + 1);
        const auto equals = pair.find('=');
        const std::string_view key = pair.substr(0, equals);
        const std::string_view value =
            equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
        constexpr long longest = 24L * 60 * 60 * 1000;
        if (key == "connect_timeout") {
            m_connect_timeout = std::chrono::milliseconds(
                number(uri, value, "connect_timeout (milliseconds)", 1, longest));
        } else if (key == "command_timeout") {
            m_command_timeout = std::chrono::milliseconds(
                number(uri, value, "command_timeout (milliseconds)", 1, longest));
        } else if (key == "client_name") {
            m_client_name = decoded(uri, value);
            for (const char c : m_client_name) {
                if (c < '!' || c > '~') {
                    refuse(uri, "client_name may hold only printable ASCII without spaces");
                }
            }
        } else if (key == "db" && !m_path.empty()) {
            m_db = static_cast<int>(number(uri, value, "db", 0, std::numeric_limits<int>::max()));
        } else {
            // Not named: it may be a part of a password.
            refuse(uri, m_path.empty()
                            ? "a query key other than connect_timeout, command_timeout, client_name"
                            : "a query key other than db, connect_timeout, command_timeout, "
                              "client_name");
        }
    }
}

inline void Endpoint::refuse(std::string_view uri, const std::string& reason) {
    throw std::invalid_argument("Redis address '" + redacted(uri) + "': " + reason);
}

// Of a text that failed to parse any part may be a password in the wrong place: only what can
// hardly be one is shown. That is a known scheme, the host, a port of at most five digits and,
// where no host is, a path.
inline std::string Endpoint::redacted(std::string_view uri) {
    constexpr const char* hidden = "***";
    std::string shown;
    if (const auto end = uri.find("://"); end != std::string_view::npos) {
        const std::string_view scheme = uri.substr(0, end);
        if (scheme != "redis" && scheme != "rediss" && scheme != "unix") {
            return hidden;
        }
        shown = uri.substr(0, end + 3);
        uri.remove_prefix(end + 3);
    }
    std::string_view authority = uri.substr(0, uri.find_first_of("/?#"));
    const std::string_view tail = uri.substr(authority.size());
    if (tail.find('@') != std::string_view::npos) {
        return shown + hidden;
    }
    authority = authority.substr(authority.rfind('@') + 1);
    if (authority.empty()) {
        const bool path = !shown.starts_with("redis");
        return shown + std::string(path ? tail.substr(0, tail.find_first_of("?#")) : "");
    }
    const bool v6 = authority.starts_with('[') && authority.find(']') != std::string_view::npos;
    const auto host = authority.substr(0, v6 ? authority.find(']') + 1 : authority.find(':'));
    const auto port = authority.substr(host.size());
    if (port.empty() || (!host.empty() && port.starts_with(':') && port.size() <= 6 &&
                         port.find_first_not_of("0123456789", 1) == std::string_view::npos)) {
        return shown + std::string(authority);
    }
    return shown + (v6 ? hidden : std::string(host) + ":" + hidden);
}

inline std::string Endpoint::decoded(std::string_view uri, std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        unsigned value = 0;
        const char* const first = text.data() + i + 1;
        const char* const last = text.data() + text.size();
        if (last - first < 2 || std::from_chars(first, first + 2, value, 16).ptr != first + 2) {
            refuse(uri, "'%' is not followed by two hexadecimal digits");
        }
        if (value == 0) {
            refuse(uri, "%00 is not allowed");
        }
        out += static_cast<char>(value);
        i += 2;
    }
    return out;
}

inline long Endpoint::number(std::string_view uri, std::string_view text, const std::string& what,
                             long least, long most) {
    long value = 0;
    const char* const last = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), last, value);
    if (text.empty() || parsed.ec != std::errc() || parsed.ptr != last || value < least ||
        value > most) {
        refuse(uri, what + " must be a number from " + std::to_string(least) + " to " +
                        std::to_string(most));
    }
    return value;
}

} // namespace orizuru
