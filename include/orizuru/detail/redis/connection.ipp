// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of connection.hpp and exchange.hpp.

#include <orizuru/detail/redis/kept_stream.hpp>

namespace orizuru {

ORIZURU_INLINE Connection::Connection(Endpoint endpoint)
    : m_kept(std::make_unique<detail::KeptStream>(std::move(endpoint))) {}
ORIZURU_INLINE Connection::Connection(Connection&&) noexcept = default;
ORIZURU_INLINE Connection& Connection::operator=(Connection&&) noexcept = default;
ORIZURU_INLINE Connection::~Connection() = default;

ORIZURU_INLINE const Endpoint& Connection::endpoint() const { return m_kept->endpoint(); }

ORIZURU_INLINE Reply Connection::exchange(std::string_view about, std::string_view name,
                                          std::string_view bytes) {
    return m_kept->exchange(about, name, bytes);
}

namespace detail {

ORIZURU_INLINE KeptStream& KeptStream::of(Connection& connection) { return *connection.m_kept; }

[[nodiscard]] ORIZURU_INLINE TimePoint connected_at(Connection& connection) {
    return KeptStream::of(connection).connected_at();
}
ORIZURU_INLINE void ensure_connected(Connection& connection) {
    KeptStream::of(connection).ensure_connected();
}
ORIZURU_INLINE Reply exchange(Connection& connection, std::string_view about, std::string_view name,
                              std::string_view bytes) {
    return KeptStream::of(connection).exchange(about, name, bytes);
}
[[noreturn]] ORIZURU_INLINE void refuse(Connection& connection, std::string_view name) {
    KeptStream::of(connection).refuse(name);
}
ORIZURU_INLINE void require_type(Connection& connection, const Reply& reply, Reply::Type type,
                                 std::string_view name) {
    if (!reply.is(type)) {
        refuse(connection, name);
    }
}

} // namespace detail

} // namespace orizuru
