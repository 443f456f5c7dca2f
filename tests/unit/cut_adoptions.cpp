// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/mirror/cut_adoptions.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace cut_adoptions_test {

using namespace std::chrono_literals;
using orizuru::Reply;
using orizuru::detail::CutAdoptions;

Reply integer(std::int64_t value) { return {Reply::Type::integer, value, {}, {}}; }
Reply array(std::vector<Reply> elements) {
    return {Reply::Type::array, 0, {}, std::move(elements)};
}
Reply size(std::int64_t messages, std::int64_t bytes, std::int64_t largest) {
    return array({integer(messages), integer(bytes), integer(largest)});
}

/// Cut so often that the list is measured.
CutAdoptions suspected() {
    CutAdoptions cuts;
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(cuts.must_measure());
        cuts.cut();
    }
    return cuts;
}

TEST_CASE("a list is measured once it has cut the connection three times in a row") {
    CutAdoptions cuts = suspected();
    CHECK(cuts.must_measure());
    CHECK(cuts.measured(size(2, 5'000'000, 4'000'000)) ==
          "ERR the connection ends each time that Redis sends 2 messages of 5000000 bytes, the "
          "largest of 4000000: see client-output-buffer-limit");
    CHECK_FALSE(cuts.must_measure());

    CutAdoptions adopted = suspected();
    adopted.ended();
    CHECK_FALSE(adopted.must_measure());
}

TEST_CASE("it is adopted again more and more seldom, and measured each time that it cuts again") {
    CutAdoptions cuts = suspected();
    for (const std::chrono::seconds pause : {1s, 2s, 4s, 8s, 16s, 32s, 64s, 64s, 64s}) {
        CHECK(cuts.must_measure());
        CHECK(cuts.measured(size(1, 5'000'000, 5'000'000)));
        CHECK(cuts.pause() == pause);
        cuts.cut();
    }
}

TEST_CASE("a list that Redis could send is not to blame, nor is one that cannot be measured") {
    for (const Reply& reply : {size(1, 16'000, 16'000), size(0, 0, 0), array({integer(1)}),
                               array({integer(1), Reply(), integer(2)}),
                               Reply{Reply::Type::error, 0, "NOPERM no EVAL", {}}}) {
        CutAdoptions cuts = suspected();
        CHECK_FALSE(cuts.measured(reply));
        CHECK_FALSE(cuts.must_measure());
    }
}

} // namespace cut_adoptions_test
