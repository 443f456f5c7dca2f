// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Connects a stream and greets Redis: all commands of the greeting go out in one write.

#include <orizuru/detail/redis/place/make_locator.hpp>

namespace orizuru::detail {

/// Returns how long one server may take, so that each of several has its time.
inline Clock::duration Stream::patience(const Endpoint& endpoint) {
    const NodeList* const nodes = EndpointParts::of(endpoint).nodes.get();
    if (nodes == nullptr) {
        return endpoint.connect_timeout();
    }
    constexpr std::size_t most = 3; // many would leave too little for each
    return endpoint.connect_timeout() /
           static_cast<int>(std::min(most, nodes->in_order().size()) + 1);
}

inline std::unique_ptr<Stream> Stream::make(const Endpoint& endpoint, TimePoint deadline,
                                            const Wake* wake) {
    const NodeList* const nodes = EndpointParts::of(endpoint).nodes.get();
    constexpr std::size_t redirections = 3;
    for (std::size_t tries = nodes == nullptr ? 1 : nodes->in_order().size() + redirections;;
         --tries) {
        try {
            auto stream = std::make_unique<Stream>(endpoint, deadline, wake, deadline);
            // With several nodes, a server that hangs leaves time to ask for another.
            stream->await_greeting(
                nodes == nullptr ? deadline : std::min(deadline, Clock::now() + patience(endpoint)),
                wake);
            return stream;
        } catch (const WrongServer&) {
            if (tries <= 1 || Clock::now() >= deadline) {
                throw;
            }
        } catch (const ReplyError& error) {
            if (!may_be_down_alone(error) || tries <= 1 || Clock::now() >= deadline) {
                throw;
            }
        }
    }
}

inline void Stream::connect(const Endpoint& endpoint, TimePoint deadline, const Wake* wake,
                            TimePoint limit) {
    const EndpointParts& parts = EndpointParts::of(endpoint);
    m_server = parts.address->server;
    m_locator = make_locator(endpoint, patience(endpoint));
    if (m_locator) {
        const TimePoint own = Clock::now() + endpoint.connect_timeout();
        m_server = m_locator->find(
            [&](const Node& node, std::string_view commands, std::size_t replies, TimePoint until) {
                return ask(Route::to_asked(endpoint, node), commands, replies, until, wake);
            },
            deadline == TimePoint::min() ? own : deadline);
        m_located = true;
        m_address += joined({" at ", to_text(m_server)});
    }
    take_standard_descriptors();
    const auto check_answer = [&] {
        if (wake != nullptr && wait_ready(wake->fd(), POLLIN, nullptr, TimePoint{}) != 0) {
            give_up("connecting");
        }
    };
    check_answer(); // nothing can end the resolution of a name
    m_security = parts.security;
    if (endpoint.path().empty()) {
        m_addresses = HostAddresses(m_server.host, patience(endpoint), limit);
        return connect_to_next();
    }
    while (!begin_with(redisConnectUnixNonBlock(endpoint.path().c_str()))) {
        // A server may still listen: a Unix socket's full backlog is EAGAIN, an interruption EINTR.
        const bool again = m_context->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EINTR);
        if (!again || Clock::now() >= deadline) {
            fail(m_context->errstr);
        }
        wait_ready(-1, 0, wake, std::min(deadline, Clock::now() + std::chrono::milliseconds(10)));
        check_answer();
    }
    secure_descriptor();
}

inline Locator::Answers Stream::ask(const Endpoint& server, std::string_view commands,
                                    std::size_t replies, TimePoint deadline, const Wake* wake) {
    constexpr std::size_t largest_answer = std::size_t{1} << 20;
    const auto stream = make(server, deadline, wake);
    stream->m_input_left = largest_answer;
    stream->append([commands](std::string& out) { out += commands; });
    Locator::Answers answers{stream->address(), {}};
    while (answers.replies.size() < replies) {
        answers.replies.push_back(stream->await_reply(deadline, wake));
    }
    return answers;
}

inline bool Stream::begin_with(redisContext* context) {
    m_context.reset(context);
    if (!m_context) {
        throw std::bad_alloc();
    }
    return m_context->err == 0;
}

inline void Stream::connect_to_next() {
    while (const auto address = m_addresses.take()) {
        if (begin_with(redisConnectNonBlock(address->c_str(), m_server.port))) {
            secure_descriptor();
            // Keepalive detects a peer that vanishes silently, whatever waits on the stream.
            constexpr int seconds = 15;
            system::keep_alive(fd(), seconds);
            const int on = 1;
            ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return;
        }
        m_addresses.failed(m_context->errstr);
    }
    fail(m_addresses.failures());
}

inline void Stream::secure_descriptor() {
    m_context->fd = above_standard(fd());
    if (fd() < 0) {
        fail_errno("connecting");
    }
    ::fcntl(fd(), F_SETFD, FD_CLOEXEC);
    system::raise_no_sigpipe(fd());
}

inline void Stream::compose_greeting(const Endpoint& endpoint) {
    const auto add = [this](Greeting greeting, const auto&... words) {
        append_command(m_output, words...);
        m_greeting.push_back(greeting);
    };
    const EndpointParts& parts = EndpointParts::of(endpoint);
    if (endpoint.password() && endpoint.user().empty()) {
        add({"AUTH", Greeting::For::user}, "AUTH", *endpoint.password());
    } else if (endpoint.password()) {
        add({"AUTH", Greeting::For::user}, "AUTH", endpoint.user(), *endpoint.password());
    }
    if (endpoint.db() != 0) {
        add({"SELECT", Greeting::For::user}, "SELECT", endpoint.db());
    }
    if (!endpoint.client_name().empty()) {
        add({"CLIENT SETNAME", Greeting::For::user}, "CLIENT", "SETNAME", endpoint.client_name());
    } else if (parts.label) {
        add({"CLIENT SETNAME", Greeting::For::nobody}, "CLIENT", "SETNAME", *parts.label);
    }
    if (m_locator) {
        for (const Locator::Question& question : m_locator->questions()) {
            m_output += question.bytes;
            m_greeting.push_back({question.name, Greeting::For::locator});
        }
    }
    if (m_greeting.empty()) {
        // With no other greeting, only PING shows whether Redis would talk to us.
        add({"PING", Greeting::For::user}, "PING");
    }
}

inline short Stream::greeting_events() const noexcept {
    if (m_connected && !m_greets) {
        return m_channel->awaited();
    }
    const auto both = static_cast<short>(POLLIN | POLLOUT);
    return m_connected ? (flushed() ? short{POLLIN} : both) : short{POLLOUT};
}

inline void Stream::await_greeting(TimePoint deadline, const Wake* wake) {
    while (!greet()) {
        if (wait_ready(fd(), greeting_events(), wake, std::min(deadline, greeting_due())) != 0) {
            continue;
        }
        if (Clock::now() >= deadline) {
            fail_late();
        }
        if (Clock::now() < greeting_due()) {
            give_up(m_connected ? "waiting" : "connecting");
        }
    }
}

inline void Stream::fail_late() const {
    if (!m_connected) {
        HostAddresses addresses = m_addresses;
        addresses.failed(no_connection);
        fail(addresses.failures());
    }
    fail(m_greets ? "no reply in time"
                  : "no TLS handshake within connect_timeout; does the port speak TLS?");
}

inline TimePoint Stream::greeting_due() const noexcept {
    return m_connected ? TimePoint::max() : m_addresses.until().value_or(TimePoint::max());
}

inline bool Stream::greet() {
    if (!m_connected) {
        if (wait_ready(fd(), POLLOUT, nullptr, TimePoint{}) == 0) {
            if (Clock::now() >= greeting_due()) {
                m_addresses.failed(no_connection);
                connect_to_next();
            }
            return false;
        }
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) {
            m_addresses.failed(joined({"connecting: ", std::generic_category().message(error)}));
            connect_to_next();
            return false;
        }
        if (m_security) { // if this throws, nothing may be sent
            m_channel = m_security->open(fd(), m_server.host, m_address);
        }
        m_connected = true;
    }
    m_greets = m_greets || !m_channel || m_channel->shake_hands();
    if (!m_greets) {
        return false;
    }
    send_greeting();
    fill();
    while (!m_greeting.empty()) {
        const Reply* const reply = next_reply();
        if (reply == nullptr) {
            return false;
        }
        check_greeting(*reply);
        m_greeting.pop_front();
    }
    m_located = false;
    m_input_left = no_limit;
    return true;
}

/// A server that has closed the connection may have said why, as Redis does at its `maxclients`.
inline void Stream::send_greeting() {
    try {
        flush();
    } catch (const ConnectionError&) {
        if (m_located || m_greeting.empty()) { // another server is asked
            throw;
        }
        fill();
        if (const Reply* const reason = next_reply()) {
            check_greeting(*reason);
        }
        throw;
    }
}

inline void Stream::check_greeting(const Reply& reply) {
    const auto [command, whose] = m_greeting.front();
    if (reply.is(Reply::Type::error) && reply.text.starts_with("ERR max number of clients")) {
        fail(printable(reply.text));
    }
    if (whose == Greeting::For::locator) {
        return m_locator->judge(command, reply, {m_server, m_address});
    }
    if (reply.is(Reply::Type::error)) {
        if (may_not(reply) && whose == Greeting::For::nobody) {
            return;
        }
        throw reply_error(joined({m_address, ": ", command}), reply.text);
    }
    if (!reply.is(Reply::Type::status)) {
        throw ProtocolError(joined({m_address, ": ", command, " was not answered by a status"}));
    }
}

} // namespace orizuru::detail
