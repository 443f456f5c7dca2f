// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/redis/scripts/sha1.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace sha1_test {

std::string hex(std::string_view text) {
    return std::string(std::string_view(orizuru::detail::sha1_hex(text)));
}

constexpr auto at_compile_time = orizuru::detail::sha1_hex("abc");
static_assert(std::string_view(at_compile_time) == "a9993e364706816aba3e25717850c26c9cd0d89d");

TEST_CASE("the examples of FIPS 180 come out") {
    CHECK(hex("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    CHECK(hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
    CHECK(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    CHECK(hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
              "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu") ==
          "a49b2446a02c645bf419f995b67091253a04a259");
    CHECK(hex(std::string(1'000'000, 'a')) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST_CASE("texts around the length of a block come out") {
    CHECK(hex(std::string(55, 'a')) == "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    CHECK(hex(std::string(56, 'a')) == "c2db330f6083854c99d4b5bfb6e8f29f201be699");
    CHECK(hex(std::string(63, 'a')) == "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
    CHECK(hex(std::string(64, 'a')) == "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    CHECK(hex(std::string(65, 'a')) == "11655326c708d70319be2610e8a57d9a5b959d3b");
}

TEST_CASE("bytes above 127 and NUL count as they are") {
    using namespace std::string_view_literals;
    CHECK(hex("\0"sv) == "5ba93c9db0cff93f52b521d7420e43f6eda2784f");
    CHECK(hex("\xff\x80"sv) == "2f52fa98aee1519d88a09e5019f4186aa4ba767a");
}

} // namespace sha1_test
