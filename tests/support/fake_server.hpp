// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A server on a Unix socket, or on another listener, that speaks the Redis protocol and answers as
// the test says: with any bytes, with nothing, by closing the connection, or with the answer of a
// real Redis behind it.

#pragma once

#include "posix.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

/// One thread serves all connections and calls the handler, which must not throw. As in Redis, a
/// connection's next command is read when the one before it has been answered.
class FakeServer {
  public:
    /// Gets a command and returns the bytes to answer ("" = no answer), `pass`, or nullopt to
    /// close the connection after the answers before.
    using Handler = std::function<std::optional<std::string>(const std::vector<std::string>& argv)>;

    /// A handler returns this to let the backend answer.
    inline static const std::string pass{"\0pass", 5};

    explicit FakeServer(Handler handler, std::string backend_socket_path = {}, Fd listener = Fd());
    FakeServer(const FakeServer&) = delete;
    FakeServer& operator=(const FakeServer&) = delete;
    ~FakeServer();

    [[nodiscard]] const std::string& socket_path() const noexcept { return m_socket; }
    [[nodiscard]] std::string uri() const { return "unix://" + m_socket; }

  private:
    /// A socket, with the bytes read from it and the bytes to be written to it.
    struct Peer {
        Fd fd;
        std::string in;
        std::string out;
        bool ended = false;
    };

    struct Connection {
        Peer client;
        Peer backend;
        bool passing = false;
        bool closing = false;
    };

    void serve(const std::stop_token& stop);
    bool move_some(Connection& connection);
    void handle_one(Connection& connection, std::size_t size);

    static bool exchange(Peer& peer);
    static std::optional<std::size_t> message_size(std::string_view bytes);
    static std::vector<std::string> words(std::string_view command);
    static std::int64_t number(std::string_view digits);

    Handler m_handler;
    std::string m_backend;
    TempDir m_folder;
    std::string m_socket = m_folder.path() + "/fake.sock";
    Fd m_listener;
    Bell m_bell;
    std::jthread m_thread;
};

inline FakeServer::FakeServer(Handler handler, std::string backend_socket_path, Fd listener)
    : m_handler(std::move(handler)),
      m_backend(std::move(backend_socket_path)),
      m_listener(listener ? std::move(listener) : listen_unix(m_socket)) {
    m_bell.add(m_listener);
    m_thread = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

inline FakeServer::~FakeServer() {
    m_thread.request_stop();
    m_bell.ring();
}

inline void FakeServer::serve(const std::stop_token& stop) {
    std::list<Connection> connections;
    while (!stop.stop_requested()) {
        bool moved = false;
        if (Fd client = accept_on(m_listener)) {
            m_bell.add(client);
            connections.emplace_back().client.fd = std::move(client);
            moved = true;
        }
        std::erase_if(connections, [&](Connection& connection) {
            const bool moved_here = move_some(connection);
            moved |= moved_here;
            const Peer& client = connection.client;
            return (client.ended && !moved_here) || (connection.closing && client.out.empty());
        });
        if (!moved) {
            m_bell.wait();
        }
    }
}

/// Returns whether there may be more to do.
inline bool FakeServer::move_some(Connection& connection) {
    Peer& client = connection.client;
    Peer& backend = connection.backend;
    bool moved = exchange(client);
    try {
        if (backend.fd) {
            moved |= exchange(backend);
            const auto size = connection.passing ? message_size(backend.in) : std::nullopt;
            if (size) {
                client.out += backend.in.substr(0, *size);
                backend.in.erase(0, *size);
                connection.passing = false;
                moved = true;
            } else if (backend.ended) {
                connection.closing = true;
            }
        }
        if (!connection.passing && !connection.closing) {
            if (const auto size = message_size(client.in)) {
                handle_one(connection, *size);
                moved = true;
            }
        }
    } catch (const std::runtime_error&) {
        connection.closing = true; // not the Redis protocol
    }
    return moved;
}

inline void FakeServer::handle_one(Connection& connection, std::size_t size) {
    const std::string command = connection.client.in.substr(0, size);
    connection.client.in.erase(0, size);
    const std::optional<std::string> answer = m_handler(words(command));
    if (!answer) {
        connection.closing = true;
    } else if (*answer != pass) {
        connection.client.out += *answer;
    } else {
        Peer& backend = connection.backend;
        if (!backend.fd) {
            backend.fd = connect_unix(m_backend);
            if (!backend.fd) {
                connection.closing = true;
                return;
            }
            m_bell.add(backend.fd);
        }
        backend.out += command;
        connection.passing = true;
    }
}

/// Reads and writes as much as it can without waiting, once. Returns whether anything moved.
inline bool FakeServer::exchange(Peer& peer) {
    bool moved = false;
    if (!peer.out.empty()) {
        const auto sent =
            ::send(peer.fd.get(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            peer.out.erase(0, static_cast<std::size_t>(sent));
            moved = true;
        }
    }
    std::array<char, 65536> buffer;
    const auto received = ::recv(peer.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (received > 0) {
        peer.in.append(buffer.data(), static_cast<std::size_t>(received));
        return true;
    }
    if (received == 0 || (errno != EAGAIN && errno != EINTR)) {
        peer.ended = true;
    }
    return moved;
}

/// The size of the first message (a reply, or a command) if it is complete.
inline std::optional<std::size_t> FakeServer::message_size(std::string_view bytes) {
    const std::size_t line = bytes.find("\r\n");
    if (line == std::string_view::npos) {
        return std::nullopt;
    }
    std::size_t size = line + 2;
    switch (bytes.front()) {
    case '+':
    case '-':
    case ':':
        return size;
    case '$': {
        const std::int64_t length = number(bytes.substr(1, line - 1));
        size += length < 0 ? 0 : static_cast<std::size_t>(length) + 2;
        return size <= bytes.size() ? std::optional{size} : std::nullopt;
    }
    case '*': {
        const std::int64_t elements = number(bytes.substr(1, line - 1));
        for (std::int64_t i = 0; i < elements; ++i) {
            const auto element = message_size(bytes.substr(size));
            if (!element) {
                return std::nullopt;
            }
            size += *element;
        }
        return size;
    }
    default:
        throw std::runtime_error("not a Redis message");
    }
}

/// Splits a complete command.
inline std::vector<std::string> FakeServer::words(std::string_view command) {
    std::vector<std::string> result;
    const bool array = command.front() == '*';
    command.remove_prefix(command.find("\r\n") + 2);
    while (array && !command.empty()) {
        const std::size_t line = command.find("\r\n");
        const std::int64_t length = number(command.substr(1, line - 1));
        if (command.front() != '$' || length < 0) {
            throw std::runtime_error("not a bulk string");
        }
        result.emplace_back(command.substr(line + 2, static_cast<std::size_t>(length)));
        command.remove_prefix(line + 2 + result.back().size() + 2);
    }
    if (result.empty()) {
        throw std::runtime_error("not a command");
    }
    return result;
}

inline std::int64_t FakeServer::number(std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
        throw std::runtime_error("not a number");
    }
    return value;
}

} // namespace orizuru::test
