// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// All definitions of the library that are no templates. When the whole program defines
// ORIZURU_SEPARATE_COMPILATION, exactly one of its translation units includes this.
//
// This header leaves out four parts, since they need other libraries. A program that uses them
// also includes, in one of its translation units,
//   <orizuru/tls/src.hpp>          for TLS,
//   <orizuru/jobs/time_zone.ipp>   for time zones by name,
//   <orizuru/ops/cli.ipp>          for the command line,
//   <orizuru/postgres/src.hpp>     for PostgreSQL.

#ifndef ORIZURU_SEPARATE_COMPILATION
#error "<orizuru/src.hpp> is for programs that define ORIZURU_SEPARATE_COMPILATION"
#endif

#include <orizuru/background_collector.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/detail/async/async_consumer_core.hpp>
#include <orizuru/detail/async/async_consumer_core.ipp>
#include <orizuru/detail/async/async_producer_core.hpp>
#include <orizuru/detail/async/async_producer_core.ipp>
#include <orizuru/detail/collector/background_collector.ipp>
#include <orizuru/detail/consumer/consumer_core.hpp>
#include <orizuru/detail/consumer/consumer_core.ipp>
#include <orizuru/detail/consumer/consumer_polling.ipp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/consumer/guard_core.ipp>
#include <orizuru/detail/jobs/group/membership.hpp>
#include <orizuru/detail/jobs/group/membership.ipp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/detail/jobs/job_envelope.ipp>
#include <orizuru/detail/jobs/occurrences.hpp>
#include <orizuru/detail/jobs/occurrences.ipp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/jobs/order/job_order.ipp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/jobs/schedule.ipp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/jobs/unique_lock.ipp>
#include <orizuru/detail/keyed/burst_job.hpp>
#include <orizuru/detail/keyed/burst_job.ipp>
#include <orizuru/detail/producer/buffered_producer_core.hpp>
#include <orizuru/detail/producer/buffered_producer_core.ipp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/producer/producer_core.ipp>
#include <orizuru/detail/redis/connection.ipp>
#include <orizuru/detail/redis/script.ipp>
#include <orizuru/detail/shards/sharded_producer_core.hpp>
#include <orizuru/detail/shards/sharded_producer_core.ipp>
#include <orizuru/detail/values/endpoint.ipp>
#include <orizuru/detail/worker/async/async_job_task.hpp>
#include <orizuru/detail/worker/async/async_job_task.ipp>
#include <orizuru/detail/worker/limits/fleet_limiter.hpp>
#include <orizuru/detail/worker/limits/fleet_limiter.ipp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/served_queue.ipp>
#include <orizuru/detail/worker/settling/job_reports.hpp>
#include <orizuru/detail/worker/settling/job_reports.ipp>
#include <orizuru/detail/worker/settling/job_requeue.hpp>
#include <orizuru/detail/worker/settling/job_requeue.ipp>
#include <orizuru/detail/worker/settling/job_settling.hpp>
#include <orizuru/detail/worker/settling/job_settling.ipp>
#include <orizuru/detail/worker/settling/settling_steps.ipp>
#include <orizuru/endpoint.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/backoff.hpp>
#include <orizuru/jobs/bounded_push.hpp>
#include <orizuru/jobs/bounded_push.ipp>
#include <orizuru/jobs/cron.hpp>
#include <orizuru/jobs/cron.ipp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/dead_list.ipp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/jobs/progress.hpp>
#include <orizuru/jobs/progress.ipp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/retry.ipp>
#include <orizuru/jobs/scheduled_list.hpp>
#include <orizuru/jobs/scheduled_list.ipp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/jobs/scheduler.ipp>
#include <orizuru/keyed/handle_keyed.hpp>
#include <orizuru/keyed/handle_keyed.ipp>
#include <orizuru/limits/rate_limit.hpp>
#include <orizuru/limits/rate_limit.ipp>
#include <orizuru/once/once.hpp>
#include <orizuru/once/once.ipp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/ops/inspector.ipp>
#include <orizuru/ops/inspector_bulk.ipp>
#include <orizuru/ops/inspector_changes.ipp>
#include <orizuru/ops/inspector_counts.ipp>
#include <orizuru/ops/inspector_search.ipp>
#include <orizuru/ops/job_metrics.hpp>
#include <orizuru/ops/job_metrics.ipp>
#include <orizuru/ops/ledger_metrics.hpp>
#include <orizuru/ops/ledger_metrics.ipp>
#include <orizuru/ops/metrics.hpp>
#include <orizuru/ops/metrics.ipp>
#include <orizuru/ops/trace.hpp>
#include <orizuru/ops/trace.ipp>
#include <orizuru/ops/worker_metrics.hpp>
#include <orizuru/ops/worker_metrics.ipp>
#include <orizuru/script.hpp>
#include <orizuru/shards/shards.hpp>
#include <orizuru/shards/shards.ipp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/handle_batch.ipp>
#include <orizuru/worker/job_log.hpp>
#include <orizuru/worker/job_log.ipp>
#include <orizuru/worker/limit.hpp>
#include <orizuru/worker/limit.ipp>
#include <orizuru/worker/worker.hpp>
#include <orizuru/worker/worker.ipp>

// Behind their classes.
#include <orizuru/detail/collector/garbage_collector.ipp>
#include <orizuru/detail/jobs/backoff.ipp>
#include <orizuru/detail/jobs/group/job_group.ipp>
