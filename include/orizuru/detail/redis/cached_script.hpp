// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A script by its text and by the name under which Redis keeps it.

#include <orizuru/detail/base/sha1.hpp>

#include <string_view>

namespace orizuru::detail {

/// A script of ours with its name in Redis' cache.
struct CachedScript {
    std::string_view source;
    Sha1Hex sha1_text = sha1_hex(source);

    [[nodiscard]] constexpr std::string_view sha1() const noexcept {
        return {sha1_text.data(), sha1_text.size()};
    }
};

} // namespace orizuru::detail
