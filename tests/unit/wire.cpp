// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/redis/wire.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace wire_test {

using namespace std::string_literals;
using namespace std::string_view_literals;
using namespace orizuru::detail;

template <class... Arguments>
std::string command(const Arguments&... arguments) {
    std::string out;
    append_command(out, arguments...);
    return out;
}

/// Makes each of its two elements when it is looked at.
struct Copies {
    struct Iterator {
        using value_type = std::string;
        using difference_type = std::ptrdiff_t;

        const std::string* text = nullptr;
        int index = 0;

        std::string operator*() const { return *text; }
        Iterator& operator++() {
            ++index;
            return *this;
        }
        Iterator operator++(int) { return {text, index++}; }
        bool operator==(const Iterator&) const = default;
    };

    std::string text;

    [[nodiscard]] Iterator begin() const { return {&text, 0}; }
    [[nodiscard]] Iterator end() const { return {&text, 2}; }
    [[nodiscard]] std::size_t size() const { return 2; }
};

TEST_CASE("a command is an array of bulk strings") {
    CHECK(command("PING") == "*1\r\n$4\r\nPING\r\n");
    CHECK(command("LPUSH", "mail"s, "hello"sv) ==
          "*3\r\n$5\r\nLPUSH\r\n$4\r\nmail\r\n$5\r\nhello\r\n");
}

TEST_CASE("lengths of more than one digit are written in full") {
    const std::string text(1234, 'x');
    CHECK(command("SET", "k", text) == "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1234\r\n" + text + "\r\n");
    std::string out;
    begin_command(out, 4294967295);
    CHECK(out == "*4294967295\r\n");
}

TEST_CASE("an empty argument is sent") {
    CHECK(command("GET", "") == "*2\r\n$3\r\nGET\r\n$0\r\n\r\n");
}

TEST_CASE("an argument may hold any bytes") {
    const std::string text = "\0\r\n$3\r\n\xff*"s;
    CHECK(command("GET", text) == "*2\r\n$3\r\nGET\r\n$9\r\n" + text + "\r\n");
}

TEST_CASE("each text of a range is an argument") {
    const std::vector<std::string> two{"a", ""};
    CHECK(command("X", two, 1, std::vector<std::string_view>{"b"}) ==
          "*5\r\n$1\r\nX\r\n$1\r\na\r\n$0\r\n\r\n$1\r\n1\r\n$1\r\nb\r\n");
    CHECK(command("X", std::vector<std::string>{}) == "*1\r\n$1\r\nX\r\n");
    const std::string long_one(100, 'a'); // beyond what a string holds without the heap
    CHECK(command("X", Copies{long_one}) == command("X", long_one, long_one));
}

TEST_CASE("numbers are sent as decimal text") {
    CHECK(command("X", 0, -1, 17U) == "*4\r\n$1\r\nX\r\n$1\r\n0\r\n$2\r\n-1\r\n$2\r\n17\r\n");
    CHECK(command(std::numeric_limits<std::int64_t>::min()) ==
          "*1\r\n$20\r\n-9223372036854775808\r\n");
    CHECK(command(std::numeric_limits<std::int64_t>::max()) ==
          "*1\r\n$19\r\n9223372036854775807\r\n");
    CHECK(command(std::numeric_limits<std::uint64_t>::max()) ==
          "*1\r\n$20\r\n18446744073709551615\r\n");
}

TEST_CASE("commands are written one behind the other") {
    std::string out = "+";
    append_command(out, "A");
    append_command(out, "B", 2);
    CHECK(out == "+*1\r\n$1\r\nA\r\n*2\r\n$1\r\nB\r\n$1\r\n2\r\n");
}

TEST_CASE("a buffer that is cut back keeps its memory, but not what a very large message needed") {
    std::string buffer(1'000'000, 'x');
    const char* const memory = buffer.data();
    orizuru::detail::cut_back(buffer, 3);
    CHECK(buffer == "xxx");
    buffer.append(900'000, 'y');
    CHECK(buffer.data() == memory);
    buffer.append(15'000'000, 'z');
    orizuru::detail::cut_back(buffer, 4);
    CHECK(buffer == "xxxy");
    CHECK(buffer.capacity() < 1'000'000);
}

} // namespace wire_test
