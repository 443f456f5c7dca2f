// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Decides what follows a failed try of a ledger's job: another try, or the job's death.

#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/jobs/envelope_limits.hpp>
#include <orizuru/detail/jobs/error_text.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/retry_policy.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// The tries of a job so far, the one that has just failed among them.
struct LedgerTries {
    int attempt;
    int max_attempts;
    std::chrono::milliseconds since_first_failure;
};

struct LedgerNextTry {
    std::optional<std::chrono::milliseconds> delay; ///< none: the job is dead
    std::string reason;                             ///< as the ledger keeps it

    /// As the statements take it.
    [[nodiscard]] std::int64_t delay_ms() const { return delay ? delay->count() : -1; }
};

/// A reason as PostgreSQL can keep it: a text ends at a null byte there.
[[nodiscard]] inline std::string storable_reason(std::string_view reason) {
    std::string text = to_utf8(cut_text(reason, longest_last_error));
    for (std::size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) {
        text.replace(at, 1, "\xef\xbf\xbd");
    }
    return text;
}

/// Decides by `policy`, except for max_attempts, which is the job's own.
[[nodiscard]] inline LedgerNextTry next_ledger_try(RetryPolicy policy, const LedgerTries& tries,
                                                   const std::string& job,
                                                   std::string_view reason) {
    std::string text = storable_reason(reason);
    policy.max_attempts = tries.max_attempts;
    const JobTime first_failed_at{};
    try {
        return {next_try(policy, tries.attempt, first_failed_at,
                         first_failed_at + tries.since_first_failure,
                         std::hash<std::string>()(job)),
                text};
    } catch (...) {
        // Without a time for its next try it must not be tried for ever.
        return tell_thrown([&](std::string_view what) {
            return LedgerNextTry{std::nullopt, text + "; its backoff: " + storable_reason(what)};
        });
    }
}

} // namespace orizuru::detail
