// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The address of Redis and how to greet it, parsed from a URI:
//
//   redis://[[user]:password@]host[:port][/db][?query]     redis://[::1]:6379/2
//   redis+sentinel://[[user]:password@]host[:port][,host[:port]…]/service[/db][?query]
//   redis+cluster://[[user]:password@]host[:port][,host[:port]…][?query]
//   unix://[[user]:password@]/path/to.sock[?db=N&query]
//   rediss://…, rediss+sentinel://…, rediss+cluster://…: over TLS, by tls_endpoint of tls.hpp
//
// Query: connect_timeout=ms (5000), command_timeout=ms (5000), client_name=text; with sentinels
// also sentinel_user=text and sentinel_password=text: user and password are the server's. All texts
// may be percent-encoded. valkey:// and valkeys:// are other words for redis:// and rediss://.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru {

/// An address and its credentials: a cheap value, no connection. Copies share what was parsed,
/// which does not change: any number of threads may read it. Of no use once it was moved from.
/// References that it returns are valid as long as it or a copy of it.
class Endpoint {
  public:
    /// Parses `uri`, which must not be null. Throws std::invalid_argument that names the address
    /// (without the password) and the reason. Refuses `rediss://`, which tls_endpoint takes.
    ///
    /// A connection tries the addresses of the host's name one after the other, IPv6 and IPv4 by
    /// turns (RFC 8305, section 4), until one takes it. While others are left, one that does not
    /// answer has a third of the time at most, or half where it is the last but one.
    ///
    /// With sentinels, each connection asks them, one after the other and first the one that
    /// answered last, where the master is, and makes sure by ROLE that it is one. It learns of
    /// other sentinels. All of this is within connect_timeout.
    ///
    /// In a Cluster, each object for a queue finds the node that has it, by the TYPE of its key,
    /// and follows when another node gets it. The hosts are some of the nodes; it learns of others
    /// where it may ask for CLUSTER SLOTS. A Connection of your own goes to any of the nodes.
    Endpoint(const char* uri) : Endpoint(std::string_view(uri)) {}
    /// Does the same for a std::string.
    Endpoint(const std::string& uri) : Endpoint(std::string_view(uri)) {}
    /// Does the same for a std::string_view.
    Endpoint(std::string_view uri);

    /// The socket's path; empty for TCP. With sentinels and in a Cluster, path and host are empty.
    [[nodiscard]] const std::string& path() const noexcept { return m_parts.address->path; }
    /// A name or an IP address, IPv6 without brackets; empty for a Unix socket.
    [[nodiscard]] const std::string& host() const noexcept { return m_parts.address->server.host; }
    /// The port of host(), 6379 unless the address has another; without a meaning where that is
    /// empty.
    [[nodiscard]] int port() const noexcept { return m_parts.address->server.port; }
    /// The number of the database, 0 unless the address has another; always 0 in a Cluster.
    [[nodiscard]] int db() const noexcept { return m_parts.address->db; }
    /// The name for AUTH; empty = the default user.
    [[nodiscard]] const std::string& user() const noexcept { return m_parts.address->user; }
    /// The password for AUTH; nothing = connections send no AUTH.
    [[nodiscard]] const std::optional<std::string>& password() const noexcept {
        return m_parts.address->password;
    }
    /// The name that connections give themselves (CLIENT SETNAME); empty = the address has none.
    [[nodiscard]] const std::string& client_name() const noexcept {
        return m_parts.address->client_name;
    }

    /// The limit on connecting and greeting, name resolution excluded.
    [[nodiscard]] std::chrono::milliseconds connect_timeout() const noexcept {
        return m_parts.address->connect_timeout;
    }
    /// The limit on waiting for a reply, on top of the time that a command itself blocks.
    [[nodiscard]] std::chrono::milliseconds command_timeout() const noexcept {
        return m_parts.address->command_timeout;
    }

    /// The address for log messages: scheme, host and port or path, database; no user, no password.
    [[nodiscard]] [[gnu::cold]] std::string address() const;

  private:
    friend struct detail::EndpointParts;

    explicit Endpoint(detail::EndpointParts&& parts);

    detail::EndpointParts m_parts;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/values/endpoint.ipp>
#endif
