// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A folded crane, for the browser's tab.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view icon_svg = R"svg(
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
    <path fill="#2563eb" d="M16 20 3 9l11 3z"/>
    <path fill="#1d4ed8" d="M16 20 14 12 20 3l1 11z"/>
    <path fill="#60a5fa" d="M16 20l5-6 8 3-6 1-4 9z"/>
</svg>
)svg";

} // namespace orizuru::detail::web
