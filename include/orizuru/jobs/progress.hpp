// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How far a job has come and what it has come to, for whoever asks: kept in Redis beside the queue
// for a time, under the job's id. Nothing of the queue depends on it.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/redis/refusal.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace orizuru {

/// What a job has last said of itself.
struct JobProgress {
    double fraction = 0; ///< 0 to 1
    std::string note;
    std::chrono::sys_time<std::chrono::milliseconds> when{}; ///< by Redis' clock
};

namespace detail {

// KEYS[1] progress; ARGV[1] ttl in ms, [2] fraction, [3] note.
inline const std::string& set_progress_script() {
    static const std::string script = adding_script(R"lua(
local key = KEYS[1]
local refused = refusal({{key, 'hash'}},
    {{'TIME'}, {'HSET', key, 'x', 'x'}, {'PEXPIRE', key, '1'}})
if refused then return refused end
local time = redis.call('TIME')
redis.call('HSET', key, 'fraction', ARGV[2], 'note', ARGV[3],
    'when', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('PEXPIRE', key, ARGV[1])
)lua");
    return script;
}

// KEYS[1] result; ARGV[1] ttl in ms, [2] its bytes.
inline const std::string& set_result_script() {
    static const std::string script = adding_script(R"lua(
local result = KEYS[1]
local refused = refusal({{result, 'string'}}, {{'SET', result, 'x', 'PX', '1'}})
if refused then return refused end
redis.call('SET', result, ARGV[2], 'PX', ARGV[1])
)lua");
    return script;
}

} // namespace detail

/// The progress and the results of a queue's jobs: one connection, used by one thread at a time.
///
/// Each call is one command or script, blocks at most command_timeout, and throws ConnectionError,
/// ReplyError (it names the key) and ProtocolError; std::invalid_argument before anything is sent
/// for a job's id that has not 1 to 512 bytes or a ttl that is not 1 ms to 100 years. When Redis'
/// memory is full, writing is refused as OOM and what was there stays.
class Progress {
  public:
    static constexpr std::size_t longest_note = 1'000;
    static constexpr std::size_t largest_result = std::size_t{16} << 20;

    /// Connects. Throws as Producer's constructor does.
    Progress(Endpoint endpoint, std::string queue)
        : m_keys(std::move(queue)), m_connection(std::move(endpoint)) {}

    /// Writes down how far a job has come, in place of what it said before.
    /// Redis: HSET and PEXPIRE in one script, O(1).
    /// Throws std::invalid_argument besides for a fraction that is not 0 to 1, or a note of more
    /// than `longest_note` bytes.
    void set(std::string_view job_id, double fraction, std::string_view note = {},
             std::chrono::milliseconds ttl = std::chrono::hours(24));

    /// None when the job has said nothing, or its ttl has passed. Redis: HMGET, O(1).
    std::optional<JobProgress> get(std::string_view job_id);

    /// Keeps what a job has come to: any bytes, at most `largest_result`.
    /// Redis: SET in a script, O(1).
    void set_result(std::string_view job_id, std::string_view bytes,
                    std::chrono::milliseconds ttl = std::chrono::hours(24));

    /// None when there is none, or its ttl has passed. Redis: GET, O(1).
    std::optional<std::string> result(std::string_view job_id);

  private:
    template <class Number>
    Number number_of(const std::string& text);

    Keys m_keys;
    Connection m_connection;
};

inline void Progress::set(std::string_view job_id, double fraction, std::string_view note,
                          std::chrono::milliseconds ttl) {
    detail::check_id(job_id);
    detail::check_ttl(ttl);
    if (!(fraction >= 0 && fraction <= 1)) {
        throw std::invalid_argument("a job's progress must be 0 to 1");
    }
    if (note.size() > longest_note) {
        throw std::invalid_argument("the note on a job's progress has more than 1000 bytes");
    }
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, fraction);
    const std::string key = m_keys.progress(job_id);
    m_connection.command(key, "EVAL", detail::set_progress_script(), 1, key, ttl.count(),
                         std::string_view(digits, end.ptr), note);
}

inline std::optional<JobProgress> Progress::get(std::string_view job_id) {
    detail::check_id(job_id);
    const std::string key = m_keys.progress(job_id);
    Reply reply = m_connection.command(key, "HMGET", key, "fraction", "note", "when");
    if (reply.elements.size() != 3) {
        m_connection.refuse("HMGET");
    }
    if (reply.elements[0].is(Reply::Type::nil)) {
        return std::nullopt;
    }
    if (!detail::is_strings(reply)) {
        m_connection.refuse("HMGET");
    }
    JobProgress progress;
    progress.fraction = number_of<double>(reply.elements[0].text);
    progress.note = std::move(reply.elements[1].text);
    progress.when += std::chrono::milliseconds(number_of<std::int64_t>(reply.elements[2].text));
    return progress;
}

template <class Number>
Number Progress::number_of(const std::string& text) {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (read.ec != std::errc{} || read.ptr != end) {
        m_connection.refuse("HMGET");
    }
    return number;
}

inline void Progress::set_result(std::string_view job_id, std::string_view bytes,
                                 std::chrono::milliseconds ttl) {
    detail::check_id(job_id);
    detail::check_ttl(ttl);
    if (bytes.size() > largest_result) {
        throw std::invalid_argument("a job's result has more than 16 MiB");
    }
    const std::string key = m_keys.result(job_id);
    m_connection.command(key, "EVAL", detail::set_result_script(), 1, key, ttl.count(), bytes);
}

inline std::optional<std::string> Progress::result(std::string_view job_id) {
    detail::check_id(job_id);
    const std::string key = m_keys.result(job_id);
    Reply reply = m_connection.command(key, "GET", key);
    if (reply.is(Reply::Type::nil)) {
        return std::nullopt;
    }
    m_connection.require(reply, Reply::Type::string, "GET");
    return std::move(reply.text);
}

} // namespace orizuru
