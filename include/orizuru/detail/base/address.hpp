// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The parts of a Redis address.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orizuru::detail {

/// Paths of PEM files, and the certificate's name if not the host's. Empty: not given.
struct TlsFiles {
    std::string cacert;
    std::string cacertdir;
    std::string cert;
    std::string key;
    std::string sni;
};

struct Node {
    std::string host;
    int port = 0;

    friend bool operator==(const Node&, const Node&) = default;
};

/// Role of an address's hosts.
enum class Topology : std::uint8_t {
    one,       ///< the server
    sentinels, ///< they know where the server is
    cluster    ///< some nodes of a Cluster
};

struct Address {
    Topology topology = Topology::one;
    std::string path; ///< a Unix socket's; empty for TCP
    Node server{"", 6379};
    std::vector<Node> nodes; ///< sentinels, or of a cluster; then server is nothing
    std::string service;     ///< the sentinels' name for the server
    std::string sentinel_user;
    std::optional<std::string> sentinel_password;
    int db = 0;
    std::string user;
    std::optional<std::string> password;
    std::string client_name;
    std::chrono::milliseconds connect_timeout{5000};
    std::chrono::milliseconds command_timeout{5000};
    std::optional<TlsFiles> tls; ///< only for a rediss:// address
};

} // namespace orizuru::detail
