// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/numbers.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

namespace whole_number_test {

using orizuru::detail::whole_number;

TEST_CASE("digits are a number, up to the largest of 64 bits") {
    CHECK(whole_number("0") == 0);
    CHECK(whole_number("0042") == 42);
    CHECK(whole_number("18446744073709551615") == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("any other text is none") {
    for (const char* const text : {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "\xb2", "1/",
                                   "1:", "18446744073709551616", "99999999999999999999"}) {
        CAPTURE(text);
        CHECK_FALSE(whole_number(text));
    }
}

} // namespace whole_number_test
