// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A connection to a real Redis.

#pragma once

#include "fuzz/model/server.hpp"
#include "support/posix.hpp"

#include <orizuru/detail/redis/reply_reader.hpp>
#include <orizuru/reply.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

class RawRedis : public Server {
  public:
    explicit RawRedis(const std::string& socket_path) : m_socket(connect_unix(socket_path)) {
        if (!m_socket) {
            throw std::runtime_error("nobody listens at " + socket_path);
        }
        constexpr timeval limit{10, 0};
        ::fcntl(m_socket.get(), F_SETFL, 0);
        ::setsockopt(m_socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }

    Reply run(const Words& command) override {
        send(command_of(command));
        return receive();
    }

    std::function<void()> snapshot() override {
        std::vector<Words> restore{{"FLUSHALL"}};
        for (const std::string& key : keys()) {
            restore.push_back({"RESTORE", key, "0", command({"DUMP", key}).text});
        }
        return [this, restore] {
            for (const Words& words : restore) {
                command(words);
            }
        };
    }

    /// The bytes of any number of commands; each is owed a `receive`.
    void send(std::string_view bytes) {
        while (!bytes.empty()) {
            const auto sent = ::send(m_socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent < 0) {
                throw std::runtime_error("Redis takes nothing");
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }

    Reply receive() {
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

  private:
    Fd m_socket;
    detail::ReplyReader m_reader;
};

} // namespace orizuru::test
