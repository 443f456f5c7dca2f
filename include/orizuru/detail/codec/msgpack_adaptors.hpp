// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Teaches msgpack-c types that it does not know. MSGPACK_ADD_ENUM and any other adaptor for
// one type is preferred to these.

#include <msgpack.hpp>

#include <chrono>
#include <type_traits>

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
