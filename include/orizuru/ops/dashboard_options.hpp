// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The options of a Dashboard.

#include <orizuru/ops/dashboard_request.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru {

/// Rights of a viewer.
enum class DashboardAccess {
    none, ///< no data
    read, ///< all data, but changes nothing
    write ///< also pause queues, and run, move and remove messages
};

/// Options of a Dashboard.
struct DashboardOptions {
    /// Allows its holder everything. At least 16 characters of A-Z a-z 0-9 _ . - Empty: 128 random
    /// bits.
    std::string token = {};
    /// Says what a request without the token may do, for a server with logins of its own. Called on
    /// the thread of handle(). Empty: nothing.
    std::function<DashboardAccess(const DashboardRequest& request)> authorize = {};
    /// Leaves out all routes that change anything.
    bool read_only = false;
    /// Names under which browsers may reach the page, besides localhost, 127.0.0.1 and [::1]; each
    /// without scheme and port. A page of somebody else whose name leads to this machine (DNS
    /// rebinding) is refused by its name.
    std::vector<std::string> hosts = {};
    /// Queues to show besides those that workers serve or have served.
    std::vector<std::string> queues = {};
    /// False: payloads leave the process in no form. Error texts and job attributes still do.
    bool show_payloads = true;
    /// Returns the text to show in place of a payload, to decode or to redact it; the first 4 KiB
    /// are shown. The payload itself then leaves the process in no other form. It may throw: the
    /// page shows what() instead. Called on the threads of handle(). For a job it gets the job's
    /// payload.
    std::function<std::string(std::string_view queue, std::string_view payload)> format_payload =
        {};
    /// Time between two reads of the numbers of all queues while somebody looks, 100 ms to 1 min.
    /// A read that takes more than a twentieth of that is done less often, down to a fifth.
    std::chrono::milliseconds refresh = std::chrono::seconds(2);
    /// Time between two of the 120 points of a queue's sparkline, 100 ms to 1 h. The numbers are
    /// read as often when nobody looks.
    std::chrono::milliseconds history_step = std::chrono::seconds(30);
};

} // namespace orizuru
