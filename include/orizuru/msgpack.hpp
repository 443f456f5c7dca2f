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
// levels, and the values in total by 4 Mi (4,194,304; a quarter of the default max_payload), or by
// a quarter of the payload's bytes if that is more. A vector or deque of numbers that is the whole
// message is bounded by its bytes alone. Bytes behind the value are refused. Writing has the same
// bounds: a push throws EncodeError where the message could not be read. They depend on no option,
// so that producers and consumers with other max_payloads agree on them.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/misread.hpp>
#include <orizuru/detail/codec/msgpack_adaptors.hpp>
#include <orizuru/detail/codec/msgpack_bounds.hpp>
#include <orizuru/detail/codec/msgpack_reader.hpp>

#include <msgpack.hpp>

#include <algorithm>
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

// Says whether T is adapted, and how many levels of arrays and maps its values have at most. A type
// of the user's own may have any number: it may contain itself.
template <class T>
struct MsgpackAdapted : std::bool_constant<msgpack_number<T> || std::is_enum_v<T> ||
                                           has_msgpack_members<T> || enable_msgpack<T>> {
    static constexpr std::size_t levels =
        std::is_arithmetic_v<T> || std::is_enum_v<T> ? 0 : most_msgpack_levels + 1;
};

template <std::size_t OwnLevels, class... T>
struct AdaptedWith : std::conjunction<MsgpackAdapted<T>...> {
    static constexpr std::size_t levels =
        OwnLevels + std::max({std::size_t{0}, MsgpackAdapted<T>::levels...});
};
template <class... T>
using AllAdapted = AdaptedWith<1, T...>;

// No element is made by an `as` adaptor of msgpack's: in a type of fixed size, such elements are
// read beyond the end of an array that is too short.
template <class... T>
struct AllAdaptedNoneByAs : AllAdapted<T...> {
    static constexpr bool value =
        std::conjunction_v<MsgpackAdapted<T>..., std::negation<msgpack::has_as<T>>...>;
};

template <>
struct MsgpackAdapted<std::string> : AdaptedWith<0> {};
template <class T, class P>
struct MsgpackAdapted<std::chrono::duration<T, P>> : MsgpackAdapted<T> {};
template <class D>
struct MsgpackAdapted<SystemTime<D>> : MsgpackAdapted<D> {};
template <class T, class A>
struct MsgpackAdapted<std::vector<T, A>> : AllAdapted<T> {};
template <class T, class A>
struct MsgpackAdapted<std::deque<T, A>> : AllAdapted<T> {};
template <class T, class A>
struct MsgpackAdapted<std::list<T, A>> : AllAdapted<T> {};
template <class T, class A>
struct MsgpackAdapted<std::forward_list<T, A>> : AllAdapted<T> {};
template <class T, std::size_t N>
struct MsgpackAdapted<std::array<T, N>> : AllAdaptedNoneByAs<T> {};
template <class T, class C, class A>
struct MsgpackAdapted<std::set<T, C, A>> : AllAdapted<T> {};
template <class T, class C, class A>
struct MsgpackAdapted<std::multiset<T, C, A>> : AllAdapted<T> {};
template <class T, class H, class E, class A>
struct MsgpackAdapted<std::unordered_set<T, H, E, A>> : AllAdapted<T> {};
template <class T, class H, class E, class A>
struct MsgpackAdapted<std::unordered_multiset<T, H, E, A>> : AllAdapted<T> {};
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
struct MsgpackAdapted<std::tuple<T...>> : AllAdaptedNoneByAs<T...> {};
template <class T>
struct MsgpackAdapted<std::optional<T>> : MsgpackAdapted<T> {};
template <class T>
struct MsgpackAdapted<std::shared_ptr<T>> : MsgpackAdapted<T> {};
template <class T>
struct MsgpackAdapted<std::unique_ptr<T>> : MsgpackAdapted<T> {};

template <class T>
inline constexpr bool is_msgpack_number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T, class P>
inline constexpr bool is_msgpack_number<std::chrono::duration<T, P>> = is_msgpack_number<T>;
template <class D>
inline constexpr bool is_msgpack_number<SystemTime<D>> = is_msgpack_number<D>;

// msgpack-c reads and writes a vector of these as bytes.
template <class T>
concept msgpack_byte =
    std::same_as<T, char> || std::same_as<T, unsigned char> || std::same_as<T, std::byte>;

// An array of numbers, read without a tree. A list or a set takes several times as much memory for
// an element as a number does: values bound them.
template <class T>
inline constexpr bool is_flat_array = false;
template <class T, class A>
inline constexpr bool is_flat_array<std::vector<T, A>> =
    is_msgpack_number<T> && !msgpack_byte<T> && !enable_msgpack<std::vector<T, A>>;
template <class T, class A>
inline constexpr bool is_flat_array<std::deque<T, A>> =
    is_msgpack_number<T> && !enable_msgpack<std::deque<T, A>>;

/// Throws std::invalid_argument for the payload of a T that could not be read.
template <class T>
void check_written(std::string_view payload) {
    if constexpr (!is_flat_array<T>) {
        constexpr bool may_nest = MsgpackAdapted<T>::levels > most_msgpack_levels;
        if (may_nest ? may_exceed_msgpack_bounds(payload)
                     : payload.size() > most_msgpack_values(0)) {
            MsgpackReader::check_bytes(payload);
        }
    }
}

/// Lets msgpack append to a string.
struct MsgpackAppender {
    std::string& out;
    void write(const char* bytes, std::size_t size) { out.append(bytes, size); }
};

} // namespace detail

/// A type of the list above. It does not say whether the elements of a container can be made.
template <class T>
concept MsgpackAdapted = detail::MsgpackAdapted<T>::value;

/// Writes and reads T as msgpack, within the bounds that the top of this header lists.
template <MsgpackAdapted T>
struct Codec<T> {
    /// Throws std::invalid_argument when decode would refuse the bytes. Up to 4 MiB, only a type of
    /// your own is looked at, since it may contain itself, and that from 65 bytes on: with 100
    /// bytes it takes 20 ns, in more than 1 KiB 2 to 4 ns for each value.
    static void encode(const T& value, std::string& out) {
        const std::size_t before = out.size();
        detail::MsgpackAppender appender{out};
        msgpack::pack(appender, value);
        detail::check_written<T>(std::string_view(out).substr(before));
    }

    /// Up to some 300 values, and for a vector of numbers, allocates only what T itself does.
    /// T must not keep a msgpack::object: its tree is freed on return.
    /// Throws std::invalid_argument when the bytes are no msgpack, exceed a limit or hold no T.
    static T decode(std::string_view bytes, Scratch& scratch) requires detail::msgpack_makes<T> {
        try {
            if constexpr (detail::is_flat_array<T>) {
                T numbers;
                if (read([&] { return detail::MsgpackReader::read_numbers(bytes, numbers); },
                         bytes)) {
                    return numbers;
                }
            }
            detail::MsgpackReader reader(bytes, scratch.as<msgpack::zone>());
            return read([&] { return reader.read(); }, bytes).template as<T>();
        } catch (const msgpack::type_error&) {
            detail::throw_misread(detail::type_name<T>(), kind_read(), bytes);
        }
    }

  private:
    template <class Read>
    static auto read(Read read, std::string_view bytes) {
        try {
            return read();
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
