// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A script's text and its name in Redis' script cache.

#include <orizuru/detail/base/sha1.hpp>

#include <string_view>

namespace orizuru::detail {

/// One of the library's own scripts.
struct CachedScript {
    std::string_view source;
    Sha1Hex sha1_text = sha1_hex(source);

    [[nodiscard]] constexpr std::string_view sha1() const noexcept {
        return {sha1_text.data(), sha1_text.size()};
    }
};

} // namespace orizuru::detail
