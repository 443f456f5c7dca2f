// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of time_zone.hpp that may need a library: of the constructor that takes a name.

#include <orizuru/detail/jobs/named_zone.hpp>

#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace orizuru {

namespace detail {

/// The offset that a name such as "+02:00" stands for; none for the name of a zone.
ORIZURU_INLINE std::optional<std::chrono::minutes> zone_offset(std::string_view name) {
    if (name == "UTC") {
        return std::chrono::minutes(0);
    }
    if (name.size() != 6 || (name[0] != '+' && name[0] != '-') || name[3] != ':') {
        return std::nullopt;
    }
    for (const char c : {name[1], name[2], name[4], name[5]}) {
        if (c < '0' || c > '9') {
            return std::nullopt;
        }
    }
    const std::chrono::hours hours((name[1] - '0') * 10 + name[2] - '0');
    const std::chrono::minutes minutes((name[4] - '0') * 10 + name[5] - '0');
    if (hours > std::chrono::hours(23) || minutes > std::chrono::minutes(59)) {
        return std::nullopt;
    }
    return name[0] == '-' ? -(hours + minutes) : hours + minutes;
}

} // namespace detail

ORIZURU_INLINE TimeZone::TimeZone(std::string name) : m_name(std::move(name)) {
    if (const auto fixed = detail::zone_offset(m_name)) {
        m_rules = detail::fixed_zone(*fixed);
        return;
    }
    try {
        m_rules = detail::named_zone(m_name);
    } catch (const std::runtime_error& error) {
        const bool offset = m_name.starts_with('+') || m_name.starts_with('-');
        throw std::invalid_argument("time zone '" + m_name + "': " +
                                    (offset ? "an offset is written as +02:00" : error.what()));
    }
}

} // namespace orizuru
