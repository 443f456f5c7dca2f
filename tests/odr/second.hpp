// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The library as the second translation unit sees it.

#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/jobs/progress.hpp>
#include <orizuru/jobs/recurring.hpp>
#include <orizuru/once.hpp>
#include <orizuru/orizuru.hpp>
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
