// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// All that an Endpoint holds, and the way into it for the rest of the library.

#include <memory>
#include <string>

namespace orizuru {
class Endpoint;
} // namespace orizuru

namespace orizuru::detail {

struct Address;
class KeyPlace;
class NodeList;
class Security;
class Wake;

struct EndpointParts {
    std::shared_ptr<const Address> address{};
    std::shared_ptr<const Security> security{}; ///< null: no encryption
    std::shared_ptr<NodeList> nodes{};          ///< null: the address says where the server is
    std::shared_ptr<KeyPlace> place{};          ///< null: no key decides where it is
    std::shared_ptr<const std::string> label{}; ///< in place of an empty client_name
    std::shared_ptr<const Wake> cutoff{};       ///< once signalled, nothing waits; see Cutoff

    [[nodiscard]] static auto& of(auto& endpoint) noexcept { return endpoint.m_parts; }
    /// Adds the list of the address' nodes.
    [[nodiscard]] static Endpoint join(EndpointParts parts);
};

} // namespace orizuru::detail
