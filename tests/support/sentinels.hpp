// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Three redis-servers, of which one is the master and the others are its replicas, and three
// sentinels that watch them, all on free ports of 127.0.0.1.

#pragma once

#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

/// A process of `redis-server --sentinel`.
class Sentinel {
  public:
    Sentinel() = default;
    Sentinel(const Sentinel&) = delete;
    Sentinel& operator=(const Sentinel&) = delete;
    ~Sentinel() { kill(); }

    /// `lines` of its configuration come last. With Listen::tls they name the files of TLS, which
    /// it then speaks with all.
    void start(const std::string& lines, RedisServer::Listen listen = RedisServer::Listen::tcp) {
        std::ofstream(m_folder.path() + "/sentinel.conf")
            << (listen == RedisServer::Listen::tls ? "port 0\ntls-replication yes\ntls-port "
                                                   : "port ")
            << m_port << "\nbind 127.0.0.1\nsave \"\"\ndir " << m_folder.path() << '\n'
            << "unixsocket " << m_folder.path() << "/s\nlogfile " << m_folder.path() << "/log\n"
            << lines;
        const Fd no_input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
        m_pid = spawn({RedisServer::program(), m_folder.path() + "/sentinel.conf", "--sentinel"},
                      no_input.get(), m_folder.path() + "/out");
        m_folder.take_along(m_pid);
    }
    void kill() noexcept { end_process(m_pid, SIGKILL, m_folder); }
    void pause() const { ::kill(m_pid, SIGSTOP); }

    [[nodiscard]] bool runs() const noexcept { return m_pid > 0; }
    /// How often it has seen the master replaced.
    [[nodiscard]] std::uint64_t switches() const {
        const std::string log = contents_of(m_folder.path() + "/log");
        std::uint64_t count = 0;
        for (auto at = log.find("+switch-master"); at != std::string::npos;
             at = log.find("+switch-master", at + 1)) {
            ++count;
        }
        return count;
    }
    [[nodiscard]] std::uint16_t port() const noexcept { return m_port; }
    /// Of a plain client.
    [[nodiscard]] std::string uri() const { return "unix://" + m_folder.path() + "/s"; }

  private:
    TempDir m_folder;
    std::uint16_t m_port = port_of(listen_tcp());
    pid_t m_pid = -1;
};

class Sentinels {
  public:
    /// `of_servers`: more arguments of each redis-server; `of_sentinels`: more lines of each
    /// sentinel's configuration. The passwords are those that these set. With Listen::tls all speak
    /// TLS only; both then name the files.
    explicit Sentinels(const std::vector<std::string>& of_servers = {},
                       std::string of_sentinels = {}, std::string password = {},
                       std::string sentinel_password = {},
                       RedisServer::Listen listen = RedisServer::Listen::tcp)
        : m_listen(listen),
          m_of_sentinels(std::move(of_sentinels)),
          m_password(std::move(password)),
          m_sentinel_password(std::move(sentinel_password)) {
        for (std::size_t i = 0; i < 3; ++i) {
            std::vector<std::string> arguments{"--repl-diskless-sync-delay", "0",
                                               "--repl-ping-replica-period", "1"};
            if (i > 0) {
                arguments.insert(
                    arguments.end(),
                    {"--replicaof", "127.0.0.1 " + std::to_string(m_servers[0].port())});
            }
            if (listen == RedisServer::Listen::tls) {
                arguments.insert(arguments.end(), {"--tls-replication", "yes"});
            }
            arguments.insert(arguments.end(), of_servers.begin(), of_servers.end());
            m_servers.emplace_back(arguments, listen);
        }
        for (std::size_t i = 0; i < 3; ++i) {
            m_sentinels.emplace_back().start(lines(m_servers[0].port(), 2), listen);
        }
        await_ready();
    }

    [[nodiscard]] static const char* service() noexcept { return "main"; }
    [[nodiscard]] Sentinel& sentinel(std::size_t number) { return m_sentinels.at(number); }
    /// `redis+sentinel://` or `rediss+sentinel://`, with the sentinels in this order.
    [[nodiscard]] std::string uri(const std::vector<std::size_t>& order = {0, 1, 2}) const {
        std::string nodes;
        for (const std::size_t number : order) {
            nodes += (nodes.empty() ? "127.0.0.1:" : ",127.0.0.1:") +
                     std::to_string(m_sentinels.at(number).port());
        }
        return (m_listen == RedisServer::Listen::tls ? "rediss+sentinel://" : "redis+sentinel://") +
               nodes + '/' + service();
    }
    /// Of a sentinel that watches a service on its own.
    [[nodiscard]] std::string lines(std::uint16_t master, int quorum) const {
        const std::string name = service();
        return "sentinel monitor " + name + " 127.0.0.1 " + std::to_string(master) + ' ' +
               std::to_string(quorum) + "\nsentinel down-after-milliseconds " + name +
               " 1000\nsentinel failover-timeout " + name + " 1000\n" + m_of_sentinels;
    }

    /// The one that most sentinels name, which also takes itself for one; null if there is none.
    [[nodiscard]] RedisServer* master();
    /// Waits until there is another master than `old`, and the sentinels see its replicas.
    RedisServer& await_master(const RedisServer* old = nullptr);
    /// Waits until all servers and sentinels know of each other.
    void await_ready();
    /// How often they have replaced the master so far. A machine that stalls makes them do it
    /// unasked.
    [[nodiscard]] std::uint64_t switches() const {
        std::uint64_t most = 0;
        for (const Sentinel& sentinel : m_sentinels) {
            most = std::max(most, sentinel.switches());
        }
        return most;
    }
    /// Has the sentinels replace a master that is well, and waits until they have. What a machine
    /// that stalls makes them abandon is asked for again.
    void fail_over() {
        constexpr std::chrono::seconds longer_than_a_failover(3);
        const std::uint64_t before = switches();
        const bool came = eventually([&] {
            ask_for_failover();
            return eventually([&] { return switches() > before; }, longer_than_a_failover);
        });
        if (!came) {
            throw std::runtime_error("no failover comes");
        }
    }

  private:
    void ask_for_failover() {
        for (Sentinel& sentinel : m_sentinels) {
            if (sentinel.runs() &&
                client_of(sentinel).try_command({"SENTINEL", "FAILOVER", service()}).text == "OK") {
                return;
            }
        }
        // One is under way, or no replica is fit at the moment.
    }
    static RedisClient client(const std::string& uri, const std::string& password) {
        RedisClient redis(uri);
        if (!password.empty()) {
            redis.command({"AUTH", password});
        }
        return redis;
    }
    [[nodiscard]] RedisClient client_of(const RedisServer& server) const {
        return client(server.plain_uri(), m_password);
    }
    [[nodiscard]] RedisClient client_of(const Sentinel& sentinel) const {
        return client(sentinel.uri(), m_sentinel_password);
    }

    RedisServer::Listen m_listen;
    std::string m_of_sentinels;
    std::string m_password;
    std::string m_sentinel_password;
    std::deque<RedisServer> m_servers;
    std::deque<Sentinel> m_sentinels;
};

inline RedisServer* Sentinels::master() {
    for (RedisServer& server : m_servers) {
        std::size_t votes = 0;
        for (Sentinel& sentinel : m_sentinels) {
            try {
                const Answer named = client_of(sentinel).try_command(
                    {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", service()});
                votes += named.elements.size() == 2 &&
                                 named.elements[1].text == std::to_string(server.port())
                             ? 1U
                             : 0U;
            } catch (const std::runtime_error&) { // NOLINT(bugprone-empty-catch)
                // It does not run.
            }
        }
        try {
            if (votes >= 2 && client_of(server).command({"ROLE"}).elements.at(0).text == "master") {
                return &server;
            }
        } catch (const std::runtime_error&) { // NOLINT(bugprone-empty-catch)
        }
    }
    return nullptr;
}

inline RedisServer& Sentinels::await_master(const RedisServer* old) {
    RedisServer* found = nullptr;
    const bool came = eventually([&] {
        found = master();
        return found != nullptr && found != old;
    });
    if (!came) {
        throw std::runtime_error("no master comes");
    }
    return *found;
}

inline void Sentinels::await_ready() {
    const bool ready = eventually([&] {
        RedisServer* const found = master();
        if (found == nullptr) {
            return false;
        }
        for (Sentinel& sentinel : m_sentinels) {
            try {
                const Answer told =
                    client_of(sentinel).try_command({"SENTINEL", "MASTER", service()});
                if (told.field("num-slaves") != "2" || told.field("num-other-sentinels") != "2" ||
                    told.field("flags") != "master") {
                    return false;
                }
            } catch (const std::runtime_error&) {
                return false;
            }
        }
        const std::string replication = client_of(*found).command({"INFO", "replication"}).text;
        return replication.find("slave1:") != std::string::npos &&
               replication.find("state=wait") == std::string::npos &&
               replication.find("state=send") == std::string::npos;
    });
    if (!ready) {
        throw std::runtime_error("the sentinels do not come to know all");
    }
}

} // namespace orizuru::test
