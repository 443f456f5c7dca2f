// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A small HTTP server for a Dashboard, for browsers on the same machine.
//
// Needs Boost.Beast (libboost-dev), its headers only, and nlohmann/json as dashboard.hpp does; it
// links the threads library alone. With ORIZURU_SEPARATE_COMPILATION the definition is in
// <orizuru/ops/src.hpp>, too.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/ops/dashboard.hpp>
#include <orizuru/ops/serve_options.hpp>

#include <stop_token>
#include <string>

namespace orizuru {

/// Serves the dashboard at an address until a stop is requested, on the calling thread alone. Each
/// connection has one request, whose head has at most 8 KiB and which has no body.
///
/// The address is "127.0.0.1:8080", "[::1]:8080", "localhost:8080", each with port 0 for any free
/// one, or the path of a Unix socket ("unix:///run/orizuru.sock" or "/run/orizuru.sock"), which
/// only its owner may use. A socket that nobody serves any more is replaced.
///
/// An IP address goes into the link, and browsers may reach the page by it, besides by
/// DashboardOptions::hosts. Of all addresses (0.0.0.0, [::]) the link has the first of those.
///
/// Throws std::invalid_argument for an address that cannot be, that other machines reach without
/// `expose`, or that is all addresses without one of `hosts`, and std::system_error when it cannot
/// listen there.
void serve(Dashboard& dashboard, const std::string& address, const std::stop_token& stop,
           const ServeOptions& options = {});

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/serve.ipp>
#endif
