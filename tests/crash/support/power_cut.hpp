// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A power cut at its worst, for a Redis with `appendfsync everysec`: the last writes to the
// append-only file are gone. Everything that was there when Redis started is on the disk.

#pragma once

#include "support/redis_server.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

namespace orizuru::test {

/// For a Redis that does not rewrite its file.
class PowerCut {
  public:
    explicit PowerCut(const RedisServer& server)
        : m_file(std::filesystem::path(server.socket_path()).parent_path() / "appendonlydir" /
                 "appendonly.aof.1.incr.aof"),
          m_watch([this](const std::stop_token& stop) { watch(stop); }) {}

    /// Call it while Redis does not run.
    void lose(std::chrono::milliseconds time) {
        const std::lock_guard lock(m_mutex);
        const auto until = Clock::now() - time;
        while (m_sizes.size() > 1 && m_sizes[1].first <= until) {
            m_sizes.pop_front();
        }
        if (!m_sizes.empty()) {
            std::filesystem::resize_file(m_file, m_sizes.front().second);
            m_sizes = {m_sizes.front()};
        }
    }

  private:
    using Clock = std::chrono::steady_clock;

    void watch(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            {
                const std::lock_guard lock(m_mutex);
                std::error_code missing;
                const std::uintmax_t size = std::filesystem::file_size(m_file, missing);
                if (!missing && (m_sizes.empty() || size != m_sizes.back().second)) {
                    m_sizes.emplace_back(Clock::now(), size);
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

    std::filesystem::path m_file;
    std::mutex m_mutex;
    std::deque<std::pair<Clock::time_point, std::uintmax_t>> m_sizes; ///< since when it has each
    std::jthread m_watch;
};

} // namespace orizuru::test
