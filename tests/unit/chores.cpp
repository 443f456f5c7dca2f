// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Which chore is next, and what happens to it and to the others when it fails.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/upkeep/chores.hpp>
#include <orizuru/error.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chores_test {

using namespace std::chrono_literals;
using orizuru::ConnectionError;
using orizuru::ProtocolError;
using orizuru::ReplyError;
using orizuru::detail::Chore;
using orizuru::detail::Chores;
using orizuru::detail::Clock;
using orizuru::detail::deadline_in;
using orizuru::detail::TimePoint;

using Texts = std::vector<std::string>;

struct Fixture {
    Chores chores;
    Texts done;
    Texts told;

    /// A chore that is due at once, then again in an hour.
    std::size_t add(
        const std::string& queue, std::function<void()> action = [] {}) {
        return chores.add(
            {.what = "working", .queue = queue, .step = [this, queue, action = std::move(action)] {
                 done.push_back(queue);
                 action();
                 return deadline_in(1h);
             }});
    }
    void do_next(int times = 1) {
        for (int i = 0; i < times; ++i) {
            chores.do_next([this](const Chore& chore, std::string_view why, auto) {
                told.push_back(chore.queue + ": " + std::string(why));
            });
        }
    }
    /// In how long the next one is due.
    [[nodiscard]] Clock::duration next() const { return chores.next_due() - Clock::now(); }
};

TEST_CASE_FIXTURE(Fixture, "each chore is done when it is due, and not before it is due again") {
    add("a");
    add("b");
    do_next(5);
    CHECK(done == Texts{"a", "b"});
    CHECK(next() > 59min);
    CHECK(told.empty());
}

TEST_CASE_FIXTURE(Fixture, "the chore that has been due for the longest comes first") {
    add("a");
    const auto b = add("b");
    const auto c = add("c");
    do_next(3);
    done.clear();
    chores.call(c);
    chores.call(b);
    chores.call(c);
    do_next(3);
    CHECK(done == Texts{"c", "b"});
}

TEST_CASE_FIXTURE(Fixture, "a chore that fails is told and repeated in 5 s; the others go on") {
    std::string why = "WRONGTYPE no list";
    SUBCASE("by an error of Redis that only a person can mend") {
        add("a", [&] { throw ReplyError("WRONGTYPE", why); });
    }
    SUBCASE("for want of memory") {
        why = std::bad_alloc().what();
        add("a", [] { throw std::bad_alloc(); });
    }
    add("b");
    do_next(4);
    CHECK(done == Texts{"a", "b"});
    CHECK(told == Texts{"a: " + why});
    CHECK(next() > 4s);
    CHECK(next() <= 5s);
}

TEST_CASE_FIXTURE(Fixture, "what passes by itself is repeated soon, and not told") {
    bool fails = true;
    SUBCASE("Redis is loading") {
        add("a", [&] { fails ? throw ReplyError("LOADING", "LOADING") : void(); });
    }
    SUBCASE("a reply that cannot be") {
        add("a", [&] { fails ? throw ProtocolError("odd") : void(); });
    }
    do_next();
    CHECK(next() <= 50ms);
    CHECK(told.empty());
    fails = false;
    while (done.size() < 2) {
        do_next();
    }
    CHECK(next() > 59min);
}

TEST_CASE_FIXTURE(Fixture, "in an outage the pauses grow, also beside a chore that asks nobody") {
    chores.add({.what = "counting", .step = [] { return Clock::now(); }});
    int attempts = 0;
    add("a", [&] {
        ++attempts;
        throw ConnectionError("nobody there");
    });
    // Of at most 50, 100, 200 and 400 ms, and half of that on average.
    for (const TimePoint end = deadline_in(700ms); Clock::now() < end;) {
        do_next();
    }
    CHECK(attempts >= 2);
    CHECK(attempts < 14);
}

TEST_CASE_FIXTURE(Fixture, "while Redis is out of reach all wait together, which is told once") {
    bool out = true;
    const auto reach = [&] { out ? throw ConnectionError("nobody there") : void(); };
    add("a", reach);
    add("b", reach);
    for (std::size_t attempts = 1; attempts < 5; ++attempts) {
        const TimePoint before = Clock::now();
        while (done.size() < attempts) {
            do_next();
        }
        CHECK(chores.next_due() > before); // whichever is next
    }
    CHECK(told == Texts{"a: nobody there"});
    out = false;
    while (next() < 59min) {
        do_next();
    }
    CHECK(done.size() == 6);
}

} // namespace chores_test
