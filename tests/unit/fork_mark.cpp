// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/fork_mark.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

namespace fork_mark_test {

using orizuru::detail::ForkMark;

/// What `question` says in a forked child.
template <class Question>
bool in_a_child(Question question) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(question() ? 1 : 0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

TEST_CASE("a mark knows the process that made it from its children, and theirs") {
    const ForkMark mark;
    CHECK_FALSE(mark.forked());
    CHECK(in_a_child([&] { return mark.forked(); }));
    CHECK(in_a_child([&] { return in_a_child([&] { return mark.forked(); }); }));
    CHECK_FALSE(mark.forked());
}

TEST_CASE("a mark that a child makes is the child's own") {
    CHECK(in_a_child([] { return !ForkMark().forked(); }));
}

TEST_CASE("marks made before and after a fork are told apart in the child and in its children") {
    const ForkMark before;
    CHECK(in_a_child([&] {
        const ForkMark own;
        return before.forked() && !own.forked() &&
               in_a_child([&] { return before.forked() && own.forked() && !ForkMark().forked(); });
    }));
}

TEST_CASE("marks that threads of a child make at once are all the child's own") {
    CHECK(in_a_child([] {
        std::atomic<int> own{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] { own += ForkMark().forked() ? 0 : 1; });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        return own == 8;
    }));
}

TEST_CASE("a thousand marks need no page each") {
    const auto mappings = [] {
        std::ifstream maps("/proc/self/maps");
        return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
    };
    const ForkMark first;
    const auto before = mappings();
    const std::vector<ForkMark> marks(1000);
    CHECK(mappings() < before + 100); // the vector, and what a sanitizer notes, need some
}

} // namespace fork_mark_test
