// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The command `web` of the program `orizuru`: serves the web page.
//
// Needs what cli.hpp and serve.hpp need. With ORIZURU_SEPARATE_COMPILATION the definition is in
// <orizuru/ops/src.hpp>.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/ops/cli.hpp>
#include <orizuru/ops/dashboard_options.hpp>

namespace orizuru {

/// Adds `web [ADDRESS] [--read-only] [--no-payloads] [--expose] [--host NAME]...`, which prints the
/// page's link and serves it until SIGINT or SIGTERM. ADDRESS is as for `serve`, 127.0.0.1:8080 by
/// default; all addresses (0.0.0.0) need a NAME for the link. `options` are those that the
/// arguments do not change.
void add_web_command(Cli& cli, DashboardOptions options = {});

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/web_command.ipp>
#endif
