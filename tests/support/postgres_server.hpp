// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A PostgreSQL cluster of the test's own, in a temporary folder, on a Unix socket. It can be
// killed, restarted and paused, and TempDir's watcher ends it with the test process. PostgreSQL
// does not run as root, so it runs as `nobody` when the test runs as root.
//
// It runs without fsync: the kernel still has the writes of a killed server.

#pragma once

#include "support/eventually.hpp"
#include "support/posix.hpp"

#include <pqxx/pqxx>

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

class PostgresServer {
  public:
    /// Makes the cluster, starts the server and waits until it answers. Each argument is a setting,
    /// `fsync=on`.
    explicit PostgresServer(std::vector<std::string> settings = {});
    PostgresServer(const PostgresServer&) = delete;
    PostgresServer& operator=(const PostgresServer&) = delete;
    ~PostgresServer() { kill(); }

    /// The address of the database `postgres`, for the superuser.
    [[nodiscard]] std::string conninfo() const {
        return "host=" + m_folder.path() + " dbname=postgres user=orizuru";
    }
    [[nodiscard]] std::string socket_path() const { return m_folder.path() + "/.s.PGSQL.5432"; }
    [[nodiscard]] pid_t pid() const noexcept { return m_pid; }

    /// Sends SIGKILL to the postmaster. Returns when its children have ended, or after 10 s: until
    /// then a session still answers. Does nothing when it does not run.
    void kill() noexcept;
    /// Sends SIGINT: the server ends all sessions and writes what was committed.
    void stop() noexcept { end(SIGINT); }
    /// Kills the server when it runs, and starts it again over the same data.
    void restart() {
        kill();
        start();
    }
    /// Makes it a standby, and then a server of its own again, on another timeline.
    void promote();
    void pause() { ::kill(m_pid, SIGSTOP); }
    void resume() { ::kill(m_pid, SIGCONT); }

  private:
    [[nodiscard]] static std::vector<std::string> as_user(std::vector<std::string> command);
    void make_cluster();
    void start();
    [[nodiscard]] bool answers() const;
    [[nodiscard]] std::vector<pid_t> children() const;
    [[nodiscard]] static bool runs(pid_t process);
    void end(int number) noexcept { end_process(m_pid, number, m_folder); }
    [[nodiscard]] std::string log() const { return contents_of(m_log); }

    TempDir m_folder;
    std::string m_data = m_folder.path() + "/data";
    std::string m_log = m_folder.path() + "/postgres.log";
    std::vector<std::string> m_settings;
    pid_t m_pid = -1;
};

inline PostgresServer::PostgresServer(std::vector<std::string> settings)
    : m_settings(std::move(settings)) {
    make_cluster();
    start();
}

inline void PostgresServer::kill() noexcept {
    const std::vector<pid_t> left = children();
    end(SIGKILL);
    static_cast<void>(
        eventually([&] { return std::ranges::none_of(left, runs); }, std::chrono::seconds(10)));
}

inline std::vector<pid_t> PostgresServer::children() const {
    std::vector<pid_t> found;
    const std::string process = std::to_string(m_pid);
    std::ifstream list("/proc/" + process + "/task/" + process + "/children");
    for (pid_t child = 0; list >> child;) {
        found.push_back(child);
    }
    return found;
}

/// One that has ended may wait for ever for its new parent to hear of it.
inline bool PostgresServer::runs(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(") ");
    return name_end != std::string::npos && line.at(name_end + 2) != 'Z';
}

inline std::vector<std::string> PostgresServer::as_user(std::vector<std::string> command) {
    if (::geteuid() != 0) {
        return command;
    }
    // Replaces itself by the command, which keeps the pid.
    std::vector<std::string> whole{"setpriv", "--reuid=nobody", "--regid=nogroup",
                                   "--clear-groups"};
    whole.insert(whole.end(), command.begin(), command.end());
    return whole;
}

inline void PostgresServer::make_cluster() {
    if (const passwd* nobody = ::getpwnam("nobody"); ::geteuid() == 0 && nobody != nullptr) {
        if (::chown(m_folder.path().c_str(), nobody->pw_uid, nobody->pw_gid) != 0) {
            throw_errno("chown " + m_folder.path());
        }
    }
    const Fd no_input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    const pid_t initdb =
        spawn(as_user({POSTGRES_BIN "/initdb", "-D", m_data, "-U", "orizuru", "--auth=trust",
                       "--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C"}),
              no_input.get(), m_log);
    int status = 0;
    wait_for(initdb, 0, &status);
    if (status != 0) {
        throw std::runtime_error("initdb failed: " + log());
    }
}

inline void PostgresServer::start() {
    std::vector<std::string> command{
        POSTGRES_BIN "/postgres", "-D", m_data,      "-k", m_folder.path(),       "-c",
        "listen_addresses=",      "-c", "fsync=off", "-c", "max_connections=200", "-c",
        "log_min_messages=fatal"};
    for (const std::string& setting : m_settings) {
        command.insert(command.end(), {"-c", setting});
    }
    // After SIGKILL, the new postmaster is refused until the last child of the killed one has
    // ended.
    const bool ready = eventually(
        [&] {
            if (m_pid <= 0) {
                const Fd no_input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
                m_pid = spawn(as_user(command), no_input.get(), m_log);
                m_folder.take_along(m_pid);
            }
            if (answers()) {
                return true;
            }
            if (wait_for(m_pid, WNOHANG) == m_pid) {
                m_folder.take_nothing_along();
                m_pid = -1;
            }
            return false;
        },
        std::chrono::seconds(30));
    if (!ready) {
        kill();
        throw std::runtime_error("PostgreSQL does not answer; its log: " + log());
    }
}

inline void PostgresServer::promote() {
    stop();
    std::ofstream(m_data + "/standby.signal");
    start();
    if (!pqxx::nontransaction(*std::make_unique<pqxx::connection>(conninfo()))
             .exec("SELECT pg_promote()")[0][0]
             .as<bool>()) {
        throw std::runtime_error("it was not promoted: " + log());
    }
}

inline bool PostgresServer::answers() const {
    try {
        const pqxx::connection connection(conninfo());
        return true;
    } catch (const pqxx::failure&) {
        return false;
    }
}

} // namespace orizuru::test
