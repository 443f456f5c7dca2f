// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Codec by msgpack-c, for numbers, strings, the standard containers of such, and types of yours
// with MSGPACK_DEFINE. Structs are written as arrays, as Rust's rmp_serde::to_vec does.
//
// Reading is bounded whatever the bytes say: announced sizes by the payload's size, nesting by 64,
// and at most 1,000,000 values altogether. Bytes behind the value are refused.

#include <orizuru/codec.hpp>

#include <msgpack.hpp>

#include <algorithm>
#include <array>
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

/// Set it to true for a type that msgpack adapts in a way that cannot be seen from outside: an
/// adaptor of your own in namespace msgpack, or MSGPACK_ADD_ENUM.
///
///     template <> inline constexpr bool orizuru::enable_msgpack<Colour> = true;
template <class T>
inline constexpr bool enable_msgpack = false;

namespace detail {

// MSGPACK_DEFINE writes these members. `packer.pack(value)` cannot be asked instead: it is declared
// for every type and fails only in its body.
template <class T>
concept has_msgpack_members = requires(T& value, const T& source,
                                       msgpack::packer<msgpack::sbuffer>& packer,
                                       const msgpack::object& object) {
    source.msgpack_pack(packer);
    value.msgpack_unpack(object);
};

// The arithmetic types less those that msgpack has nothing for.
template <class T>
concept msgpack_number =
    std::is_arithmetic_v<T> && !std::same_as<T, long double> && !std::same_as<T, char8_t> &&
    !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

template <class T>
concept msgpack_makes = std::default_initializable<T> || msgpack::has_as<T>::value;

template <class T>
struct MsgpackAdapted
    : std::bool_constant<msgpack_number<T> || has_msgpack_members<T> || enable_msgpack<T>> {};

template <class... T>
using AllAdapted = std::conjunction<MsgpackAdapted<T>...>;

// Of a fixed count of elements, one that msgpack makes by an `as` adaptor: it then reads beyond the
// end of an array that is too short.
template <class... T>
using NoneByAs = std::negation<std::disjunction<msgpack::has_as<T>...>>;

template <>
struct MsgpackAdapted<std::byte> : std::true_type {};
template <>
struct MsgpackAdapted<std::string> : std::true_type {};
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

inline constexpr std::size_t most_msgpack_values = 1'000'000;
inline constexpr std::size_t most_msgpack_levels = 64;

// msgpack reserves what an array announces, 24 bytes per value, and bounds that for each array
// alone: nested ones can announce 64 times the payload's size. So the sum is checked beforehand,
// except in a payload so small that even this comes to a few MiB.
inline constexpr std::size_t uncounted_msgpack_bytes = 4096;

/// Walks through a payload without building anything and stops at the first excess. Announced
/// values are counted, since each of them takes a byte at the least.
class MsgpackCounter : public msgpack::null_visitor {
  public:
    explicit MsgpackCounter(std::size_t bytes) : m_most(std::min(bytes, most_msgpack_values)) {}

    bool start_array(std::uint32_t count) { return descend(count); }
    bool end_array() { return ascend(); }
    bool start_map(std::uint32_t pairs) { return descend(std::size_t{2} * pairs); }
    bool end_map() { return ascend(); }

    [[nodiscard]] bool exceeded() const noexcept {
        return m_values > m_most || m_levels > most_msgpack_levels;
    }

  private:
    bool descend(std::size_t count) {
        m_values += count;
        ++m_levels;
        return !exceeded();
    }
    bool ascend() {
        --m_levels;
        return true;
    }

    std::size_t m_most;
    std::size_t m_values = 1;
    std::size_t m_levels = 0;
};

/// Throws std::invalid_argument when unpacking would take too much memory.
inline void check_msgpack_sizes(std::string_view bytes) {
    if (bytes.size() <= uncounted_msgpack_bytes) {
        return;
    }
    MsgpackCounter counter(bytes.size());
    if (!msgpack::parse(bytes.data(), bytes.size(), counter)) {
        throw std::invalid_argument(counter.exceeded()
                                        ? "more than 1,000,000 values, more of them than bytes, or "
                                          "more than 64 levels"
                                        : "malformed msgpack");
    }
}

/// Lets msgpack append to a string.
struct MsgpackAppender {
    std::string& out;
    void write(const char* bytes, std::size_t size) { out.append(bytes, size); }
};

} // namespace detail

/// A type that msgpack-c can write and read.
template <class T>
concept MsgpackAdapted = detail::MsgpackAdapted<T>::value;

template <MsgpackAdapted T>
struct Codec<T> {
    static void encode(const T& value, std::string& out) {
        detail::MsgpackAppender appender{out};
        msgpack::pack(appender, value);
    }

    /// Throws msgpack's exceptions, all derived from std::exception.
    static T decode(std::string_view bytes, Scratch& scratch) requires detail::msgpack_makes<T> {
        detail::check_msgpack_sizes(bytes);
        const std::size_t size = bytes.size();
        const msgpack::unpack_limit limit(size, size / 2, size, size, size,
                                          detail::most_msgpack_levels);
        auto& zone = scratch.as<msgpack::zone>();
        zone.clear();
        // Strings stay references into the bytes until T copies them.
        const auto reference = [](msgpack::type::object_type, std::size_t, void*) { return true; };
        std::size_t offset = 0;
        bool referenced = false;
        const msgpack::object object = msgpack::unpack(zone, bytes.data(), size, offset, referenced,
                                                       reference, nullptr, limit);
        if (offset != size) {
            throw std::invalid_argument("bytes behind the value");
        }
        return object.as<T>();
    }
};

} // namespace orizuru
