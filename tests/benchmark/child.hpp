// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer in a process of its own, forked before the first connection or thread.

#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <functional>
#include <iostream>
#include <stdexcept>

namespace orizuru::benchmark {

class Child {
  public:
    /// `work` runs in the child. It connects, calls its argument, which returns when the parent
    /// calls `start`, and goes on.
    explicit Child(const std::function<void(const std::function<void()>& await_start)>& work) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0 || (m_pid = ::fork()) < 0) {
            throw std::runtime_error("no child process");
        }
        m_end = ends[m_pid == 0 ? 1 : 0];
        ::close(ends[m_pid == 0 ? 0 : 1]);
        if (m_pid == 0) {
            run(work);
        }
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    /// When the parent fails, the child finds the socket closed and fails, too.
    ~Child() {
        ::close(m_end);
        if (m_pid > 0) {
            ::waitpid(m_pid, nullptr, 0);
        }
    }

    void await_ready() const { receive(); }
    void start() const { send(); }
    void wait() {
        int status = 0;
        ::waitpid(m_pid, &status, 0);
        m_pid = -1;
        if (status != 0) {
            throw std::runtime_error("the child has failed");
        }
    }

  private:
    [[noreturn]] void run(const auto& work) const {
        try {
            work([this] {
                send();
                receive();
            });
            ::_exit(0);
        } catch (const std::exception& error) {
            std::cerr << "child: " << error.what() << std::endl;
            ::_exit(1);
        }
    }
    void send() const {
        if (::send(m_end, "!", 1, MSG_NOSIGNAL) != 1) {
            throw std::runtime_error("the other process has ended");
        }
    }
    void receive() const {
        char byte = 0;
        if (::recv(m_end, &byte, 1, 0) != 1) {
            throw std::runtime_error("the other process has ended");
        }
    }

    int m_end = -1;
    pid_t m_pid = -1;
};

} // namespace orizuru::benchmark
