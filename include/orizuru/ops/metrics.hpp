// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The state of queues as Prometheus' text, for any HTTP server or node_exporter's textfile
// collector. https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format

#include <orizuru/detail/base/config.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <span>
#include <string>

namespace orizuru {

/// Gauges of each queue that has anything, labelled `queue`:
///
///   orizuru_queue_messages{state}   how many are waiting, held, scheduled, rejected, suspected,
///                                   dead; where keys have jobs, behind others of their keys
///   orizuru_queue_oldest_seconds    how long the job that is served next has waited; 0: none waits
///   orizuru_queue_overdue_seconds   how long the first scheduled message is past its time: no
///                                   scheduler runs
///   orizuru_queue_consumers         how many are registered
///   orizuru_queue_consumers_unheard how many of these are unheard for their lease: no collector
///                                   runs
///   orizuru_queue_paused            1 while workers must not take from it
///   orizuru_queue_keys              how many keys have jobs, if any
///   orizuru_queue_slots             how many of its handlers run, if they have a limit and any
///   does orizuru_queue_groups            how many groups have not ended, if any
///   orizuru_queue_group_members     how many of their members have not ended; missing where there
///                                   are more than 1000 groups
///
/// Ages are missing where Redis' clock is not known, and where what is served next is no job. A
/// queue without messages, groups and consumers that is not paused has only that it has no dead
/// messages: so the first that dies is seen as one more, and thousands of queues at rest cost
/// little.
[[nodiscard]] std::string prometheus(std::span<const QueueState> queues);

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/metrics.ipp>
#endif
