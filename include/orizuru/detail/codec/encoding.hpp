// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Calls Codec<T> in either of its forms, limits payloads and throws errors of one type. Says in one
// sentence why a Codec is missing or unfit, where a failed constraint takes twenty lines.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/error.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Redis' own limit on a string (proto-max-bulk-len) is 512 MiB by default.
inline void check_max_payload(std::int64_t max_payload) {
    if (max_payload < 1 || max_payload > std::int64_t{512} << 20) {
        throw std::invalid_argument("max_payload must be 1 byte to 512 MiB");
    }
}

/// The reason for refusing a payload.
[[nodiscard]] [[gnu::cold]] inline std::string over_max_payload(std::size_t size,
                                                                std::uint64_t max_payload) {
    return joined(
        {"the payload of ", Digits(size), " bytes is over max_payload, ", Digits(max_payload)});
}

/// In a handler: throws EncodeError for a Codec's exception; rethrows std::bad_alloc.
[[noreturn]] [[gnu::cold]] inline void throw_encode_error() {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        throw EncodeError(joined({"the message cannot be encoded: ", error.what()}));
    } catch (...) {
        throw EncodeError("the message cannot be encoded: its Codec threw no std::exception");
    }
}

/// Appends the payload of `message`; throws as its Codec does.
template <MessageEncodable T>
void append_encoded(const T& message, std::string& out) {
    if constexpr (appends<T>) {
        Codec<T>::encode(message, out);
    } else {
        out += Codec<T>::encode(message);
    }
}

/// Does the same up to `max_payload`. Throws EncodeError or std::bad_alloc and leaves `out` as it
/// was.
template <MessageEncodable T>
void encode(const T& message, std::string& out, std::int64_t max_payload) {
    const std::size_t before = out.size();
    try {
        append_encoded(message, out);
    } catch (...) {
        out.resize(before);
        throw_encode_error();
    }
    const std::size_t size = out.size() - before;
    const auto most = static_cast<std::uint64_t>(max_payload);
    if (size > most) {
        out.resize(before);
        throw EncodeError(over_max_payload(size, most));
    }
}

/// Returns the payload of `message`. Throws as encode().
template <MessageEncodable T>
[[nodiscard]] std::string encoded(const T& message, std::int64_t max_payload) {
    std::string payload;
    encode(message, payload, max_payload);
    return payload;
}

template <MessageDecodable T>
[[nodiscard]] T decode(std::string_view payload, Scratch& scratch) {
    if constexpr (decodes_with_scratch<T>) {
        return Codec<T>::decode(payload, scratch);
    } else {
        return Codec<T>::decode(payload);
    }
}

/// True if T has a Codec, whatever it can do.
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
