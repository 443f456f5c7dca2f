// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Which of Redis' replies are claims.

#include <orizuru/detail/once/read_claim.hpp>
#include <orizuru/once/claim.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace claim_test {

using orizuru::Claim;
using orizuru::Reply;
using orizuru::detail::read_claim;
using Type = Reply::Type;

Reply string(const std::string& text) {
    return {.type = Type::string, .text = text, .elements = {}};
}
Reply integer(std::int64_t number) {
    return {.type = Type::integer, .integer = number, .text = {}, .elements = {}};
}
Reply array(std::vector<Reply> elements) {
    return {.type = Type::array, .text = {}, .elements = std::move(elements)};
}

TEST_CASE("a claim has a token, or says until when it is busy, or what was done") {
    const auto claimed =
        read_claim("id", array({string("claimed"), string("18446744073709551615")}));
    REQUIRE(claimed);
    CHECK(claimed->state == Claim::State::claimed);
    CHECK(claimed->token == orizuru::OnceToken{"id", UINT64_MAX});
    const auto busy = read_claim("id", array({string("busy"), integer(1000), integer(10)}));
    REQUIRE(busy);
    CHECK(busy->state == Claim::State::busy);
    CHECK(busy->until == orizuru::JobTime(std::chrono::seconds(1)));
    CHECK(busy->busy_for == std::chrono::milliseconds(10));
    const auto done = read_claim("id", array({string("done"), string("x")}));
    REQUIRE(done);
    CHECK(done->state == Claim::State::done);
    CHECK(done->result == "x");
    CHECK(read_claim("id", array({string("done"), Reply()}))->result == std::nullopt);
}

TEST_CASE("anything else is no claim") {
    const std::vector<Reply> replies{
        Reply(),
        string("claimed"),
        integer(1),
        array({}),
        array({string("claimed")}),
        array({string("claimed"), integer(7)}),
        array({string("claimed"), string("")}),
        array({string("claimed"), string("-7")}),
        array({string("claimed"), string("7x")}),
        array({string("claimed"), string("18446744073709551616")}),
        array({string("claimed"), string("7"), string("8")}),
        array({string("busy")}),
        array({string("busy"), integer(1), string("1")}),
        array({string("busy"), integer(-1), integer(1)}),
        array({string("done")}),
        array({string("done"), integer(1)}),
        array({string("DONE"), string("x")}),
    };
    for (std::size_t i = 0; i < replies.size(); ++i) {
        CAPTURE(i);
        Reply reply = replies[i];
        CHECK_FALSE(read_claim("id", std::move(reply)));
    }
}

} // namespace claim_test
