// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where payloads come from.

#include <orizuru/detail/base/function_ref.hpp>

#include <string>

namespace orizuru::detail {

/// Appends the next payload to a string. It returns false, and what it has appended does not count,
/// when there is none left.
using PayloadSource = FunctionRef<bool(std::string&)>;

} // namespace orizuru::detail
