// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/fork_mark.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace {

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

} // namespace

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
