// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Shows the beginning of a payload to a person.

#include <orizuru/detail/codec/misread.hpp>
#include <orizuru/detail/jobs/error_text.hpp>

#include <msgpack.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace orizuru::detail::web {

/// No more of a payload is shown.
inline constexpr std::size_t longest_preview = 4096;

struct PayloadText {
    std::string kind; ///< "text", "msgpack" as JSON, or "bytes"
    std::string text; ///< UTF-8
};

/// True if it is one msgpack value of at most 100 levels. A parser that calls itself for each level
/// would need a thread's whole stack for what someone has pushed.
[[nodiscard]] inline bool is_shallow_msgpack(std::string_view payload) {
    const std::size_t size = payload.size(); // no part has more elements than the whole has bytes
    try {
        std::size_t end = 0;
        msgpack::unpack(payload.data(), size, end, nullptr, nullptr,
                        msgpack::unpack_limit(size, size, size, size, size, 100));
        return end == size;
    } catch (const msgpack::unpack_error&) {
        return false;
    }
}

[[nodiscard]] inline PayloadText payload_text(std::string_view payload) {
    const std::string_view shown = cut_text(payload, longest_preview);
    if (is_plain_text(shown)) {
        return {"text", std::string(shown)};
    }
    // A longer one cut off is no msgpack.
    if (payload.size() <= longest_preview && is_shallow_msgpack(payload)) {
        const auto value =
            nlohmann::json::from_msgpack(payload.begin(), payload.end(), true, false);
        if (!value.is_discarded()) {
            constexpr auto replace = nlohmann::json::error_handler_t::replace;
            std::string text = value.dump(-1, ' ', false, replace);
            // Indenting deep nests would multiply their size.
            if (std::ranges::count_if(text, [](char c) { return c == '[' || c == '{'; }) <= 64) {
                text = value.dump(2, ' ', false, replace);
            }
            return {"msgpack", std::string(cut_text(text, longest_preview))};
        }
    }
    return {"bytes", to_utf8(shown)};
}

} // namespace orizuru::detail::web
