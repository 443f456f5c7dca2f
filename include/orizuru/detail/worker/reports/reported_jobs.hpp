// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The jobs that a worker says it runs, as text in its report: for each "milliseconds size id", the
// time since 1970 at which its handler began and the size of the id in bytes; the oldest first.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// A report names no more.
inline constexpr std::size_t most_reported_jobs = 100;

[[nodiscard]] inline std::string reported_text(const ReportedJob& job) {
    return joined(
        {Digits(job.since.time_since_epoch().count()), " ", Digits(job.id.size()), " ", job.id});
}

/// Reads as far as the text is sound.
[[nodiscard]] inline std::vector<ReportedJob> reported_jobs(std::string_view text) {
    std::vector<ReportedJob> jobs;
    const auto number = [&]() -> std::optional<std::uint64_t> {
        const std::size_t end = text.find(' ');
        if (end == std::string_view::npos) {
            return std::nullopt;
        }
        const auto found = whole_number(text.substr(0, end));
        text.remove_prefix(end + 1);
        return found;
    };
    while (jobs.size() < most_reported_jobs) {
        const auto since = number();
        const auto size = number();
        if (!since || *since > std::uint64_t{1} << 53U || !size || *size > text.size()) {
            break;
        }
        jobs.push_back({std::string(text.substr(0, *size)),
                        JobTime(std::chrono::milliseconds(static_cast<std::int64_t>(*since)))});
        text.remove_prefix(*size);
    }
    return jobs;
}

} // namespace orizuru::detail
