// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of script.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

namespace orizuru {

namespace detail {

/// A script whose text is not known to the compiler.
struct OwnedScript {
    explicit OwnedScript(std::string_view body)
        : text(joined({moving_flags, refusal_function, before_settling_body, body,
                       behind_settling_body})) {}

    std::string text;
    CachedScript script{text};
};

// A pointer to an object that nobody has to delete.
ORIZURU_INLINE Script constant_script(const CachedScript& whole) noexcept {
    return Script(std::shared_ptr<const CachedScript>(std::shared_ptr<void>(), &whole));
}

} // namespace detail

ORIZURU_INLINE Script::Script(std::string_view body) {
    const auto owned = std::make_shared<const detail::OwnedScript>(body);
    m_script = std::shared_ptr<const detail::CachedScript>(owned, &owned->script);
}

ORIZURU_INLINE std::string_view Script::source() const noexcept { return m_script->source(); }

ORIZURU_INLINE std::string Script::sha1() const {
    return std::string(std::string_view(m_script->sha1()));
}

} // namespace orizuru
