// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A connected, non-blocking socket with bytes to send and replies to read. hiredis connects and
// parses; this class moves the bytes. The first error ends it: a failed stream may hold a stale
// reply, so it is discarded, never repaired.

#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/standard_descriptors.hpp>
#include <orizuru/detail/base/system.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/busy_poll.hpp>
#include <orizuru/detail/redis/connect_errors.hpp>
#include <orizuru/detail/redis/host_addresses.hpp>
#include <orizuru/detail/redis/place/locator.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_reader.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/security.hpp>
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
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace orizuru::detail {

class Stream {
  public:
    /// Connects and greets (AUTH, SELECT, CLIENT SETNAME) until the deadline; a signal of `wake`
    /// ends it with GivenUp. Tries another server, where there are several, if one is not the right
    /// one. Throws ConnectionError naming the address and the reason, ReplyError when Redis
    /// refuses the greeting, ProtocolError when the peer is not Redis.
    [[nodiscard]] [[gnu::cold]] static std::unique_ptr<Stream>
    make(const Endpoint& endpoint, TimePoint deadline, const Wake* wake = nullptr);
    /// Begins to do the same; `greet` goes on. The caller gives up after patience(endpoint), or at
    /// the limit. This waits while a name is resolved and while others are asked for the server;
    /// until the deadline also while the backlog of a Unix socket is full.
    [[gnu::cold]] Stream(const Endpoint& endpoint, TimePoint deadline, const Wake* wake,
                         TimePoint limit = TimePoint::max())
        : m_address(endpoint.address()) {
        connect(endpoint, deadline, wake, limit);
        compose_greeting(endpoint);
    }
    /// Goes on connecting and greeting, without waiting; true when that is done. Call it again when
    /// the socket is ready for greeting_events(). Throws as `make` does.
    [[gnu::cold]] bool greet();
    [[nodiscard]] short greeting_events() const noexcept;
    /// By when to call `greet` again, though the socket is not ready: another address may be tried.
    [[nodiscard]] TimePoint greeting_due() const noexcept;
    /// Returns how long `greet` may take. Of several servers, one that hangs leaves time to ask
    /// another.
    [[nodiscard]] [[gnu::cold]] static Clock::duration patience(const Endpoint& endpoint);
    /// Throws as `make` does when the time is over.
    [[noreturn]] [[gnu::cold]] void fail_late() const;

    [[nodiscard]] int fd() const noexcept { return m_context->fd; }
    [[nodiscard]] const std::string& address() const noexcept { return m_address; }
    /// From now on it serves another key: what the server says of the place is about that one.
    void lead_to(const std::shared_ptr<KeyPlace>& place) noexcept {
        if (m_locator) {
            m_locator->lead_to(place);
        }
    }
    /// The host and port that it is connected to.
    [[nodiscard]] const Node& server() const noexcept { return m_server; }

    /// Appends the command that `write` appends to a string, for `flush` to send. When `write`
    /// throws, nothing is appended.
    void append(FunctionRef<void(std::string&)> write) {
        const std::size_t before = m_output.size();
        try {
            write(m_output);
        } catch (...) {
            m_output.resize(before);
            throw;
        }
    }
    [[nodiscard]] bool flushed() const noexcept { return m_sent == m_output.size(); }
    /// Returns whether Redis may have seen any of the output.
    [[nodiscard]] ConnectionError::Outcome outcome() const noexcept {
        const bool unseen = !flushed() && m_sent == 0;
        return unseen ? ConnectionError::Outcome::not_run : ConnectionError::Outcome::in_doubt;
    }

    /// Sends what the socket takes; true when nothing is left. Throws ConnectionError.
    bool flush();
    /// Sends bytes of the caller once; returns how many the socket took, 0 when it takes none now.
    /// Use it only when flushed(). Throws ConnectionError.
    std::size_t send(std::string_view bytes);
    /// Reads what has arrived. Throws ConnectionError at the end of the stream, ProtocolError.
    void fill();
    /// The next whole reply that `fill` has read, or null; valid until the next call.
    ///
    /// Where the endpoint has a Locator, an error ends with `redirected` if it says that another
    /// server serves now: connect again. It begins with TRYAGAIN if it is to be waited out.
    [[nodiscard]] Reply* next_reply() {
        try {
            Reply* const reply = m_reader.next();
            if (m_locator && reply != nullptr && reply->is(Reply::Type::error)) {
                m_locator->note(*reply, m_server);
            }
            return reply;
        } catch (const ProtocolError& error) {
            throw ProtocolError(joined({m_address, ": ", error.what()}));
        }
    }

    /// Waits until the socket is ready for `events`, `wake` is signalled or the deadline has
    /// passed; returns what the socket is ready for, 0 otherwise. Learns whether polling for so
    /// many `replies` before sleeping pays. One thread at a time may wait; others may append and
    /// send meanwhile.
    short wait(short events, const Wake* wake, TimePoint deadline, std::size_t replies = 1) {
        return wait_ready(m_poll, fd(), events, wake, deadline, replies);
    }

    /// Sends all and waits for one reply. Nothing at the deadline, and when `wake` is signalled.
    std::optional<Reply> wait_for_reply(TimePoint deadline, const Wake* wake);
    /// Does the same, but throws ConnectionError at the deadline, GivenUp when `wake` is signalled.
    Reply await_reply(TimePoint deadline, const Wake* wake = nullptr);

    /// True when the peer has closed the connection, or has sent data that no command asked for.
    [[nodiscard]] bool disturbed() const {
        return wait_ready(fd(), POLLIN, nullptr, TimePoint{}) != 0 &&
               (!m_channel || m_channel->arrived() != SecureChannel::Arrived::nothing);
    }

    /// True when the peer has closed the connection and none of its data is left to read.
    [[nodiscard]] bool closed_by_peer() const noexcept {
        if (m_channel) {
            return m_channel->arrived() == SecureChannel::Arrived::end;
        }
        char byte = 0;
        const ssize_t count = ::recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return count == 0 || (count < 0 && !system::would_block(errno) && errno != EINTR);
    }

    /// Ends the connection for both sides, from any thread; the descriptor stays taken until the
    /// destructor, so that a poll on it cannot meet another file.
    void shutdown() noexcept { ::shutdown(fd(), SHUT_RDWR); }

    /// In a forked child: closes the descriptor and leaves all else alone for ever, since another
    /// thread of the parent may have been changing it.
    static void close_after_fork(std::unique_ptr<Stream>& stream) noexcept {
        if (stream) {
            ::close(stream.release()->fd());
        }
    }

    /// Throws std::logic_error in a forked child: two processes must not share a stream.
    void refuse_fork() const {
        if (m_mark.forked()) {
            throw_forked();
        }
    }

  private:
    /// In bytes. The largest map of slots is a fraction of that.
    static constexpr std::size_t largest_greeting = std::size_t{16} << 20;
    static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
    static constexpr std::string_view no_connection = "no connection within connect_timeout";
    struct Greeting {
        std::string_view command;
        enum class For : std::uint8_t {
            user,   ///< no refusal may answer it
            nobody, ///< it may
            locator
        } whose;
    };

    struct Free {
        void operator()(redisContext* context) const noexcept { redisFree(context); }
    };

    [[noreturn]] [[gnu::cold]] void throw_forked() const {
        throw std::logic_error(joined({"a connection to ", m_address,
                                       " is used in a forked child; make a new object there"}));
    }
    [[noreturn]] [[gnu::cold]] void fail(std::string_view reason) const {
        if (m_located) {
            m_locator->pass_over();
            throw WrongServer(joined({m_address, ": ", reason}));
        }
        throw ConnectionError(joined({m_address, ": ", reason}));
    }
    /// Returns what may be wrong when the connection ends before anything has come.
    [[nodiscard]] [[gnu::cold]] std::string_view hint() const noexcept {
        const bool plain_tcp = !m_channel && !m_server.host.empty();
        return plain_tcp && m_input_left == largest_greeting
                   ? "; if the port speaks TLS, the address begins with rediss://"
                   : "";
    }
    [[noreturn]] [[gnu::cold]] void give_up(std::string_view doing) const {
        throw GivenUp(joined({m_address, ": ", doing, " was given up"}));
    }
    [[noreturn]] [[gnu::cold]] void fail_errno(std::string_view doing) const {
        fail(joined({doing, ": ", std::generic_category().message(errno)}));
    }

    void feed(std::size_t count);
    [[nodiscard]] [[gnu::cold]] static Locator::Answers ask(const Endpoint& server,
                                                            std::string_view commands,
                                                            std::size_t replies, TimePoint deadline,
                                                            const Wake* wake);
    [[gnu::cold]] void connect(const Endpoint& endpoint, TimePoint deadline, const Wake* wake,
                               TimePoint limit);
    [[gnu::cold]] void connect_to_next();
    /// Returns false if connecting has failed at once.
    [[gnu::cold]] bool begin_with(redisContext* context);
    [[gnu::cold]] void secure_descriptor();
    [[gnu::cold]] void compose_greeting(const Endpoint& endpoint);
    [[gnu::cold]] void await_greeting(TimePoint deadline, const Wake* wake);
    [[gnu::cold]] void send_greeting();
    [[gnu::cold]] void check_greeting(const Reply& reply);

    std::string m_address;
    Node m_server;
    std::unique_ptr<Locator> m_locator; ///< null: the address says where Redis is
    bool m_located = false;             ///< by it, and the greeting is not over
    HostAddresses m_addresses;          ///< to connect to
    std::shared_ptr<const Security> m_security;
    std::unique_ptr<redisContext, Free> m_context;
    std::unique_ptr<SecureChannel> m_channel; ///< null: no encryption, or not connected
    ReplyReader m_reader;
    bool m_connected = false;
    bool m_greets = false;     ///< all that precedes the greeting is done
    Fifo<Greeting> m_greeting; ///< the commands without an answer
    std::string m_output;
    std::size_t m_sent = 0;
    std::string m_input = std::string(std::size_t{64} << 10, '\0'); ///< buffer for a recv
    std::size_t m_input_left = largest_greeting;                    ///< bytes that may still arrive
    BusyPoll m_poll{usable_cpus()};
    ForkMark m_mark;
};

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
    if (m_channel) {
        return m_channel->send(bytes);
    }
    while (true) {
        const ssize_t count = system::send(fd(), bytes.data(), bytes.size());
        if (count > 0) {
            return static_cast<std::size_t>(count);
        }
        if (system::would_block(errno)) {
            return 0;
        }
        if (errno != EINTR) {
            fail_errno("sending");
        }
    }
}

inline void Stream::feed(std::size_t count) {
    if (count > m_input_left) {
        throw ProtocolError(joined({m_address, ": the answer is too large"}));
    }
    m_input_left -= count;
    m_reader.feed({m_input.data(), count});
}

inline void Stream::fill() {
    refuse_fork();
    if (m_channel) {
        while (const std::size_t count = m_channel->receive(m_input.data(), m_input.size())) {
            feed(count);
        }
        return;
    }
    while (true) {
        const ssize_t count = ::recv(fd(), m_input.data(), m_input.size(), 0);
        if (count > 0) {
            feed(static_cast<std::size_t>(count));
            if (static_cast<std::size_t>(count) < m_input.size()) {
                return;
            }
        } else if (count == 0) {
            fail(joined({"the server closed the connection", hint()}));
        } else if (system::would_block(errno)) {
            return;
        } else if (errno != EINTR) {
            fail(joined({"receiving: ", std::generic_category().message(errno), hint()}));
        }
    }
}

inline std::optional<Reply> Stream::wait_for_reply(TimePoint deadline, const Wake* wake) {
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
            return std::nullopt;
        }
    }
}

inline Reply Stream::await_reply(TimePoint deadline, const Wake* wake) {
    if (auto reply = wait_for_reply(deadline, wake)) {
        return *std::move(reply);
    }
    if (Clock::now() < deadline) {
        give_up("waiting");
    }
    fail("no reply in time");
}

} // namespace orizuru::detail

#include <orizuru/detail/redis/stream_greeting.inl>
