// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How long the texts of a job's envelope (job.hpp) may be, in bytes.

#include <cstddef>

namespace orizuru::detail {

inline constexpr std::size_t longest_job_id = 512;
inline constexpr std::size_t longest_last_error = 10'000;

} // namespace orizuru::detail
