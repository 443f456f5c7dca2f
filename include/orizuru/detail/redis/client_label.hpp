// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Names connections whose address has no client_name, as far as the user may name them.

#include <orizuru/endpoint.hpp>

#include <memory>
#include <string>
#include <utility>

namespace orizuru::detail {

struct ClientLabel {
    /// The same address, for connections with this label.
    [[nodiscard]] static Endpoint give(Endpoint endpoint, std::string label) {
        endpoint.m_label = std::make_shared<const std::string>(std::move(label));
        return endpoint;
    }
    /// Null when there is none.
    [[nodiscard]] static const std::string* of(const Endpoint& endpoint) noexcept {
        return endpoint.m_label.get();
    }
};

} // namespace orizuru::detail
