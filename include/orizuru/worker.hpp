// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Worker runs the jobs of many queues on a pool of threads.

#if __cplusplus < 202002L
#error "orizuru needs C++20: -std=c++20, or cpp_std=c++20 in Meson"
#else

#include <orizuru/jobs/retry.hpp>
#include <orizuru/worker/job_batch.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#endif
