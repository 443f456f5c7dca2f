// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of once.hpp.

#include <orizuru/detail/once/once_claims.hpp>

namespace orizuru {

ORIZURU_INLINE Once::Once(Endpoint endpoint, std::string scope, OnceOptions options)
    : m_claims(
          std::make_unique<detail::OnceClaims>(std::move(endpoint), std::move(scope), options)) {}
ORIZURU_INLINE Once::~Once() = default;

ORIZURU_INLINE Claim Once::claim(std::string_view id) { return m_claims->claim(id); }

ORIZURU_INLINE bool Once::complete(const OnceToken& token, std::optional<std::string_view> result) {
    return m_claims->complete(token, result);
}

ORIZURU_INLINE bool Once::release(const OnceToken& token) { return m_claims->release(token); }

ORIZURU_INLINE void Once::renew() noexcept { m_claims->renew(); }

ORIZURU_INLINE OnceRun Once::run_effect(std::string_view id, const detail::OnceCall& effect) {
    return m_claims->run(id, effect);
}

ORIZURU_INLINE OnceRun Once::run_effect(std::string_view id, const detail::OnceCall& effect,
                                        const detail::OnceMessage& message) {
    return m_claims->run(id, effect, message);
}

} // namespace orizuru
