// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Decodes a payload with msgpack-c itself, to be compared with MsgpackReader's result.

#pragma once

#include <msgpack.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orizuru::test {

/// Decodes the bytes with msgpack-c, with strings as references like ours.
inline msgpack::object unpacked(std::string_view bytes, msgpack::zone& zone) {
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

inline bool same_place(const char* a, const char* b, std::size_t size) {
    return size == 0 || a == b;
}

/// Stricter than operator==: compares types, bits and addresses.
inline bool same(const msgpack::object& a, const msgpack::object& b) {
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

} // namespace orizuru::test
