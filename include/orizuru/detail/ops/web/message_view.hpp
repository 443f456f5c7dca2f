// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes messages as JSON for a Dashboard's page.

#include <orizuru/detail/jobs/error_text.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/detail/ops/web/dashboard_json.hpp>
#include <orizuru/detail/ops/web/listed_messages.hpp>
#include <orizuru/detail/ops/web/payload_text.hpp>
#include <orizuru/ops/dashboard_options.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail::web {

/// Shows messages as far as the options allow.
class MessageView {
  public:
    explicit MessageView(const DashboardOptions& options)
        : m_show(options.show_payloads), m_format(options.format_payload) {}

    /// True if the bytes themselves may be seen.
    [[nodiscard]] bool shows_bytes() const noexcept { return m_show && !m_format; }

    /// A row of a list.
    [[nodiscard]] Json row(const std::string& id, const ListedMessage& listed) const {
        const std::optional<Job<Raw>> job = listed.message.job();
        Json row = common(listed.message, job);
        row["id"] = id;
        if (m_show) {
            constexpr std::size_t line = 160;
            row["preview"] = cut_text(shown(listed, job).text, line);
        }
        return row;
    }

    /// All that is shown of a message.
    [[nodiscard]] Json whole(const std::string& id, const ListedMessage& listed) const {
        const std::optional<Job<Raw>> job = listed.message.job();
        Json view = common(listed.message, job);
        view["id"] = id;
        view["bytesShown"] = shows_bytes();
        if (job) {
            view["job"]["attributes"] = job->attributes;
            view["job"]["uniqueId"] = job->unique_id;
            view["job"]["key"] = job->key;
        }
        if (m_show) {
            PayloadText text = shown(listed, job);
            view["payload"] = {{"kind", std::move(text.kind)}, {"text", std::move(text.text)}};
        }
        if (shows_bytes()) {
            view["payload"]["hex"] = hex(payload(listed, job).substr(0, longest_preview));
        }
        return view;
    }

    /// A job's own, else the message's.
    [[nodiscard]] static std::string_view payload(const ListedMessage& listed,
                                                  const std::optional<Job<Raw>>& job) {
        return job ? std::string_view(job->payload.bytes)
                   : std::string_view(listed.message.payload);
    }

  private:
    [[nodiscard]] static Json common(const PlacedMessage& message,
                                     const std::optional<Job<Raw>>& job) {
        Json view = {{"place", place_name(message.place)},
                     {"size", job ? job->payload.bytes.size() : message.payload.size()},
                     {"reason", cut_text(message.reason, longest_preview)},
                     {"time", json_of(message.time)},
                     {"consumer", message.consumer},
                     {"runningSince", json_of(message.running_since)},
                     {"blamed", message.blamed}};
        if (job) {
            view["job"] = {{"id", job->id},
                           {"kind", job->kind},
                           {"attempt", job->attempt},
                           {"maxAttempts", job->max_attempts ? Json(*job->max_attempts) : Json()},
                           {"firstEnqueuedAt", json_of(job->first_enqueued_at)},
                           {"enqueuedAt", json_of(job->enqueued_at)},
                           {"firstFailedAt", json_of(job->first_failed_at)},
                           {"expiresAt", json_of(job->expires_at)},
                           {"lastError", cut_text(job->last_error, longest_preview)}};
        }
        return view;
    }

    [[nodiscard]] PayloadText shown(const ListedMessage& listed,
                                    const std::optional<Job<Raw>>& job) const {
        const std::string_view bytes = payload(listed, job);
        if (!m_format) {
            return payload_text(bytes);
        }
        try {
            const std::string text = m_format(listed.queue, bytes);
            return {"text", to_utf8(cut_text(text, longest_preview))};
        } catch (const std::exception& error) {
            return {"text", std::string("cannot be shown: ") + error.what()};
        }
    }

    [[nodiscard]] static std::string hex(std::string_view bytes) {
        std::string digits;
        for (const char c : bytes) {
            const auto byte = static_cast<unsigned char>(c);
            digits += "0123456789abcdef"[byte >> 4U];
            digits += "0123456789abcdef"[byte & 15U];
        }
        return digits;
    }

    bool m_show;
    std::function<std::string(std::string_view, std::string_view)> m_format;
};

} // namespace orizuru::detail::web
