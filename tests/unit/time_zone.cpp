// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/jobs/time_zone.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace time_zone_test {

using namespace std::chrono_literals;
using orizuru::TimeZone;
using std::chrono::local_days;
using std::chrono::sys_days;

std::string refusal(const std::string& name) {
    try {
        const TimeZone zone(name);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    FAIL_CHECK("accepted: " << name);
    return {};
}

TEST_CASE("an offset is what local time is ahead of UTC, always") {
    constexpr auto moment = sys_days(2024y / 2 / 29) + 23h;
    CHECK(TimeZone().to_local(moment) == local_days(2024y / 2 / 29) + 23h);
    CHECK(TimeZone("UTC").to_local(moment) == local_days(2024y / 2 / 29) + 23h);
    CHECK(TimeZone("+05:45").to_local(moment) == local_days(2024y / 3 / 1) + 4h + 45min);
    CHECK(TimeZone("-03:30").to_local(moment) == local_days(2024y / 2 / 29) + 19h + 30min);
    for (const std::string name : {"UTC", "+00:00", "+05:45", "-03:30", "+14:00", "-23:59"}) {
        const TimeZone zone(name);
        CHECK(zone.name() == name);
        CHECK(zone.to_sys(zone.to_local(moment)) == moment);
    }
}

TEST_CASE("a named zone is ahead of UTC as the law of the place has it") {
    const TimeZone berlin("Europe/Berlin");
    CHECK(berlin.name() == "Europe/Berlin");
    CHECK(berlin.to_local(sys_days(2026y / 1 / 1)) == local_days(2026y / 1 / 1) + 1h);
    CHECK(berlin.to_local(sys_days(2026y / 7 / 1)) == local_days(2026y / 7 / 1) + 2h);
    CHECK(berlin.to_sys(local_days(2026y / 7 / 1)) == sys_days(2026y / 6 / 30) + 22h);
    CHECK(berlin.to_sys(local_days(2037y / 7 / 1)) == sys_days(2037y / 6 / 30) + 22h);
    const TimeZone kathmandu("Asia/Kathmandu");
    CHECK(kathmandu.to_local(sys_days(2026y / 1 / 1)) == local_days(2026y / 1 / 1) + 5h + 45min);
}

TEST_CASE("a time that is shown twice is the first, one that is skipped the end of the gap") {
    const TimeZone berlin("Europe/Berlin");
    const local_days autumn(2024y / 10 / 27);
    CHECK(berlin.to_sys(autumn + 1h + 59min) == sys_days(2024y / 10 / 26) + 23h + 59min);
    CHECK(berlin.to_sys(autumn + 2h) == sys_days(2024y / 10 / 27));
    CHECK(berlin.to_sys(autumn + 2h + 59min) == sys_days(2024y / 10 / 27) + 59min);
    CHECK(berlin.to_sys(autumn + 3h) == sys_days(2024y / 10 / 27) + 2h);
    const local_days spring(2024y / 3 / 31);
    CHECK(berlin.to_sys(spring + 1h + 59min) == sys_days(2024y / 3 / 31) + 59min);
    CHECK(berlin.to_sys(spring + 2h) == sys_days(2024y / 3 / 31) + 1h);
    CHECK(berlin.to_sys(spring + 2h + 30min) == sys_days(2024y / 3 / 31) + 1h);
    CHECK(berlin.to_sys(spring + 3h) == sys_days(2024y / 3 / 31) + 1h);
}

TEST_CASE("what is neither an offset nor a zone is refused by its name") {
    for (const std::string name : {"", "Europe/Bielefeld", "+2:00", "+02", "+0200", "+02:60",
                                   "+24:00", "+0a:00", "02:00", "+02:00x", "../passwd", "utc+1"}) {
        CHECK(refusal(name).find("time zone '" + name + "': ") == 0);
    }
    CHECK(refusal("+2") == "time zone '+2': an offset is written as +02:00");
    CHECK(refusal("-02") == "time zone '-02': an offset is written as +02:00");
}

} // namespace time_zone_test
