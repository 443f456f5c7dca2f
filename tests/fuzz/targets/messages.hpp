// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Types that messages could have, for the targets that decode and encode.

#pragma once

#include <orizuru/codec.hpp>
#include <orizuru/msgpack.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

struct Order {
    std::int64_t number = 0;
    std::string customer;
    std::vector<double> prices;
    std::map<std::string, std::uint16_t> counts;
    std::optional<bool> paid;
    MSGPACK_DEFINE(number, customer, prices, counts, paid)
};

/// Its depth is the payload's choice.
struct Tree {
    std::vector<Tree> branches;
    MSGPACK_DEFINE(branches)
};

using Bytes = std::vector<std::uint8_t>;
using Numbers = std::vector<std::int32_t>;
using Texts = std::vector<std::string>;
using Table = std::map<std::string, Bytes>;

template <class T>
[[nodiscard]] std::string encoded(const T& value) {
    std::string bytes;
    Codec<T>::encode(value, bytes);
    return bytes;
}

/// With memory that earlier payloads have used.
template <class T>
[[nodiscard]] T decoded(std::string_view bytes) {
    static Scratch scratch;
    return Codec<T>::decode(bytes, scratch);
}

} // namespace orizuru::test
