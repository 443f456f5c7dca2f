// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of connection.hpp.

#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/stream.hpp>

#include <algorithm>

namespace orizuru {

ORIZURU_INLINE Connection::Connection(Endpoint endpoint) : m_endpoint(std::move(endpoint)) {
    connect();
}
ORIZURU_INLINE Connection::Connection(Connection&&) noexcept = default;
ORIZURU_INLINE Connection& Connection::operator=(Connection&&) noexcept = default;
ORIZURU_INLINE Connection::~Connection() = default;

ORIZURU_INLINE void Connection::ensure_connected(detail::TimePoint limit) {
    if (m_stream) {
        m_stream->refuse_fork();
        if (m_stream->disturbed()) {
            m_stream.reset();
        }
    }
    if (!detail::EndpointParts::of(m_endpoint).address) {
        detail::throw_moved_from("connection");
    }
    if (!m_stream && m_pinned) {
        throw ConnectionError(detail::joined({m_endpoint.address(), ": the connection was lost"}));
    }
    if (!m_stream) {
        connect(limit);
        m_replaced = true;
    }
}

ORIZURU_INLINE void Connection::check(const Reply& reply, std::string_view about,
                                      std::string_view name) {
    if (reply.is(Reply::Type::error)) {
        if (detail::refers_elsewhere(reply)) {
            m_stream.reset();
            // The next one may be an older one to another server.
            m_connected_at = detail::Clock::now();
            m_replaced = true;
        }
        throw detail::reply_error(describe(about, name), reply.text);
    }
}

ORIZURU_INLINE void Connection::connect(detail::TimePoint limit) {
    m_stream = detail::Stream::make(
        m_endpoint, std::min(limit, detail::Clock::now() + m_endpoint.connect_timeout()),
        detail::EndpointParts::of(m_endpoint).cutoff.get());
    m_connected_at = detail::Clock::now();
}

ORIZURU_INLINE std::string Connection::describe(std::string_view about,
                                                std::string_view name) const {
    const bool brief = about.empty();
    return detail::joined(
        {m_endpoint.address(), ": ", name, brief ? "" : " '", about, brief ? "" : "'"});
}

ORIZURU_INLINE Reply Connection::await(std::string_view about, std::string_view name,
                                       std::string_view bytes) {
    // An exception leaves a stream with half a command or an unread reply: it must not live on.
    auto stream = std::move(m_stream);
    stream->append([bytes](std::string& out) { out += bytes; });
    try {
        Reply reply = stream->await_reply(detail::Clock::now() + m_endpoint.command_timeout(),
                                          detail::EndpointParts::of(m_endpoint).cutoff.get());
        // A server that answers early does not read the rest.
        if (stream->flushed()) {
            m_stream = std::move(stream);
        }
        return reply;
    } catch (const ConnectionError& error) {
        throw ConnectionError(detail::joined({describe(about, name), ": ", error.what()}),
                              stream->outcome());
    }
}

ORIZURU_INLINE Reply Connection::exchange(std::string_view about, std::string_view name,
                                          std::string_view bytes) {
    for (int redirections = 0;; ++redirections) {
        ensure_connected();
        Reply reply = await(about, name, bytes);
        // It has not run: another node of the Cluster has the key.
        const bool elsewhere = reply.is(Reply::Type::error) && detail::is_redirected(reply.text);
        if (!elsewhere || m_pinned || redirections == most_redirections) {
            check(reply, about, name);
            return reply;
        }
        if (m_left != nullptr && !m_left->stream) {
            *m_left = {std::move(m_stream), m_connected_at, m_replaced};
        }
        m_stream.reset();
    }
}

ORIZURU_INLINE void Connection::refuse(std::string_view name) {
    m_stream.reset();
    throw ProtocolError(
        detail::joined({describe({}, name), " was answered by a reply of the wrong type"}));
}

} // namespace orizuru
