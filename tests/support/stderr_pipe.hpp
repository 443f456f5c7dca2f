// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A pipe in place of stderr.

#pragma once

#include "support/posix.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace orizuru::test {

/// A pipe that holds 8 KiB.
class ShortPipe {
  public:
    ShortPipe() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) {
            throw_errno("pipe2");
        }
        m_out = Fd(ends[0]);
        m_in = Fd(ends[1]);
        if (::fcntl(in(), F_SETPIPE_SZ, size) != size) {
            throw_errno("F_SETPIPE_SZ");
        }
    }

    [[nodiscard]] int in() const noexcept { return m_in.get(); }
    /// Leaves no room in an empty pipe.
    void fill() const {
        const std::string bytes(size, '.');
        if (::write(in(), bytes.data(), bytes.size()) != size) {
            throw_errno("write");
        }
    }
    /// Takes what is in it.
    [[nodiscard]] std::string drain() const {
        std::string text;
        std::array<char, 4096> buffer{};
        for (pollfd ready{m_out.get(), POLLIN, 0}; ::poll(&ready, 1, 0) == 1;) {
            const ssize_t size = ::read(m_out.get(), buffer.data(), buffer.size());
            if (size <= 0) {
                break;
            }
            text.append(buffer.data(), static_cast<std::size_t>(size));
        }
        return text;
    }
    /// The same of one line, without the time that must be in front of it.
    [[nodiscard]] std::string drain_line() const {
        constexpr std::string_view time = "2026-11-27T12:44:24.250Z ";
        const std::string line = drain();
        const auto fits = [&](std::size_t i) {
            return time[i] >= '0' && time[i] <= '9' ? line[i] >= '0' && line[i] <= '9'
                                                    : line[i] == time[i];
        };
        for (std::size_t i = 0; i < time.size(); ++i) {
            if (i == line.size() || !fits(i)) {
                return "no time: " + line;
            }
        }
        return line.substr(time.size());
    }
    void close_out() noexcept { m_out.reset(); }

  private:
    // poll() finds room in a pipe as long as one of its pages is unused.
    static constexpr int size = 2 * 4096;

    Fd m_out;
    Fd m_in;
};

/// Makes a pipe's end the stderr of the process, as long as it exists.
class StderrInto {
  public:
    explicit StderrInto(const ShortPipe& pipe) : m_before(::dup(STDERR_FILENO)) {
        if (!m_before || ::dup2(pipe.in(), STDERR_FILENO) < 0) {
            throw_errno("dup");
        }
    }
    StderrInto(const StderrInto&) = delete;
    StderrInto& operator=(const StderrInto&) = delete;
    ~StderrInto() { ::dup2(m_before.get(), STDERR_FILENO); }

  private:
    Fd m_before;
};

} // namespace orizuru::test
