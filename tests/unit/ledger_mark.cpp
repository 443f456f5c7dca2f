// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The mark by which a ledger knows what Redis has.

#include <orizuru/detail/postgres/ledger/mark.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

namespace ledger_mark_test {

using orizuru::detail::LedgerMark;
using orizuru::detail::parse_mark;

TEST_CASE("a mark is read as it was written") {
    for (const LedgerMark& mark : {LedgerMark{}, LedgerMark{3, 17}, LedgerMark{1, INT64_MAX}}) {
        CHECK(parse_mark(mark.text()).text() == mark.text());
    }
}

TEST_CASE("a text that is no mark is read as none") {
    for (const std::string_view text :
         {"", ":", "3", "3:", ":17", "3:17:", "3:17 ", "-3:17", "3:x", "9223372036854775808:1",
          "1:9223372036854775808", "1:18446744073709551616"}) {
        CAPTURE(text);
        CHECK(parse_mark(text).text() == "0:0");
    }
}

} // namespace ledger_mark_test
