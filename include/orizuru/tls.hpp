// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// TLS for all that takes an Endpoint. It needs OpenSSL 1.1.1 or newer: -lssl -lcrypto, or the
// dependency orizuru-tls.
//
//   rediss://[[user]:password@]host[:port][/db][?query]
//
// Query, besides endpoint.hpp's: cacert=file or cacertdir=folder of the authorities to trust (the
// system's by default); cert=file and key=file of the client's certificate, with its chain, and its
// key, without a password; sni=name, which the server's certificate must have in place of the
// host's. Files are PEM.
//
// With ORIZURU_SEPARATE_COMPILATION, src.hpp leaves this out, so that programs without TLS need not
// link OpenSSL. A program that uses it also includes <orizuru/tls/src.hpp> in one of its
// translation units.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/endpoint.hpp>

#include <string_view>

namespace orizuru {

/// An endpoint whose connections use TLS 1.2 or newer; the same as Endpoint(uri) for an address
/// that is not `rediss://` or `valkeys://`. Reads the files once: all copies of the endpoint share
/// what was read, and a renewed certificate is seen by a new endpoint.
///
/// The server's certificate is always verified, and always for its name: the host as the address
/// has it, a host name or an IP address.
///
/// Throws std::invalid_argument, as Endpoint does, and when a file cannot be read or a key does not
/// belong to its certificate. What a connection of the endpoint throws besides: ReplyError with the
/// code "TLS" when one side refuses the other's certificate, ProtocolError when the port does not
/// speak TLS.
[[nodiscard]] Endpoint tls_endpoint(std::string_view uri);

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/tls/tls_endpoint.ipp>
#endif
