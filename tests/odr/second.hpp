// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The library as the second translation unit sees it.

#include <orizuru/dead_list.hpp>
#include <orizuru/job_producer.hpp>
#include <orizuru/once.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/pause.hpp>
#include <orizuru/progress.hpp>
#include <orizuru/recurring.hpp>
#include <orizuru/worker.hpp>

#include <string>

namespace second {

/// Does something with every public class, at least by its type.
std::string use_all();
orizuru::Endpoint endpoint();
orizuru::Script script();
/// Throws a ReplyError.
[[noreturn]] void refuse();

} // namespace second
