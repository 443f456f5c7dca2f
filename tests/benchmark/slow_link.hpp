// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A link to Redis on which each byte is on its way for a time, as through a network; any number of
// bytes may be on their way at once.

#pragma once

#include "support/posix.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <deque>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::benchmark {

class SlowLink {
  public:
    /// `backend`: the path of Redis' socket. A byte takes `time` each way.
    SlowLink(std::string backend, std::chrono::microseconds time)
        : m_backend(std::move(backend)), m_time(time), m_thread([this] { run(); }) {}
    SlowLink(const SlowLink&) = delete;
    SlowLink& operator=(const SlowLink&) = delete;
    ~SlowLink() {
        m_ending = true;
        m_thread.join();
    }

    [[nodiscard]] std::string uri() const {
        return "redis://127.0.0.1:" + std::to_string(test::port_of(m_listener));
    }

  private:
    using Clock = std::chrono::steady_clock;

    struct Bytes {
        Clock::time_point due;
        std::string bytes;
    };
    struct Way {
        int from;
        int to;
        std::deque<Bytes> bytes;
    };
    struct Connection {
        test::Fd client;
        test::Fd redis;
        std::array<Way, 2> ways;
        bool open = true;
    };

    void run() {
        while (!m_ending) {
            while (test::Fd client = test::accept_on(m_listener)) {
                test::Fd redis = test::connect_unix(m_backend);
                const int there = client.get();
                const int here = redis.get();
                m_connections.push_back({std::move(client),
                                         std::move(redis),
                                         {Way{there, here, {}}, Way{here, there, {}}}});
            }
            Clock::time_point next = Clock::now() + std::chrono::milliseconds(20);
            std::vector<pollfd> wanted{{m_listener.get(), POLLIN, 0}};
            for (Connection& connection : m_connections) {
                for (Way& way : connection.ways) {
                    connection.open = connection.open && read(way) && write(way);
                    next = way.bytes.empty() ? next : std::min(next, way.bytes.front().due);
                    wanted.push_back({way.from, POLLIN, 0});
                }
            }
            m_connections.remove_if([](const Connection& connection) { return !connection.open; });
            wait(wanted, next);
        }
    }
    static void wait(std::vector<pollfd>& wanted, Clock::time_point until) {
        const auto left = std::max(until - Clock::now(), Clock::duration(0));
        const std::timespec time{0, std::chrono::nanoseconds(left).count()};
        ::ppoll(wanted.data(), wanted.size(), &time, nullptr);
    }
    /// Returns false at the end.
    bool read(Way& way) const {
        std::array<char, 1 << 16> buffer{};
        while (true) {
            const ssize_t got = ::recv(way.from, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (got <= 0) {
                return got < 0 && errno == EAGAIN;
            }
            way.bytes.push_back(
                {Clock::now() + m_time, std::string(buffer.data(), static_cast<std::size_t>(got))});
        }
    }
    static bool write(Way& way) {
        while (!way.bytes.empty() && way.bytes.front().due <= Clock::now()) {
            std::string& bytes = way.bytes.front().bytes;
            const ssize_t sent =
                ::send(way.to, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0) {
                return errno == EAGAIN;
            }
            bytes.erase(0, static_cast<std::size_t>(sent));
            if (!bytes.empty()) {
                return true;
            }
            way.bytes.pop_front();
        }
        return true;
    }

    const std::string m_backend;
    const std::chrono::microseconds m_time;
    const test::Fd m_listener = test::listen_tcp();
    std::list<Connection> m_connections; ///< the thread's
    std::atomic<bool> m_ending{false};
    std::thread m_thread;
};

} // namespace orizuru::benchmark
