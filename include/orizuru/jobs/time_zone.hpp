// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A time zone as a value: UTC, a fixed offset, or a named zone with its changes of the clock.
//
// Named zones are the standard library's where it has them (libstdc++ 14 and newer), else those of
// libhowardhinnant-date where <date/tz.h> is installed; link date-tz then. That library, as Debian
// builds its version 3.0.1, knows the changes of the clock up to 2037.
//
// With ORIZURU_SEPARATE_COMPILATION, src.hpp leaves out the constructor that takes a name, so that
// programs without time zones need not link date-tz. A program that calls it also includes
// <orizuru/jobs/time_zone.ipp>, behind this header, in one of its translation units.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/jobs/zone_rules.hpp>

#include <chrono>
#include <string>

namespace orizuru {

/// A time zone: tells how far its clocks are ahead of or behind UTC. Cheap to copy; may be used by
/// any thread.
class TimeZone {
  public:
    /// UTC.
    TimeZone() : m_name("UTC"), m_rules(detail::fixed_zone({})) {}
    /// "UTC", an offset from it such as "+02:00" or "-03:30", or a name such as "Europe/Berlin".
    /// Throws std::invalid_argument with the name and the reason.
    explicit TimeZone(std::string name);

    /// The name as it was given, "UTC" without one. Valid as long as this object.
    [[nodiscard]] const std::string& name() const noexcept { return m_name; }

    /// Returns what the clocks of the zone show.
    [[nodiscard]] std::chrono::local_seconds to_local(std::chrono::sys_seconds time) const {
        return m_rules.to_local(time);
    }

    /// Returns when the clocks of the zone show this: the first time when they show it twice; when
    /// they skip it, the moment of the skip.
    [[nodiscard]] std::chrono::sys_seconds to_sys(std::chrono::local_seconds time) const {
        return m_rules.to_sys(time);
    }

  private:
    std::string m_name;
    detail::ZoneRules m_rules;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/jobs/time_zone.ipp>
#endif
