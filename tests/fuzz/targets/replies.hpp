// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Replies that Redis could send, sensible or not, their shapes and their bytes.

#pragma once

#include "input.hpp"

#include <orizuru/reply.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::test {

/// The codes that mean something to the library, and some that do not.
[[nodiscard]] inline std::string any_code(Input& input) {
    constexpr std::array<std::string_view, 25> codes{
        "LOADING",    "BUSY",      "TRYAGAIN",  "CLUSTERDOWN", "MISCONF",
        "NOREPLICAS", "OOM",       "READONLY",  "MASTERDOWN",  "UNBLOCKED",
        "NOAUTH",     "NOPERM",    "MOVED",     "ASK",         "NOSCRIPT",
        "CROSSSLOT",  "WRONGPASS", "STALE",     "SRC",         "REFUSED",
        "FENCED",     "BUSYNAME",  "WRONGTYPE", "ERR",         ""};
    return std::string(codes[input.below(codes.size())]);
}

/// `text` makes those of strings.
template <std::invocable<Input&> Text>
[[nodiscard]] Reply any_reply(Input& input, const Text& text, int depth = 3) {
    using Type = Reply::Type;
    constexpr std::array types{Type::nil,    Type::integer, Type::string,
                               Type::status, Type::error,   Type::array};
    Reply reply;
    reply.type = types[input.below(types.size())];
    switch (reply.type) {
    case Type::nil:
        break;
    case Type::status:
        reply.text = "OK";
        break;
    case Type::error:
        reply.text = any_code(input) + " " + text(input);
        break;
    case Type::integer: {
        const std::size_t small = input.below(8);
        reply.integer =
            small < 7 ? static_cast<std::int64_t>(small) - 2 : input.number<std::int64_t>();
        break;
    }
    case Type::string:
        reply.text = text(input);
        break;
    case Type::array:
        for (std::size_t left = depth > 0 ? input.below(5) : 0; left > 0; --left) {
            reply.elements.push_back(any_reply(input, text, depth - 1));
        }
        break;
    }
    return reply;
}

[[nodiscard]] inline bool all_strings(const Reply& reply) {
    return reply.is(Reply::Type::array) &&
           std::ranges::all_of(reply.elements, [](const Reply& element) {
               return element.is(Reply::Type::string);
           });
}

[[nodiscard]] inline bool is_number(const Reply& reply, std::int64_t least,
                                    std::int64_t most = INT64_MAX) {
    return reply.is(Reply::Type::integer) && least <= reply.integer && reply.integer <= most;
}

/// As Redis sends it.
[[nodiscard]] inline std::string written(const Reply& reply) {
    switch (reply.type) {
    case Reply::Type::nil:
        return "$-1\r\n";
    case Reply::Type::status:
        return "+" + reply.text + "\r\n";
    case Reply::Type::error:
        return "-" + reply.text + "\r\n";
    case Reply::Type::integer:
        return ":" + std::to_string(reply.integer) + "\r\n";
    case Reply::Type::string:
        return "$" + std::to_string(reply.text.size()) + "\r\n" + reply.text + "\r\n";
    case Reply::Type::array:
        break;
    }
    std::string bytes = "*" + std::to_string(reply.elements.size()) + "\r\n";
    for (const Reply& element : reply.elements) {
        bytes += written(element);
    }
    return bytes;
}

} // namespace orizuru::test
