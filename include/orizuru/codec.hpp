// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How a message becomes bytes and bytes a message: `Codec<T>`, a trait that users specialise, and
// the concepts that say what it must give. msgpack.hpp specialises it for numbers, std::string,
// most standard containers of such and types with MSGPACK_DEFINE; other types that msgpack-c adapts
// you enable there. `Raw` passes bytes through untouched.

#include <concepts>
#include <memory>
#include <string>
#include <string_view>

namespace orizuru {

/// Memory that a decoder keeps from one message to the next. Belongs to one thread.
class Scratch {
  public:
    /// The one object of type S, made at the first call and kept.
    template <std::default_initializable S>
    [[nodiscard]] S& as() {
        if (m_type != &type_mark<S>) {
            m_object = std::make_shared<S>();
            m_type = &type_mark<S>;
        }
        return *static_cast<S*>(m_object.get());
    }

  private:
    // Its address names the type, in programs without RTTI too.
    template <class S>
    static constexpr char type_mark = 0;

    std::shared_ptr<void> m_object;
    const char* m_type = nullptr;
};

/// How T is written and read. Undefined for a T that has none; specialise it for your own:
///
///     template <> struct orizuru::Codec<Order> {
///         static std::string encode(const Order& order);
///         static Order decode(std::string_view bytes);
///     };
///
/// or, without a copy and with memory that is reused,
///
///         static void encode(const Order& order, std::string& appended_to);
///         static Order decode(std::string_view bytes, orizuru::Scratch& scratch);
///
/// What encode throws becomes EncodeError. What decode throws sends the message to the dead list;
/// std::bad_alloc only when it is thrown three times in a row (Consumer::next). The bytes given to
/// decode live as long as the message's guard.
template <class T>
struct Codec;

namespace detail {

template <class T>
concept appends = requires(const T& value, std::string& out) {
    Codec<T>::encode(value, out);
};

template <class T>
concept encodes = requires(const T& value) {
    { Codec<T>::encode(value) } -> std::convertible_to<std::string>;
};

template <class T>
concept decodes = requires(std::string_view bytes) {
    { Codec<T>::decode(bytes) } -> std::same_as<T>;
};

template <class T>
concept decodes_with_scratch = requires(std::string_view bytes, Scratch& scratch) {
    { Codec<T>::decode(bytes, scratch) } -> std::same_as<T>;
};

} // namespace detail

/// `Codec<T>::encode` works, in either form.
template <class T>
concept MessageEncodable = detail::encodes<T> || detail::appends<T>;

/// `Codec<T>::decode` works, in either form.
template <class T>
concept MessageDecodable = detail::decodes<T> || detail::decodes_with_scratch<T>;

/// Bytes as they are: no encoding, any content.
struct Raw {
    std::string bytes;

    friend bool operator==(const Raw&, const Raw&) = default;
};

template <>
struct Codec<Raw> {
    static void encode(const Raw& raw, std::string& out) { out += raw.bytes; }
    static Raw decode(std::string_view bytes) { return Raw{std::string(bytes)}; }
};

} // namespace orizuru
