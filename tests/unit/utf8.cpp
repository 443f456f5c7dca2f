// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/utf8.hpp>
#include <orizuru/detail/jobs/error_text.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace utf8_test {

using namespace std::string_view_literals;
using orizuru::detail::cut_text;
using orizuru::detail::to_utf8;
using orizuru::detail::utf8_size;

TEST_CASE("a character of one to four bytes is told by its size") {
    for (const std::string_view text :
         {"\0"sv, "\x7f"sv, "\u0080"sv, "\u07ff"sv, "\u0800"sv, "\ud7ff"sv, "\ue000"sv, "\uffff"sv,
          "\U00010000"sv, "\U0010ffff"sv}) {
        CHECK(utf8_size(text) == text.size());
        CHECK(utf8_size(std::string(text) + "\x80") == text.size());
        CHECK(utf8_size(text.substr(0, text.size() - 1)) == 0);
    }
}

TEST_CASE("overlong forms, surrogates and numbers beyond U+10FFFF are no characters") {
    for (const std::string_view text :
         {"\x80"sv, "\xbf"sv, "\xc0\x80"sv, "\xc1\xbf"sv, "\xe0\x9f\xbf"sv, "\xed\xa0\x80"sv,
          "\xf0\x8f\xbf\xbf"sv, "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff"sv,
          "\xe2\x28\xa1"sv}) {
        CHECK(utf8_size(text) == 0);
    }
}

TEST_CASE("what belongs to no character is replaced, and no character is cut in two") {
    CHECK(to_utf8("a\xff\u00e9\xe2\x82") == "a\ufffd\u00e9\ufffd\ufffd");
    CHECK(cut_text("ab\u20ac", 5) == "ab\u20ac");
    CHECK(cut_text("ab\u20ac", 4) == "ab");
    CHECK(cut_text("ab\u20ac", 3) == "ab");
}

} // namespace utf8_test
