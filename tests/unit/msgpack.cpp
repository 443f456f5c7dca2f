// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/msgpack.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <forward_list>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace example {

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

} // namespace example

MSGPACK_ADD_ENUM(example::Colour)

template <>
struct msgpack::adaptor::pack<example::Celsius> {
    template <class Stream>
    msgpack::packer<Stream>& operator()(msgpack::packer<Stream>& out,
                                        const example::Celsius& value) const {
        return out.pack(value.degrees());
    }
};
template <>
struct msgpack::adaptor::as<example::Celsius> {
    example::Celsius operator()(const msgpack::object& object) const {
        return example::Celsius(object.as<double>());
    }
};

template <>
inline constexpr bool orizuru::enable_msgpack<example::Colour> = true;
template <>
inline constexpr bool orizuru::enable_msgpack<example::Celsius> = true;

namespace {

using namespace example;
using namespace std::string_literals;
using namespace std::string_view_literals;
using orizuru::Codec;
using orizuru::MessageDecodable;
using orizuru::MessageEncodable;
using orizuru::Scratch;
using orizuru::detail::MsgpackAppender;
using orizuru::detail::MsgpackReader;

template <class T>
constexpr bool is_message = MessageEncodable<T>&& MessageDecodable<T>;

static_assert(is_message<Job> && is_message<std::vector<Job>> && is_message<ByName>);
static_assert(is_message<Colour> && is_message<std::map<std::string, Colour>>);
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

std::string hex(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += "0123456789abcdef"[value >> 4];
        text += "0123456789abcdef"[value & 15];
    }
    return text;
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

/// What msgpack itself makes of the bytes, its strings as references like ours.
msgpack::object unpacked(std::string_view bytes, msgpack::zone& zone) {
    const std::size_t size = bytes.size();
    const msgpack::unpack_limit limit(size, size / 2, size, size, size, 64);
    const auto reference = [](msgpack::type::object_type, std::size_t, void*) { return true; };
    std::size_t offset = 0;
    bool referenced = false;
    const msgpack::object value =
        msgpack::unpack(zone, bytes.data(), size, offset, referenced, reference, nullptr, limit);
    if (offset != size) {
        throw msgpack::parse_error("bytes behind the value");
    }
    return value;
}

bool same_place(const char* a, const char* b, std::size_t size) { return size == 0 || a == b; }

/// Stricter than operator==: types, bits and places.
bool same(const msgpack::object& a, const msgpack::object& b) {
    if (a.type != b.type) {
        return false;
    }
    const auto& x = a.via;
    const auto& y = b.via;
    switch (a.type) {
    case msgpack::type::NIL:
        return true;
    case msgpack::type::BOOLEAN:
        return x.boolean == y.boolean;
    case msgpack::type::POSITIVE_INTEGER:
        return x.u64 == y.u64;
    case msgpack::type::NEGATIVE_INTEGER:
        return x.i64 == y.i64;
    case msgpack::type::FLOAT32:
    case msgpack::type::FLOAT64:
        return std::bit_cast<std::uint64_t>(x.f64) == std::bit_cast<std::uint64_t>(y.f64);
    case msgpack::type::STR:
        return x.str.size == y.str.size && same_place(x.str.ptr, y.str.ptr, x.str.size);
    case msgpack::type::BIN:
        return x.bin.size == y.bin.size && same_place(x.bin.ptr, y.bin.ptr, x.bin.size);
    case msgpack::type::EXT:
        return x.ext.size == y.ext.size && x.ext.ptr == y.ext.ptr;
    case msgpack::type::ARRAY:
        return std::equal(begin(x.array), end(x.array), begin(y.array), end(y.array), same);
    case msgpack::type::MAP:
        return std::equal(begin(x.map), end(x.map), begin(y.map), end(y.map),
                          [](const msgpack::object_kv& i, const msgpack::object_kv& k) {
                              return same(i.key, k.key) && same(i.val, k.val);
                          });
    }
    return false;
}

template <class Refusal, class Function>
std::optional<msgpack::object> unless_refused(Function read) {
    try {
        return read();
    } catch (const Refusal&) {
        return std::nullopt;
    }
}

/// Requires that we read the bytes as msgpack does. Whether they were accepted.
bool accepted_alike(const std::string& text) {
    CAPTURE(hex(text));
    // As many bytes as that and no zero behind them: sanitizers see one that is read too many.
    const std::vector<char> exact(text.begin(), text.end());
    const std::string_view bytes(exact.data(), exact.size());
    msgpack::zone our_zone;
    msgpack::zone their_zone;
    MsgpackReader reader(bytes, our_zone);
    const auto ours = unless_refused<std::invalid_argument>([&] { return reader.read(); });
    const auto theirs =
        unless_refused<msgpack::unpack_error>([&] { return unpacked(bytes, their_zone); });
    REQUIRE(ours.has_value() == theirs.has_value());
    REQUIRE((!ours || same(*ours, *theirs)));
    return ours.has_value();
}

using Random = std::mt19937_64; // the same numbers everywhere, unlike the distributions

std::string random_bytes(Random& random, std::size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) {
        byte = static_cast<char>(random());
    }
    return bytes;
}

void pack_random(msgpack::packer<MsgpackAppender>& packer, Random& random, int levels) {
    const std::uint64_t number = random() >> random() % 64;
    const auto size = static_cast<std::uint32_t>(random() % 40);
    const auto count = static_cast<std::uint32_t>(random() % 20);
    switch (random() % (levels > 0 ? 12 : 10)) {
    case 0:
        packer.pack_nil();
        break;
    case 1:
        packer.pack(number % 2 == 0);
        break;
    case 2:
        packer.pack(number);
        break;
    case 3:
        packer.pack(-static_cast<std::int64_t>(number / 2));
        break;
    case 4: // more bytes than it needs
        packer.pack_fix_int64(static_cast<std::int64_t>(number));
        break;
    case 5:
        packer.pack_float(std::bit_cast<float>(static_cast<std::uint32_t>(number)));
        break;
    case 6:
        packer.pack_double(std::bit_cast<double>(random()));
        break;
    case 7:
        packer.pack_str(size).pack_str_body(random_bytes(random, size).data(), size);
        break;
    case 8:
        packer.pack_bin(size).pack_bin_body(random_bytes(random, size).data(), size);
        break;
    case 9:
        packer.pack_ext(size, static_cast<std::int8_t>(number));
        packer.pack_ext_body(random_bytes(random, size).data(), size);
        break;
    case 10:
        packer.pack_array(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            pack_random(packer, random, levels - 1);
        }
        break;
    default:
        packer.pack_map(count);
        for (std::uint32_t i = 0; i < 2 * count; ++i) {
            pack_random(packer, random, levels - 1);
        }
    }
}

/// A byte changed, left out or put in, or the end cut off.
std::string damaged(std::string bytes, Random& random) {
    const std::size_t place = random() % bytes.size();
    switch (random() % 4) {
    case 0:
        bytes[place] = static_cast<char>(random());
        break;
    case 1:
        bytes.erase(place, 1);
        break;
    case 2:
        bytes.insert(place, 1, static_cast<char>(random()));
        break;
    default:
        bytes.resize(place);
    }
    return bytes;
}

} // namespace

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

TEST_CASE("any first byte is read as msgpack reads it, whatever follows and wherever it is cut") {
    // Sizes of 1, 2 or 4 bytes: 0, 1, 2 and more than there is.
    const std::string tails[] = {"\0"s,       "\1"s,       "\2"s,   "\0\1"s,    "\0\2"s,
                                 "\0\0\0\1"s, "\0\0\0\2"s, "\xff"s, "\x80\x7f"s};
    for (int first = 0; first < 256; ++first) {
        bool accepted = false;
        for (const std::string& tail : tails) {
            std::string bytes;
            while (bytes.size() < 64) {
                accepted |= accepted_alike(bytes);
                bytes += bytes.empty() ? static_cast<char>(first)
                                       : tail[(bytes.size() - 1) % tail.size()];
            }
        }
        CAPTURE(first);
        CHECK(accepted == (first != 0xc1));
    }
}

TEST_CASE("any tree is read as msgpack reads it, and damaged ones are too") {
    Random random(1);
    int accepted = 0;
    int refused = 0;
    for (int i = 0; i < 2000; ++i) {
        std::string bytes;
        MsgpackAppender appender{bytes};
        msgpack::packer<MsgpackAppender> packer(appender);
        pack_random(packer, random, 4);
        REQUIRE(accepted_alike(bytes));
        for (int k = 0; k < 20; ++k) {
            std::string changed = damaged(bytes, random);
            ++(accepted_alike(changed) ? accepted : refused);
        }
    }
    CHECK(accepted > 1000);
    CHECK(refused > 1000);
}

TEST_CASE("a refusal says what is wrong") {
    const std::pair<std::string, const char*> refusals[] = {
        {"", "an empty payload"},
        {"\xc1", "the byte 0xc1, which begins no value"},
        {"\xcd\1", "fewer bytes than announced"},
        {"\xa2x", "fewer bytes than announced"},
        {"\x92\xa1\1", "fewer bytes than announced"},
        {"\7\7", "bytes behind the value"},
        {std::string(65, '\x91') + '\7', "more than 64 levels"},
        {"\xdd\0\x0f\x42\x40"s + std::string(1'000'000, '\7'), "more than 1,000,000 values"},
    };
    for (const auto& [bytes, reason] : refusals) {
        CHECK_THROWS_WITH_AS(decoded<std::vector<int>>(bytes), reason, std::invalid_argument);
    }
}
