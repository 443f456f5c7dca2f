// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// How the processes of a test reach Redis, by the option --over: "plain", mostly a Unix socket, or
// "tls".

#pragma once

#include "support/certificates.hpp"
#include "support/redis_server.hpp"

#include <stdexcept>
#include <string>

namespace orizuru::test {

class Transport {
  public:
    explicit Transport(const std::string& name) : m_tls(name == "tls") {
        if (!m_tls && name != "plain") {
            throw std::invalid_argument("--over is plain or tls");
        }
    }

    [[nodiscard]] bool is_tls() const noexcept { return m_tls; }
    [[nodiscard]] RedisServer server() const { return m_tls ? tls_server() : RedisServer(); }
    /// Where a Proxy leads to.
    [[nodiscard]] std::string backend(const RedisServer& server) const {
        return m_tls ? std::to_string(server.port()) : server.socket_path();
    }
    /// A server's or a proxy's address, with all that a client needs.
    [[nodiscard]] std::string complete(const std::string& uri) const {
        return m_tls ? uri + Certificates::made().trusting() : uri;
    }
    /// Timeouts that make a silent connection cost little, and that a busy machine can keep.
    [[nodiscard]] std::string impatience() const {
        // Handshakes take their time where many threads are at them.
        return m_tls ? "connect_timeout=1000&command_timeout=1000"
                     : "connect_timeout=250&command_timeout=250";
    }

  private:
    bool m_tls;
};

/// Adds keys and their values to an address.
[[nodiscard]] inline std::string with_query(const std::string& uri, const std::string& query) {
    return uri + (uri.find('?') == std::string::npos ? '?' : '&') + query;
}

} // namespace orizuru::test
