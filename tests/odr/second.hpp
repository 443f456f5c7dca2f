// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The library as the second translation unit sees it.

#include "every_header.hpp"

#include <string>

namespace second {

/// Does something with the classes that others are made of.
std::string use_all();
orizuru::Endpoint endpoint();
orizuru::Script script();
/// Throws a ReplyError.
[[noreturn]] void refuse();

} // namespace second
