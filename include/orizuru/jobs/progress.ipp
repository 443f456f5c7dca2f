// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of progress.hpp.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/jobs/decimal_number.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/jobs/progress_scripts.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/reply.hpp>

#include <cstdint>
#include <stdexcept>

namespace orizuru {

static_assert(Progress::longest_note == detail::longest_progress_note);

ORIZURU_INLINE Progress::Progress(Endpoint endpoint, std::string queue)
    : m_keys(std::move(queue)),
      m_connection(std::make_shared<Connection>(
          detail::Route::to_key(std::move(endpoint), m_keys.source()))) {}

ORIZURU_INLINE void Progress::set(std::string_view job_id, double fraction, std::string_view note,
                                  std::chrono::milliseconds ttl) {
    detail::write_progress(*m_connection, m_keys, job_id, fraction, note, ttl);
}

ORIZURU_INLINE std::optional<JobProgress> Progress::get(std::string_view job_id) {
    detail::check_id(job_id);
    const std::string key = m_keys.progress(job_id);
    Reply reply = m_connection->command(key, "HMGET", key, "fraction", "note", "when");
    if (reply.elements.size() != 3) {
        detail::refuse(*m_connection, "HMGET");
    }
    if (reply.elements[0].is(Reply::Type::nil)) {
        return std::nullopt;
    }
    if (!detail::is_strings(reply)) {
        detail::refuse(*m_connection, "HMGET");
    }
    const auto fraction = detail::decimal_number(reply.elements[0].text);
    const auto when = detail::whole_number(reply.elements[2].text);
    if (!fraction || !when) {
        detail::refuse(*m_connection, "HMGET");
    }
    JobProgress progress{.fraction = *fraction, .note = std::move(reply.elements[1].text)};
    progress.when += std::chrono::milliseconds(static_cast<std::int64_t>(*when));
    return progress;
}

ORIZURU_INLINE void Progress::set_result(std::string_view job_id, std::string_view bytes,
                                         std::chrono::milliseconds ttl) {
    detail::check_id(job_id);
    detail::check_ttl(ttl);
    if (bytes.size() > largest_result) {
        throw std::invalid_argument("a job's result has more than 16 MiB");
    }
    const std::string key = m_keys.result(job_id);
    m_connection->command(key, "EVAL", detail::set_result_script, 1, key, ttl.count(), bytes);
}

ORIZURU_INLINE std::optional<std::string> Progress::result(std::string_view job_id) {
    detail::check_id(job_id);
    const std::string key = m_keys.result(job_id);
    Reply reply = m_connection->command(key, "GET", key);
    if (reply.is(Reply::Type::nil)) {
        return std::nullopt;
    }
    detail::require_type(*m_connection, reply, Reply::Type::string, "GET");
    return std::move(reply.text);
}

} // namespace orizuru
