// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Jobs on top of messages: the envelope, retries, schedules, recurrences, unique and bounded
// pushes, tools for dead lists and scheduled messages, progress, batches and pauses. You can also
// include each header on its own. Groups are in <orizuru/jobs/group.hpp>.

#if __cplusplus < 202002L
#error "orizuru needs C++20: -std=c++20, or cpp_std=c++20 in Meson"
#else

#include <orizuru/jobs/backoff.hpp>
#include <orizuru/jobs/batch.hpp>
#include <orizuru/jobs/bounded_push.hpp>
#include <orizuru/jobs/cron.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/jobs/progress.hpp>
#include <orizuru/jobs/recurring.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/jobs/scheduled_list.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/jobs/time_zone.hpp>
#include <orizuru/jobs/unique.hpp>
#include <orizuru/jobs/unique_options.hpp>

#endif
