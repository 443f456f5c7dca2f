// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of job_log.hpp.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/worker/job_context.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace orizuru {

namespace detail {

class JobLog {
  public:
    explicit JobLog(std::function<void(std::string_view)> write) : m_write(std::move(write)) {}

    /// The run begins; returns what is called at its end, while `job` lives.
    [[nodiscard]] static std::function<void(const JobEnd&)> begin(std::shared_ptr<JobLog> log,
                                                                  const JobRun& job) {
        return [log = std::move(log), &job, begun = job.m_host->now()](const JobEnd& end) {
            const std::string text = line(job, begun, end);
            const std::lock_guard lock(log->m_mutex);
            log->m_write(text);
        };
    }

  private:
    [[nodiscard]] static std::string line(const JobRun& job, JobTime begun, const JobEnd& end);

    std::mutex m_mutex;
    const std::function<void(std::string_view)> m_write; ///< under the lock
};

/// Appends what a line may have in it, in quotes where it needs them.
inline void append_log_text(std::string& line, std::string_view text) {
    const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
    const bool plain = !text.empty() && std::ranges::none_of(text, [&](char c) {
        return control(c) || std::string_view(" \"\\=").find(c) != std::string_view::npos;
    });
    if (plain) {
        line += text;
        return;
    }
    line += '"';
    for (const char c : text) {
        if (c == '\n') {
            line += "\\n";
        } else if (control(c)) {
            constexpr std::string_view digits = "0123456789abcdef";
            line.append("\\x").append(1, digits[static_cast<unsigned char>(c) / 16U]);
            line += digits[static_cast<unsigned char>(c) % 16U];
        } else {
            line.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
        }
    }
    line += '"';
}

ORIZURU_INLINE std::string JobLog::line(const JobRun& job, JobTime begun, const JobEnd& end) {
    using std::chrono::milliseconds;
    std::string line(to_string(end.outcome));
    const auto add = [&line](std::string_view name, std::string_view value) {
        line.append(" ").append(name) += '=';
        append_log_text(line, value);
    };
    const auto time = [](auto span) {
        const auto count = std::chrono::floor<milliseconds>(span).count();
        return std::to_string(std::max(count, milliseconds::rep{0})) + "ms";
    };
    add("queue", job.queue());
    add("job", job.id());
    if (!job.kind().empty()) {
        add("kind", job.kind());
    }
    add("attempt", std::to_string(job.attempt()));
    add("waited", time(begun - job.enqueued_at()));
    add("ran", time(std::chrono::steady_clock::now() - job.since()));
    if (end.outcome == JobEnd::Outcome::failed || end.outcome == JobEnd::Outcome::buried) {
        add("why", end.why);
    }
    for (const auto& [name, value] : job.attributes()) {
        line += " attr.";
        append_log_text(line, name);
        line += '=';
        append_log_text(line, value);
    }
    return line;
}

} // namespace detail

ORIZURU_INLINE JobObserver log_jobs(std::function<void(std::string_view)> write) {
    if (!write) {
        throw std::invalid_argument("a log of jobs needs a function that writes its lines");
    }
    return [log = std::make_shared<detail::JobLog>(std::move(write))](JobRun& job) {
        return detail::JobLog::begin(log, job);
    };
}

} // namespace orizuru
