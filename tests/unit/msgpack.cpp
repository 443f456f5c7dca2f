// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/hex.hpp"

#include <orizuru/msgpack.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <forward_list>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace msgpack_test {

struct Plain {
    int x = 0;
};

struct Job {
    std::uint64_t id = 0;
    std::string name;
    double ratio = 0;
    float small = 0;
    std::vector<std::string> tags;
    std::int64_t delta = 0;
    bool done = false;
    std::optional<std::string> note;
    std::map<std::string, std::int32_t> by_name;
    std::pair<std::uint8_t, std::int8_t> pair;

    friend bool operator==(const Job&, const Job&) = default;
    MSGPACK_DEFINE(id, name, ratio, small, tags, delta, done, note, by_name, pair)
};

struct Batch {
    std::vector<Job> jobs;
    std::shared_ptr<Job> next;

    MSGPACK_DEFINE(jobs, next)
};

struct ByName {
    int a = 0;
    std::string b;

    friend bool operator==(const ByName&, const ByName&) = default;
    MSGPACK_DEFINE_MAP(a, b)
};

struct OldJob {
    std::uint64_t id = 0;

    MSGPACK_DEFINE(id)
};

struct NewJob {
    std::uint64_t id = 0;
    std::string added = "default";

    MSGPACK_DEFINE(id, added)
};

enum class Colour { red, green = 200 };
enum class Shape : std::int8_t { round = -1, square = 5 };
enum Size { small, large }; // with no scope

/// With members of every kind that msgpack-c does not know by itself.
struct Ordered {
    Shape shape = Shape::round;
    Size size = small;
    std::chrono::milliseconds within{};
    std::chrono::sys_seconds at{};
    std::optional<Shape> other;
    std::map<Shape, std::vector<std::chrono::hours>> all;

    friend bool operator==(const Ordered&, const Ordered&) = default;
    MSGPACK_DEFINE(shape, size, within, at, other, all)
};

/// No default constructor, and members only: it can be written but not made.
class Sealed {
  public:
    explicit Sealed(int number) : m_number(number) {}
    MSGPACK_DEFINE(m_number)

  private:
    int m_number;
};

/// No default constructor, and an adaptor that makes it.
class Celsius {
  public:
    explicit Celsius(double degrees) : m_degrees(degrees) {}
    [[nodiscard]] double degrees() const { return m_degrees; }
    friend bool operator==(const Celsius&, const Celsius&) = default;

  private:
    double m_degrees;
};

} // namespace msgpack_test

MSGPACK_ADD_ENUM(msgpack_test::Colour)

template <>
struct msgpack::adaptor::pack<msgpack_test::Celsius> {
    template <class Stream>
    msgpack::packer<Stream>& operator()(msgpack::packer<Stream>& out,
                                        const msgpack_test::Celsius& value) const {
        return out.pack(value.degrees());
    }
};
template <>
struct msgpack::adaptor::as<msgpack_test::Celsius> {
    msgpack_test::Celsius operator()(const msgpack::object& object) const {
        return msgpack_test::Celsius(object.as<double>());
    }
};

template <>
inline constexpr bool orizuru::enable_msgpack<msgpack_test::Celsius> = true;

namespace msgpack_test {

using namespace std::string_literals;
using namespace std::string_view_literals;
using orizuru::Codec;
using orizuru::MessageDecodable;
using orizuru::MessageEncodable;
using orizuru::Scratch;
using orizuru::test::hex;

template <class T>
constexpr bool is_message = MessageEncodable<T>&& MessageDecodable<T>;

static_assert(is_message<Job> && is_message<std::vector<Job>> && is_message<ByName>);
static_assert(is_message<Colour> && is_message<std::map<std::string, Colour>>);
static_assert(is_message<Ordered> && is_message<std::optional<std::chrono::seconds>>);
static_assert(is_message<Celsius> && is_message<std::vector<Celsius>>);
static_assert(!MessageEncodable<Plain> && !MessageDecodable<Plain>);
static_assert(!MessageEncodable<std::vector<Plain>> && !MessageEncodable<std::optional<Plain>>);
static_assert(!MessageEncodable<std::map<int, Plain>> && !MessageEncodable<std::pair<int, Plain>>);
static_assert(!MessageEncodable<const char*> && !MessageEncodable<void*>);
static_assert(MessageEncodable<Sealed> && !MessageDecodable<Sealed>);
// msgpack has nothing for these, though they are arithmetic types.
static_assert(!MessageEncodable<long double> && !MessageEncodable<char8_t>);
static_assert(!MessageEncodable<char16_t> && !MessageEncodable<char32_t>);
// nor for a deleter.
static_assert(!MessageEncodable<std::unique_ptr<int, void (*)(int*)>>);
// It reads beyond the end of an array that is too short for one of these.
static_assert(!MessageDecodable<std::array<Celsius, 2>>);
static_assert(!MessageDecodable<std::tuple<int, Celsius>>);
static_assert(!MessageDecodable<std::vector<std::tuple<Celsius>>>);

template <class T>
std::string encoded(const T& value) {
    std::string out;
    Codec<T>::encode(value, out);
    return out;
}

template <class T>
T decoded(std::string_view bytes) {
    Scratch scratch;
    return Codec<T>::decode(bytes, scratch);
}

template <class T>
T there_and_back(const T& value) {
    return decoded<T>(encoded(value));
}

template <class T>
void keeps(const T& value) {
    CHECK(there_and_back(value) == value);
}

template <class T>
void keeps_bounds() {
    keeps(std::numeric_limits<T>::lowest());
    keeps(std::numeric_limits<T>::max());
    keeps(T(0));
    keeps(T(1));
}

const Job job{70000,
              "caf\xc3\xa9",
              0.5,
              1.5F,
              {"x", ""},
              -32769,
              true,
              std::nullopt,
              {{"a", -1}, {"b", 300}},
              {std::uint8_t{200}, std::int8_t{-33}}};

TEST_CASE("numbers come back") {
    keeps_bounds<bool>();
    keeps_bounds<char>();
    keeps_bounds<signed char>();
    keeps_bounds<unsigned char>();
    keeps_bounds<wchar_t>();
    keeps_bounds<short>();
    keeps_bounds<unsigned short>();
    keeps_bounds<int>();
    keeps_bounds<unsigned>();
    keeps_bounds<long>();
    keeps_bounds<unsigned long>();
    keeps_bounds<long long>();
    keeps_bounds<unsigned long long>();
    keeps_bounds<float>();
    keeps_bounds<double>();
    keeps(std::numeric_limits<double>::infinity());
    keeps(std::numeric_limits<double>::denorm_min());
    keeps(std::byte{255});
}

TEST_CASE("strings and bytes come back, of any length and content") {
    for (const std::size_t size : {0U, 1U, 31U, 32U, 255U, 256U, 65535U, 65536U}) {
        keeps(std::string(size, '\0'));
        keeps(std::vector<char>(size, '\xff'));
        keeps(std::vector<unsigned char>(size, 0x80));
        keeps(std::vector<std::byte>(size, std::byte{1}));
    }
    keeps(std::array<char, 3>{'a', '\0', 'c'});
    keeps(std::array<unsigned char, 2>{0, 255});
    keeps(std::array<std::byte, 2>{std::byte{0}, std::byte{255}});
}

TEST_CASE("the standard containers come back, empty and filled") {
    keeps(std::vector<int>{});
    keeps(std::vector<int>{1, -2, 3});
    keeps(std::vector<bool>{true, false});
    keeps(std::vector<std::vector<std::string>>{{}, {"a", ""}});
    keeps(std::deque<int>{1, 2});
    keeps(std::list<std::string>{"a", "b"});
    keeps(std::forward_list<int>{1, 2});
    keeps(std::array<int, 3>{1, 2, 3});
    keeps(std::set<int>{3, 1});
    keeps(std::multiset<int>{1, 1, 2});
    keeps(std::unordered_set<std::string>{"a", "b"});
    keeps(std::unordered_multiset<int>{1, 1, 2});
    keeps(std::map<std::string, int>{{"a", 1}, {"b", 2}});
    keeps(std::multimap<int, int>{{1, 1}, {1, 2}});
    keeps(std::unordered_map<int, std::string>{{1, "a"}, {2, ""}});
    keeps(std::unordered_multimap<int, int>{{1, 1}, {1, 2}});
    keeps(std::map<std::pair<int, int>, std::vector<double>>{{{1, 2}, {0.5}}});
}

TEST_CASE("pairs, tuples, optionals and smart pointers come back") {
    keeps(std::pair<int, std::string>{1, "a"});
    keeps(std::tuple<>{});
    keeps(std::tuple<int, std::string, std::optional<bool>>{1, "a", true});
    keeps(std::optional<int>{});
    keeps(std::optional<int>{0});
    CHECK(there_and_back(std::shared_ptr<int>()) == nullptr);
    CHECK(*there_and_back(std::make_shared<int>(7)) == 7);
    CHECK(there_and_back(std::unique_ptr<std::string>()) == nullptr);
    CHECK(*there_and_back(std::make_unique<std::string>("a")) == "a");
}

TEST_CASE("types with MSGPACK_DEFINE come back, alone and in each other") {
    keeps(job);
    keeps(ByName{7, "seven"});
    const Batch batch = there_and_back(Batch{{job, Job{}}, std::make_shared<Job>(job)});
    REQUIRE(batch.jobs.size() == 2);
    CHECK(batch.jobs[0] == job);
    CHECK(batch.jobs[1] == Job{});
    REQUIRE(batch.next != nullptr);
    CHECK(*batch.next == job);
}

TEST_CASE("enums, durations and points of the system's clock come back, as numbers") {
    using namespace std::chrono_literals;
    const auto bytes_of = [](const auto& value) { return hex(encoded(value)); };
    CHECK(bytes_of(Shape::round) == "ff");
    CHECK(bytes_of(Shape::square) == "05");
    CHECK(bytes_of(large) == "01");
    CHECK(bytes_of(Colour::green) == "ccc8"); // by MSGPACK_ADD_ENUM
    CHECK(bytes_of(-90s) == "d0a6");
    CHECK(bytes_of(std::chrono::duration<double>(0.5)) == "cb3fe0000000000000");
    CHECK(bytes_of(std::chrono::sys_seconds(300s)) == "cd012c");
    keeps(Shape::square);
    keeps(-90s);
    keeps(std::chrono::system_clock::now());
    keeps(std::vector<std::chrono::sys_days>{std::chrono::sys_days(std::chrono::days(19'000))});
    keeps(Ordered{Shape::square,
                  large,
                  1500ms,
                  std::chrono::sys_seconds(300s),
                  Shape::round,
                  {{Shape::round, {1h, -2h}}}});
    CHECK_THROWS_WITH_AS((void)decoded<Shape>("\xcc\x80"),
                         "the payload is a number that msgpack_test::Shape cannot hold",
                         std::invalid_argument);
    CHECK_THROWS_AS((void)decoded<std::chrono::seconds>("\xa1x"), std::invalid_argument);
}

TEST_CASE("a type with an adaptor of one's own comes back once it is opted in") {
    keeps(Colour::green);
    keeps(std::vector<Colour>{Colour::red, Colour::green});
    keeps(Celsius(21.5)); // has no default constructor
    keeps(std::vector<Celsius>{Celsius(-1), Celsius(0)});
}

TEST_CASE("a struct is written as rmp_serde::to_vec writes it: an array in the fields' order") {
    CHECK(hex(encoded(job)) == "9a"                 // 10 fields
                               "ce00011170"         // u64 70000
                               "a5636166c3a9"       // "caf\u00e9"
                               "cb3fe0000000000000" // f64 0.5
                               "ca3fc00000"         // f32 1.5
                               "92a178a0"           // ["x", ""]
                               "d2ffff7fff"         // i64 -32769
                               "c3"                 // true
                               "c0"                 // None
                               "82a161ffa162cd012c" // {"a": -1, "b": 300}
                               "92ccc8d0df");       // (200u8, -33i8)
    CHECK(hex(encoded(Batch{{}, nullptr})) == "9290c0");
    CHECK(hex(encoded(std::string("hello"))) == "a568656c6c6f");
}

TEST_CASE("integers take the shortest form, whatever their type, as Rust's do") {
    const std::pair<std::int64_t, std::string_view> golden[] = {
        {0, "00"},
        {127, "7f"},
        {128, "cc80"},
        {255, "ccff"},
        {256, "cd0100"},
        {65535, "cdffff"},
        {65536, "ce00010000"},
        {4294967295, "ceffffffff"},
        {4294967296, "cf0000000100000000"},
        {-1, "ff"},
        {-32, "e0"},
        {-33, "d0df"},
        {-128, "d080"},
        {-129, "d1ff7f"},
        {-32768, "d18000"},
        {-32769, "d2ffff7fff"},
        {-2147483648, "d280000000"},
        {-2147483649, "d3ffffffff7fffffff"},
    };
    for (const auto& [number, bytes] : golden) {
        CHECK(hex(encoded(number)) == bytes);
        if (number >= 0) {
            CHECK(hex(encoded(static_cast<std::uint64_t>(number))) == bytes);
        }
    }
}

TEST_CASE("a vector of bytes is msgpack's bin, which Rust's serde_bytes reads") {
    CHECK(hex(encoded(std::vector<unsigned char>{1, 255})) == "c40201ff");
    CHECK(decoded<std::string>("\xc4\x02\x01\xff"sv) == "\x01\xff"sv);
    CHECK_THROWS(decoded<std::vector<unsigned char>>("\x92\x01\x02"sv));
}

TEST_CASE(
    "a field added at the end is at its default in an older message, and ignored by older code") {
    const NewJob read = decoded<NewJob>(encoded(OldJob{7}));
    CHECK(read.id == 7);
    CHECK(read.added == "default");
    CHECK(decoded<OldJob>(encoded(NewJob{8, "x"})).id == 8);
}

TEST_CASE("a value is written behind what is there already") {
    std::string out = "before";
    Codec<int>::encode(7, out);
    CHECK(out == "before\x07");
}

TEST_CASE("what is of another type or out of range is an exception") {
    CHECK_THROWS(decoded<int>(encoded(std::string("7"))));
    CHECK_THROWS(decoded<int>(encoded(1.5)));
    CHECK_THROWS(decoded<int>("\xc0"sv));
    CHECK_THROWS(decoded<std::int8_t>(encoded(128)));
    CHECK_THROWS(decoded<unsigned>(encoded(-1)));
    CHECK_THROWS(decoded<bool>(encoded(1)));
    CHECK_THROWS(decoded<std::string>(encoded(7)));
    CHECK_THROWS(decoded<std::vector<int>>(encoded(std::vector<std::string>{"a"})));
    CHECK_THROWS(decoded<std::pair<int, int>>(encoded(std::vector<int>{1})));
    CHECK_THROWS(decoded<std::array<int, 2>>(encoded(std::vector<int>{1, 2, 3})));
    CHECK_THROWS(decoded<Job>(encoded(std::map<std::string, int>{{"id", 1}})));
}

TEST_CASE("one scratch serves many values, also after one that failed") {
    Scratch scratch;
    for (int i = 0; i < 100; ++i) {
        CHECK(Codec<Job>::decode(encoded(job), scratch) == job);
        CHECK_THROWS(Codec<Job>::decode("\xdd\xff\xff\xff\xff"sv, scratch));
        CHECK(Codec<std::string>::decode(
                  encoded(std::string(static_cast<std::size_t>(i) * 100, 'x')), scratch)
                  .size() == static_cast<std::size_t>(i) * 100);
    }
}

TEST_CASE("a value decoded does not refer to the bytes it came from") {
    Scratch scratch;
    std::string bytes = encoded(job);
    const Job read = Codec<Job>::decode(bytes, scratch);
    bytes.assign(bytes.size(), '\xff');
    CHECK(Codec<std::string>::decode(encoded(std::string("other")), scratch) == "other");
    CHECK(read == job);
}

template <class T>
std::string why_no(std::string_view bytes) {
    try {
        static_cast<void>(decoded<T>(bytes));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "it is one";
}

TEST_CASE("a value that is no T is refused with the kind that it is and the kind that T needs") {
    CHECK(why_no<OldJob>("\x82\x01\x02\x03\x04"sv) ==
          "msgpack_test::OldJob is read from an array, the payload is a map (first byte 0x82)");
    CHECK(why_no<ByName>("\x91\x07"sv) ==
          "msgpack_test::ByName is read from a map, the payload is an array (first byte 0x91)");
    CHECK(why_no<int>("\xc3"sv) ==
          "int is read from a number, the payload is a boolean (first byte 0xc3)");
    CHECK(why_no<bool>("\xc0"sv) ==
          "bool is read from a boolean, the payload is nil (first byte 0xc0)");
    CHECK(why_no<double>("\xa1\0"sv) ==
          "double is read from a number, the payload is a str (first byte 0xa1)");
    CHECK(why_no<int>("\xc4\0"sv) ==
          "int is read from a number, the payload is a bin (first byte 0xc4)");
    CHECK(why_no<int>("\xd4\1\1"sv) ==
          "int is read from a number, the payload is an ext (first byte 0xd4)");
    CHECK(why_no<unsigned char>("\xcd\x01\0"sv) ==
          "the payload is a number that unsigned char cannot hold");
    CHECK(why_no<OldJob>("\x91\xa1\0"sv) == "msgpack_test::OldJob cannot be read: a value in the "
                                            "payload is not of the kind that it needs");
    CHECK(why_no<std::optional<int>>("\xc2"sv).ends_with(
        "is read from a number, the payload is a boolean (first byte 0xc2)"));
    // No trial shows what it is read from.
    CHECK(why_no<std::pair<int, int>>("\xc2"sv).ends_with(
        "cannot be read from a boolean (first byte 0xc2)"));
}

TEST_CASE("who pushes plain text is told of Raw") {
    const std::string hint = "; is this plain text? See orizuru::Raw";
    CHECK(why_no<std::string>("hello") == "bytes behind the value" + hint);
    CHECK(why_no<OldJob>("{\"id\":\t7}\r\n") == "bytes behind the value" + hint);
    CHECK(why_no<std::string>("7") ==
          why_no<std::string>("\7").substr(0, why_no<std::string>("\7").find("0x07")) + "0x37)" +
              hint);
    CHECK(why_no<std::string>("\xc3\xa9t\xc3\xa9") != "it is one");
    CHECK(why_no<std::string>("\7\7") == "bytes behind the value");
    CHECK(why_no<std::string>("hello\x7f") == "bytes behind the value");
    CHECK(why_no<std::string>("hello\xff") == "bytes behind the value");
    CHECK(why_no<std::string>("") == "an empty payload");
}

} // namespace msgpack_test
