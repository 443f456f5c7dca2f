// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What the compiler says of a type that has no Codec: one sentence, where a failed constraint takes
// twenty lines.

namespace orizuru::detail {

// It depends on T, so that only a use of it fails.
template <class T>
inline constexpr bool has_codec = false;

/// The base of what a class template is for such a T. Any arguments construct it: the compiler
/// would else say more.
template <class T>
class NoCodec {
    static_assert(has_codec<T>, "no orizuru::Codec<T>: add MSGPACK_DEFINE to T, or specialise "
                                "orizuru::Codec<T>; is msgpack.hpp in the include path?");

  public:
    template <class... Arguments>
    explicit NoCodec(const Arguments&... /*unused*/) {}
};

} // namespace orizuru::detail
