// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/clock.hpp>
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
using orizuru::detail::Clock;
using orizuru::detail::CutAdoptions;
using orizuru::detail::TimePoint;

Reply integer(std::int64_t value) { return {Reply::Type::integer, value, {}, {}}; }
Reply array(std::vector<Reply> elements) {
    return {Reply::Type::array, 0, {}, std::move(elements)};
}
Reply size(std::int64_t messages, std::int64_t bytes, std::int64_t largest) {
    return array({integer(messages), integer(bytes), integer(largest)});
}

using Next = CutAdoptions::Next;

const TimePoint begin = Clock::now();
constexpr auto lease = 30s;

/// Cut so often that the list is measured.
CutAdoptions suspected() {
    CutAdoptions cuts;
    for (int i = 0; i < 3; ++i) {
        CHECK(cuts.next(begin) == Next::adopt);
        cuts.cut();
    }
    return cuts;
}

TEST_CASE("a list is measured once it has cut the connection three times in a row") {
    CutAdoptions cuts = suspected();
    CHECK(cuts.next(begin) == Next::measure);
    CHECK(cuts.measured(size(2, 5'000'000, 4'000'000), begin, lease) ==
          "ERR the connection ends each time that Redis sends 2 messages of 5000000 bytes, the "
          "largest of 4000000: see client-output-buffer-limit");
    CHECK(cuts.next(begin) == Next::wait);
    CHECK(cuts.bound(begin + 1h, begin) == begin + 1s);
    CHECK(cuts.bound(begin + 1ms, begin) == begin + 1ms);
    CHECK(cuts.next(begin + 1s) == Next::adopt);
    cuts.ended();
    CHECK(cuts.next(begin) == Next::adopt);

    CutAdoptions adopted = suspected();
    adopted.ended();
    CHECK(adopted.next(begin) == Next::adopt);
}

TEST_CASE("it is adopted again more and more seldom, and told of each time that it cuts again") {
    CutAdoptions cuts = suspected();
    for (const std::chrono::seconds pause : {1s, 2s, 4s, 8s, 16s, 32s, 64s, 64s, 64s}) {
        CHECK(cuts.next(begin) == Next::measure);
        CHECK(cuts.measured(size(1, 5'000'000, 5'000'000), begin, lease));
        CHECK(cuts.next(begin + pause - 1ms) != Next::adopt);
        CHECK(cuts.next(begin + pause) == Next::adopt);
        cuts.cut();
    }
}

TEST_CASE("while it waits, it is measured three times in each lease, and told of no more") {
    CutAdoptions cuts = suspected();
    for (int i = 0; i < 6; ++i) {
        CHECK(cuts.measured(size(1, 5'000'000, 5'000'000), begin, lease));
        cuts.cut();
    }
    CHECK(cuts.measured(size(1, 5'000'000, 5'000'000), begin, lease)); // for 64 s
    CHECK(cuts.next(begin + 10s - 1ms) == Next::wait);
    CHECK(cuts.bound(begin + 1h, begin) == begin + 10s);
    CHECK(cuts.next(begin + 10s) == Next::measure);
    CHECK_FALSE(cuts.measured(size(1, 5'000'000, 5'000'000), begin + 10s, lease));
    CHECK(cuts.next(begin + 10s) == Next::wait);
    CHECK(cuts.next(begin + 20s) == Next::measure);
    SUBCASE("until the pause ends") { CHECK(cuts.next(begin + 64s) == Next::adopt); }
    SUBCASE("or the consumer does") {
        cuts.end_pause();
        CHECK(cuts.next(begin + 20s) == Next::adopt);
    }
    SUBCASE("or the list is gone") {
        CHECK_FALSE(cuts.measured(size(0, 0, 0), begin + 20s, lease));
        CHECK(cuts.next(begin + 20s) == Next::adopt);
    }
}

TEST_CASE("a list that Redis could send is not to blame, nor is one that cannot be measured") {
    for (const Reply& reply : {size(1, 16'000, 16'000), size(0, 0, 0), array({integer(1)}),
                               array({integer(1), Reply(), integer(2)}),
                               Reply{Reply::Type::error, 0, "NOPERM no EVAL", {}}}) {
        CutAdoptions cuts = suspected();
        CHECK_FALSE(cuts.measured(reply, begin, lease));
        CHECK(cuts.next(begin) == Next::adopt);
        cuts.cut(); // it is as new
        CHECK(cuts.next(begin) == Next::adopt);
    }
}

} // namespace cut_adoptions_test
