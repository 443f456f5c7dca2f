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
    /// The same for a standby of a server that runs, which can be read.
    struct StandbyOf {
        const PostgresServer& primary;
    };
    explicit PostgresServer(StandbyOf of, std::vector<std::string> settings = {});
    PostgresServer(const PostgresServer&) = delete;
    PostgresServer& operator=(const PostgresServer&) = delete;
    ~PostgresServer() { kill(); }

    /// The address of the database `postgres`, for the superuser.
    [[nodiscard]] std::string conninfo() const {
        return "host=" + folder() + " dbname=postgres user=orizuru";
    }
    /// The host in a connection string.
    [[nodiscard]] const std::string& folder() const noexcept { return m_folder.path(); }
    [[nodiscard]] std::string socket_path() const { return m_folder.path() + "/.s.PGSQL.5432"; }
    [[nodiscard]] pid_t pid() const noexcept { return m_pid; }

    /// The first value of the answer to a statement, over a connection of its own.
    std::string ask(const std::string& statement) const;

    /// Sends SIGKILL to the postmaster. Returns when its children have ended, or after 10 s: until
    /// then a session still answers. Does nothing when it does not run.
    void kill() noexcept;
    /// The same for all processes at once, as when its machine dies: none does anything any more.
    void lose_machine() noexcept;
    /// Sends SIGINT: the server ends all sessions and writes what was committed.
    void stop() noexcept { end(SIGINT); }
    /// Kills the server when it runs, and starts it again over the same data.
    void restart() {
        kill();
        start();
    }
    /// Makes a standby a server of its own, on another timeline. Returns when it can be written to.
    void promote();
    /// The same for one that is no standby, by making it one first.
    void change_timeline();
    /// Changes a setting for the sessions that there are, too.
    void set(const std::string& setting, const std::string& value);
    void pause() { ::kill(m_pid, SIGSTOP); }
    void resume() { ::kill(m_pid, SIGCONT); }

  private:
    [[nodiscard]] static std::vector<std::string> as_user(std::vector<std::string> command);
    void own_folder();
    /// Runs one of PostgreSQL's programs to its end.
    void run_program(std::vector<std::string> command);
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
    own_folder();
    run_program({"initdb", "-D", m_data, "-U", "orizuru", "--auth=trust", "--no-sync",
                 "--no-instructions", "--encoding=UTF8", "--locale=C"});
    start();
}

inline PostgresServer::PostgresServer(StandbyOf of, std::vector<std::string> settings)
    : m_settings(std::move(settings)) {
    own_folder();
    run_program({"pg_basebackup", "-D", m_data, "-h", of.primary.folder(), "-U", "orizuru",
                 "--checkpoint=fast", "--wal-method=stream", "--no-sync", "--write-recovery-conf"});
    start();
}

inline void PostgresServer::kill() noexcept {
    const std::vector<pid_t> left = children();
    end(SIGKILL);
    static_cast<void>(
        eventually([&] { return std::ranges::none_of(left, runs); }, std::chrono::seconds(10)));
}

inline void PostgresServer::lose_machine() noexcept {
    pause(); // makes no more children, which would notice if it were dead
    const std::vector<pid_t> left = children();
    for (const int number : {SIGSTOP, SIGKILL}) {
        for (const pid_t child : left) {
            ::kill(child, number);
        }
    }
    kill();
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

inline void PostgresServer::own_folder() {
    if (const passwd* nobody = ::getpwnam("nobody"); ::geteuid() == 0 && nobody != nullptr) {
        if (::chown(m_folder.path().c_str(), nobody->pw_uid, nobody->pw_gid) != 0) {
            throw_errno("chown " + m_folder.path());
        }
    }
}

inline void PostgresServer::run_program(std::vector<std::string> command) {
    const std::string name = command.front();
    command.front() = POSTGRES_BIN "/" + name;
    const Fd no_input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    const pid_t program = spawn(as_user(std::move(command)), no_input.get(), m_log);
    int status = 0;
    wait_for(program, 0, &status);
    if (status != 0) {
        throw std::runtime_error(name + " failed: " + log());
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
    if (ask("SELECT pg_promote()") != "t") {
        throw std::runtime_error("it was not promoted: " + log());
    }
}

inline void PostgresServer::change_timeline() {
    stop();
    std::ofstream(m_data + "/standby.signal");
    start();
    promote();
}

inline void PostgresServer::set(const std::string& setting, const std::string& value) {
    ask("ALTER SYSTEM SET " + setting + " = '" + value + "'");
    ask("SELECT pg_reload_conf()");
    if (!eventually([&] { return ask("SHOW " + setting) == value; })) {
        throw std::runtime_error(setting + " was not set: " + log());
    }
}

inline std::string PostgresServer::ask(const std::string& statement) const {
    pqxx::connection connection(conninfo());
    const pqxx::result answer = pqxx::nontransaction(connection).exec(statement);
    return answer.empty() ? std::string() : answer[0][0].as<std::string>();
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
