// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes how jobs have ended, and how long they took, as Prometheus' text: of one worker, or of all
// workers of some queues as an Inspector reads it. Let Prometheus scrape one of the two only, else
// it adds up both.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <span>
#include <string>

namespace orizuru {

/// Counters and histograms of each queue, labelled `queue`:
///
///   orizuru_jobs_total{outcome}   succeeded, failed, died, expired, settled, requeued, discarded;
///                                 a job that fails and is retried counts for each try
///   orizuru_job_duration_seconds  how long handlers ran
///   orizuru_job_wait_seconds      how long jobs had been due when their handlers began
///
/// The bounds of the buckets are those of Durations, 1 ms to 3 days.
[[nodiscard]] std::string prometheus(std::span<const QueueStatistics> queues);

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/job_metrics.ipp>
#endif
