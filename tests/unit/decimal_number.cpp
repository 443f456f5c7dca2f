// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/jobs/decimal_number.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace decimal_number_test {

using orizuru::detail::decimal_number;

TEST_CASE("what Redis writes for a score is read as the same number") {
    CHECK(decimal_number("0") == 0);
    CHECK(decimal_number("-0.5") == -0.5);
    CHECK(decimal_number("1764374400123") == 1764374400123.0);
    CHECK(decimal_number("0.10000000000000001") == 0.1);
    CHECK(decimal_number("1.0000000000000001e+300") == 1e300);
    CHECK(decimal_number("2.2250738585072014e-308") == std::numeric_limits<double>::min());
    CHECK(decimal_number("inf") == std::numeric_limits<double>::infinity());
    CHECK(decimal_number("-inf") == -std::numeric_limits<double>::infinity());
}

TEST_CASE("any other text is none") {
    for (const char* const text : {"", " 1", "1 ", "+1", "1,5", "0x1p3", "one", "1.5s", "-", ".",
                                   "nan", "-nan", "Infinity", "INF", "1E5", "--1", "1e"}) {
        CAPTURE(text);
        CHECK_FALSE(decimal_number(text));
    }
}

} // namespace decimal_number_test
