// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of tls.hpp.

#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/uri.hpp>
#include <orizuru/detail/tls/tls_context.hpp>

#include <memory>

namespace orizuru {

ORIZURU_INLINE Endpoint tls_endpoint(std::string_view uri) {
    const auto address = detail::UriParser(uri).parse();
    if (!address->tls) {
        return {uri};
    }
    Endpoint endpoint = detail::EndpointParts::join({.address = address});
    detail::EndpointParts::of(endpoint).security =
        std::make_shared<const detail::TlsContext>(*address->tls, endpoint.address());
    return endpoint;
}

} // namespace orizuru
