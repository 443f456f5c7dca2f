// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Codec by msgpack-c, for
//   - bool, char, wchar_t, integers, float, double, std::byte, std::string;
//   - enums, as the number beneath; std::chrono's durations and points of the system's clock, as
//     their count;
//   - your own types with MSGPACK_DEFINE or MSGPACK_DEFINE_MAP;
//   - types for which you set enable_msgpack: other types that msgpack-c adapts (std::wstring,
//     std::complex), types that you adapt;
//   - std::vector, deque, list, forward_list, array, set, map, multiset, multimap, the unordered
//     ones, pair, tuple, optional, shared_ptr and unique_ptr of all these.
// To be read, each type must be default-constructible, or made by an `as` adaptor of msgpack's (not
// in an array or a tuple). An optional of an empty optional is read as an empty one. std::variant,
// std::string_view and long double have no Codec: write your own.
//
// MSGPACK_DEFINE writes a struct as an array, as Rust's rmp_serde::to_vec does.
//
// Reading is bounded whatever the bytes say: announced sizes by the payload's size, nesting by 64
// levels, and at most 1,000,000 values in total. Bytes behind the value are refused.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/misread.hpp>
#include <orizuru/detail/codec/msgpack_reader.hpp>

#include <msgpack.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

// How msgpack-c writes and reads what it does not know. MSGPACK_ADD_ENUM and any other adaptor for
// one type is preferred to these.

namespace orizuru::detail {

template <class D>
using SystemTime = std::chrono::time_point<std::chrono::system_clock, D>;

} // namespace orizuru::detail

template <class T>
    requires std::is_enum_v<T>
struct msgpack::adaptor::convert<T> {
    const msgpack::object& operator()(const msgpack::object& from, T& value) const {
        value = static_cast<T>(from.as<std::underlying_type_t<T>>());
        return from;
    }
};
template <class T>
    requires std::is_enum_v<T>
struct msgpack::adaptor::pack<T> {
    template <class Stream>
    msgpack::packer<Stream>& operator()(msgpack::packer<Stream>& out, const T& value) const {
        return out.pack(static_cast<std::underlying_type_t<T>>(value));
    }
};

template <class Count, class Period>
struct msgpack::adaptor::convert<std::chrono::duration<Count, Period>> {
    const msgpack::object& operator()(const msgpack::object& from,
                                      std::chrono::duration<Count, Period>& value) const {
        value = std::chrono::duration<Count, Period>(from.as<Count>());
        return from;
    }
};
template <class Count, class Period>
struct msgpack::adaptor::pack<std::chrono::duration<Count, Period>> {
    template <class Stream>
    msgpack::packer<Stream>& operator()(msgpack::packer<Stream>& out,
                                        const std::chrono::duration<Count, Period>& value) const {
        return out.pack(value.count());
    }
};

template <class D>
struct msgpack::adaptor::convert<orizuru::detail::SystemTime<D>> {
    const msgpack::object& operator()(const msgpack::object& from,
                                      orizuru::detail::SystemTime<D>& value) const {
        value = orizuru::detail::SystemTime<D>(from.as<D>());
        return from;
    }
};
template <class D>
struct msgpack::adaptor::pack<orizuru::detail::SystemTime<D>> {
    template <class Stream>
    msgpack::packer<Stream>& operator()(msgpack::packer<Stream>& out,
                                        const orizuru::detail::SystemTime<D>& value) const {
        return out.pack(value.time_since_epoch());
    }
};

// Where Boost is there, msgpack-c's first version has such an adaptor for every clock, of another
// form, and all others defer to it: so this one has to be there, too.
template <class D>
struct msgpack::v1::adaptor::as<orizuru::detail::SystemTime<D>> {
    orizuru::detail::SystemTime<D> operator()(const msgpack::object& from) const {
        return orizuru::detail::SystemTime<D>(from.as<D>());
    }
};

namespace orizuru {

/// Set it to true for a type that msgpack adapts in a way that this header cannot detect: an
/// adaptor of your own in namespace msgpack.
///
///     template <> inline constexpr bool orizuru::enable_msgpack<Celsius> = true;
template <class T>
inline constexpr bool enable_msgpack = false;

namespace detail {

// MSGPACK_DEFINE writes these members. A test of `packer.pack(value)` would not do: it is declared
// for every type and fails only in its body.
template <class T>
concept has_msgpack_members = requires(T& value, const T& source,
                                       msgpack::packer<msgpack::sbuffer>& packer,
                                       const msgpack::object& object) {
    source.msgpack_pack(packer);
    value.msgpack_unpack(object);
};

// The arithmetic types that msgpack supports.
template <class T>
concept msgpack_number =
    std::is_arithmetic_v<T> && !std::same_as<T, long double> && !std::same_as<T, char8_t> &&
    !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

template <class T>
concept msgpack_makes = std::default_initializable<T> || msgpack::has_as<T>::value;

template <class T>
struct MsgpackAdapted : std::bool_constant<msgpack_number<T> || std::is_enum_v<T> ||
                                           has_msgpack_members<T> || enable_msgpack<T>> {};

template <class... T>
using AllAdapted = std::conjunction<MsgpackAdapted<T>...>;

// No element is made by an `as` adaptor of msgpack's: in a type of fixed size, such elements are
// read beyond the end of an array that is too short.
template <class... T>
using NoneByAs = std::negation<std::disjunction<msgpack::has_as<T>...>>;

template <>
struct MsgpackAdapted<std::string> : std::true_type {};
template <class T, class P>
struct MsgpackAdapted<std::chrono::duration<T, P>> : MsgpackAdapted<T> {};
template <class D>
struct MsgpackAdapted<SystemTime<D>> : MsgpackAdapted<D> {};
template <class T, class A>
struct MsgpackAdapted<std::vector<T, A>> : MsgpackAdapted<T> {};
template <class T, class A>
struct MsgpackAdapted<std::deque<T, A>> : MsgpackAdapted<T> {};
template <class T, class A>
struct MsgpackAdapted<std::list<T, A>> : MsgpackAdapted<T> {};
template <class T, class A>
struct MsgpackAdapted<std::forward_list<T, A>> : MsgpackAdapted<T> {};
template <class T, std::size_t N>
struct MsgpackAdapted<std::array<T, N>> : std::conjunction<MsgpackAdapted<T>, NoneByAs<T>> {};
template <class T, class C, class A>
struct MsgpackAdapted<std::set<T, C, A>> : MsgpackAdapted<T> {};
template <class T, class C, class A>
struct MsgpackAdapted<std::multiset<T, C, A>> : MsgpackAdapted<T> {};
template <class T, class H, class E, class A>
struct MsgpackAdapted<std::unordered_set<T, H, E, A>> : MsgpackAdapted<T> {};
template <class T, class H, class E, class A>
struct MsgpackAdapted<std::unordered_multiset<T, H, E, A>> : MsgpackAdapted<T> {};
template <class K, class T, class C, class A>
struct MsgpackAdapted<std::map<K, T, C, A>> : AllAdapted<K, T> {};
template <class K, class T, class C, class A>
struct MsgpackAdapted<std::multimap<K, T, C, A>> : AllAdapted<K, T> {};
template <class K, class T, class H, class E, class A>
struct MsgpackAdapted<std::unordered_map<K, T, H, E, A>> : AllAdapted<K, T> {};
template <class K, class T, class H, class E, class A>
struct MsgpackAdapted<std::unordered_multimap<K, T, H, E, A>> : AllAdapted<K, T> {};
template <class A, class B>
struct MsgpackAdapted<std::pair<A, B>> : AllAdapted<A, B> {};
template <class... T>
struct MsgpackAdapted<std::tuple<T...>> : std::conjunction<AllAdapted<T...>, NoneByAs<T...>> {};
template <class T>
struct MsgpackAdapted<std::optional<T>> : MsgpackAdapted<T> {};
template <class T>
struct MsgpackAdapted<std::shared_ptr<T>> : MsgpackAdapted<T> {};
template <class T>
struct MsgpackAdapted<std::unique_ptr<T>> : MsgpackAdapted<T> {};

/// Lets msgpack append to a string.
struct MsgpackAppender {
    std::string& out;
    void write(const char* bytes, std::size_t size) { out.append(bytes, size); }
};

} // namespace detail

/// A type of the list above. It does not say whether the elements of a container can be made.
template <class T>
concept MsgpackAdapted = detail::MsgpackAdapted<T>::value;

template <MsgpackAdapted T>
struct Codec<T> {
    static void encode(const T& value, std::string& out) {
        detail::MsgpackAppender appender{out};
        msgpack::pack(appender, value);
    }

    /// Up to some 300 values, allocates only what T itself does.
    /// T must not keep a msgpack::object: its tree is freed on return.
    /// Throws std::invalid_argument when the bytes are no msgpack, exceed a limit or hold no T.
    static T decode(std::string_view bytes, Scratch& scratch) requires detail::msgpack_makes<T> {
        try {
            detail::MsgpackReader reader(bytes, scratch.as<msgpack::zone>());
            return read(reader, bytes).template as<T>();
        } catch (const msgpack::type_error&) {
            detail::throw_misread(detail::type_name<T>(), kind_read(), bytes);
        }
    }

  private:
    static msgpack::object read(detail::MsgpackReader& reader, std::string_view bytes) {
        try {
            return reader.read();
        } catch (const std::invalid_argument& error) {
            detail::throw_unreadable(error.what(), bytes);
        }
    }
    /// The kind of value that T is read from, as a trial shows; empty if none does.
    [[gnu::cold]] static std::string_view kind_read() noexcept {
        using namespace std::string_view_literals;
        for (const std::string_view value : {"\x90"sv, "\x80"sv, "\xa0"sv, "\0"sv, "\xc2"sv}) {
            try {
                msgpack::zone zone;
                static_cast<void>(detail::MsgpackReader(value, zone).read().as<T>());
                return detail::kind_of(static_cast<std::uint8_t>(value.front()));
            } catch (...) { // NOLINT(bugprone-empty-catch)
                // It is none of these.
            }
        }
        return {};
    }
};

} // namespace orizuru
