// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A connection to Redis that sends a command and waits for its reply. Producer and
// GarbageCollector talk through it; it is there for code of your own as well.

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/redis/reply_class.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

namespace detail {
class PushPipeline;
}

/// One connection, used by one thread at a time.
///
/// It never repeats a command by itself. After an error it is closed; the next command connects
/// anew, within connect_timeout. A connection found closed before anything was sent is replaced
/// without an error, since nothing can have been lost.
class Connection {
  public:
    /// Connects. Throws ConnectionError within connect_timeout (name resolution excluded),
    /// ReplyError when Redis refuses the credentials or the database.
    explicit Connection(Endpoint endpoint) : m_endpoint(std::move(endpoint)) { connect(); }

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }

    /// When the present connection was made, or the last one if there is none.
    [[nodiscard]] std::chrono::steady_clock::time_point connected_at() const noexcept {
        return m_connected_at;
    }
    /// Whether it replaces an earlier one: Redis was out of reach in between, or is another server.
    [[nodiscard]] bool replaced() const noexcept { return m_replaced; }

    /// Keeps all commands on one connection: while it lives, a lost one is not replaced, and a
    /// command then throws a ConnectionError that is not in doubt. Lives no longer than the
    /// connection, and on its thread.
    class Pin {
      public:
        /// Replaces a lost connection first, as commands do; not under another pin.
        explicit Pin(Connection& connection) : m_connection(connection) {
            m_connection.ensure_connected();
            m_before = std::exchange(m_connection.m_pinned, true);
        }
        Pin(const Pin&) = delete;
        Pin& operator=(const Pin&) = delete;
        ~Pin() { m_connection.m_pinned = m_before; }

      private:
        Connection& m_connection;
        bool m_before = false;
    };

    /// Sends one command and waits for its reply, at most command_timeout.
    ///
    /// Throws: ReplyError for an error reply (nothing was run); ConnectionError, whose in_doubt()
    /// says whether any byte had left; ProtocolError. `about` names key or purpose in the message.
    template <class... Arguments>
    Reply command(std::string_view about, std::string_view name, const Arguments&... arguments) {
        return roundtrip(about, name, [&](std::string& out) {
            detail::append_command(out, name, arguments...);
        });
    }

    /// The same for a command that `write` appends to the bytes to be sent.
    template <std::invocable<std::string&> Write>
    Reply roundtrip(std::string_view about, std::string_view name, Write write) {
        ensure_connected();
        Reply reply = await(about, name, write);
        check(reply, about, name);
        return reply;
    }

    /// Sends a command and does not wait: its reply is what `finish` returns. Nothing else can be
    /// sent before, but by a std::logic_error.
    template <class... Arguments>
    void begin(std::string_view name, const Arguments&... arguments) {
        ensure_connected();
        auto stream = std::move(m_stream);
        stream->append([&](std::string& out) { detail::append_command(out, name, arguments...); });
        stream->flush();
        m_stream = std::move(stream);
        m_begun = name;
    }
    [[nodiscard]] bool begun() const noexcept { return !m_begun.empty() && m_stream; }

    /// The reply to what was begun; none when the time is over or a stop was requested: then it can
    /// be asked for again. Throws as `command` does, std::logic_error when nothing was begun.
    std::optional<Reply> finish(std::chrono::steady_clock::time_point until,
                                const std::stop_token& token);

    /// Drops the connection and throws ProtocolError unless `reply` has the type.
    void require(const Reply& reply, Reply::Type type, std::string_view name) {
        if (!reply.is(type)) {
            refuse(name);
        }
    }

    /// Drops the connection and throws ProtocolError: no reply to `name` can be what came.
    [[noreturn]] void refuse(std::string_view name) {
        m_stream.reset();
        throw ProtocolError(m_endpoint.address() + ": " + std::string(name) +
                            " was answered by a reply of the wrong type");
    }

  private:
    friend class detail::PushPipeline;

    void ensure_connected(detail::TimePoint limit = detail::TimePoint::max()) {
        if (begun()) {
            throw std::logic_error("a connection to " + m_endpoint.address() + " is used while " +
                                   m_begun + " is not answered");
        }
        if (m_stream) {
            m_stream->refuse_fork();
            if (m_stream->disturbed()) {
                m_stream.reset();
            }
        }
        if (!m_stream && m_pinned) {
            throw ConnectionError(m_endpoint.address() + ": the connection was lost",
                                  ConnectionError::Outcome::not_run);
        }
        if (!m_stream) {
            connect(limit);
            m_replaced = true;
        }
    }

    void check(const Reply& reply, std::string_view about, std::string_view name) {
        if (reply.is(Reply::Type::error)) {
            if (detail::refers_elsewhere(reply)) {
                m_stream.reset();
            }
            throw ReplyError(std::string(reply.code()), describe(about, name) + ": " + reply.text);
        }
    }

    void connect(detail::TimePoint limit = detail::TimePoint::max()) {
        m_stream.reset();
        m_stream = std::make_unique<detail::Stream>(
            m_endpoint, std::min(limit, detail::Clock::now() + m_endpoint.connect_timeout()),
            detail::Cutoff::of(m_endpoint));
        m_connected_at = detail::Clock::now();
    }

    [[nodiscard]] std::string describe(std::string_view about, std::string_view name) const {
        std::string text = m_endpoint.address() + ": " + std::string(name);
        if (!about.empty()) {
            text += " '" + std::string(about) + "'";
        }
        return text;
    }

    template <class Write>
    Reply await(std::string_view about, std::string_view name, Write write) {
        // What is thrown here leaves a stream with half a command or a reply that it owes: it must
        // not live on.
        auto stream = std::move(m_stream);
        stream->append(write);
        try {
            Reply reply = stream->await_reply(detail::Clock::now() + m_endpoint.command_timeout(),
                                              detail::Cutoff::of(m_endpoint));
            // One that answers early will not read the rest.
            if (stream->flushed()) {
                m_stream = std::move(stream);
            }
            return reply;
        } catch (const ConnectionError& error) {
            const bool nothing_left = !stream->flushed() && stream->sent() == 0;
            throw ConnectionError(describe(about, name) + ": " + error.what(),
                                  nothing_left ? ConnectionError::Outcome::not_run
                                               : ConnectionError::Outcome::in_doubt);
        }
    }

    Endpoint m_endpoint;
    std::unique_ptr<detail::Stream> m_stream;
    std::string m_begun; ///< the command that owes a reply, on this stream
    detail::TimePoint m_connected_at;
    bool m_replaced = false;
    bool m_pinned = false;
};

inline std::optional<Reply> Connection::finish(std::chrono::steady_clock::time_point until,
                                               const std::stop_token& token) {
    if (!begun()) {
        throw std::logic_error("a reply is awaited to no command");
    }
    const detail::Wake wake;
    const std::stop_callback stop(token, [&wake] { wake.signal(); });
    // As in `await`.
    auto stream = std::move(m_stream);
    while (true) {
        const bool all = stream->flush();
        if (Reply* const reply = stream->next_reply()) {
            Reply result = std::move(*reply);
            m_stream = std::move(stream);
            const std::string name = std::exchange(m_begun, {});
            check(result, "", name);
            return result;
        }
        const short ready =
            detail::wait_ready(stream->fd(), all ? POLLIN : POLLIN | POLLOUT, &wake, until);
        if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) {
            stream->fill();
        } else if (ready == 0) {
            m_stream = std::move(stream);
            return std::nullopt;
        }
    }
}

} // namespace orizuru
