// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The rules of a zone by its name, from the library that has them; time_zone.hpp says which.

#include <orizuru/detail/jobs/zone_rules.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <version>

#if __cpp_lib_chrono < 201907L && __has_include(<date/tz.h>)
#include <date/tz.h>
#endif

namespace orizuru::detail {

#if __cpp_lib_chrono >= 201907L
namespace zones = std::chrono;
#elif __has_include(<date/tz.h>)
namespace zones = ::date;
#endif

#if __cpp_lib_chrono >= 201907L || __has_include(<date/tz.h>)

/// Throws std::runtime_error when there is no such zone.
inline ZoneRules named_zone(const std::string& name) {
    const zones::time_zone* const zone = zones::locate_zone(name);
    return {
        [zone](std::chrono::sys_seconds time) {
            return std::chrono::local_seconds(time.time_since_epoch() +
                                              zone->get_info(time).offset);
        },
        [zone](std::chrono::local_seconds time) {
            const zones::local_info info =
                zone->get_info(zones::local_seconds(time.time_since_epoch()));
            return info.result == zones::local_info::nonexistent
                       ? info.first.end
                       : std::chrono::sys_seconds(time.time_since_epoch() - info.first.offset);
        },
    };
}

#else

inline ZoneRules named_zone(const std::string& /*name*/) {
    throw std::runtime_error("named zones need libstdc++ 14 or libhowardhinnant-date, and this "
                             "program was compiled without; UTC and +02:00 do not");
}

#endif

} // namespace orizuru::detail
