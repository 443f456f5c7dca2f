// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Does the work of a Recurring, whatever the type of its messages.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/jobs/cron.hpp>
#include <orizuru/jobs/time_zone.hpp>
#include <orizuru/keys.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// A Recurrence that makes its message in bytes.
struct Recurrence {
    std::string name;
    Cron cron;
    std::function<std::string(std::chrono::sys_seconds)> payload; ///< may be empty until checked
    TimeZone zone;
    int catch_up;
};

/// One thread's at a time. Blocks and throws as Recurring says.
class Occurrences {
  public:
    struct Options {
        std::chrono::milliseconds poll;
        std::int64_t max_payload;
    };

    struct Step {
        std::uint64_t pushed;
        TimePoint next;
    };

    /// Checks all; before anything else, connect().
    Occurrences(std::string queue, std::vector<Recurrence> recurrences, const Options& options);

    void connect(std::shared_ptr<Connection> connection) { m_connection = std::move(connection); }
    Step step();
    void run(const std::stop_token& token);

    [[nodiscard]] const Keys& keys() const noexcept { return m_keys; }

  private:
    using Milliseconds = std::chrono::sys_time<std::chrono::milliseconds>;

    struct Look {
        Milliseconds now;
        std::vector<Milliseconds> last; ///< occurrences, in the order of the recurrences
    };
    /// An occurrence and the bytes of its message.
    using Made = std::pair<std::chrono::sys_seconds, std::string>;

    void validate(const Options& options) const;
    Look look();
    /// Stops at the first message that cannot be made; the reason goes to `error`, if that is
    /// empty.
    std::uint64_t push(const Recurrence& recurrence,
                       const std::vector<std::chrono::sys_seconds>& due, std::exception_ptr& error);
    std::uint64_t push(const std::string& name, const std::vector<Made>& occurrences);
    void begin_anew(const std::string& name, Milliseconds last);

    Keys m_keys;
    std::vector<Recurrence> m_recurrences;
    std::chrono::milliseconds m_poll;
    std::shared_ptr<Connection> m_connection;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/jobs/occurrences.ipp>
#endif
