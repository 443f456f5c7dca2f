// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads a payload into msgpack-c's tree of objects, in one pass unless it is large, and bounded
// whatever the bytes say. msgpack's own unpack makes two vectors per payload and bounds each array
// alone: nested arrays, each as long as the payload, take 64 times the memory that a payload needs.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/codec/msgpack_bounds.hpp>

#include <msgpack.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace orizuru::detail {

// One object per byte of that takes 6 MiB. A larger payload is checked before any of it is kept.
inline constexpr std::size_t most_unchecked_msgpack_bytes = std::size_t{1} << 18;

/// Reads one payload. The tree lasts as long as the reader: its strings refer to the bytes, its
/// arrays and maps lie in the zone. They take at most one object per byte.
class MsgpackReader {
  public:
    MsgpackReader(std::string_view bytes, msgpack::zone& zone) : MsgpackReader(bytes, &zone) {}
    MsgpackReader(const MsgpackReader&) = delete;
    MsgpackReader& operator=(const MsgpackReader&) = delete;
    /// Frees the memory of a large tree; the zone's first chunk stays for the next one.
    ~MsgpackReader() {
        if (m_zone != nullptr) {
            m_zone->clear();
        }
    }

    /// Throws std::invalid_argument unless the bytes are one value within the limits.
    [[nodiscard]] msgpack::object read() {
        if (m_spare > most_unchecked_msgpack_bytes && m_zone != nullptr) {
            check_bytes({m_next, m_spare});
        }
        expect_first();
        msgpack::object value;
        read_value(value);
        expect_end();
        return value;
    }

    /// Does the same without a tree: it reads arrays and maps and keeps none.
    static void check_bytes(std::string_view bytes) {
        static_cast<void>(MsgpackReader(bytes, nullptr).read());
    }

    /// Reads an array of numbers without a tree, bounded by its bytes alone. False if the bytes are
    /// no array, or have an array or a map in it. Throws std::invalid_argument when they are no
    /// msgpack, and msgpack::type_error for an element that Numbers cannot hold.
    template <class Numbers>
    [[nodiscard]] static bool read_numbers(std::string_view bytes, Numbers& numbers) {
        MsgpackReader reader(bytes, nullptr);
        reader.expect_first();
        const std::optional<std::uint32_t> count = reader.array_count();
        if (!count) {
            return false;
        }
        reader.expect(*count);
        if constexpr (requires { numbers.reserve(*count); }) {
            numbers.reserve(*count);
        }
        msgpack::object number;
        for (std::uint32_t i = 0; i < *count; ++i) {
            if (is_container(*reader.m_next)) {
                return false;
            }
            reader.read_value(number);
            numbers.push_back(number.as<typename Numbers::value_type>());
        }
        reader.expect_end();
        return true;
    }

  private:
    using Type = msgpack::type::object_type;

    MsgpackReader(std::string_view bytes, msgpack::zone* zone)
        : m_next(bytes.data()),
          m_spare(bytes.size()),
          m_most_values(most_msgpack_values(m_spare)),
          m_zone(zone) {}

    static bool is_container(char first) noexcept {
        const auto byte = static_cast<std::uint8_t>(first);
        return (byte >= 0x80 && byte < 0xa0) || (byte >= 0xdc && byte < 0xe0);
    }

    /// Reads the head of the value if that is an array.
    std::optional<std::uint32_t> array_count() {
        const auto first = static_cast<std::uint8_t>(*m_next++);
        if (first >= 0x90 && first < 0xa0) {
            return first & 0x0fU;
        }
        if (first == 0xdc) {
            return number<std::uint16_t>();
        }
        if (first == 0xdd) {
            return number<std::uint32_t>();
        }
        return std::nullopt;
    }

    [[gnu::always_inline]] void read_value(msgpack::object& value) {
        const auto first = static_cast<std::uint8_t>(*m_next++); // which `expect` has set aside
        if (first < 0x80) {
            value << first;
        } else if (first < 0x90) {
            set_map(value, first & 0x0f);
        } else if (first < 0xa0) {
            set_array(value, first & 0x0f);
        } else if (first < 0xc0) {
            set_str(value, first & 0x1f);
        } else if (first < 0xe0) {
            read_by_type(value, first);
        } else {
            value << static_cast<std::int8_t>(first);
        }
    }

    void read_by_type(msgpack::object& value, std::uint8_t type) {
        switch (type) {
        case 0xc0:
            return value << msgpack::type::nil_t();
        case 0xc2:
        case 0xc3:
            return value << (type == 0xc3);
        case 0xc4:
            return set_bin(value, number<std::uint8_t>());
        case 0xc5:
            return set_bin(value, number<std::uint16_t>());
        case 0xc6:
            return set_bin(value, number<std::uint32_t>());
        case 0xc7:
            return set_ext(value, number<std::uint8_t>());
        case 0xc8:
            return set_ext(value, number<std::uint16_t>());
        case 0xc9:
            return set_ext(value, number<std::uint32_t>());
        case 0xca:
            return value << std::bit_cast<float>(number<std::uint32_t>());
        case 0xcb:
            return value << std::bit_cast<double>(number<std::uint64_t>());
        case 0xcc:
            return value << number<std::uint8_t>();
        case 0xcd:
            return value << number<std::uint16_t>();
        case 0xce:
            return value << number<std::uint32_t>();
        case 0xcf:
            return value << number<std::uint64_t>();
        case 0xd0:
            return value << number<std::int8_t>();
        case 0xd1:
            return value << number<std::int16_t>();
        case 0xd2:
            return value << number<std::int32_t>();
        case 0xd3:
            return value << number<std::int64_t>();
        case 0xd4:
        case 0xd5:
        case 0xd6:
        case 0xd7:
        case 0xd8:
            return set_ext(value, std::uint32_t{1} << (type - 0xd4));
        case 0xd9:
            return set_str(value, number<std::uint8_t>());
        case 0xda:
            return set_str(value, number<std::uint16_t>());
        case 0xdb:
            return set_str(value, number<std::uint32_t>());
        case 0xdc:
            return set_array(value, number<std::uint16_t>());
        case 0xdd:
            return set_array(value, number<std::uint32_t>());
        case 0xde:
            return set_map(value, number<std::uint16_t>());
        case 0xdf:
            return set_map(value, number<std::uint32_t>());
        default:
            refuse("the byte 0xc1, which begins no value");
        }
    }

    void set_str(msgpack::object& value, std::uint32_t size) {
        value.type = Type::STR;
        value.via.str = {size, take(size)};
    }
    void set_bin(msgpack::object& value, std::uint32_t size) {
        value.type = Type::BIN;
        value.via.bin = {size, take(size)};
    }
    void set_ext(msgpack::object& value, std::uint32_t size) {
        value.type = Type::EXT;
        value.via.ext = {size, take(std::uint64_t{size} + 1)}; // its type is a byte in front
    }
    void set_array(msgpack::object& value, std::uint32_t count) {
        value.type = Type::ARRAY;
        value.via.array = {count, read_values(count)};
    }
    void set_map(msgpack::object& value, std::uint32_t pairs) {
        static_assert(sizeof(msgpack::object_kv) == 2 * sizeof(msgpack::object));
        msgpack::object* const keys_and_values = read_values(std::uint64_t{2} * pairs);
        value.type = Type::MAP;
        value.via.map = {pairs, reinterpret_cast<msgpack::object_kv*>(keys_and_values)};
    }

    /// The values of an array or map, in sequence.
    msgpack::object* read_values(std::uint64_t count) {
        if (m_level == most_msgpack_levels) {
            refuse("more than 64 levels");
        }
        if (count == 0) {
            return nullptr;
        }
        expect(count);
        m_values += count;
        if (m_values > m_most_values) {
            refuse_values();
        }
        msgpack::object skipped;
        msgpack::object* const kept = m_zone == nullptr ? nullptr : allocate(count);
        ++m_level;
        for (std::uint64_t i = 0; i < count; ++i) {
            read_value(kept == nullptr ? skipped : kept[i]);
        }
        --m_level;
        return kept;
    }
    msgpack::object* allocate(std::uint64_t count) {
        return static_cast<msgpack::object*>(m_zone->allocate_align(
            narrow<std::size_t>(count) * sizeof(msgpack::object), alignof(msgpack::object)));
    }

    template <std::integral Number>
    Number number() {
        return static_cast<Number>(big_endian<sizeof(Number)>(take(sizeof(Number))));
    }
    /// Recursive halves, not a loop: compilers make one load and one swap of it.
    template <std::size_t Size>
    static std::uint64_t big_endian(const char* bytes) {
        if constexpr (Size == 1) {
            return static_cast<std::uint8_t>(*bytes);
        } else {
            constexpr std::size_t half = Size / 2;
            return big_endian<half>(bytes) << (8 * half) | big_endian<half>(bytes + half);
        }
    }

    const char* take(std::uint64_t size) {
        expect(size);
        return std::exchange(m_next, m_next + size);
    }

    /// Sets bytes aside: those of a string or number, or the first byte of each following value.
    void expect(std::uint64_t bytes) {
        if (bytes > m_spare) {
            refuse("fewer bytes than announced");
        }
        m_spare -= narrow<std::size_t>(bytes);
    }

    void expect_first() {
        if (m_spare == 0) {
            refuse("an empty payload");
        }
        expect(1);
    }
    void expect_end() const {
        if (m_spare > 0) {
            refuse("bytes behind the value");
        }
    }

    [[noreturn]] static void refuse(const char* reason) { throw std::invalid_argument(reason); }
    [[noreturn]] [[gnu::cold]] void refuse_values() const {
        throw std::invalid_argument(joined({"more than ", Digits(m_most_values), " values"}));
    }

    const char* m_next;
    std::size_t m_spare; ///< bytes that are neither read nor set aside
    std::uint64_t m_values = 1;
    std::uint64_t m_most_values;
    std::size_t m_level = 0;
    msgpack::zone* m_zone;
};

} // namespace orizuru::detail
