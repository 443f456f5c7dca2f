// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes the lines of metrics as Prometheus' text.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Anyone who can push chooses names of queues.
[[nodiscard]] inline std::string label_value(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\n') {
            out += "\\n";
        } else {
            out += c == '"' || c == '\\' ? "\\" : "";
            out += c;
        }
    }
    return out;
}

/// In seconds, to the millisecond; 0 when it would be negative.
[[nodiscard]] inline std::string seconds_between(JobTime since, JobTime now) {
    const std::int64_t ms = since < now ? (now - since).count() : 0;
    const std::string_view zeros = ms % 1000 < 10 ? "00" : ms % 1000 < 100 ? "0" : "";
    return joined({Digits(ms / 1000), ".", zeros, Digits(ms % 1000)});
}

/// One metric, with the lines of all queues.
class MetricLines {
  public:
    MetricLines(std::string& out, std::string_view name, std::string_view type,
                std::string_view help)
        : m_out(out), m_name(name) {
        out += joined({"# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n"});
    }
    /// `part`: behind the name, of a histogram; `more`: labels behind the queue's.
    void line(std::string_view queue, std::string_view more, std::string_view value,
              std::string_view part = {}) {
        m_out +=
            joined({m_name, part, "{queue=\"", label_value(queue), "\"", more, "} ", value, "\n"});
    }

  private:
    std::string& m_out;
    std::string_view m_name;
};

} // namespace orizuru::detail
