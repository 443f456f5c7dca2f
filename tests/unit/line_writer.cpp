// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Lines on stderr, when nobody reads it and when somebody does again.

#include "support/stderr_pipe.hpp"

#include <orizuru/detail/base/line_writer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace line_writer_test {

using orizuru::detail::LineWriter;
using orizuru::test::ShortPipe;

TEST_CASE("a line goes out whole, with its end") {
    const ShortPipe pipe;
    LineWriter writer(pipe.in());
    writer.write("a line");
    writer.write("");
    CHECK(pipe.drain() == "a line\n\n");
    const std::string longest(4095, 'x');
    writer.write(longest);
    CHECK(pipe.drain() == longest + "\n");
}

TEST_CASE("lines for which there is no room are dropped at once, and their number is told as soon "
          "as there is some") {
    const ShortPipe pipe;
    LineWriter writer(pipe.in());
    pipe.fill();
    writer.write("lost");
    writer.write("lost, too");
    CHECK(pipe.drain() == std::string(8192, '.'));
    writer.write("found");
    CHECK(pipe.drain() == "orizuru: 2 lines were dropped: stderr had no room\nfound\n");
    writer.write("next");
    CHECK(pipe.drain() == "next\n");
}

TEST_CASE("a line that is cut is dropped, and the next one begins on a line of its own") {
    const ShortPipe pipe;
    LineWriter writer(pipe.in());
    writer.write(std::string(9000, 'x'));
    CHECK(pipe.drain() == std::string(8190, 'x'));
    writer.write("found");
    CHECK(pipe.drain() == "\norizuru: 1 lines were dropped: stderr had no room\nfound\n");
}

TEST_CASE("a line longer than a pipe takes at once goes out in pieces while somebody reads") {
    const ShortPipe pipe;
    LineWriter writer(pipe.in());
    std::string expected;
    SUBCASE("of their full length") { expected.assign(8190, 'x'); }
    SUBCASE("the last one shorter") { expected.assign(5000, 'x'); }
    writer.write(expected);
    CHECK(pipe.drain() == expected + "\n");
}

TEST_CASE("a pipe that nobody can read raises no signal") {
    ShortPipe pipe;
    LineWriter writer(pipe.in());
    pipe.close_out();
    writer.write("lost");
}

TEST_CASE("threads neither mix their lines nor wait for room") {
    const ShortPipe pipe;
    std::string text;
    {
        LineWriter writer(pipe.in());
        std::vector<std::jthread> threads;
        for (const char letter : {'a', 'b', 'c', 'd'}) {
            threads.emplace_back([&writer, letter] {
                for (int i = 0; i < 200; ++i) {
                    writer.write(std::string(99, letter));
                }
            });
        }
    }
    text = pipe.drain();
    CHECK(text.size() >= 4000);
    CHECK(text.size() % 100 == 0);
    for (std::size_t at = 0; at + 100 <= text.size(); at += 100) {
        CHECK(text.substr(at, 100) == std::string(99, text[at]) + "\n");
    }
}

} // namespace line_writer_test
