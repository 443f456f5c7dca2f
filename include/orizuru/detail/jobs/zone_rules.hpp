// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The rules of a time zone; those of named ones from whatever library has them, time_zone.hpp says
// which.

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <version>

#if __cpp_lib_chrono < 201907L && __has_include(<date/tz.h>)
#include <date/tz.h>
#endif

namespace orizuru::detail {

struct ZoneRules {
    std::function<std::chrono::local_seconds(std::chrono::sys_seconds)> to_local;
    std::function<std::chrono::sys_seconds(std::chrono::local_seconds)> to_sys;
};

inline ZoneRules fixed_zone(std::chrono::minutes offset) {
    return {
        [offset](std::chrono::sys_seconds time) {
            return std::chrono::local_seconds(time.time_since_epoch() + offset);
        },
        [offset](std::chrono::local_seconds time) {
            return std::chrono::sys_seconds(time.time_since_epoch() - offset);
        },
    };
}

#if __cpp_lib_chrono >= 201907L
namespace zones = std::chrono;
#elif __has_include(<date/tz.h>)
namespace zones = ::date;
#endif

#if __cpp_lib_chrono >= 201907L || __has_include(<date/tz.h>)

/// Throws std::runtime_error for a zone that there is not.
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
