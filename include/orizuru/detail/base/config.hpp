// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Places the definitions that are no templates. By default each header includes its own, inline.
// If the whole program defines ORIZURU_SEPARATE_COMPILATION, no header does, and one translation
// unit includes <orizuru/src.hpp>, which has them all.

#ifdef ORIZURU_SEPARATE_COMPILATION
#define ORIZURU_INLINE
#else
#define ORIZURU_INLINE inline
#endif

namespace orizuru::detail {

/// Functions whose header their declaration does not include.
enum class Part { handle_batch, handle_keyed, handle_shards, limit, recur, log_jobs };

/// Specialised by the header of the part. T is of a call, so that only a call asks for it.
template <Part Needed, class... T>
inline constexpr bool included = false;

} // namespace orizuru::detail
