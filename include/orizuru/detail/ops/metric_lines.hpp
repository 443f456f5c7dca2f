// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes the lines of metrics as Prometheus' text.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/utf8.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Anyone who can push chooses names of queues. A byte that is no UTF-8, for which Prometheus would
/// refuse the whole text, shows as \x9b.
[[nodiscard]] inline std::string label_value(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    while (!text.empty()) {
        const std::size_t size = utf8_size(text);
        const char first = text.front();
        if (size == 0) {
            const auto byte = static_cast<unsigned char>(first);
            out += joined({"\\\\x", digits.substr(byte >> 4U, 1), digits.substr(byte & 15U, 1)});
        } else if (first == '\n') {
            out += "\\n";
        } else {
            out += first == '"' || first == '\\' ? "\\" : "";
            out += text.substr(0, size);
        }
        text.remove_prefix(std::max<std::size_t>(size, 1));
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
