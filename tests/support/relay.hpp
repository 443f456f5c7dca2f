// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Passes bytes between a client's connection and a server's, and ends them in various ways. Proxy
// uses one for each of its connections.

#pragma once

#include "posix.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::test {

class Relay {
  public:
    using Clock = std::chrono::steady_clock;

    enum class Direction { to_server, to_client };

    /// How a connection ends.
    enum class Cut {
        fin,     ///< both sides see an orderly end
        rst,     ///< the client reads what was passed, then gets ECONNRESET (see below)
        silence, ///< both sides stay open and hear nothing any more, like a pulled cable
        delay,   ///< it does not end: later bytes in this direction are delayed,
                 ///< also when their sender has gone by then
    };

    struct Stream {
        std::string pending;
        std::uint64_t taken = 0;
        std::uint64_t passed = 0;
        bool due = false; ///< cut when nothing is pending
        bool cut = false;
        std::optional<Clock::time_point> resume; ///< nothing is taken before
        /// The last byte taken is left in the socket (then 1): closing over unread bytes is what
        /// makes the kernel report ECONNRESET on a Unix socket. (A sender whose SO_SNDBUF is far
        /// below the default would then wait in poll for room in vain; measured.)
        std::size_t unread = 0;
    };

    enum class Taken { nothing, bytes, end };

    /// Without a server, the connection is closed at once.
    Relay(Fd client, Fd server) : m_client(std::move(client)), m_server(std::move(server)) {
        if (!m_server) {
            end(Cut::fin);
        }
    }

    [[nodiscard]] const Fd& client() const noexcept { return m_client; }
    [[nodiscard]] const Fd& server() const noexcept { return m_server; }
    /// Neither closed nor silent.
    [[nodiscard]] bool open() const noexcept { return m_client && !m_silent; }
    /// Both ends are closed; a silent connection is still there.
    [[nodiscard]] bool closed() const noexcept { return !m_client; }

    [[nodiscard]] Stream& stream(Direction direction) {
        return m_streams[static_cast<std::size_t>(direction)];
    }
    [[nodiscard]] const Stream& stream(Direction direction) const {
        return m_streams[static_cast<std::size_t>(direction)];
    }
    [[nodiscard]] const std::array<Stream, 2>& streams() const noexcept { return m_streams; }

    /// Takes the bytes that have come, up to `limit`, which counts from the connection's start; the
    /// stream is due when the limit is reached. `end`: the sender has gone and all bytes are taken.
    Taken take(Direction direction, std::optional<std::uint64_t> limit);
    /// Passes on the bytes taken; returns whether any moved.
    bool pass(Direction direction);

    /// The client sees the end of the connection, the server does not.
    void leave_half_open();
    void end(Cut cut);

  private:
    static void close_orderly(Fd& fd);
    static bool hung_up(const Fd& fd);

    Fd m_client;
    Fd m_server;
    std::array<Stream, 2> m_streams;
    bool m_silent = false;
};

inline Relay::Taken Relay::take(Direction direction, std::optional<std::uint64_t> limit) {
    Stream& stream = this->stream(direction);
    const Fd& source = direction == Direction::to_server ? m_client : m_server;

    // Checked before reading: bytes that were written before the end pass before it.
    const bool ended = hung_up(source);
    std::array<char, 65536> buffer;
    const auto received =
        ::recv(source.get(), buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
    const std::size_t present = received > 0 ? static_cast<std::size_t>(received) : 0;
    if (present <= stream.unread) {
        return ended ? Taken::end : Taken::nothing;
    }

    std::size_t size = present - stream.unread;
    if (limit) {
        const std::uint64_t room = *limit - std::min(*limit, stream.taken);
        stream.due = room <= size;
        size = std::min<std::uint64_t>(size, room);
    }
    stream.pending.assign(buffer.data() + stream.unread, size);
    stream.taken += size;

    const std::size_t done = stream.unread + size;
    if (done > 1) {
        ::recv(source.get(), buffer.data(), done - 1, MSG_DONTWAIT);
    }
    stream.unread = std::min<std::size_t>(done, 1);
    return Taken::bytes;
}

inline bool Relay::pass(Direction direction) {
    Stream& stream = this->stream(direction);
    if (stream.pending.empty()) {
        return false;
    }
    const Fd& target = direction == Direction::to_server ? m_server : m_client;
    const auto sent = ::send(target.get(), stream.pending.data(), stream.pending.size(),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
        if (errno == EAGAIN) {
            return false;
        }
        // The target is gone; its own direction will notice.
        stream.pending.clear();
        return true;
    }
    stream.passed += static_cast<std::uint64_t>(sent);
    stream.pending.erase(0, static_cast<std::size_t>(sent));
    return true;
}

inline void Relay::leave_half_open() {
    close_orderly(m_client);
    m_silent = true;
}

inline void Relay::end(Cut cut) {
    if (cut == Cut::silence) {
        m_silent = true;
        return;
    }
    if (cut == Cut::rst) {
        m_client.reset();
    }
    close_orderly(m_client);
    close_orderly(m_server);
}

/// Shut down first, so that nothing more can come, and then emptied, so that the peer sees an
/// orderly end and no reset, even when a forked child holds a copy of the descriptor.
inline void Relay::close_orderly(Fd& fd) {
    if (!fd) {
        return;
    }
    ::shutdown(fd.get(), SHUT_RDWR);
    std::array<char, 65536> buffer;
    while (::recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT) > 0) {
    }
    fd.reset();
}

inline bool Relay::hung_up(const Fd& fd) {
    pollfd state{fd.get(), POLLRDHUP, 0};
    return ::poll(&state, 1, 0) == 1;
}

} // namespace orizuru::test
