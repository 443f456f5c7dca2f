// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The options of `serve`.

#include <chrono>
#include <functional>
#include <string>

namespace orizuru {

/// Options of serve().
struct ServeOptions {
    /// Listens also on an address that other machines reach. There is no TLS: a proxy has to add
    /// it. Name the hosts in DashboardOptions::hosts.
    bool expose = false;
    /// The longest time from the beginning of a connection to the end of its response, 10 ms to 1
    /// min.
    std::chrono::milliseconds request_timeout = std::chrono::seconds(5);
    /// The most connections at once, 1 to 10,000; a further one is closed at once.
    int connections = 64;
    /// Called once it listens, with the origin for Dashboard::link: "http://127.0.0.1:8080". For a
    /// Unix socket it is "http://localhost", as somebody has to forward a port to it.
    std::function<void(const std::string& origin)> on_listening = {};
};

} // namespace orizuru
