// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Limits of the texts in a job's envelope (job.hpp): their length in bytes, and their number.

#include <cstddef>

namespace orizuru::detail {

inline constexpr std::size_t longest_job_id = 512;
inline constexpr std::size_t longest_last_error = 10'000;
inline constexpr std::size_t longest_kind = 100;
inline constexpr std::size_t longest_key = 512;
inline constexpr std::size_t most_attributes = 64;
inline constexpr std::size_t longest_attributes = std::size_t{16} << 10; ///< all together

} // namespace orizuru::detail
