// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A connected, non-blocking socket with bytes to send and replies to read. hiredis connects and
// parses; this class moves the bytes. The first error ends it: a failed stream may hold a stale
// reply, so it is discarded, never repaired.

#include <orizuru/detail/base/busy_poll.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/usable_cpus.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_reader.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>

#include <hiredis/hiredis.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace orizuru::detail {

/// The caller's `wake` ended the wait; nothing is wrong with Redis.
class GivenUp : public ConnectionError {
    using ConnectionError::ConnectionError;
};

class Stream {
  public:
    /// Connects and greets (AUTH, SELECT, CLIENT SETNAME) until the deadline; a signal of `wake`
    /// ends it with GivenUp. Throws ConnectionError naming the address and the reason, ReplyError
    /// when Redis refuses the greeting, ProtocolError when the peer is not Redis.
    [[gnu::cold]] Stream(const Endpoint& endpoint, TimePoint deadline, const Wake* wake = nullptr)
        : m_address(endpoint.address()) {
        connect(endpoint, deadline, wake);
        greet(endpoint, deadline, wake);
    }

    [[nodiscard]] int fd() const noexcept { return m_context->fd; }
    [[nodiscard]] const std::string& address() const noexcept { return m_address; }

    /// Appends the command that `write` appends to a string, for `flush` to send. When `write`
    /// throws, nothing is appended.
    void append(FunctionRef<void(std::string&)> write);
    [[nodiscard]] bool flushed() const noexcept { return m_sent == m_output.size(); }
    /// How many bytes of the unfinished output Redis may have seen.
    [[nodiscard]] std::size_t sent() const noexcept { return m_sent; }

    /// Sends what the socket takes; true when nothing is left. Throws ConnectionError.
    bool flush();
    /// Sends bytes of the caller once; returns how many the socket took, 0 when it takes none now.
    /// Use it only when flushed(). Throws ConnectionError.
    std::size_t send(std::string_view bytes);
    /// Reads what has arrived. Throws ConnectionError at the end of the stream, ProtocolError.
    void fill();
    /// The next whole reply that `fill` has read, or null; valid until the next call.
    [[nodiscard]] Reply* next_reply() {
        try {
            return m_reader.next();
        } catch (const ProtocolError& error) {
            throw ProtocolError(joined({m_address, ": ", error.what()}));
        }
    }

    /// Waits until the socket is ready for `events`, `wake` is signalled or the deadline has
    /// passed; returns what the socket is ready for, 0 otherwise. Learns whether polling before
    /// sleeping pays. One thread at a time may wait; others may append and send meanwhile.
    short wait(short events, const Wake* wake, TimePoint deadline) {
        return wait_ready(m_poll, fd(), events, wake, deadline);
    }

    /// Sends everything and waits for one reply. Throws ConnectionError at the deadline, GivenUp
    /// when `wake` is signalled.
    Reply await_reply(TimePoint deadline, const Wake* wake = nullptr);

    /// True when the peer has closed the connection, or has sent data that no command asked for.
    [[nodiscard]] bool disturbed() const {
        return wait_ready(fd(), POLLIN, nullptr, TimePoint{}) != 0;
    }

    /// True when the peer has closed the connection and none of its data is left to read.
    [[nodiscard]] bool closed_by_peer() const noexcept {
        char byte = 0;
        const ssize_t count = ::recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return count == 0 ||
               (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
    }

    /// Ends the connection for both sides, from any thread; the descriptor stays taken until the
    /// destructor, so that a poll on it cannot meet another file.
    void shutdown() noexcept { ::shutdown(fd(), SHUT_RDWR); }

    /// In a forked child: closes the descriptor and leaves all else alone, since another thread of
    /// the parent may have been changing it. The stream must not be destroyed afterwards.
    void close_after_fork() noexcept { ::close(fd()); }

    /// Throws std::logic_error in a forked child: two processes must not share a stream.
    void refuse_fork() const {
        if (m_mark.forked()) {
            throw_forked();
        }
    }

  private:
    struct Free {
        void operator()(redisContext* context) const noexcept { redisFree(context); }
    };

    [[noreturn]] [[gnu::cold]] void throw_forked() const {
        throw std::logic_error(joined({"a connection to ", m_address,
                                       " is used in a forked child; make a new object there"}));
    }
    [[noreturn]] [[gnu::cold]] void fail(std::string_view reason) const {
        throw ConnectionError(joined({m_address, ": ", reason}));
    }
    [[noreturn]] [[gnu::cold]] void give_up(std::string_view doing) const {
        throw GivenUp(joined({m_address, ": ", doing, " was given up"}));
    }
    [[noreturn]] [[gnu::cold]] void fail_errno(std::string_view doing) const {
        fail(joined({doing, ": ", std::generic_category().message(errno)}));
    }

    [[gnu::cold]] void connect(const Endpoint& endpoint, TimePoint deadline, const Wake* wake);
    [[gnu::cold]] void configure(const Endpoint& endpoint);
    [[gnu::cold]] void greet(const Endpoint& endpoint, TimePoint deadline, const Wake* wake);

    std::string m_address;
    std::unique_ptr<redisContext, Free> m_context;
    ReplyReader m_reader;
    std::string m_output;
    std::size_t m_sent = 0;
    std::vector<char> m_input = std::vector<char>(std::size_t{64} << 10);
    BusyPoll m_poll{usable_cpus()};
    ForkMark m_mark;
};

inline void Stream::append(FunctionRef<void(std::string&)> write) {
    const std::size_t before = m_output.size();
    try {
        write(m_output);
    } catch (...) {
        m_output.resize(before);
        throw;
    }
}

inline void Stream::connect(const Endpoint& endpoint, TimePoint deadline, const Wake* wake) {
    while (true) {
        m_context.reset(endpoint.path().empty()
                            ? redisConnectNonBlock(endpoint.host().c_str(), endpoint.port())
                            : redisConnectUnixNonBlock(endpoint.path().c_str()));
        if (!m_context) {
            throw std::bad_alloc();
        }
        if (m_context->err == 0) {
            break;
        }
        // A Unix socket with a full backlog answers EAGAIN, an interrupted connect EINTR: a server
        // may still listen there.
        const bool again = m_context->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EINTR);
        if (!again || Clock::now() >= deadline) {
            fail(m_context->errstr);
        }
        if (wait_ready(-1, 0, wake,
                       std::min(deadline, Clock::now() + std::chrono::milliseconds(10)));
            wake != nullptr && wait_ready(wake->fd(), POLLIN, nullptr, TimePoint{}) != 0) {
            give_up("connecting");
        }
    }
    configure(endpoint);
    if (wait_ready(fd(), POLLOUT, wake, deadline) == 0) {
        if (Clock::now() < deadline) {
            give_up("connecting");
        }
        fail("no connection within connect_timeout");
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        errno = error;
        fail_errno("connecting");
    }
}

inline void Stream::configure(const Endpoint& endpoint) {
    ::fcntl(fd(), F_SETFD, FD_CLOEXEC);
    if (endpoint.path().empty()) {
        // Keepalive detects a peer that vanishes silently, whatever waits on the stream.
        const int on = 1;
        const int idle = 15;
        ::setsockopt(fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        ::setsockopt(fd(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
}

inline void Stream::greet(const Endpoint& endpoint, TimePoint deadline, const Wake* wake) {
    std::vector<const char*> sent;
    if (endpoint.password()) {
        if (endpoint.user().empty()) {
            append_command(m_output, "AUTH", *endpoint.password());
        } else {
            append_command(m_output, "AUTH", endpoint.user(), *endpoint.password());
        }
        sent.push_back("AUTH");
    }
    if (endpoint.db() != 0) {
        append_command(m_output, "SELECT", endpoint.db());
        sent.push_back("SELECT");
    }
    if (!endpoint.client_name().empty()) {
        append_command(m_output, "CLIENT", "SETNAME", endpoint.client_name());
        sent.push_back("CLIENT SETNAME");
    }
    if (sent.empty()) {
        // With no other greeting, only PING shows whether Redis would talk to us.
        append_command(m_output, "PING");
        sent.push_back("PING");
    }
    for (const char* const command : sent) {
        const Reply reply = await_reply(deadline, wake);
        if (reply.is(Reply::Type::error)) {
            if (reply.text.starts_with("ERR max number of clients")) {
                fail(reply.text);
            }
            throw reply_error(joined({m_address, ": ", command}), reply.text);
        }
        if (!reply.is(Reply::Type::status)) {
            throw ProtocolError(
                joined({m_address, ": ", command, " was not answered by a status"}));
        }
    }
}

inline bool Stream::flush() {
    while (!flushed()) {
        const std::size_t count = send(std::string_view(m_output).substr(m_sent));
        if (count == 0) {
            return false;
        }
        m_sent += count;
    }
    cut_back(m_output, 0);
    m_sent = 0;
    return true;
}

inline std::size_t Stream::send(std::string_view bytes) {
    refuse_fork();
    while (true) {
        const ssize_t count = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count > 0) {
            return static_cast<std::size_t>(count);
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return 0;
        }
        if (errno != EINTR) {
            fail_errno("sending");
        }
    }
}

inline void Stream::fill() {
    refuse_fork();
    while (true) {
        const ssize_t count = ::recv(fd(), m_input.data(), m_input.size(), 0);
        if (count > 0) {
            m_reader.feed({m_input.data(), static_cast<std::size_t>(count)});
            if (static_cast<std::size_t>(count) < m_input.size()) {
                return;
            }
        } else if (count == 0) {
            fail("the server closed the connection");
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR) {
            fail_errno("receiving");
        }
    }
}

inline Reply Stream::await_reply(TimePoint deadline, const Wake* wake) {
    while (true) {
        const bool all = flush();
        if (Reply* const reply = next_reply()) {
            return std::move(*reply);
        }
        const short events = all ? POLLIN : POLLIN | POLLOUT;
        const short ready = wait(events, wake, deadline);
        if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) {
            fill();
        } else if (ready == 0) {
            if (Clock::now() < deadline) {
                give_up("waiting");
            }
            fail("no reply in time");
        }
    }
}

} // namespace orizuru::detail
