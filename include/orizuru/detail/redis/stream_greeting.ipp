// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Connects a stream and greets Redis: all commands of the greeting go out in one write.

#include <orizuru/detail/redis/stream_locating.ipp>

namespace orizuru::detail {

inline std::unique_ptr<Stream> Stream::make(const Endpoint& endpoint, TimePoint deadline,
                                            const Wake* wake) {
    const NodeList* const nodes = EndpointParts::of(endpoint).nodes.get();
    constexpr std::size_t redirections = 3;
    for (std::size_t tries = nodes == nullptr ? 1 : nodes->in_order().size() + redirections;;
         --tries) {
        try {
            auto stream = std::make_unique<Stream>(endpoint, deadline, wake);
            // With several nodes, a server that hangs leaves time to ask for another.
            stream->await_greeting(
                nodes == nullptr ? deadline : std::min(deadline, Clock::now() + patience(endpoint)),
                wake);
            return stream;
        } catch (const WrongServer&) {
            if (tries <= 1 || Clock::now() >= deadline) {
                throw;
            }
        } catch (const ReplyError& error) { // a node may be down for itself alone
            if (error.code() != cluster_down || tries <= 1 || Clock::now() >= deadline) {
                throw;
            }
        }
    }
}

inline void Stream::connect(const Endpoint& endpoint, TimePoint deadline, const Wake* wake) {
    const EndpointParts& parts = EndpointParts::of(endpoint);
    m_server = parts.address->server;
    if (parts.nodes) {
        const TimePoint own = Clock::now() + endpoint.connect_timeout();
        m_place = parts.place;
        const std::optional<Node> known = m_place ? m_place->node() : std::nullopt;
        m_server = parts.address->topology == Topology::sentinels
                       ? locate(endpoint, deadline == TimePoint::min() ? own : deadline, wake)
                       : known.value_or(parts.nodes->in_order().front());
        m_nodes = parts.nodes.get();
        m_address += joined({" at ", to_text(m_server)});
    }
    take_standard_descriptors();
    const auto check = [&] {
        if (wake != nullptr && wait_ready(wake->fd(), POLLIN, nullptr, TimePoint{}) != 0) {
            give_up("connecting");
        }
    };
    check(); // nothing can end the resolution of a name
    m_security = parts.security;
    if (endpoint.path().empty()) {
        const TimePoint own = Clock::now() + patience(endpoint);
        m_addresses = HostAddresses(m_server.host,
                                    deadline == TimePoint::min() ? own : std::min(deadline, own));
        return connect_to_next();
    }
    while (!begin_with(redisConnectUnixNonBlock(endpoint.path().c_str()))) {
        // A server may still listen: a Unix socket's full backlog is EAGAIN, an interruption EINTR.
        const bool again = m_context->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EINTR);
        if (!again || Clock::now() >= deadline) {
            fail(m_context->errstr);
        }
        wait_ready(-1, 0, wake, std::min(deadline, Clock::now() + std::chrono::milliseconds(10)));
        check();
    }
    secure_descriptor();
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
            const int on = 1;
            const int idle = 15;
            ::setsockopt(fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
            ::setsockopt(fd(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
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
}

inline void Stream::compose_greeting(const Endpoint& endpoint) {
    const auto add = [this](Greeting greeting, const auto&... words) {
        append_command(m_output, words...);
        m_greeting.push_back(greeting);
    };
    const EndpointParts& parts = EndpointParts::of(endpoint);
    if (endpoint.password() && endpoint.user().empty()) {
        add({"AUTH", true}, "AUTH", *endpoint.password());
    } else if (endpoint.password()) {
        add({"AUTH", true}, "AUTH", endpoint.user(), *endpoint.password());
    }
    if (endpoint.db() != 0) {
        add({"SELECT", true}, "SELECT", endpoint.db());
    }
    if (!endpoint.client_name().empty()) {
        add({"CLIENT SETNAME", true}, "CLIENT", "SETNAME", endpoint.client_name());
    } else if (parts.label) {
        add({"CLIENT SETNAME", false}, "CLIENT", "SETNAME", *parts.label);
    }
    if (m_place) {
        add({type, true}, "TYPE", m_place->key());
        add({slots, false}, "CLUSTER", "SLOTS");
    } else if (parts.address->topology == Topology::sentinels) {
        add({role, false}, "ROLE");
    }
    if (m_greeting.empty()) {
        // With no other greeting, only PING shows whether Redis would talk to us.
        add({"PING", true}, "PING");
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

inline Clock::duration Stream::patience(const Endpoint& endpoint) {
    return EndpointParts::of(endpoint).nodes ? share_of(endpoint) : endpoint.connect_timeout();
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
        m_connected = true;
        if (m_security) {
            m_channel = m_security->open(fd(), m_server.host, m_address);
        }
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
    m_nodes = nullptr;
    m_input_left = no_limit;
    return true;
}

/// A server that has closed the connection may have said why, as Redis does at its `maxclients`.
inline void Stream::send_greeting() {
    try {
        flush();
    } catch (const ConnectionError&) {
        if (m_nodes != nullptr || m_greeting.empty()) { // another node is asked
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
    const auto [command, needed] = m_greeting.front();
    if (command == slots) {
        return learn_nodes(reply);
    }
    if (reply.is(Reply::Type::error)) {
        if (reply.text.starts_with("ERR max number of clients")) {
            fail(reply.text);
        }
        if (command == type && is_redirected(reply.text)) {
            throw WrongServer(joined({m_address, ": ", reply.text}));
        }
        if (command == type && reply.code() == cluster_down) {
            pass_over();
        }
        if (command == type && reply.code() == "TRYAGAIN") {
            m_place->set(m_server);
            return; // this node still has the slot, and not the key
        }
        const bool may_not = reply.text.starts_with("NOPERM ") || reply.text.starts_with("ERR ");
        if (may_not && !needed) {
            return; // without the right to ROLE, READONLY tells of a replica
        }
        throw reply_error(joined({m_address, ": ", command}), reply.text);
    }
    if (command == role) {
        if (!reply.is(Reply::Type::array) || reply.elements.empty()) {
            throw ProtocolError(joined({m_address, ": ROLE was not answered by a role"}));
        }
        if (reply.elements[0].text != "master") {
            fail("a sentinel took it for the master, which it is not");
        }
        return;
    }
    if (!reply.is(Reply::Type::status)) {
        throw ProtocolError(joined({m_address, ": ", command, " was not answered by a status"}));
    }
    if (command == type) {
        m_place->set(m_server);
    }
}

} // namespace orizuru::detail
