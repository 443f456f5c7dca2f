// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A time zone as a value: UTC, a fixed offset, or a named zone with its changes of the clock.
//
// Named zones are the standard library's where it has them (libstdc++ 14 and newer), else those of
// libhowardhinnant-date where <date/tz.h> is installed; link date-tz then. That library, as Debian
// builds its version 3.0.1, knows the changes of the clock up to 2037.

#include <orizuru/detail/jobs/zone_rules.hpp>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

/// Where local time is ahead of or behind UTC. Cheap to copy; may be used by any thread.
class TimeZone {
  public:
    /// UTC.
    TimeZone() : m_name("UTC"), m_rules(detail::fixed_zone({})) {}
    /// "UTC", an offset from it such as "+02:00" or "-03:30", or a name such as "Europe/Berlin".
    /// Throws std::invalid_argument with the name and the reason.
    explicit TimeZone(std::string name);

    [[nodiscard]] const std::string& name() const noexcept { return m_name; }

    /// What the clocks of the zone show.
    [[nodiscard]] std::chrono::local_seconds to_local(std::chrono::sys_seconds time) const {
        return m_rules.to_local(time);
    }

    /// When the clocks of the zone show this: the first time when they do twice, and when they
    /// skip it the moment in which they do.
    [[nodiscard]] std::chrono::sys_seconds to_sys(std::chrono::local_seconds time) const {
        return m_rules.to_sys(time);
    }

  private:
    static std::optional<std::chrono::minutes> offset(std::string_view name);

    std::string m_name;
    detail::ZoneRules m_rules;
};

inline TimeZone::TimeZone(std::string name) : m_name(std::move(name)) {
    if (const auto fixed = offset(m_name)) {
        m_rules = detail::fixed_zone(*fixed);
        return;
    }
    try {
        m_rules = detail::named_zone(m_name);
    } catch (const std::runtime_error& error) {
        throw std::invalid_argument("time zone '" + m_name + "': " + error.what());
    }
}

inline std::optional<std::chrono::minutes> TimeZone::offset(std::string_view name) {
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

} // namespace orizuru
