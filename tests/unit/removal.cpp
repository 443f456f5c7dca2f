// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/mirror/removal.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace removal_test {

using orizuru::detail::Removal;

struct Fixture {
    Removal removal;
    std::vector<std::int64_t> others;

    /// x goes, a dot stays.
    void tell(std::string_view messages, std::size_t bytes = 10) {
        others.clear();
        for (const char message : messages) {
            message == 'x' ? removal.remove() : removal.keep(bytes);
        }
        removal.arguments(
            [&](auto number) { others.push_back(static_cast<std::int64_t>(number)); });
        CHECK(removal.arguments() == others.size());
    }
};

TEST_CASE_FIXTURE(Fixture, "the oldest need no arguments of their own") {
    tell("xxx..");
    CHECK(removal.oldest() == 3);
    CHECK(others.empty());
}

TEST_CASE_FIXTURE(Fixture, "a few others are marked by their indices") {
    tell("x..xx.x..");
    CHECK(removal.oldest() == 1);
    CHECK(others == std::vector<std::int64_t>{-5, -6, -8});
}

TEST_CASE_FIXTURE(Fixture, "many others behind a few are told by runs") {
    tell("xx...xxxxxxxxxxxx.xxxxxxxxxx.....");
    CHECK(removal.oldest() == 2);
    CHECK(others == std::vector<std::int64_t>{3, 12, 1, 10});
}

TEST_CASE_FIXTURE(Fixture, "large messages are not copied") {
    tell("...xxxxxxxxxxxx", 100'000);
    REQUIRE(others.size() == 12);
    CHECK(others.front() == -5);
    CHECK(others.back() == -16);
}

TEST_CASE_FIXTURE(Fixture, "of runs as short as one, each is marked") {
    tell(".x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x");
    REQUIRE(others.size() == 20);
    CHECK(others.front() == -3);
}

TEST_CASE_FIXTURE(Fixture, "it begins anew") {
    tell("x..xx");
    removal.clear();
    tell("x.x");
    CHECK(removal.oldest() == 1);
    CHECK(others == std::vector<std::int64_t>{-4});
}

} // namespace removal_test
