// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A proxy between two Unix sockets, or two TCP sockets, that fails on request: it cuts a connection
// after an exact number of bytes, freezes, hides that a client has gone, and counts the bytes that
// pass.

#pragma once

#include "posix.hpp"
#include "relay.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace orizuru::test {

/// One thread serves all connections; every member may be called from any thread and has taken
/// effect when it returns. Connections are numbered from 0 in the order they were accepted.
///
/// While a child forked after a connection was accepted lives, Cut::rst looks like Cut::silence.
class Proxy {
  public:
    using Direction = Relay::Direction;
    using Cut = Relay::Cut;

    /// `backend`: a socket's path, or a port of 127.0.0.1 in digits. `delay`: how long Cut::delay
    /// takes.
    explicit Proxy(std::string backend,
                   std::chrono::milliseconds delay = std::chrono::milliseconds(500));
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;
    ~Proxy();

    /// Of a proxy between Unix sockets.
    [[nodiscard]] const std::string& socket_path() const noexcept { return m_socket; }
    /// All that is reached by TCP speaks TLS.
    [[nodiscard]] std::string uri() const {
        return m_tcp ? "rediss://127.0.0.1:" + std::to_string(port_of(m_listener))
                     : "unix://" + m_socket;
    }

    /// Cuts the next connection when this many bytes have passed in this direction: exactly these
    /// arrive. With 0 bytes, the first byte to come cuts, and is lost (except with Cut::delay).
    void cut_after(Direction direction, std::uint64_t bytes, Cut cut);
    /// Cuts this connection, an open or a future one; counted from the connection's start.
    /// Another call for the same connection and direction replaces this one.
    void cut_after(Direction direction, std::uint64_t bytes, Cut cut, std::size_t connection);

    /// From now on connections lead to another server.
    void lead_to(const std::string& backend);

    /// When the next cut comes, the connection accepted next is cut as well.
    void then_cut_next_after(Direction direction, std::uint64_t bytes, Cut cut);
    /// Takes back the cuts that have not come yet.
    void cancel_cuts();

    /// Nothing passes until thaw(), not even the end of a connection; connections are still
    /// accepted.
    void freeze();
    void thaw();

    /// From now on the server is not told that a client has gone: its connection stays open.
    void swallow_fin();
    void pass_fin();

    /// All clients see the end of their connections; the server's connections stay open.
    void lose_clients();

    /// Ends all connections, also silent ones and those that the client has left.
    void break_all(Cut cut = Cut::fin);

    [[nodiscard]] std::size_t accepted() const;
    /// Whether a connection waits to be accepted, or is open on both sides and not silent.
    [[nodiscard]] bool in_use() const;
    /// How many cuts of cut_after() have come.
    [[nodiscard]] std::size_t cuts() const;
    /// Whether the cut of this connection and direction has come.
    [[nodiscard]] bool was_cut(std::size_t connection, Direction direction) const;
    /// How many bytes have passed so far.
    [[nodiscard]] std::uint64_t bytes(std::size_t connection, Direction direction) const;

  private:
    using Clock = Relay::Clock;

    struct Plan {
        std::uint64_t bytes;
        Cut cut;
    };
    /// A direction of a connection.
    using Way = std::pair<std::size_t, Direction>;

    void serve(const std::stop_token& stop);
    bool accept_one();
    bool move_some(std::size_t index, Direction direction);
    bool take(std::size_t index, Direction direction);
    void carry_out(std::size_t index, Direction direction);
    [[nodiscard]] int until_resumed() const;

    template <class Change>
    void change(Change apply);

    std::string m_backend;
    bool m_tcp;
    std::chrono::milliseconds m_delay;
    TempDir m_folder;
    std::string m_socket = m_folder.path() + "/proxy.sock";
    Fd m_listener = m_tcp ? listen_tcp() : listen_unix(m_socket);
    Bell m_bell;

    mutable std::mutex m_mutex;
    std::deque<Relay> m_connections;
    std::size_t m_first_open = 0; ///< nothing moves in the connections before it
    std::map<Way, Plan> m_plans;
    std::optional<std::pair<Direction, Plan>> m_next_plan;
    std::size_t m_cuts = 0;
    bool m_frozen = false;
    bool m_swallow_fin = false;

    std::jthread m_thread;
};

inline Proxy::Proxy(std::string backend, std::chrono::milliseconds delay)
    : m_backend(std::move(backend)), m_tcp(!m_backend.starts_with('/')), m_delay(delay) {
    m_bell.add(m_listener);
    m_thread = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

inline Proxy::~Proxy() {
    m_thread.request_stop();
    m_bell.ring();
    m_thread.join();
    break_all();
}

inline void Proxy::cut_after(Direction direction, std::uint64_t bytes, Cut cut) {
    change([&] {
        m_plans.insert_or_assign(Way{m_connections.size(), direction}, Plan{bytes, cut});
    });
}

inline void Proxy::cut_after(Direction direction, std::uint64_t bytes, Cut cut,
                             std::size_t connection) {
    change([&] { m_plans.insert_or_assign(Way{connection, direction}, Plan{bytes, cut}); });
}

inline void Proxy::lead_to(const std::string& backend) {
    change([&] { m_backend = backend; });
}

inline void Proxy::then_cut_next_after(Direction direction, std::uint64_t bytes, Cut cut) {
    change([&] { m_next_plan.emplace(direction, Plan{bytes, cut}); });
}

inline void Proxy::cancel_cuts() {
    change([this] {
        m_plans.clear();
        m_next_plan.reset();
    });
}

inline void Proxy::freeze() {
    change([this] { m_frozen = true; });
}

inline void Proxy::thaw() {
    change([this] { m_frozen = false; });
}

inline void Proxy::swallow_fin() {
    change([this] { m_swallow_fin = true; });
}

inline void Proxy::pass_fin() {
    change([this] { m_swallow_fin = false; });
}

inline void Proxy::lose_clients() {
    change([this] {
        for (Relay& connection : m_connections) {
            connection.leave_half_open();
        }
    });
}

inline void Proxy::break_all(Cut cut) {
    change([&] {
        for (Relay& connection : m_connections) {
            connection.end(cut);
        }
    });
}

inline std::size_t Proxy::accepted() const {
    const std::lock_guard lock(m_mutex);
    return m_connections.size();
}

inline bool Proxy::in_use() const {
    const std::lock_guard lock(m_mutex);
    pollfd next{m_listener.get(), POLLIN, 0};
    return ::poll(&next, 1, 0) == 1 ||
           std::ranges::any_of(m_connections,
                               [](const Relay& connection) { return connection.open(); });
}

inline std::size_t Proxy::cuts() const {
    const std::lock_guard lock(m_mutex);
    return m_cuts;
}

inline bool Proxy::was_cut(std::size_t connection, Direction direction) const {
    const std::lock_guard lock(m_mutex);
    return connection < m_connections.size() && m_connections[connection].stream(direction).cut;
}

inline std::uint64_t Proxy::bytes(std::size_t connection, Direction direction) const {
    const std::lock_guard lock(m_mutex);
    return m_connections.at(connection).stream(direction).passed;
}

template <class Change>
void Proxy::change(Change apply) {
    {
        const std::lock_guard lock(m_mutex);
        apply();
    }
    m_bell.ring();
}

inline void Proxy::serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        bool moved = false;
        int limit = -1;
        {
            const std::lock_guard lock(m_mutex);
            moved = accept_one();
            while (m_first_open < m_connections.size() && m_connections[m_first_open].closed()) {
                ++m_first_open;
            }
            for (std::size_t i = m_first_open; i < m_connections.size(); ++i) {
                moved |= move_some(i, Direction::to_server);
                moved |= move_some(i, Direction::to_client);
            }
            limit = until_resumed();
        }
        if (moved) {
            // The mutex is not fair: a thread that waits for it gets a chance here.
            std::this_thread::yield();
        } else {
            m_bell.wait(limit);
        }
    }
}

inline bool Proxy::accept_one() {
    Fd client = accept_on(m_listener);
    if (!client) {
        return false;
    }
    if (m_tcp) {
        const int on = 1;
        ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    Fd server = m_tcp ? connect_tcp(static_cast<std::uint16_t>(std::stoul(m_backend)))
                      : connect_unix(m_backend);
    const Relay& connection = m_connections.emplace_back(std::move(client), std::move(server));
    if (!connection.closed()) {
        m_bell.add(connection.client());
        m_bell.add(connection.server());
    }
    return true;
}

/// Returns whether there may be more to move.
inline bool Proxy::move_some(std::size_t index, Direction direction) {
    Relay& connection = m_connections[index];
    Relay::Stream& stream = connection.stream(direction);
    if (m_frozen || !connection.open() || stream.resume > Clock::now()) {
        return false;
    }
    stream.resume.reset();
    const bool taken = stream.pending.empty() && take(index, direction);
    if (!connection.open()) {
        return taken;
    }
    const bool passed = connection.pass(direction);
    if (stream.due && stream.pending.empty()) {
        carry_out(index, direction);
    }
    return taken || passed;
}

/// Takes the bytes that have come, as far as the plan lets them through.
inline bool Proxy::take(std::size_t index, Direction direction) {
    Relay& connection = m_connections[index];
    const auto plan = m_plans.find({index, direction});
    const auto limit = plan == m_plans.end() ? std::nullopt : std::optional(plan->second.bytes);
    const Relay::Taken taken = connection.take(direction, limit);
    if (taken == Relay::Taken::end) {
        if (direction == Direction::to_server && m_swallow_fin) {
            connection.leave_half_open();
        } else {
            connection.end(Cut::fin);
        }
    }
    return taken != Relay::Taken::nothing;
}

inline void Proxy::carry_out(std::size_t index, Direction direction) {
    Relay& connection = m_connections[index];
    Relay::Stream& stream = connection.stream(direction);
    const Cut cut = m_plans.at({index, direction}).cut;
    stream.due = false;
    stream.cut = true;
    ++m_cuts;
    if (m_next_plan) {
        m_plans.insert_or_assign(Way{m_connections.size(), m_next_plan->first},
                                 m_next_plan->second);
        m_next_plan.reset();
    }
    if (cut == Cut::delay) {
        m_plans.erase({index, direction});
        stream.resume = Clock::now() + m_delay;
    } else {
        connection.end(cut);
    }
}

/// Milliseconds until delayed bytes pass again; -1 = there are none.
inline int Proxy::until_resumed() const {
    std::optional<Clock::time_point> first;
    for (const Relay& connection : m_connections) {
        for (const Relay::Stream& stream : connection.streams()) {
            if (stream.resume && connection.open()) {
                first = std::min(first.value_or(*stream.resume), *stream.resume);
            }
        }
    }
    if (!first) {
        return -1;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

} // namespace orizuru::test
