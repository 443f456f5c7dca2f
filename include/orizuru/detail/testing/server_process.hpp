// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A server that a test has started, and the folder of its files. A shell beside it ends both if the
// test's process ends without.

#include <orizuru/detail/base/standard_descriptors.hpp>
#include <orizuru/detail/base/system.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

extern "C" char** environ; // NOLINT(readability-redundant-declaration)

namespace orizuru::detail {

/// Starts a program, found by PATH, with these files as its standard streams; its signals are as
/// usual. Throws std::system_error that names the program.
[[nodiscard]] inline pid_t spawn(std::vector<std::string> command, int input,
                                 const std::string& output) {
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (std::string& word : command) {
        words.push_back(word.data());
    }
    words.push_back(nullptr);

    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t none{};
    sigset_t all{};
    sigemptyset(&none);
    sigfillset(&all);
    // A group of its own: Ctrl-C at the test's terminal is not for it.
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    pid_t pid = -1;
    const int error =
        ::posix_spawnp(&pid, words.front(), &files, &attributes, words.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
        throw std::system_error(error, std::generic_category(),
                                command.front() + " cannot be started");
    }
    return pid;
}

inline void await_end(pid_t pid) noexcept {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

/// The last 2,000 bytes of a file.
[[nodiscard]] inline std::string end_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    constexpr std::size_t most = 2000;
    return text.substr(text.size() - std::min(text.size(), most));
}

/// A folder that is removed with all that is in it.
class TemporaryFolder {
  public:
    TemporaryFolder()
        : m_path((std::filesystem::temp_directory_path() / "orizuru-XXXXXX").string()) {
        if (::mkdtemp(m_path.data()) == nullptr) {
            throw_errno("mkdtemp");
        }
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(m_path, ignored);
    }

    [[nodiscard]] const std::string& path() const noexcept { return m_path; }

  private:
    std::string m_path;
};

/// A pipe for a child's standard input, which no other program inherits.
class ChildInput {
  public:
    ChildInput() {
        std::array<int, 2> ends{};
        take_standard_descriptors();
        if (::pipe(ends.data()) != 0) {
            throw_errno("pipe");
        }
        m_reads = ends[0];
        m_writes = ends[1];
        ::fcntl(m_reads, F_SETFD, FD_CLOEXEC);
        ::fcntl(m_writes, F_SETFD, FD_CLOEXEC);
    }
    ChildInput(const ChildInput&) = delete;
    ChildInput& operator=(const ChildInput&) = delete;
    ~ChildInput() {
        ::close(m_reads);
        ::close(m_writes);
    }

    /// This process keeps it open, so that writing never raises SIGPIPE.
    [[nodiscard]] int reads() const noexcept { return m_reads; }
    void write_line() const noexcept {
        [[maybe_unused]] const auto written = ::write(m_writes, "\n", 1);
    }

  private:
    int m_reads = -1;
    int m_writes = -1;
};

/// Killed with this object.
class ServerProcess {
  public:
    /// `output`, in the folder that goes with the server, is appended to.
    ServerProcess(std::vector<std::string> command, const std::string& output) {
        const std::string folder = std::filesystem::path(output).parent_path().string();
        // It reads a line, or the end of this process.
        m_pid = spawn(std::move(command), m_input.reads(), output);
        try {
            m_watcher = spawn({"/bin/sh", "-c", watch, "sh", std::to_string(m_pid), folder},
                              m_watched.reads(), "/dev/null");
        } catch (...) {
            end();
            throw;
        }
    }
    ServerProcess(const ServerProcess&) = delete;
    ServerProcess& operator=(const ServerProcess&) = delete;
    ~ServerProcess() { end(); }

    /// True once it has ended by itself.
    [[nodiscard]] bool ended() noexcept {
        if (m_pid > 0 && ::waitpid(m_pid, nullptr, WNOHANG) == m_pid) {
            m_pid = -1;
        }
        return m_pid <= 0;
    }

  private:
    static constexpr const char* watch = R"sh(read -r line || { kill -9 "$1"; rm -rf "$2"; })sh";

    void end() noexcept {
        // First, for the server's number may be another process' as soon as it has ended.
        if (m_watcher > 0) {
            m_watched.write_line();
            await_end(m_watcher);
        }
        if (m_pid > 0) {
            ::kill(m_pid, SIGKILL);
            await_end(m_pid);
        }
    }

    ChildInput m_input; ///< the server's: it reads nothing
    ChildInput m_watched;
    pid_t m_pid = -1;
    pid_t m_watcher = -1;
};

} // namespace orizuru::detail
