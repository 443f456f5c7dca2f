// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A server on a port of 127.0.0.1 that answers whatever is said first with fixed bytes, once.

#pragma once

#include "support/posix.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

namespace orizuru::test {

/// Serves one connection, and must get one.
class Speaker {
  public:
    explicit Speaker(std::string answer)
        : m_answer(std::move(answer)), m_thread([this] {
              pollfd next{m_listener.get(), POLLIN, 0};
              ::poll(&next, 1, -1);
              const Fd peer{::accept(m_listener.get(), nullptr, nullptr)};
              char bytes[4096];
              static_cast<void>(::recv(peer.get(), bytes, sizeof bytes, 0));
              static_cast<void>(::send(peer.get(), m_answer.data(), m_answer.size(), MSG_NOSIGNAL));
          }) {}

    [[nodiscard]] std::uint16_t port() const { return port_of(m_listener); }

  private:
    std::string m_answer;
    Fd m_listener = listen_tcp();
    std::jthread m_thread; // last: it uses the others
};

} // namespace orizuru::test
