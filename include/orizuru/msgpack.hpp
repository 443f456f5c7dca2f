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

template <class T>
struct MsgpackAdapted
    : std::bool_constant<std::is_arithmetic_v<T> || has_msgpack_members<T> || enable_msgpack<T>> {};

template <class... T>
using AllAdapted = std::conjunction<MsgpackAdapted<T>...>;

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
struct MsgpackAdapted<std::array<T, N>> : MsgpackAdapted<T> {};
template <class T, class C, class A>
struct MsgpackAdapted<std::set<T, C, A>> : MsgpackAdapted<T> {};
template <class T, class C, class A>
struct MsgpackAdapted<std::multiset<T, C, A>> : MsgpackAdapted<T> {};
template <class T, class H, class E, class A>
struct MsgpackAdapted<std::unordered_set<T, H, E, A>> : MsgpackAdapted<T> {};
template <class K, class T, class C, class A>
struct MsgpackAdapted<std::map<K, T, C, A>> : AllAdapted<K, T> {};
template <class K, class T, class C, class A>
struct MsgpackAdapted<std::multimap<K, T, C, A>> : AllAdapted<K, T> {};
template <class K, class T, class H, class E, class A>
struct MsgpackAdapted<std::unordered_map<K, T, H, E, A>> : AllAdapted<K, T> {};
template <class A, class B>
struct MsgpackAdapted<std::pair<A, B>> : AllAdapted<A, B> {};
template <class... T>
struct MsgpackAdapted<std::tuple<T...>> : AllAdapted<T...> {};
template <class T>
struct MsgpackAdapted<std::optional<T>> : MsgpackAdapted<T> {};
template <class T>
struct MsgpackAdapted<std::shared_ptr<T>> : MsgpackAdapted<T> {};
template <class T, class D>
struct MsgpackAdapted<std::unique_ptr<T, D>> : MsgpackAdapted<T> {};

inline constexpr std::size_t most_msgpack_values = 1'000'000;
inline constexpr std::size_t most_msgpack_levels = 64;

/// Walks through a payload without building anything and stops at the first excess.
class MsgpackCounter : public msgpack::null_visitor {
  public:
    bool visit_nil() { return count(); }
    bool visit_boolean(bool) { return count(); }
    bool visit_positive_integer(std::uint64_t) { return count(); }
    bool visit_negative_integer(std::int64_t) { return count(); }
    bool visit_float32(float) { return count(); }
    bool visit_float64(double) { return count(); }
    bool visit_str(const char*, std::uint32_t) { return count(); }
    bool visit_bin(const char*, std::uint32_t) { return count(); }
    bool visit_ext(const char*, std::uint32_t) { return count(); }
    bool start_array(std::uint32_t) { return count() && descend(); }
    bool end_array() { return ascend(); }
    bool start_map(std::uint32_t) { return count() && descend(); }
    bool end_map() { return ascend(); }

    [[nodiscard]] bool exceeded() const noexcept { return m_exceeded; }

    // Malformed bytes are reported by the unpacking that follows.
    void parse_error(std::size_t, std::size_t) {}
    void insufficient_bytes(std::size_t, std::size_t) {}

  private:
    bool count() { return !(m_exceeded = m_exceeded || ++m_values > most_msgpack_values); }
    bool descend() { return !(m_exceeded = m_exceeded || ++m_levels > most_msgpack_levels); }
    bool ascend() {
        --m_levels;
        return true;
    }

    std::size_t m_values = 0;
    std::size_t m_levels = 0;
    bool m_exceeded = false;
};

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
    static T decode(std::string_view bytes, Scratch& scratch) {
        // A value takes a byte at the least: only a large payload can hold too many.
        if (bytes.size() > detail::most_msgpack_values) {
            detail::MsgpackCounter counter;
            std::size_t offset = 0;
            msgpack::parse(bytes.data(), bytes.size(), offset, counter);
            if (counter.exceeded()) {
                throw std::length_error("more than 1,000,000 values or 64 levels of nesting");
            }
        }
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
