// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of ledger_metrics.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/metric_lines.hpp>

#include <cstdint>
#include <string_view>

namespace orizuru {

ORIZURU_INLINE std::string prometheus(std::span<const LedgerCounts> ledgers) {
    std::string out;
    detail::MetricLines jobs(out, "orizuru_ledger_jobs", "gauge",
                             "How many jobs of the ledger are in which state.");
    for (const LedgerCounts& ledger : ledgers) {
        const auto line = [&](std::string_view state, std::uint64_t count) {
            jobs.line(ledger.queue, detail::joined({",state=\"", state, "\""}),
                      detail::Digits(count));
        };
        line("pending", ledger.pending);
        line("scheduled", ledger.scheduled);
        line("running", ledger.running);
        line("failed", ledger.failed);
        line("dead", ledger.dead);
    }
    detail::MetricLines oldest(out, "orizuru_ledger_oldest_seconds", "gauge",
                               "How long the job that is due first has been pending.");
    for (const LedgerCounts& ledger : ledgers) {
        oldest.line(ledger.queue, "",
                    detail::seconds_between(ledger.oldest.value_or(ledger.now), ledger.now));
    }
    return out;
}

} // namespace orizuru
