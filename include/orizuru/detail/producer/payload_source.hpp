// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A source of payloads.

#include <orizuru/detail/base/function_ref.hpp>

#include <string>

namespace orizuru::detail {

/// Appends the next payload to a string. Returns false when none is left; anything that it has
/// appended then does not count.
using PayloadSource = FunctionRef<bool(std::string&)>;

} // namespace orizuru::detail
