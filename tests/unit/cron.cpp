// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/jobs/cron.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cron_test {

using namespace std::chrono_literals;
using orizuru::Cron;
using orizuru::TimeZone;
using std::chrono::days;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using Times = std::vector<sys_seconds>;

/// "2024-02-29 12:30:00" in UTC.
sys_seconds at(std::string_view text) {
    const auto number = [&](std::size_t first, std::size_t size) {
        return std::stoi(std::string(text.substr(first, size)));
    };
    const std::chrono::year_month_day date(std::chrono::year(number(0, 4)),
                                           std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                           std::chrono::day(static_cast<unsigned>(number(8, 2))));
    return sys_days(date) + std::chrono::hours(number(11, 2)) + minutes(number(14, 2)) +
           std::chrono::seconds(number(17, 2));
}

/// The next ones, each after the one before.
Times first(std::size_t count, const Cron& cron, sys_seconds after, const TimeZone& zone = {}) {
    Times times;
    while (times.size() < count) {
        after = cron.next(after, zone);
        times.push_back(after);
    }
    return times;
}

Times all_at(std::initializer_list<std::string_view> texts) {
    Times times;
    for (const std::string_view text : texts) {
        times.push_back(at(text));
    }
    return times;
}

std::string refusal(const std::string& expression) {
    try {
        const Cron cron(expression);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    FAIL_CHECK("accepted: " << expression);
    return {};
}

/// Numbers from an engine, the same with every library.
class Dice {
  public:
    explicit Dice(unsigned seed) : m_engine(seed) {}
    unsigned from(unsigned least, unsigned most) {
        return least + static_cast<unsigned>(m_engine() % (most - least + 1));
    }

  private:
    std::mt19937 m_engine;
};

/// A field as text, and the numbers that it means.
struct Field {
    std::string text;
    std::set<unsigned> numbers;
    [[nodiscard]] bool has(unsigned number) const { return numbers.contains(number); }
    [[nodiscard]] bool star() const { return text.front() == '*'; }
};

Field random_field(Dice& dice, unsigned least, unsigned most) {
    Field field;
    const unsigned entries = dice.from(1, 3);
    for (unsigned i = 0; i < entries; ++i) {
        unsigned first = dice.from(least, most);
        unsigned last = first;
        unsigned step = 1;
        std::string text = std::to_string(first);
        const unsigned kind = dice.from(0, 4);
        if (kind >= 3) {
            first = least;
            last = most;
            text = "*";
        } else if (kind >= 1) {
            last = dice.from(first, most);
            text += "-" + std::to_string(last);
        }
        if (kind == 2 || kind == 3) {
            step = dice.from(1, most);
            text += "/" + std::to_string(step);
        }
        for (unsigned number = first; number <= last; number += step) {
            field.numbers.insert(number);
        }
        field.text += (i == 0 ? "" : ",") + text;
    }
    return field;
}

/// An expression and its meaning, without a look at the parser.
struct Expression {
    Field minute;
    Field hour;
    Field day;
    Field month;
    Field weekday;

    explicit Expression(Dice& dice)
        : minute(random_field(dice, 0, 59)),
          hour(random_field(dice, 0, 23)),
          day(random_field(dice, 1, 31)),
          month(random_field(dice, 1, 12)),
          weekday(random_field(dice, 0, 6)) {}

    [[nodiscard]] std::string text() const {
        return minute.text + " " + hour.text + " " + day.text + " " + month.text + " " +
               weekday.text;
    }
    [[nodiscard]] bool day_matches(local_seconds time) const {
        const auto midnight = std::chrono::floor<days>(time);
        const std::chrono::year_month_day date(midnight);
        const bool by_day = day.has(static_cast<unsigned>(date.day()));
        const bool by_weekday = weekday.has(std::chrono::weekday(midnight).c_encoding());
        return month.has(static_cast<unsigned>(date.month())) &&
               (day.star() || weekday.star() ? by_day && by_weekday : by_day || by_weekday);
    }
    [[nodiscard]] bool matches(local_seconds time) const {
        const auto of_day = static_cast<unsigned>((time - std::chrono::floor<days>(time)) / 1min);
        return hour.has(of_day / 60) && minute.has(of_day % 60) && day_matches(time);
    }
    [[nodiscard]] bool possible() const {
        constexpr std::chrono::local_days begin(2000y / 1 / 1);
        for (local_seconds day = begin; day < begin + days(29 * 366); day += days(1)) {
            if (day_matches(day)) {
                return true;
            }
        }
        return false;
    }
};

TEST_CASE("an expression comes next when it says, in UTC") {
    struct Row {
        const char* expression;
        const char* after;
        const char* next;
    };
    // 2024-02-29 was a Thursday.
    const std::vector<Row> rows{
        {"* * * * *", "2024-02-29 12:30:00", "2024-02-29 12:31:00"},
        {"* * * * *", "2024-02-29 12:30:59", "2024-02-29 12:31:00"},
        {"* * * * *", "2024-12-31 23:59:00", "2025-01-01 00:00:00"},
        {"* * * * * *", "2024-02-29 23:59:59", "2024-03-01 00:00:00"},
        {"*/15 * * * * *", "2024-02-29 12:30:31", "2024-02-29 12:30:45"},
        {"30 5 * * * *", "2024-02-29 12:05:30", "2024-02-29 13:05:30"},
        {"0 0 * * *", "2024-02-28 00:00:00", "2024-02-29 00:00:00"},
        {"0 0 * * *", "2023-02-28 12:00:00", "2023-03-01 00:00:00"},
        {"5-59/20 * * * *", "2024-02-29 12:26:00", "2024-02-29 12:45:00"},
        {"30 3 * * MON-FRI", "2024-03-01 03:30:00", "2024-03-04 03:30:00"},
        {"*/10 8-17 * * *", "2024-02-29 17:50:00", "2024-03-01 08:00:00"},
        {"0 12 1,15 * *", "2024-02-29 12:30:00", "2024-03-01 12:00:00"},
        {"0 12 1,15 * *", "2024-03-01 12:00:00", "2024-03-15 12:00:00"},
        {"0 0 31 * *", "2024-03-31 00:00:00", "2024-05-31 00:00:00"},
        {"0 0 29 2 *", "2024-02-29 00:00:00", "2028-02-29 00:00:00"},
        {"0 0 29 2 *", "2096-02-29 00:00:00", "2104-02-29 00:00:00"},
        {"0 0 29 FEB *", "1996-02-29 00:00:00", "2000-02-29 00:00:00"},
        // A day of the month or a weekday, when both are said.
        {"0 0 13 * FRI", "2024-02-29 12:30:00", "2024-03-01 00:00:00"},
        {"0 0 13 * FRI", "2024-03-08 00:00:00", "2024-03-13 00:00:00"},
        {"0 0 30 2 MON", "2024-02-26 00:00:00", "2025-02-03 00:00:00"},
        // Both, when either begins with *.
        {"0 0 */2 * FRI", "2024-03-01 00:00:00", "2024-03-15 00:00:00"},
        {"0 0 29 2 */7", "2024-02-29 12:30:00", "2032-02-29 00:00:00"},
        {"0 0 29 2 */7", "2088-02-29 00:00:00", "2128-02-29 00:00:00"},
        {"0 0 ? * WED", "2024-02-29 12:30:00", "2024-03-06 00:00:00"},
        {"0 0 1 ? ?", "2024-02-29 12:30:00", "2024-03-01 00:00:00"},
        {"0 0 * * 0", "2024-02-29 12:30:00", "2024-03-03 00:00:00"},
        {"0 0 * * 7", "2024-02-29 12:30:00", "2024-03-03 00:00:00"},
        {"0 0 * * sat-Sun", "2024-03-02 00:00:00", "2024-03-03 00:00:00"},
        {"0 0 * * 0-0", "2024-03-03 00:00:00", "2024-03-10 00:00:00"},
        {"0 0 * * 6-0", "2024-03-03 00:00:00", "2024-03-09 00:00:00"},
        {"0 0 * * SUN-TUE", "2024-03-05 00:00:00", "2024-03-10 00:00:00"},
        {"0 0 1 jan,Jul-AUG *", "2024-02-29 12:30:00", "2024-07-01 00:00:00"},
        {" 7\t 8  9 10 * ", "2024-02-29 12:30:00", "2024-10-09 08:07:00"},
        {"59 59 23 31 12 *", "2023-12-31 23:59:59", "2024-12-31 23:59:59"},
        {"@hourly", "2024-02-29 12:30:00", "2024-02-29 13:00:00"},
        {"@daily", "2024-02-29 12:30:00", "2024-03-01 00:00:00"},
        {"@midnight", "2024-02-29 12:30:00", "2024-03-01 00:00:00"},
        {"@weekly", "2024-02-29 12:30:00", "2024-03-03 00:00:00"},
        {"@monthly", "2024-02-29 12:30:00", "2024-03-01 00:00:00"},
        {"@yearly", "2024-02-29 12:30:00", "2025-01-01 00:00:00"},
        {"@annually", "2024-02-29 12:30:00", "2025-01-01 00:00:00"},
        {"0 0 1 1 *", "1969-06-01 00:00:00", "1970-01-01 00:00:00"},
        {"0 0 1 1 *", "9999-12-31 23:59:59", "10000-01-01 00:00:00"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.expression);
        CAPTURE(row.after);
        const bool after_9999 = std::string_view(row.next).starts_with("10000");
        const sys_seconds next = after_9999 ? sys_seconds(sys_days(10'000y / 1 / 1)) : at(row.next);
        CHECK(Cron(row.expression).next(at(row.after)) == next);
    }
}

TEST_CASE("random expressions come at all minutes that they name, and at no other") {
    Dice dice(5);
    int compared = 0;
    for (int i = 0; i < 1000; ++i) {
        const Expression expression(dice);
        CAPTURE(expression.text());
        if (!expression.possible()) {
            CHECK(refusal(expression.text()).find("such a day") != std::string::npos);
            continue;
        }
        const Cron cron(expression.text());
        sys_seconds after = at("2024-01-01 00:00:00") + minutes(dice.from(0, 4 * 365 * 24 * 60));
        for (const sys_seconds next : first(20, cron, after)) {
            local_seconds time(after.time_since_epoch() + 1min);
            while (!expression.matches(time)) {
                time = expression.day_matches(time) ? time + 1min
                                                    : std::chrono::floor<days>(time) + days(1);
            }
            REQUIRE(next.time_since_epoch() == time.time_since_epoch());
            after = next;
            ++compared;
        }
    }
    CHECK(compared > 15'000);
}

TEST_CASE("an offset shifts what an expression says") {
    const Cron cron("0 3 * * *");
    const sys_seconds noon = at("2024-02-29 12:00:00");
    CHECK(cron.next(noon, TimeZone("+02:00")) == at("2024-03-01 01:00:00"));
    CHECK(cron.next(noon, TimeZone("-03:30")) == at("2024-03-01 06:30:00"));
    CHECK(cron.next(noon, TimeZone("UTC")) == cron.next(noon));
    CHECK(Cron("0 0 1 * *").next(noon, TimeZone("+13:00")) == at("2024-03-31 11:00:00"));
    CHECK(Cron("0 0 1 * *").next(at("2024-02-29 10:59:59"), TimeZone("+13:00")) ==
          at("2024-02-29 11:00:00"));
}

TEST_CASE("a time that the clocks skip comes once, when they have") {
    const TimeZone berlin("Europe/Berlin");
    const sys_seconds eve = at("2024-03-30 12:00:00"); // 2:00 becomes 3:00 on the 31st
    CHECK(first(3, Cron("30 2 * * *"), eve, berlin) ==
          all_at({"2024-03-31 01:00:00", "2024-04-01 00:30:00", "2024-04-02 00:30:00"}));
    CHECK(first(3, Cron("*/20 2-3 * * *"), at("2024-03-31 00:00:00"), berlin) ==
          all_at({"2024-03-31 01:00:00", "2024-03-31 01:20:00", "2024-03-31 01:40:00"}));
    CHECK(first(3, Cron("0 * * * *"), at("2024-03-30 23:30:00"), berlin) ==
          all_at({"2024-03-31 00:00:00", "2024-03-31 01:00:00", "2024-03-31 02:00:00"}));
    const TimeZone new_york("America/New_York");
    CHECK(first(2, Cron("59 2 * * *"), at("2024-03-09 12:00:00"), new_york) ==
          all_at({"2024-03-10 07:00:00", "2024-03-11 06:59:00"}));
    // By half an hour, from 2:00 to 2:30.
    const TimeZone lord_howe("Australia/Lord_Howe");
    CHECK(first(2, Cron("15,45 2 * * *"), at("2024-10-05 15:00:00"), lord_howe) ==
          all_at({"2024-10-05 15:30:00", "2024-10-05 15:45:00"}));
}

TEST_CASE("a time that the clocks show twice comes the first time alone") {
    const TimeZone berlin("Europe/Berlin");
    const sys_seconds eve = at("2024-10-26 12:00:00"); // 3:00 becomes 2:00 on the 27th
    CHECK(first(2, Cron("30 2 * * *"), eve, berlin) ==
          all_at({"2024-10-27 00:30:00", "2024-10-28 01:30:00"}));
    CHECK(first(4, Cron("*/30 * * * *"), at("2024-10-27 00:00:00"), berlin) ==
          all_at({"2024-10-27 00:30:00", "2024-10-27 02:00:00", "2024-10-27 02:30:00",
                  "2024-10-27 03:00:00"}));
    // Asked within the hour that comes again.
    CHECK(Cron("30 2 * * *").next(at("2024-10-27 01:10:00"), berlin) == at("2024-10-28 01:30:00"));
    CHECK(Cron("* * * * * *").next(at("2024-10-27 01:10:00"), berlin) == at("2024-10-27 02:00:00"));
    const TimeZone new_york("America/New_York");
    CHECK(first(2, Cron("0 1 * * *"), at("2024-11-02 12:00:00"), new_york) ==
          all_at({"2024-11-03 05:00:00", "2024-11-04 06:00:00"}));
    // By half an hour, from 2:00 to 1:30.
    const TimeZone lord_howe("Australia/Lord_Howe");
    CHECK(first(3, Cron("*/15 * * * *"), at("2024-04-06 14:30:00"), lord_howe) ==
          all_at({"2024-04-06 14:45:00", "2024-04-06 15:30:00", "2024-04-06 15:45:00"}));
}

TEST_CASE("around changes of the clocks random expressions come when all minutes say") {
    struct Change {
        const char* zone;
        const char* before;
    };
    Dice dice(7);
    for (const Change& change : {Change{"Europe/Berlin", "2025-03-29 12:00:00"},
                                 Change{"Europe/Berlin", "2025-10-25 12:00:00"},
                                 Change{"America/New_York", "2025-03-08 18:00:00"},
                                 Change{"America/New_York", "2025-11-01 18:00:00"},
                                 Change{"Australia/Lord_Howe", "2025-04-05 03:00:00"},
                                 Change{"Australia/Lord_Howe", "2025-10-04 03:00:00"}}) {
        const TimeZone zone(change.zone);
        const sys_seconds begin = at(change.before);
        for (int i = 0; i < 30; ++i) {
            const Field minute = random_field(dice, 0, 59);
            const Field hour = random_field(dice, 0, 23);
            const std::string text = minute.text + " " + hour.text + " * * *";
            CAPTURE(change.zone);
            CAPTURE(text);
            // All minutes that the clocks show, and those that they skip when they have.
            std::set<sys_seconds> expected;
            local_seconds shown = zone.to_local(begin);
            for (sys_seconds time = begin + 1min; time <= begin + 36h; time += 1min) {
                while (shown < zone.to_local(time)) {
                    shown += 1min;
                    const auto of_day =
                        static_cast<unsigned>((shown - std::chrono::floor<days>(shown)) / 1min);
                    if (hour.has(of_day / 60) && minute.has(of_day % 60)) {
                        expected.insert(time);
                    }
                }
            }
            CHECK(first(expected.size(), Cron(text), begin, zone) ==
                  Times(expected.begin(), expected.end()));
        }
    }
}

TEST_CASE("the latest occurrences of a span are those that come one by one") {
    const sys_seconds noon = at("2024-02-29 12:00:00");
    const Cron every_minute("* * * * *");
    CHECK(every_minute.latest(noon, noon, 9).empty());
    CHECK(every_minute.latest(noon, noon - 1h, 9).empty());
    CHECK(every_minute.latest(noon, noon + 59s, 9).empty());
    CHECK(every_minute.latest(noon, noon + 60s, 9) == all_at({"2024-02-29 12:01:00"}));
    CHECK(every_minute.latest(noon, noon + 24h, 2) ==
          all_at({"2024-03-01 11:59:00", "2024-03-01 12:00:00"}));
    CHECK(Cron("@yearly").latest(at("2020-06-01 00:00:00"), noon, 2) ==
          all_at({"2023-01-01 00:00:00", "2024-01-01 00:00:00"}));
    CHECK(Cron("@yearly").latest(at("2022-06-01 00:00:00"), noon, 9) ==
          all_at({"2023-01-01 00:00:00", "2024-01-01 00:00:00"}));
    // A century of seconds would take minutes.
    CHECK(Cron("* * * * * *").latest(at("1924-02-29 12:00:00"), noon, 2) ==
          all_at({"2024-02-29 11:59:59", "2024-02-29 12:00:00"}));
    Dice dice(9);
    for (int i = 0; i < 200; ++i) {
        const Expression expression(dice);
        if (!expression.possible()) {
            continue;
        }
        CAPTURE(expression.text());
        const Cron cron(expression.text());
        const sys_seconds after = noon + minutes(dice.from(0, 365 * 24 * 60));
        const Times all = first(50, cron, after);
        CHECK(cron.latest(after, all.back(), 50) == all);
        CHECK(cron.latest(after, all.back(), 7) == Times(all.end() - 7, all.end()));
        CHECK(cron.latest(after, all.back() - 1s, 7) == Times(all.end() - 8, all.end() - 1));
    }
}

TEST_CASE("what is no expression is refused with itself, the field and the reason") {
    struct Row {
        const char* expression;
        const char* reason;
    };
    for (const Row& row : {
             Row{"", "it has 0 fields"},
             Row{"* * * *", "it has 4 fields"},
             Row{"* * * * * * *", "it has 7 fields"},
             Row{"60 * * * *", "minute: '60' is not a number from 0 to 59"},
             Row{"* 24 * * *", "hour: '24' is not a number from 0 to 23"},
             Row{"* * 0 * *", "day: '0' is not a number from 1 to 31"},
             Row{"* * 32 * *", "day: '32' is not a number from 1 to 31"},
             Row{"* * * 13 *", "month: '13' is not JAN to DEC or a number from 1 to 12"},
             Row{"* * * JANUARY *", "month: 'JANUARY' is not JAN to DEC"},
             Row{"* * * * 8", "weekday: '8' is not SUN to SAT or a number from 0 to 7"},
             Row{"* * * * JAN", "weekday: 'JAN' is not SUN to SAT"},
             Row{"60 * * * * *", "second: '60' is not a number from 0 to 59"},
             Row{"-1 * * * *", "minute: '' is not a number"},
             Row{"+1 * * * *", "minute: '+1' is not a number"},
             Row{"1.5 * * * *", "minute: '1.5' is not a number"},
             Row{"x * * * *", "minute: 'x' is not a number"},
             Row{"99999999999 * * * *", "minute: '99999999999' is not a number"},
             Row{"1,,2 * * * *", "minute: '' is not a number"},
             Row{"1, * * * *", "minute: '' is not a number"},
             Row{"5- * * * *", "minute: '' is not a number"},
             Row{"1-2-3 * * * *", "minute: '2-3' is not a number"},
             Row{"** * * * *", "minute: '**' is not a number"},
             Row{"*-5 * * * *", "minute: '*' is not a number"},
             Row{"20-10 * * * *", "minute: '20-10' ends before it begins"},
             Row{"* * * DEC-JAN *", "month: 'DEC-JAN' ends before it begins"},
             Row{"*/0 * * * *", "minute: '0' is not a step from 1 to 59"},
             Row{"*/60 * * * *", "minute: '60' is not a step from 1 to 59"},
             Row{"*/ * * * *", "minute: '' is not a step"},
             Row{"*/5/5 * * * *", "minute: '5/5' is not a step"},
             Row{"* * * * */MON", "weekday: 'MON' is not a step"},
             Row{"5/15 * * * *", "minute: the step of '5/15' needs * or a range before it"},
             Row{"@reboot", "@hourly"},
             Row{"@Daily", "@hourly"},
             Row{"0 0 30 2 *", "none of its months has such a day"},
             Row{"0 0 31 2,4,6,9,11 *", "none of its months has such a day"},
             Row{"0 0 31 APR */2", "none of its months has such a day"},
         }) {
        const std::string text = refusal(row.expression);
        CAPTURE(text);
        CHECK(text.find(row.reason) != std::string::npos);
        CHECK(text.find("'" + std::string(row.expression) + "'") != std::string::npos);
    }
    CHECK_THROWS_AS((void)Cron("@daily").next(sys_days(-1y / 12 / 31)), std::invalid_argument);
    CHECK_THROWS_AS((void)Cron("@daily").next(sys_days(10'000y / 1 / 1)), std::invalid_argument);
    CHECK_THROWS_AS((void)Cron("@daily").next(sys_seconds::max()), std::invalid_argument);
}

} // namespace cron_test
