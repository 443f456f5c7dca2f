// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where the server of an endpoint is found, when its address does not say it.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/node_list.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/host_addresses.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// Returns nothing where it is no address.
[[nodiscard]] [[gnu::cold]] inline std::optional<Node> node_of(std::string_view host,
                                                               std::string_view port) {
    const auto number = whole_number(port);
    const bool plain = std::ranges::all_of(host, [](char c) { return c > ' ' && c <= '~'; });
    if (host.empty() || !plain || !number || *number < 1 || *number > 65535) {
        return std::nullopt;
    }
    return Node{std::string(host), static_cast<int>(*number)};
}

/// The host of a node of a Cluster: "" and "?" stand for that of the node which says so.
[[nodiscard]] [[gnu::cold]] inline std::string_view host_of(std::string_view said,
                                                            const Node& teller) {
    return said.empty() || said == "?" ? teller.host : said;
}

/// The node in a Cluster's "MOVED <slot> <host>:<port>", or ASK. Throws ProtocolError for what is
/// no address.
[[nodiscard]] [[gnu::cold]] inline Node node_in(std::string_view redirection, const Node& teller) {
    redirection.remove_prefix(redirection.rfind(' ') + 1);
    const auto colon = std::min(redirection.rfind(':'), redirection.size());
    auto node = node_of(host_of(redirection.substr(0, colon), teller),
                        redirection.substr(std::min(colon + 1, redirection.size())));
    if (!node) {
        throw ProtocolError(joined({to_text(teller), " told of an address that is none"}));
    }
    return *std::move(node);
}

struct Route {
    /// False where connecting resolves no name: with a Unix socket, or a number as the host. What
    /// sentinels and the nodes of a Cluster say may be names.
    [[nodiscard]] [[gnu::cold]] static bool has_names(const Endpoint& endpoint) noexcept {
        const Address& address = *EndpointParts::of(endpoint).address;
        return address.path.empty() &&
               (address.topology != Topology::one || !is_numeric(address.server.host));
    }
    /// Notes where a Stream's error, for which is_astray() holds, says that the key is now.
    static void note_move(const Endpoint& endpoint, std::string_view error, const Node& teller) {
        error = error.substr(0, error.find(redirected));
        EndpointParts::of(endpoint).place->set(
            error.starts_with("MOVED ") ? std::optional(node_in(error, teller)) : std::nullopt);
    }
    /// Returns the address for connections that need this key: in a Cluster they go to its node.
    /// All copies of the result share the place of the key, also with an endpoint that has it
    /// already.
    [[nodiscard]] static Endpoint to_key(Endpoint endpoint, std::string_view key) {
        EndpointParts& parts = EndpointParts::of(endpoint);
        const bool known = parts.place && parts.place->key() == key;
        if (parts.address->topology == Topology::cluster && !known) {
            parts.place = std::make_shared<KeyPlace>(std::string(key));
        }
        return endpoint;
    }
    /// The node to which a Stream's error "TRYAGAIN ASK ..." refers; nothing for another error.
    [[nodiscard]] static std::optional<Endpoint> asked(const Endpoint& endpoint,
                                                       const Reply& error) {
        const EndpointParts& parts = EndpointParts::of(endpoint);
        if (!parts.place || !error.text.starts_with("TRYAGAIN ASK ")) {
            return std::nullopt;
        }
        return to_node(endpoint, node_in(error.text, parts.place->node().value_or(Node())));
    }
    /// One node of a Cluster, whatever keys it has.
    [[nodiscard]] static Endpoint to_node(const Endpoint& endpoint, const Node& node) {
        EndpointParts parts = EndpointParts::of(endpoint);
        auto address = std::make_shared<Address>(*parts.address);
        address->topology = Topology::one;
        address->nodes.clear();
        address->server = node;
        parts.address = std::move(address);
        parts.nodes.reset();
        parts.place.reset();
        return EndpointParts::join(std::move(parts));
    }
    /// The endpoint of one of its sentinels.
    [[nodiscard]] static Endpoint to_asked(const Endpoint& endpoint, const Node& sentinel) {
        const EndpointParts& parts = EndpointParts::of(endpoint);
        auto address = std::make_shared<Address>();
        address->server = sentinel;
        address->user = parts.address->sentinel_user;
        address->password = parts.address->sentinel_password;
        address->tls = parts.address->tls;
        return EndpointParts::join({.address = std::move(address), .security = parts.security});
    }
};

} // namespace orizuru::detail
