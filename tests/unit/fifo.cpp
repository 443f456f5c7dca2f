// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/fifo.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace fifo_test {

using orizuru::detail::Fifo;

template <class T>
std::vector<T> content(const Fifo<T>& fifo) {
    return {fifo.begin(), fifo.end()};
}

TEST_CASE("what went in first comes out first") {
    Fifo<int> fifo;
    CHECK(fifo.empty());
    fifo.push_back(1);
    fifo.push_back(2);
    CHECK(fifo.pop_front() == 1);
    fifo.push_back(3);
    CHECK(fifo.size() == 2);
    CHECK(fifo.front() == 2);
    CHECK(fifo.back() == 3);
    CHECK(fifo[1] == 3);
    CHECK(fifo.pop_front() == 2);
    CHECK(fifo.pop_front() == 3);
    CHECK(fifo.empty());
}

TEST_CASE("what is put in front comes out first, whether something was taken out there or not") {
    Fifo<int> fifo;
    fifo.push_front(2);
    fifo.push_front(1);
    CHECK(content(fifo) == std::vector{1, 2});
    CHECK(fifo.pop_front() == 1);
    fifo.push_front(0);
    CHECK(content(fifo) == std::vector{0, 2});
}

TEST_CASE("elements that do not belong are taken out of the middle") {
    Fifo<int> fifo;
    for (int i = 0; i < 10; ++i) {
        fifo.push_back(i);
    }
    fifo.pop_front();
    fifo.erase_if([](int i) { return i % 2 == 0; });
    CHECK(content(fifo) == std::vector{1, 3, 5, 7, 9});
    fifo.erase_if([](int) { return true; });
    CHECK(fifo.empty());
}

TEST_CASE("what was taken out is not kept alive") {
    Fifo<std::shared_ptr<int>> fifo;
    const auto one = std::make_shared<int>(1);
    fifo.push_back(one);
    fifo.push_back(nullptr);
    fifo.pop_front();
    CHECK(one.use_count() == 1);
    fifo.push_back(one);
    fifo.clear();
    CHECK(one.use_count() == 1);
}

TEST_CASE("a queue that is never empty does not grow") {
    Fifo<int> fifo;
    for (int i = 0; i < 100; ++i) {
        fifo.push_back(i);
    }
    // Its places come again, so there are few of them.
    std::set<const int*> places;
    for (int i = 0; i < 100'000; ++i) {
        fifo.push_back(i);
        fifo.pop_front();
        places.insert(&fifo.back());
    }
    CHECK(places.size() < 1000);
}

TEST_CASE("it does what std::deque does, whatever is done") {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        Fifo<std::string> fifo;
        std::deque<std::string> deque;
        for (int step = 0; step < 2000; ++step) {
            const unsigned what = random() % 20;
            const std::string text = "the element of step " + std::to_string(step);
            if (what < 9) {
                fifo.push_back(text);
                deque.push_back(text);
            } else if (what < 11) {
                fifo.push_front(text);
                deque.push_front(text);
            } else if (what == 19) {
                const auto some = [](const std::string& element) { return element.back() == '7'; };
                fifo.erase_if(some);
                std::erase_if(deque, some);
            } else if (!deque.empty()) {
                REQUIRE(fifo.pop_front() == deque.front());
                deque.pop_front();
            }
            REQUIRE(fifo.size() == deque.size());
            REQUIRE(std::equal(fifo.begin(), fifo.end(), deque.begin()));
        }
    }
}

} // namespace fifo_test
