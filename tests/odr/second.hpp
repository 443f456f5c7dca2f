// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The library as the second translation unit sees it.

#include <orizuru/orizuru.hpp>

#include <string>

namespace second {

/// Does something with every public class, at least by its type.
std::string use_all();
orizuru::Endpoint endpoint();
orizuru::Script script();
/// Throws a ReplyError.
[[noreturn]] void refuse();

} // namespace second
