// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The jobs of ledgers as Prometheus' text. It needs no PostgreSQL: Ledger::count reads the numbers.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/postgres/ledger_counts.hpp>

#include <span>
#include <string>

namespace orizuru {

/// Gauges of each ledger's queue, labelled `queue`:
///
///   orizuru_ledger_jobs{state}     how many are pending, running, failed, dead
///   orizuru_ledger_oldest_seconds  how long the pending job that was submitted first has waited;
///   0:
///                                  none is pending
[[nodiscard]] std::string prometheus(std::span<const LedgerCounts> ledgers);

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/ledger_metrics.ipp>
#endif
