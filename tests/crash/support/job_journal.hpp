// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The journal of a storm's jobs, as journal.hpp is that of messages.

#pragma once

#include "crash/support/journal.hpp"

#include <orizuru/detail/redis/scripts/sha1.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace orizuru::test {

enum class JobStep : std::uint8_t {
    pushing,    ///< about to push
    pushed,     ///< confirmed
    not_pushed, ///< certainly not
    started,    ///< a handler has it
    failing,    ///< the handler is about to throw
    stopping,   ///< the same, because its worker stops: no attempt is used up
    done,       ///< the handler has finished it
    in_time,    ///< its time limit was not over behind the handler
    acked       ///< by the handler itself, and confirmed
};

[[nodiscard]] inline std::string_view name_of(JobStep step) {
    static constexpr std::array<std::string_view, 9> names{"pushing", "pushed",  "not pushed",
                                                           "started", "failing", "stopping",
                                                           "done",    "in time", "acked"};
    return names.at(static_cast<std::size_t>(step));
}

/// Redis runs on this machine, so this is its clock, too.
[[nodiscard]] inline std::int64_t wall_clock() {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())
        .time_since_epoch()
        .count();
}

/// What wall_clock() says at that time, to go by now.
[[nodiscard]] inline std::int64_t wall_clock_at(std::chrono::steady_clock::time_point time) {
    const auto left = time - std::chrono::steady_clock::now();
    return wall_clock() + std::chrono::floor<std::chrono::milliseconds>(left).count();
}

/// The first 16 hexadecimal digits, as a number: enough to distinguish the storm's messages.
[[nodiscard]] inline std::uint64_t body_number(std::string_view sha1) {
    std::uint64_t number = 0;
    std::from_chars(sha1.data(), sha1.data() + 16, number, 16);
    return number;
}
[[nodiscard]] inline std::uint64_t body_of(std::string_view payload) {
    const detail::Sha1Hex sha1 = detail::sha1_hex(payload);
    return body_number(sha1);
}

struct alignas(64) JobRecord {
    std::uint64_t job = 0;
    JobStep step = JobStep::pushing;
    bool held = false;      ///< of started: no other worker had it at that time
    bool defers = false;    ///< its worker acks some time after it has ended
    bool misplaced = false; ///< of started: at another kind's handler, or beside too many
    int attempt = 0;
    std::uint64_t body = 0;   ///< of the message's bytes
    std::uint64_t unique = 0; ///< of pushing: the id under which it is pushed once; 0: none
    std::uint64_t serial = 0; ///< of the process
    /// Of pushing and failing: before this it must not come (again). Of started: when it came. Of
    /// stopping and done, where there is a time limit: before this it must not come again if the
    /// run was too late for its worker, which `in_time` rules out. In milliseconds.
    std::int64_t clock = 0;
    std::int64_t time = monotonic_time();
};

using JobJournal = JournalOf<JobRecord>;

/// The kinds of jobs: some have none, some a policy that decides by the exception, and some fail
/// by running until their time is over.
[[nodiscard]] inline std::string kind_of_job(std::uint64_t job) {
    return job % 3 == 0 ? "" : job % 3 == 1 ? "decided" : "limited";
}

/// The work of a job: it fails this many attempts, and takes this long.
struct JobPlan {
    int failures = 0;
    int milliseconds = 0;

    [[nodiscard]] std::string text() const {
        return std::to_string(failures) + ' ' + std::to_string(milliseconds);
    }
    static JobPlan from(const std::string& text) {
        return {std::stoi(text), std::stoi(text.substr(text.find(' ')))};
    }
};

} // namespace orizuru::test
