// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A connection that runs commands as the bytes that the library wrote, one at a time.

#pragma once

#include "support/posix.hpp"

#include <orizuru/detail/reply_reader.hpp>
#include <orizuru/detail/wire.hpp>
#include <orizuru/reply.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

using Words = std::vector<std::string>;

/// The words of exactly one command; anything else throws std::runtime_error.
inline Words words_of(std::string_view command) {
    const auto number_after = [&command](char mark) {
        const std::size_t end = command.find("\r\n");
        std::size_t number = 0;
        if (end == std::string_view::npos || command.front() != mark ||
            std::from_chars(command.data() + 1, command.data() + end, number).ptr !=
                command.data() + end) {
            throw std::runtime_error("not a Redis command");
        }
        command.remove_prefix(end + 2);
        return number;
    };
    Words words(number_after('*'));
    for (std::string& word : words) {
        const std::size_t size = number_after('$');
        word = command.substr(0, size);
        if (command.substr(word.size(), 2) != "\r\n") {
            throw std::runtime_error("not a Redis command");
        }
        command.remove_prefix(size + 2);
    }
    if (!command.empty()) {
        throw std::runtime_error("more than one Redis command");
    }
    return words;
}

inline std::string command_of(const Words& words) {
    std::string command;
    detail::begin_command(command, words.size());
    for (const std::string& word : words) {
        detail::append_argument(command, word);
    }
    return command;
}

class RawRedis {
  public:
    explicit RawRedis(const std::string& socket_path) : m_socket(connect_unix(socket_path)) {
        if (!m_socket) {
            throw std::runtime_error("nobody listens at " + socket_path);
        }
        constexpr timeval limit{10, 0};
        ::fcntl(m_socket.get(), F_SETFL, 0);
        ::setsockopt(m_socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }

    /// Writes the bytes of one command and reads its reply.
    Reply run(std::string_view bytes) {
        while (!bytes.empty()) {
            const auto sent = ::send(m_socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent < 0) {
                throw std::runtime_error("Redis takes nothing");
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        Reply* reply = m_reader.next();
        while (reply == nullptr) {
            std::array<char, 16384> buffer;
            const auto received = ::recv(m_socket.get(), buffer.data(), buffer.size(), 0);
            if (received <= 0) {
                throw std::runtime_error("Redis does not answer");
            }
            m_reader.feed({buffer.data(), static_cast<std::size_t>(received)});
            reply = m_reader.next();
        }
        return std::move(*reply);
    }

    /// Throws std::runtime_error on an error reply.
    Reply command(const Words& words) {
        Reply reply = run(command_of(words));
        if (reply.is(Reply::Type::error)) {
            throw std::runtime_error(words.front() + ": " + reply.text);
        }
        return reply;
    }

    Words list(const std::string& key) { return texts(command({"LRANGE", key, "0", "-1"})); }
    Words keys() { return texts(command({"KEYS", "*"})); }
    std::string type(const std::string& key) { return command({"TYPE", key}).text; }
    bool exists(const std::string& key) { return command({"EXISTS", key}).integer == 1; }

    static Words texts(const Reply& reply) {
        Words result;
        for (const Reply& element : reply.elements) {
            result.push_back(element.text);
        }
        return result;
    }

  private:
    Fd m_socket;
    detail::ReplyReader m_reader;
};

} // namespace orizuru::test
