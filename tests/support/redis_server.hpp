// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A redis-server of the test's own, on a Unix socket in a folder of its own, without persistence
// unless asked for. It can be killed, restarted and paused, and TempDir's watcher ends it with the
// test process, however that ends.

#pragma once

#include "append_only_file.hpp"
#include "eventually.hpp"
#include "posix.hpp"
#include "redis_client.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

/// A private redis-server.
class RedisServer {
  public:
    /// ORIZURU_TEST_SERVER of the environment, else the program that the build found.
    [[nodiscard]] static const std::string& program() {
        static const std::string name = [] {
            const char* const chosen = std::getenv("ORIZURU_TEST_SERVER");
#ifdef REDIS_SERVER
            return std::string(chosen != nullptr ? chosen : REDIS_SERVER);
#else
            return std::string(chosen != nullptr ? chosen : "redis-server");
#endif
        }();
        return name;
    }

    enum class Listen { unix_socket, tcp, tls };

    /// Starts the server and waits until it answers. Extra arguments come last, so that
    /// `{"--appendonly", "yes", "--appendfsync", "always"}` makes the data survive restart().
    /// With Listen::tcp or Listen::tls it listens on a free port of 127.0.0.1 besides its Unix
    /// socket, whose connections are never encrypted; TLS needs the arguments that name its files.
    explicit RedisServer(std::vector<std::string> extra_arguments = {},
                         Listen listen = Listen::unix_socket);
    RedisServer(const RedisServer&) = delete;
    RedisServer& operator=(const RedisServer&) = delete;
    ~RedisServer() { kill(); }

    /// `unix:///.../redis.sock`; `redis://127.0.0.1:port`, or `rediss:` with Listen::tls.
    [[nodiscard]] std::string uri() const {
        const std::string scheme = m_listen == Listen::tls ? "rediss" : "redis";
        return m_port == 0 ? "unix://" + m_socket
                           : scheme + "://127.0.0.1:" + std::to_string(m_port);
    }
    /// By its Unix socket.
    [[nodiscard]] std::string plain_uri() const { return "unix://" + m_socket; }
    /// 0 with Listen::unix_socket.
    [[nodiscard]] std::uint16_t port() const noexcept { return m_port; }
    [[nodiscard]] const std::string& socket_path() const noexcept { return m_socket; }
    [[nodiscard]] pid_t pid() const noexcept { return m_pid; }

    /// Sends SIGKILL and waits for the end. Does nothing when the server does not run.
    void kill() noexcept { end(SIGKILL); }
    /// Sends SIGTERM and waits for the orderly end.
    void stop() noexcept { end(SIGTERM); }
    /// Kills the server when it runs, repairs its append-only file if it has one, and starts it
    /// with the same socket, port, folder and arguments.
    void restart();

    /// Sends SIGSTOP: connections stay open and get no answers. Returns when the server has
    /// stopped.
    void pause();
    void resume();

  private:
    void start();
    [[nodiscard]] bool answers() const;
    void signal(int number);
    void end(int number) noexcept { end_process(m_pid, number, m_folder); }
    [[nodiscard]] std::string log() const { return contents_of(m_log); }

    Listen m_listen;
    TempDir m_folder;
    std::string m_socket = m_folder.path() + "/redis.sock";
    std::string m_log = m_folder.path() + "/redis.log";
    std::uint16_t m_port = 0;
    std::vector<std::string> m_extra_arguments;
    pid_t m_pid = -1;
};

inline RedisServer::RedisServer(std::vector<std::string> extra_arguments, Listen listen)
    : m_listen(listen), m_extra_arguments(std::move(extra_arguments)) {
    if (listen == Listen::unix_socket) {
        start();
        return;
    }
    // Another process may take the port before the server binds it.
    for (int attempts_left = 4;; --attempts_left) {
        m_port = port_of(listen_tcp());
        try {
            start();
            return;
        } catch (const std::runtime_error&) {
            if (attempts_left == 0) {
                throw;
            }
        }
    }
}

inline void RedisServer::restart() {
    kill();
    repair_append_only_file(m_folder.path(), program());
    start();
}

inline void RedisServer::pause() {
    signal(SIGSTOP);
    wait_for(m_pid, WUNTRACED);
}

inline void RedisServer::resume() { signal(SIGCONT); }

inline void RedisServer::signal(int number) {
    if (m_pid <= 0) {
        throw std::logic_error("redis-server does not run");
    }
    ::kill(m_pid, number);
}

inline void RedisServer::start() {
    std::vector<std::string> command{program(), "--port",     std::to_string(m_port),
                                     "--bind",  "127.0.0.1",  "--unixsocket",
                                     m_socket,  "--dir",      m_folder.path(),
                                     "--save",  "",           "--appendonly",
                                     "no",      "--loglevel", "warning"};
    if (m_listen == Listen::tls) {
        command[1] = "--tls-port";
        command.insert(command.end(), {"--port", "0"});
    }
    command.insert(command.end(), m_extra_arguments.begin(), m_extra_arguments.end());
    const Fd no_input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    m_pid = spawn(std::move(command), no_input.get(), m_log);
    m_folder.take_along(m_pid);

    bool ended = false;
    const bool ready = eventually([&] {
        ended = wait_for(m_pid, WNOHANG) == m_pid;
        return ended || answers();
    });
    if (ended) {
        m_folder.take_nothing_along();
        m_pid = -1;
    }
    if (ended || !ready) {
        kill();
        throw std::runtime_error(program() + " does not answer; its log: " + log());
    }
}

/// Any reply will do, NOAUTH too, except the one that says that it still loads its data.
inline bool RedisServer::answers() const {
    try {
        return !RedisClient("unix://" + m_socket).try_command({"PING"}).text.starts_with("LOADING");
    } catch (const std::runtime_error&) {
        return false;
    }
}

} // namespace orizuru::test
