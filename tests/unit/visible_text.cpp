// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What the program `orizuru` writes to terminals.

#include <orizuru/detail/ops/cli/table.hpp>
#include <orizuru/detail/ops/cli/time_text.hpp>
#include <orizuru/detail/ops/cli/visible_text.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

namespace visible_text_test {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using orizuru::JobTime;
using orizuru::detail::cli::brief_time;
using orizuru::detail::cli::iso_time;
using orizuru::detail::cli::Table;
using orizuru::detail::cli::to_length;
using orizuru::detail::cli::VisibleText;

std::string visible(std::string_view text) { return VisibleText(text).text(); }

std::string utf8(char32_t character) {
    const auto byte = [](std::uint32_t bits) { return static_cast<char>(bits); };
    if (character < 0x80) {
        return {byte(character)};
    }
    if (character < 0x800) {
        return {byte(0xc0 | character >> 6), byte(0x80 | (character & 0x3f))};
    }
    if (character < 0x10000) {
        return {byte(0xe0 | character >> 12), byte(0x80 | (character >> 6 & 0x3f)),
                byte(0x80 | (character & 0x3f))};
    }
    return {byte(0xf0 | character >> 18), byte(0x80 | (character >> 12 & 0x3f)),
            byte(0x80 | (character >> 6 & 0x3f)), byte(0x80 | (character & 0x3f))};
}

TEST_CASE("letters of all scripts stay as they are") {
    for (const std::string_view text : {"az ~"sv, "ä鶴"sv, "שלום"sv, "\U0001f600"sv, ""sv}) {
        CHECK(visible(text) == text);
    }
}

TEST_CASE("each control, bidi mark and character without a width is an escape") {
    for (char32_t character = 0; character <= 0x10ffff; ++character) {
        if (character >= 0xd800 && character < 0xe000) {
            continue;
        }
        const bool control = character < 0x20 || (character >= 0x7f && character < 0xa0);
        const bool mark = character == 0x61c || (character >= 0x200b && character <= 0x200f) ||
                          (character >= 0x2028 && character <= 0x202e) ||
                          (character >= 0x2060 && character <= 0x206f) || character == 0xfeff ||
                          (character >= 0xe0000 && character <= 0xe007f);
        const std::string shown = visible(utf8(character));
        if ((control || mark) && (shown.front() != '\\' || shown.size() < 2)) {
            FAIL_CHECK("not hidden: " << static_cast<std::uint32_t>(character));
        }
    }
    CHECK(visible("\x1b[31m\u202e\n\r\t") == R"(\u{1b}[31m\u{202e}\n\r\t)");
    CHECK(visible(std::string_view("\0", 1)) == R"(\u{0})");
}

TEST_CASE("bytes that are no UTF-8 are escapes, and no text looks like another") {
    CHECK(visible("\xff\x9b\xc3") == R"(\xff\x9b\xc3)");
    CHECK(visible("\xed\xa0\x80") == R"(\xed\xa0\x80)"); // a surrogate
    CHECK(visible(R"(\u{1b})") == R"(\\u{1b})");
}

TEST_CASE("a text knows its columns, and is cut to them") {
    CHECK(VisibleText("abc").columns() == 3);
    CHECK(VisibleText("鶴").columns() == 2);
    CHECK(VisibleText("e\u0301").columns() == 1);
    CHECK(VisibleText("\x1b\xff\n").columns() == 6 + 4 + 2);
    CHECK(VisibleText("abc"sv, 3).text() == "abc");
    CHECK_FALSE(VisibleText("abc"sv, 3).cut());
    CHECK(VisibleText("abcd"sv, 3).text() == "abc…");
    CHECK(VisibleText("abcd"sv, 3).cut());
    CHECK(VisibleText("鶴鶴"sv, 3).text() == "鶴…");
    CHECK(VisibleText("\x1b\x1b"sv, 7).text() == R"(\u{1b}…)");
    std::string marks = "e";
    for (int i = 0; i < 1000; ++i) {
        marks += "\u0301";
    }
    CHECK(VisibleText(marks, 10).text().size() < 30);
}

TEST_CASE("a table aligns its columns and leaves out those without a cell") {
    Table table({{"name"}, {"none"}, {"count", Table::Align::right}, {"last"}});
    table.add({"鶴", "", "7", "x"});
    table.add({"\x1b", "", "12345678", ""});
    std::ostringstream out;
    out << table;
    CHECK(out.str() == "name       count  last\n"
                       "鶴             7  x\n"
                       "\\u{1b}  12345678\n");
    std::ostringstream empty;
    empty << Table({{"a"}, {"b"}});
    CHECK(empty.str() == "a  b\n");
}

TEST_CASE("times are written as ISO 8601, and lengths in their two largest units") {
    CHECK(iso_time(JobTime(0ms)) == "1970-01-01T00:00:00.000Z");
    CHECK(iso_time(JobTime(951'782'400'007ms)) == "2000-02-29T00:00:00.007Z");
    CHECK(iso_time(JobTime(-1ms)) == "1969-12-31T23:59:59.999Z");
    CHECK(iso_time(JobTime::max()) == "9999-12-31T23:59:59.999Z");
    CHECK(iso_time(JobTime::min()) == "0000-01-01T00:00:00.000Z");
    CHECK(brief_time(350ms) == "350ms");
    CHECK(brief_time(12'999ms) == "12s");
    CHECK(brief_time(192s) == "3m12s");
    CHECK(brief_time(4h + 5min) == "4h05m");
    CHECK(brief_time(76h) == "3d04h");
    CHECK(brief_time(-61s) == "-1m01s");
}

TEST_CASE("a length is read with its unit, and nothing else is") {
    CHECK(to_length("250ms") == 250ms);
    CHECK(to_length("90s") == 90s);
    CHECK(to_length("15m") == 15min);
    CHECK(to_length("1h") == 1h);
    CHECK(to_length("36500d") == 24h * 36500);
    for (const std::string_view text :
         {"", "1", "h", "1 h", "-1h", "1.5h", "1w", "1hh", "36501d", "99999999999999999999s"}) {
        CHECK_FALSE(to_length(text));
    }
}

} // namespace visible_text_test
