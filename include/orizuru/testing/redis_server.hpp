// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A redis-server of a test's own: on a Unix socket in a folder of its own, which both end with it.

#include <orizuru/connection.hpp>
#include <orizuru/detail/testing/server_process.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::testing {

/// Options of a RedisServer.
struct RedisServerOptions {
    /// The program, by its path or for PATH to find: redis-server or valkey-server, say.
    std::string program = "redis-server";
    /// Further arguments, such as {"--appendonly", "yes", "--appendfsync", "always"}, with which
    /// restart() keeps the data. By default nothing is written to disk.
    std::vector<std::string> arguments = {};
};

/// Listens on no port, so that tests may run side by side. Ends with this object, and with its
/// process, however that ends.
///
/// For one thread at a time.
class RedisServer {
  public:
    /// Starts it and waits until it answers, for 20 s at most. Throws std::system_error when the
    /// program is not there, and std::runtime_error with the last lines that it wrote when it ends
    /// or does not answer.
    explicit RedisServer(RedisServerOptions options = {})
        : m_options(std::move(options)),
          m_folder(std::make_unique<detail::TemporaryFolder>()),
          m_socket(m_folder->path() + "/redis.sock") {
        start();
    }
    RedisServer(const RedisServer&) = delete;
    RedisServer& operator=(const RedisServer&) = delete;
    ~RedisServer() = default;

    /// Its address: `unix:///tmp/.../redis.sock`.
    [[nodiscard]] std::string uri() const { return "unix://" + m_socket; }
    /// Does the same for all that takes an Endpoint.
    [[nodiscard]] Endpoint endpoint() const { return {uri()}; }

    /// Ends it at once, as a crash of its host would; does nothing when it does not run.
    void kill() noexcept { m_process.reset(); }
    /// Starts it again at the same address; kills it before if it runs. Without persistence it is
    /// empty then. Throws as the constructor.
    void restart() {
        kill();
        start();
    }

  private:
    static constexpr std::chrono::seconds patience{20};

    void start() {
        std::vector<std::string> command{
            m_options.program, "--port", "0", "--unixsocket", m_socket, "--dir",
            m_folder->path(),  "--save", "",  "--appendonly", "no"};
        command.insert(command.end(), m_options.arguments.begin(), m_options.arguments.end());
        const std::string log = m_folder->path() + "/log";
        auto process = std::make_unique<detail::ServerProcess>(std::move(command), log);
        const auto deadline = std::chrono::steady_clock::now() + patience;
        while (!answers()) {
            if (process->ended() || std::chrono::steady_clock::now() > deadline) {
                throw std::runtime_error(m_options.program +
                                         " does not answer; it wrote: " + detail::end_of_file(log));
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        m_process = std::move(process);
    }
    [[nodiscard]] bool answers() const {
        try {
            Connection(endpoint()).command("", "PING");
            return true;
        } catch (const Error&) {
            return false; // not yet, or it still loads
        }
    }

    RedisServerOptions m_options;
    std::unique_ptr<detail::TemporaryFolder> m_folder;
    std::string m_socket;
    std::unique_ptr<detail::ServerProcess> m_process;
};

} // namespace orizuru::testing
