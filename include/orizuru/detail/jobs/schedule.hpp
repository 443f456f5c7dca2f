// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Puts a message into a queue's scheduled set: by a producer's script, or in the step that settles
// it.
//
// An element is 8 bytes of a number, then the message: so equal messages stay two, and those of one
// due time keep their order. The number alone would not do: an emptied Redis begins anew.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/script.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

/// For a settlement: `payload` is the message that is settled. With KEYS[5], which is
/// Keys::recoveries(), the same step notes that ARGV[5] recoveries of the job whose field is
/// ARGV[4] count as attempts now: the replacement has them in its number.
[[nodiscard]] Script schedule_body();
/// For a producer: refused when Redis' memory is full.
[[nodiscard]] std::string_view schedule_script();

/// ARGV[1] and [2]: a moment, or a time from now, by Redis' clock. Both throw std::invalid_argument
/// for a time beyond the year 9999.
[[nodiscard]] std::vector<std::string> due_at(JobTime time);
[[nodiscard]] std::vector<std::string> due_after(std::chrono::milliseconds delay);

/// KEYS, for the source of this queue.
[[nodiscard]] std::vector<std::string> schedule_keys(const Keys& keys);

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/jobs/schedule.ipp>
#endif
