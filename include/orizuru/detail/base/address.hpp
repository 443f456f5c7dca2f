// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The parts of a Redis address.

#include <chrono>
#include <optional>
#include <string>

namespace orizuru::detail {

struct Address {
    std::string path; ///< of a Unix socket; empty for TCP
    std::string host;
    int port = 6379;
    int db = 0;
    std::string user;
    std::optional<std::string> password;
    std::string client_name;
    std::chrono::milliseconds connect_timeout{5000};
    std::chrono::milliseconds command_timeout{5000};
};

} // namespace orizuru::detail
