// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The version of the tables that this library needs.

namespace orizuru::detail {

inline constexpr int schema_needed = 15;

} // namespace orizuru::detail
