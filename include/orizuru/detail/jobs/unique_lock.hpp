// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The locks of unique jobs: their keys, their values, and the scripts that take, release and extend
// them.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/jobs/unique_options.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>
#include <orizuru/script.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace orizuru {

class Connection;

} // namespace orizuru

namespace orizuru::detail {

/// The lock's value: how it is released, a space, the job's id.
[[nodiscard]] std::string lock_of(UniqueRelease release, std::string_view job_id);

/// KEYS[1..4], ARGV[1..3] as schedule_source has them; KEYS[5] lock; ARGV[4] its value, [5] its ttl
/// in ms, 0 = none. Returns 1, or 0 when the lock is held.
[[nodiscard]] std::string_view push_unique_script();

/// Releases a lock. KEYS[1] lock; ARGV[1] its value.
[[nodiscard]] Script unlock_body();

/// Buries the message, too. KEYS[1] lock, [2] dead; ARGV[1] the lock's value, [2] reason.
[[nodiscard]] Script bury_unlocked_body();

/// KEYS[1] lock; ARGV[1] ttl in ms, [2..] values, of which the lock must have one. A lock that
/// never expires stays so. Returns 1, or 0 when the lock has none of the values.
[[nodiscard]] std::string_view extend_lock_script();

/// The key of a job's lock, seen from the queue in which the job is.
[[nodiscard]] std::string lock_key(const std::string& unique_queue, std::string_view unique_id,
                                   const Keys& here);

/// Fields that name a job's lock.
struct JobLock {
    std::string_view job_id;
    std::string_view unique_id; ///< empty: it has none
    const std::string& unique_queue;
};

/// Composes the ack of a job that may have a lock.
[[nodiscard]] Settlement acking_unique(const GuardCore& guard, const JobLock& lock);

/// Composes the burial of a job that gives up its lock, which it has.
[[nodiscard]] Settlement burying_unlocked(const GuardCore& guard, const JobLock& lock,
                                          std::string_view reason);

/// orizuru::ack_unique (unique.hpp) for a job of any type.
bool ack_unique(GuardCore& guard, const JobLock& lock);

/// orizuru::extend_unique (unique.hpp) on this connection. Throws as Connection::command.
bool extend_lock(Connection& connection, const Keys& here, const JobLock& lock,
                 std::chrono::milliseconds ttl);

/// True if a script has answered 1 and not 0; throws ProtocolError when it is neither.
[[nodiscard]] bool is_yes(const Reply& reply);

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/jobs/unique_lock.ipp>
#endif
