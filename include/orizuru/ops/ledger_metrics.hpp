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
///   orizuru_ledger_jobs{state}     how many are pending, scheduled, running, failed, dead
///   orizuru_ledger_oldest_seconds  how long the job that is due first has been pending; 0: none is
[[nodiscard]] std::string prometheus(std::span<const LedgerCounts> ledgers);

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/ledger_metrics.ipp>
#endif
