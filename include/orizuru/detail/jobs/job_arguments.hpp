// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Refuses impossible ids, ttls and ages before anything is sent.

#include <chrono>
#include <stdexcept>
#include <string_view>

namespace orizuru::detail {

inline void check_id(std::string_view id) {
    if (id.empty() || id.size() > 512) {
        throw std::invalid_argument("an id must have 1 to 512 bytes");
    }
}

inline void check_ttl(std::chrono::milliseconds ttl) {
    if (ttl < std::chrono::milliseconds(1) || ttl > std::chrono::hours(24 * 365 * 100)) {
        throw std::invalid_argument("a ttl must be 1 ms to 100 years");
    }
}

inline void check_age(std::chrono::seconds age) {
    if (age < std::chrono::seconds(0) || age > std::chrono::hours(24 * 365 * 100)) {
        throw std::invalid_argument("an age must be 0 to 100 years");
    }
}

} // namespace orizuru::detail
