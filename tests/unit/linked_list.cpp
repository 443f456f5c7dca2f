// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/linked_list.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace linked_list_test {

using orizuru::detail::Linked;
using orizuru::detail::LinkedList;

struct Bead : Linked {
    explicit Bead(int its_number) : number(its_number) {}
    int number;
};

std::vector<int> numbers(LinkedList<Bead>& list) {
    std::vector<int> found;
    for (const Bead& bead : list) {
        found.push_back(bead.number);
    }
    return found;
}

TEST_CASE("a linked list has its elements in the order in which they came") {
    LinkedList<Bead> list;
    CHECK(list.empty());
    CHECK(numbers(list).empty());
    Bead one(1);
    Bead two(2);
    Bead three(3);
    list.push_back(one);
    list.push_back(two);
    list.push_back(three);
    CHECK_FALSE(list.empty());
    CHECK(numbers(list) == std::vector{1, 2, 3});
}

TEST_CASE("what is erased from a linked list leaves the others as they are, and can come again") {
    LinkedList<Bead> list;
    Bead one(1);
    Bead two(2);
    Bead three(3);
    list.push_back(one);
    list.push_back(two);
    list.push_back(three);
    list.erase(two);
    CHECK(numbers(list) == std::vector{1, 3});
    list.erase(one);
    CHECK(numbers(list) == std::vector{3});
    list.push_back(one);
    CHECK(numbers(list) == std::vector{3, 1});
    list.erase(one);
    list.erase(three);
    CHECK(list.empty());
    list.push_back(two);
    CHECK(numbers(list) == std::vector{2});
}

TEST_CASE("elements of a linked list can be changed through it") {
    LinkedList<Bead> list;
    Bead bead(1);
    list.push_back(bead);
    for (Bead& each : list) {
        each.number = 7;
    }
    CHECK(bead.number == 7);
}

} // namespace linked_list_test
