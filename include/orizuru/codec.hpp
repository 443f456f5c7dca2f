// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Converts messages to bytes and back: `Codec<T>`, a trait that you specialise, and the concepts
// that describe its interface. msgpack.hpp specialises it for numbers, std::string, types with
// MSGPACK_DEFINE and most standard containers of these; you can enable other types that msgpack-c
// adapts. `Raw` passes bytes through untouched.

#include <concepts>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

namespace orizuru {

/// Memory that a decoder reuses from one message to the next. Belongs to one thread.
class Scratch {
  public:
    /// Returns the object of type S that it keeps; a call with another type replaces it.
    template <std::default_initializable S>
    [[nodiscard]] S& as() {
        if (m_type != &type_mark<S>) {
            m_object = std::make_shared<S>();
            m_type = &type_mark<S>;
        }
        return *static_cast<S*>(m_object.get());
    }

  private:
    // The address identifies the type, also in programs without RTTI.
    template <class S>
    static constexpr char type_mark = 0;

    std::shared_ptr<void> m_object;
    const char* m_type = nullptr;
};

/// Encodes and decodes T. The primary template is undefined; specialise it for your own types:
///
///     template <> struct orizuru::Codec<Order> {
///         static std::string encode(const Order& order);
///         static Order decode(std::string_view bytes);
///     };
///
/// or, without a copy and with reused memory,
///
///         static void encode(const Order& order, std::string& appended_to);
///         static Order decode(std::string_view bytes, orizuru::Scratch& scratch);
///
/// An exception from encode becomes EncodeError, except std::bad_alloc, which passes through. An
/// exception from decode sends the message to the dead list; std::bad_alloc does so only the third
/// time in a row (Consumer::next). The bytes given to decode live as long as the message's guard.
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

/// `Codec<T>::encode` exists in either form.
template <class T>
concept MessageEncodable = detail::encodes<T> || detail::appends<T>;

/// `Codec<T>::decode` exists in either form.
template <class T>
concept MessageDecodable = detail::decodes<T> || detail::decodes_with_scratch<T>;

/// A range whose elements can be read as T. It is read once.
template <class R, class T>
concept RangeOf = requires(R& range) {
    { std::ranges::begin(range) } -> std::input_iterator;
    { *std::ranges::begin(range) } -> std::convertible_to<const T&>;
    std::ranges::end(range);
};

/// A message of arbitrary bytes, sent without encoding.
struct Raw {
    std::string bytes; ///< exactly as in Redis; may be empty, and may have any byte in it

    /// True when both have the same bytes.
    friend bool operator==(const Raw&, const Raw&) = default;
};

/// Passes bytes through as they are.
template <>
struct Codec<Raw> {
    /// Appends the bytes to `out`.
    static void encode(const Raw& raw, std::string& out) { out += raw.bytes; }
    /// Returns a copy of the bytes, which may outlive the message's guard.
    static Raw decode(std::string_view bytes) { return Raw{std::string(bytes)}; }
};

} // namespace orizuru
