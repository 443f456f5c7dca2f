// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A stream that is connected again when it was lost.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {
class Connection;
} // namespace orizuru

namespace orizuru::detail {

/// A stream, and when it was made.
struct MadeStream {
    std::unique_ptr<Stream> stream{};
    TimePoint made_at{};
};

/// For one thread at a time.
class KeptStream {
  public:
    /// Connects, as Connection does.
    explicit KeptStream(Endpoint endpoint) : m_endpoint(std::move(endpoint)) { connect(); }

    /// The one of a connection.
    [[nodiscard]] static KeptStream& of(Connection& connection);

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }
    /// Returns when the current stream was made; if there is none, when the last one was made.
    /// Another one may lead to another server.
    [[nodiscard]] TimePoint connected_at() const noexcept { return m_now.made_at; }
    /// True if the next command finds a stream.
    [[nodiscard]] bool connected() const { return m_now.stream && !m_now.stream->disturbed(); }
    [[nodiscard]] bool open() const noexcept { return m_now.stream != nullptr; }
    /// Only while one is open.
    [[nodiscard]] Stream& stream() const noexcept { return *m_now.stream; }

    /// Connects again if the stream was lost, until `limit` and within connect_timeout.
    void ensure_connected(TimePoint limit = TimePoint::max());
    /// Sends one command, given as bytes, and waits for its reply; throws as Connection::command.
    Reply exchange(std::string_view about, std::string_view name, std::string_view bytes);
    template <class... Arguments>
    Reply command(std::string_view about, std::string_view name, const Arguments&... arguments) {
        std::string bytes;
        append_command(bytes, name, arguments...);
        return exchange(about, name, bytes);
    }
    /// Throws for an error reply; drops the stream if the error is that of the wrong server.
    void check_reply(const Reply& reply, std::string_view about, std::string_view name);
    /// Drops the stream and throws ProtocolError: `name` cannot have such a reply.
    [[noreturn]] void refuse(std::string_view name);
    /// Names the server and the command in an error.
    [[nodiscard]] std::string describe(std::string_view about, std::string_view name) const;

    /// The open stream, for a while: an exception meanwhile drops it.
    [[nodiscard]] std::unique_ptr<Stream> lend() noexcept { return std::move(m_now.stream); }
    void give_back(std::unique_ptr<Stream> stream) noexcept { m_now.stream = std::move(stream); }
    /// Goes on with a stream that has just been made elsewhere.
    void adopt(std::unique_ptr<Stream> stream) noexcept {
        m_now = {std::move(stream), Clock::now()};
    }
    void close() noexcept { m_now.stream.reset(); }
    void close_after_fork() noexcept { Stream::close_after_fork(m_now.stream); }

    /// Goes on with a line that others use, too. `left` gets it when its node refers to another
    /// one; it must live until release().
    void borrow(MadeStream line, MadeStream& left) noexcept {
        if (line.stream) {
            m_now.stream = std::move(line.stream);
            // The connection's own last view counts, too: its queue may have moved.
            m_now.made_at = std::max(m_now.made_at, line.made_at);
        }
        m_left = &left;
    }
    [[nodiscard]] MadeStream release() noexcept {
        m_left = nullptr;
        return {std::move(m_now.stream), m_now.made_at};
    }

  private:
    static constexpr int most_redirections = 3;

    void connect(TimePoint limit = TimePoint::max());
    Reply await(std::string_view about, std::string_view name, std::string_view bytes);

    Endpoint m_endpoint;
    MadeStream m_now;
    MadeStream* m_left = nullptr; ///< gets one that another node replaces
};

/// As that of a Connection.
[[nodiscard]] inline TimePoint connected_at(const KeptStream& kept) noexcept {
    return kept.connected_at();
}

inline void KeptStream::ensure_connected(TimePoint limit) {
    if (m_now.stream) {
        m_now.stream->refuse_fork();
        if (m_now.stream->disturbed()) {
            m_now.stream.reset();
        }
    }
    if (!m_now.stream) {
        connect(limit);
    }
}

inline void KeptStream::check_reply(const Reply& reply, std::string_view about,
                                    std::string_view name) {
    if (reply.is(Reply::Type::error)) {
        if (refers_elsewhere(reply)) {
            // The next one may be an older one to another server.
            m_now = {nullptr, Clock::now()};
        }
        throw reply_error(describe(about, name), reply.text);
    }
}

inline void KeptStream::connect(TimePoint limit) {
    m_now.stream =
        Stream::make(m_endpoint, std::min(limit, Clock::now() + m_endpoint.connect_timeout()),
                     EndpointParts::of(m_endpoint).cutoff.get());
    m_now.made_at = Clock::now();
}

inline std::string KeptStream::describe(std::string_view about, std::string_view name) const {
    const bool brief = about.empty();
    return joined({m_endpoint.address(), ": ", name, brief ? "" : " '", about, brief ? "" : "'"});
}

inline Reply KeptStream::await(std::string_view about, std::string_view name,
                               std::string_view bytes) {
    // An exception leaves a stream with half a command or an unread reply: it must not live on.
    auto stream = lend();
    stream->append([bytes](std::string& out) { out += bytes; });
    try {
        Reply reply = stream->await_reply(Clock::now() + m_endpoint.command_timeout(),
                                          EndpointParts::of(m_endpoint).cutoff.get());
        // A server that answers early does not read the rest.
        if (stream->flushed()) {
            give_back(std::move(stream));
        }
        return reply;
    } catch (const ConnectionError& error) {
        throw ConnectionError(joined({describe(about, name), ": ", error.what()}),
                              stream->outcome());
    }
}

inline Reply KeptStream::exchange(std::string_view about, std::string_view name,
                                  std::string_view bytes) {
    for (int redirections = 0;; ++redirections) {
        ensure_connected();
        Reply reply = await(about, name, bytes);
        // It has not run: another server has the key.
        const bool elsewhere = reply.is(Reply::Type::error) && is_redirected(reply.text);
        if (!elsewhere || redirections == most_redirections) {
            check_reply(reply, about, name);
            return reply;
        }
        if (m_left != nullptr && !m_left->stream) {
            *m_left = {std::move(m_now.stream), m_now.made_at};
        }
        m_now.stream.reset();
    }
}

inline void KeptStream::refuse(std::string_view name) {
    close();
    throw ProtocolError(joined({describe({}, name), " was answered by a reply of the wrong type"}));
}

} // namespace orizuru::detail
