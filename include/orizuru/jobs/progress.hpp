// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job's progress and its result, for any process that asks: Redis keeps them beside the queue for
// a time, under the job's id. Nothing of the queue depends on them.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

/// The progress that a job has written last.
struct JobProgress {
    double fraction = 0; ///< 0 to 1
    std::string note;    ///< text for people; empty if the job gave none
    std::chrono::sys_time<std::chrono::milliseconds> when{}; ///< by Redis' clock
};

/// Writes and reads the progress and the results of a queue's jobs: one connection, used by one
/// thread at a time.
///
/// Each call is one command or script, blocks at most command_timeout, and throws ConnectionError,
/// ReplyError (it names the key) and ProtocolError; std::invalid_argument before anything is sent
/// for a job's id that has not 1 to 512 bytes or a ttl that is not 1 ms to 100 years. When Redis'
/// memory is full, writing is refused as OOM and what was there stays.
class Progress {
  public:
    /// The most bytes of a note.
    static constexpr std::size_t longest_note = 1'000;
    /// The most bytes of a result: 16 MiB.
    static constexpr std::size_t largest_result = std::size_t{16} << 20;

    /// Connects. Throws as Producer's constructor does.
    Progress(Endpoint endpoint, std::string queue);
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    /// Takes over the connection; a call on the other one then throws std::logic_error.
    Progress(Progress&&) noexcept = default;
    /// Does the same, and gives up its own connection.
    Progress& operator=(Progress&&) noexcept = default;
    ~Progress() = default;

    /// Writes a job's progress in place of the one before.
    /// Redis: HSET and PEXPIRE in one script, O(1).
    /// Throws std::invalid_argument besides for a fraction that is not 0 to 1, or a note of more
    /// than `longest_note` bytes.
    void set(std::string_view job_id, double fraction, std::string_view note = {},
             std::chrono::milliseconds ttl = std::chrono::hours(24));

    /// Returns the last progress; none when the job has written none, or its ttl has passed. Redis:
    /// HMGET, O(1).
    std::optional<JobProgress> get(std::string_view job_id);

    /// Keeps a job's result: any bytes, at most `largest_result`.
    /// Redis: SET in a script, O(1).
    void set_result(std::string_view job_id, std::string_view bytes,
                    std::chrono::milliseconds ttl = std::chrono::hours(24));

    /// Returns a job's result; none when there is none, or its ttl has passed. Redis: GET, O(1).
    std::optional<std::string> result(std::string_view job_id);

  private:
    Keys m_keys;
    detail::Owned<std::shared_ptr<Connection>, "progress"> m_connection;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/jobs/progress.ipp>
#endif
