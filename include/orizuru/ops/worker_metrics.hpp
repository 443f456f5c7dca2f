// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes what a Worker does as Prometheus' text, for a server in its process. It asks Redis
// nothing.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/ops/job_metrics.hpp>
#include <orizuru/worker/worker.hpp>

#include <string>

namespace orizuru {

/// The metrics of job_metrics.hpp for each of the worker's queues since it was made, and
///
///   orizuru_worker_threads{state}  how many of its threads are busy, and idle
///   orizuru_worker_jobs_in_flight  how many jobs end later, by JobDone
///
/// Any thread, once all handlers are registered.
[[nodiscard]] std::string prometheus(const Worker& worker);

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/worker_metrics.ipp>
#endif
