// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A process of a storm, as its parent uses it: started, killed, paused, started again. It is the
// same program with other arguments, so it begins without its parent's threads and locks.

#pragma once

#include "crash/support/late_times.hpp"
#include "crash/support/work.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace orizuru::test {

/// The main function of a program whose processes are itself: `do_work` returns the exit status of
/// a child.
template <class DoWork, class Parent>
int main_of_processes(int count, char** arguments, DoWork do_work, Parent parent) {
    return run_fault_program([&] {
        if (count > 1 && arguments[1] == Work::command) {
            const Work work = Work::from(arguments);
            const LateTimes late_times(work.late_times(), work.serial);
            return do_work(work);
        }
        return parent();
    });
}

/// For one thread.
class Process {
  public:
    /// Appends the output of the process to `log`; it writes only when something is wrong.
    Process(Work work, std::string log) : m_work(std::move(work)), m_log(std::move(log)) {}
    Process(Process&& other) noexcept
        : m_work(std::move(other.m_work)),
          m_log(std::move(other.m_log)),
          m_pid(std::exchange(other.m_pid, -1)) {}
    Process& operator=(Process&&) = delete;
    ~Process() { kill(); }

    [[nodiscard]] const Work& work() const noexcept { return m_work; }
    [[nodiscard]] pid_t pid() const noexcept { return m_pid; }
    [[nodiscard]] bool lives() const noexcept { return m_pid > 0; }

    void start(std::uint64_t serial, std::uint64_t seed, std::string uri,
               std::string program = {}) {
        m_work.program = std::move(program);
        m_work.serial = serial;
        m_work.seed = seed;
        m_work.uri = std::move(uri);
        const Fd no_input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
        m_pid = spawn(m_work.words(), no_input.get(), m_log);
    }
    /// Returns its last words when it had ended by itself before that, with an error.
    std::optional<std::string> kill() {
        if (!lives()) {
            return std::nullopt;
        }
        ::kill(m_pid, SIGKILL);
        return wait(0);
    }
    void ask_to_end() const noexcept { ::kill(m_pid, SIGTERM); }
    void pause() const noexcept { ::kill(m_pid, SIGSTOP); }
    void resume() const noexcept { ::kill(m_pid, SIGCONT); }

    /// What each of its threads does, for a message: its state and the system call that it is in.
    [[nodiscard]] std::string threads() const {
        std::ostringstream text;
        const std::string folder = "/proc/" + std::to_string(m_pid) + "/task";
        for (const auto& thread : std::filesystem::directory_iterator(folder)) {
            std::string state;
            std::string call;
            std::ifstream status(thread.path() / "status");
            while (std::getline(status, state) && !state.starts_with("State")) {
            }
            std::ifstream(thread.path() / "syscall") >> call;
            text << ' ' << state << ", call " << call << ';';
        }
        return text.str();
    }

    /// Returns its last words when it has ended by itself, with an error.
    [[nodiscard]] std::optional<std::string> end() {
        return lives() ? wait(WNOHANG) : std::nullopt;
    }

  private:
    std::optional<std::string> wait(int options) {
        int status = 0;
        if (wait_for(m_pid, options, &status) == 0) {
            return std::nullopt;
        }
        m_pid = -1;
        const bool killed = WIFSIGNALED(status);
        const int number = killed ? WTERMSIG(status) : WEXITSTATUS(status);
        if (number == (killed ? SIGKILL : EXIT_SUCCESS)) {
            return std::nullopt;
        }
        std::ostringstream text;
        text << m_work.role << ' ' << m_work.index << " has ended by itself, "
             << (killed ? "by signal " : "with status ") << number << ": "
             << std::ifstream(m_log).rdbuf();
        return text.str();
    }

    Work m_work;
    std::string m_log;
    pid_t m_pid = -1;
};

} // namespace orizuru::test
