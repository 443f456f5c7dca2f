// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/redis/reply_reader.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using orizuru::ProtocolError;
using orizuru::Reply;
using orizuru::detail::ReplyReader;
using Type = Reply::Type;

/// A reply as text, to be compared and shown.
std::string shown(const Reply& reply) {
    switch (reply.type) {
    case Type::nil:
        return "nil";
    case Type::status:
        return "+" + reply.text;
    case Type::error:
        return "-" + reply.text;
    case Type::integer:
        return ":" + std::to_string(reply.integer);
    case Type::string:
        return "'" + reply.text + "'";
    case Type::array:
        break;
    }
    std::string text = "[";
    for (const Reply& element : reply.elements) {
        text += (text.size() == 1 ? "" : " ") + shown(element);
    }
    return text + "]";
}

/// All replies in `bytes`, parted by a comma each.
std::string parsed(std::string_view bytes) {
    ReplyReader reader;
    reader.feed(bytes);
    std::string text;
    while (const Reply* const reply = reader.next()) {
        text += (text.empty() ? "" : ", ") + shown(*reply);
    }
    return text;
}

std::size_t requested = 0; // of operator new, in bytes

} // namespace

void* operator new(std::size_t size) {
    requested += size;
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) {
        return memory;
    }
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("each type of RESP2 is read") {
    CHECK(parsed("+OK\r\n") == "+OK");
    CHECK(parsed("-ERR no such thing\r\n") == "-ERR no such thing");
    CHECK(parsed(":0\r\n") == ":0");
    CHECK(parsed(":9223372036854775807\r\n") == ":9223372036854775807");
    CHECK(parsed(":-9223372036854775808\r\n") == ":-9223372036854775808");
    CHECK(parsed("$5\r\nhello\r\n") == "'hello'");
    CHECK(parsed("$-1\r\n") == "nil");
    CHECK(parsed("*2\r\n$1\r\na\r\n:2\r\n") == "['a' :2]");
    CHECK(parsed("*-1\r\n") == "nil");
}

TEST_CASE("empty texts, strings and arrays are values, not nil") {
    CHECK(parsed("+\r\n") == "+");
    CHECK(parsed("$0\r\n\r\n") == "''");
    CHECK(parsed("*0\r\n") == "[]");
    CHECK(parsed("*3\r\n$0\r\n\r\n*0\r\n$-1\r\n") == "['' [] nil]");
}

TEST_CASE("a string may hold any bytes") {
    const std::string bytes = "\0\r\n$-1\r\n\xff"s;
    CHECK(parsed("$" + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n") ==
          "'" + bytes + "'");
}

TEST_CASE("the code of an error is its first word") {
    ReplyReader reader;
    reader.feed("-WRONGTYPE Operation against a key\r\n-OOM\r\n-\r\n");
    CHECK(reader.next()->code() == "WRONGTYPE");
    CHECK(reader.next()->code() == "OOM");
    CHECK(reader.next()->code() == "");
}

TEST_CASE("arrays in arrays keep their order and their neighbours") {
    CHECK(parsed("*3\r\n*2\r\n:1\r\n*1\r\n$1\r\na\r\n*0\r\n*2\r\n-E x\r\n*-1\r\n") ==
          "[[:1 ['a']] [] [-E x nil]]");
    CHECK(parsed("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n") == "[[[[[[[:1]]]]]]]");
}

TEST_CASE("replies that arrive together are read one after the other") {
    CHECK(parsed("+OK\r\n:1\r\n$-1\r\n*1\r\n:2\r\n-E\r\n") == "+OK, :1, nil, [:2], -E");
    CHECK(parsed("").empty());
}

TEST_CASE("a reply is the same wherever it is cut, and is not given out before its end") {
    const std::string bytes = "*4\r\n$3\r\na\r\n\r\n*2\r\n:-12\r\n$-1\r\n-ERR x\r\n*0\r\n";
    const std::string whole = parsed(bytes);
    REQUIRE(whole == "['a\r\n' [:-12 nil] -ERR x []]");
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
        CAPTURE(cut);
        ReplyReader reader;
        reader.feed(std::string_view(bytes).substr(0, cut));
        CHECK_FALSE(reader.next());
        reader.feed(std::string_view(bytes).substr(cut));
        const Reply* const reply = reader.next();
        REQUIRE(reply);
        CHECK(shown(*reply) == whole);
        CHECK_FALSE(reader.next());
    }
}

TEST_CASE("a reply that arrives byte by byte is read") {
    ReplyReader reader;
    const std::string bytes = "*2\r\n$4\r\nabcd\r\n*1\r\n:7\r\n";
    for (const char byte : bytes) {
        REQUIRE_FALSE(reader.next());
        reader.feed({&byte, 1});
    }
    const Reply* const reply = reader.next();
    REQUIRE(reply);
    CHECK(shown(*reply) == "['abcd' [:7]]");
}

TEST_CASE("a reader thrown away in the middle of a reply leaks nothing") {
    ReplyReader reader;
    reader.feed("*3\r\n$1\r\na\r\n*2\r\n$40\r\n");
    CHECK_FALSE(reader.next());
}

TEST_CASE("large replies are read whole") {
    const std::string text(3 << 20, 'x');
    std::string bytes = "*1001\r\n";
    for (int i = 0; i < 1000; ++i) {
        bytes += ":" + std::to_string(i) + "\r\n";
    }
    bytes += "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    ReplyReader reader;
    for (std::size_t i = 0; i < bytes.size(); i += 65536) {
        reader.feed(std::string_view(bytes).substr(i, 65536));
    }
    const Reply* const reply = reader.next();
    REQUIRE(reply);
    REQUIRE(reply->elements.size() == 1001);
    CHECK(reply->elements[999].integer == 999);
    CHECK(reply->elements[1000].text == text);
}

TEST_CASE("what is not Redis' protocol is a ProtocolError, and stays one") {
    for (const std::string_view bytes :
         {"HTTP/1.1 400 Bad Request\r\n"sv, "\r\n"sv, "\0"sv, "SSH-2.0-x\r\n"sv, "\x15\x03\x03"sv,
          "*x\r\n"sv, "*-2\r\n"sv, "$-2\r\n"sv, ":x\r\n"sv, ":\r\n"sv, ":1x\r\n"sv,
          ":9223372036854775808\r\n"sv, "$99999999999999999999\r\n"sv, "*1\r\nx\r\n"sv,
          "*4294967296\r\n"sv}) {
        CAPTURE(bytes);
        ReplyReader reader;
        reader.feed(bytes);
        CHECK_THROWS_AS(static_cast<void>(reader.next()), ProtocolError);
        CHECK_THROWS_AS(static_cast<void>(reader.next()), ProtocolError);
    }
}

TEST_CASE("a line is read up to 16 MiB, whatever it arrives in, and not without end") {
    const std::string text((16 << 20) - 2, 'x');
    ReplyReader reader;
    reader.feed("-" + text);
    CHECK_FALSE(reader.next());
    reader.feed("\r\n");
    const Reply* const reply = reader.next();
    REQUIRE(reply);
    CHECK(reply->text == text);
    for (const std::string_view begin : {"+"sv, "-"sv, ":"sv, "$"sv, "*1\r\n+"sv}) {
        CAPTURE(begin);
        ReplyReader endless;
        endless.feed(begin);
        endless.feed(std::string((16 << 20) + 1, '1'));
        CHECK_THROWS_AS(static_cast<void>(endless.next()), ProtocolError);
    }
}

TEST_CASE("types of RESP3, which is never asked for, are a ProtocolError") {
    for (const std::string_view bytes :
         {"%1\r\n:1\r\n:2\r\n"sv, "~1\r\n:1\r\n"sv, ">2\r\n$1\r\na\r\n:1\r\n"sv, "_\r\n"sv,
          "#t\r\n"sv, ",1.5\r\n"sv, "(12345678901234567890\r\n"sv, "=5\r\ntxt:a\r\n"sv,
          "*1\r\n#f\r\n"sv, "*2\r\n:1\r\n%0\r\n"sv, "*1\r\n_\r\n"sv}) {
        CAPTURE(bytes);
        ReplyReader reader;
        reader.feed(bytes);
        CHECK_THROWS_AS(static_cast<void>(reader.next()), ProtocolError);
    }
}

TEST_CASE("arrays nested without end are a ProtocolError") {
    std::string bytes;
    for (int i = 0; i < 100'000; ++i) {
        bytes += "*1\r\n";
    }
    ReplyReader reader;
    reader.feed(bytes);
    CHECK_THROWS_AS(static_cast<void>(reader.next()), ProtocolError);
}

TEST_CASE("a reply shows nothing of those before it") {
    ReplyReader reader;
    for (const auto& [bytes, wanted] : std::initializer_list<std::pair<std::string, std::string>>{
             {"*3\r\n$1\r\na\r\n:2\r\n*1\r\n$1\r\nc\r\n", "['a' :2 ['c']]"},
             {"*1\r\n$-1\r\n", "[nil]"},
             {"*4\r\n*0\r\n$0\r\n\r\n:0\r\n+\r\n", "[[] '' :0 +]"},
             {":7\r\n", ":7"},
             {"*0\r\n", "[]"},
             {"$2\r\nab\r\n", "'ab'"},
             {"*2\r\n*2\r\n:1\r\n:2\r\n:3\r\n", "[[:1 :2] :3]"}}) {
        reader.feed(bytes);
        const Reply* const reply = reader.next();
        REQUIRE(reply);
        CHECK(shown(*reply) == wanted);
        CHECK((reply->is(Type::array) || reply->elements.empty()));
        CHECK((reply->is(Type::integer) || reply->integer == 0));
        CHECK((reply->is(Type::string) || reply->text.empty()));
    }
}

TEST_CASE("replies that follow each other take no memory anew, whatever their sizes") {
    const auto reply_of = [](int count) {
        std::string bytes = "*" + std::to_string(count) + "\r\n";
        for (int i = 0; i < count; ++i) {
            bytes += "$30\r\nthirty bytes: no small string!\r\n";
        }
        return bytes;
    };
    const std::string small = reply_of(3);
    const std::string large = reply_of(100);
    ReplyReader reader;
    const auto read = [&](const std::string& bytes) {
        reader.feed(bytes);
        REQUIRE(reader.next());
    };
    read(large);
    read(small);
    const std::size_t before = requested;
    for (int i = 0; i < 10; ++i) {
        read(small);
        read("*0\r\n");
        read(large);
        read(":1\r\n");
    }
    CHECK(requested == before);
}

TEST_CASE("an announced size reserves no memory") {
    for (const std::string_view bytes :
         {"*2147483647\r\n"sv, "*2\r\n:1\r\n*2147483647\r\n:1\r\n"sv, "$2147483647\r\nx"sv}) {
        CAPTURE(bytes);
        ReplyReader reader;
        reader.feed(bytes);
        const std::size_t before = requested;
        CHECK_FALSE(reader.next());
        CHECK(requested - before < 1024);
    }
}

TEST_CASE("a reader can be moved, even in the middle of a reply") {
    ReplyReader first;
    first.feed("*2\r\n:1\r\n");
    CHECK_FALSE(first.next());
    ReplyReader second = std::move(first);
    second.feed(":2\r\n");
    const auto reply = second.next();
    REQUIRE(reply);
    CHECK(shown(*reply) == "[:1 :2]");
}
