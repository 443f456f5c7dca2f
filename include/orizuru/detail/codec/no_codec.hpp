// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What the compiler says of a type whose Codec is missing or unfit: one sentence, where a failed
// constraint takes twenty lines.

#include <orizuru/codec.hpp>

namespace orizuru::detail {

/// Whether there is one, whatever it can do.
template <class T>
inline constexpr bool has_codec = requires {
    sizeof(Codec<T>);
};

enum class Coding { encode, decode };

/// The base of a Producer or Consumer of a T that it cannot code. It accepts any arguments, so that
/// the compiler adds no error about a constructor.
template <class T, Coding Needed>
class NoCodec {
    static_assert(has_codec<T>, "no orizuru::Codec<T>: add MSGPACK_DEFINE to T, or specialise "
                                "orizuru::Codec<T>; is msgpack.hpp in the include path?");
    static_assert(!has_codec<T> || Needed != Coding::encode,
                  "orizuru::Codec<T> cannot encode: it needs "
                  "'static std::string encode(const T&)' (orizuru/codec.hpp)");
    static_assert(!has_codec<T> || Needed != Coding::decode,
                  "orizuru::Codec<T> cannot decode: it needs 'static T decode(std::string_view)'; "
                  "msgpack's needs a default constructor of T");

  public:
    template <class... Arguments>
    explicit NoCodec(const Arguments&... /*unused*/) {}
};

} // namespace orizuru::detail
