// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of job_log.hpp.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/worker/job_context.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

namespace orizuru {

namespace detail {

class JobLog {
  public:
    explicit JobLog(std::function<void(std::string_view)> write) : m_write(std::move(write)) {}

    void run(JobRun& job, const std::function<void()>& next) {
        const JobTime begun = job.m_host->now();
        try {
            next();
        } catch (...) {
            log(job, begun, std::current_exception());
            throw;
        }
        log(job, begun, nullptr);
    }

  private:
    struct End {
        std::string_view how;
        std::optional<std::string> why = {};
    };

    // For the thread that handles the job.
    void log(const JobRun& job, JobTime begun, const std::exception_ptr& error) noexcept;
    [[nodiscard]] static End end_of(const JobRun& job, const std::exception_ptr& error);
    [[nodiscard]] static std::optional<std::string>
    failure_of_run(const JobRun& job, const std::optional<ThrownFailure>& thrown);
    [[nodiscard]] static std::string line(const JobRun& job, JobTime begun, const End& end);

    std::mutex m_mutex;
    const std::function<void(std::string_view)> m_write; ///< under the lock
};

ORIZURU_INLINE void JobLog::log(const JobRun& job, JobTime begun,
                                const std::exception_ptr& error) noexcept {
    try {
        const std::string text = line(job, begun, end_of(job, error));
        const std::lock_guard lock(m_mutex);
        m_write(text);
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // A job that is done would run again for want of a line.
    }
}

/// As JobSettling will see it.
ORIZURU_INLINE JobLog::End JobLog::end_of(const JobRun& job, const std::exception_ptr& error) {
    using SettledBy = JobRun::SettledBy;
    const auto thrown = error ? std::optional(failure_of(error)) : std::nullopt;
    const auto lock = job.lock_guard();
    const SettledBy by = job.settled_by();
    const bool interrupted = thrown && !job.failure() && HandlerCall::interrupted(job, *thrown);
    if (by == SettledBy::requeuing || (by == SettledBy::nobody && interrupted)) {
        return {.how = "requeued"};
    }
    if (auto why = failure_of_run(job, thrown)) {
        return {.how = "failed", .why = std::move(why)};
    }
    if (by == SettledBy::handler) {
        const std::string* const burial = job.m_core->buried();
        return burial != nullptr ? End{.how = "buried", .why = *burial} : End{.how = "settled"};
    }
    if (job.m_stage == JobRun::Stage::before) {
        return {.how = "failed", .why = "a middleware has not called next"};
    }
    return {.how = "done"};
}

ORIZURU_INLINE std::optional<std::string>
JobLog::failure_of_run(const JobRun& job, const std::optional<ThrownFailure>& thrown) {
    std::optional<std::string> why = job.failure();
    if (!why && thrown) {
        why = thrown->reason;
    }
    if (job.m_stage == JobRun::Stage::out_of_time) {
        why = "the time limit is over" + (why ? ": " + *why : "");
    }
    return why;
}

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

ORIZURU_INLINE std::string JobLog::line(const JobRun& job, JobTime begun, const End& end) {
    using std::chrono::milliseconds;
    std::string line(end.how);
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
    if (end.why) {
        add("why", *end.why);
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

ORIZURU_INLINE HandleMiddleware log_jobs(std::function<void(std::string_view)> write) {
    if (!write) {
        throw std::invalid_argument("a log of jobs needs a function that writes its lines");
    }
    return [log = std::make_shared<detail::JobLog>(std::move(write))](
               JobRun& job, const std::function<void()>& next) { log->run(job, next); };
}

} // namespace orizuru
