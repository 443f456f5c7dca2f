// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes lines to stderr without waiting: when nobody reads the pipe behind it, a thread that waits
// for room stops its work, too.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>

namespace orizuru::detail {

/// Thread-safe. It drops a line for which there is no room at once, and says how many it has
/// dropped before the next line that has room.
class LineWriter {
  public:
    constexpr explicit LineWriter(int fd) noexcept : m_fd(fd) {}
    LineWriter(const LineWriter&) = delete;
    LineWriter& operator=(const LineWriter&) = delete;
    ~LineWriter() = default;

    /// Waits at most 100 ms, for other threads. Up to 4 KiB go out in one piece.
    void write(std::string_view line) noexcept {
        const Lock lock = lock_briefly();
        if (!lock || !tell_dropped() || !put(line)) {
            ++m_dropped;
        }
    }

  private:
    using Lock = std::unique_lock<std::mutex>;

    // A pipe that poll() calls writable has room for this, in one piece.
    static constexpr std::size_t most_at_once = PIPE_BUF;

    /// Another writer of the descriptor may take the room that was found: no thread waits for one
    /// that waits.
    [[nodiscard]] Lock lock_briefly() noexcept {
        Lock lock(m_mutex, std::try_to_lock);
        const auto end = lock ? Clock::time_point() : Clock::now() + std::chrono::milliseconds(100);
        while (!lock && Clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            static_cast<void>(lock.try_lock());
        }
        return lock;
    }

    bool tell_dropped() noexcept {
        const std::uint64_t dropped = m_dropped;
        if (dropped == 0) {
            return true;
        }
        try {
            if (!put(joined({m_cut ? "\n" : "", "orizuru: ", std::to_string(dropped),
                             " lines were dropped: stderr had no room"}))) {
                return false;
            }
        } catch (const std::bad_alloc&) {
            return false;
        }
        m_dropped -= dropped;
        m_cut = false;
        return true;
    }

    bool put(std::string_view line) noexcept {
        bool ended = false;
        while (!ended) {
            const std::string_view piece = line.substr(0, most_at_once - 1);
            const bool last = piece.size() == line.size();
            const auto written = has_room() ? write_some(piece, last ? "\n" : "") : 0;
            if (written == 0) {
                return false;
            }
            m_cut = true;
            ended = written > piece.size();
            line.remove_prefix(std::min(written, piece.size()));
        }
        m_cut = false;
        return true;
    }

    /// False when nobody has the other end, too: a write would raise SIGPIPE.
    [[nodiscard]] bool has_room() const noexcept {
        pollfd asked{m_fd, POLLOUT, 0};
        return ::poll(&asked, 1, 0) == 1 && asked.revents == POLLOUT;
    }

    /// Returns how much went out; 0 when it failed.
    [[nodiscard]] std::size_t write_some(std::string_view piece, std::string_view end) noexcept {
        // writev does not change what it reads.
        std::array<iovec, 2> parts{iovec{const_cast<char*>(piece.data()), piece.size()},
                                   iovec{const_cast<char*>(end.data()), end.size()}};
        ssize_t written = 0;
        do {
            written = ::writev(m_fd, parts.data(), static_cast<int>(parts.size()));
        } while (written < 0 && errno == EINTR);
        return static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    }

    const int m_fd;
    std::atomic<std::uint64_t> m_dropped{0};
    std::mutex m_mutex; ///< guards what follows
    bool m_cut = false; ///< the last line lacks its end
};

/// Writes the time (UTC) and a line to stderr, which is descriptor 2 whatever std::cerr writes to.
inline void write_stderr_line(std::string_view line) noexcept {
    static constinit LineWriter writer(STDERR_FILENO);
    try {
        const auto now =
            std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
        writer.write(joined({utc_text(now), " ", line}));
    } catch (const std::bad_alloc&) {
        writer.write(line);
    }
}

} // namespace orizuru::detail
