// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of group.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/jobs/group/forwarding.hpp>
#include <orizuru/detail/jobs/group/group_numbers.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string_view>

namespace orizuru {

namespace detail {

[[nodiscard]] inline bool share_tag(const Keys& group, const Keys& other) {
    const std::string some = group.group("");
    return other.group("").starts_with(std::string_view(some).substr(0, some.find('}') + 1));
}

/// Cuts the job that follows where the script writes its two times, and the numbers of the failed
/// and of all.
[[nodiscard]] inline std::array<std::string, 4> cut_follower(Job<Raw> job,
                                                             std::int64_t max_payload) {
    const JobTime later_than_32_bits(std::chrono::milliseconds(std::int64_t{1} << 33));
    constexpr std::size_t time_size = 9;
    constexpr std::size_t before_text = 2;
    job.first_enqueued_at = job.enqueued_at = later_than_32_bits;
    const std::string failed = random_hex(32);
    const std::string all = random_hex(32);
    job.attributes["group_failed"] = failed;
    job.attributes["group_jobs"] = all;
    const std::string bytes = encoded(job, max_payload);
    EnvelopeStart start(bytes);
    static_cast<void>(start.enter_array() && start.pass_unsigned() && start.text() &&
                      start.pass_unsigned());
    const std::size_t times = bytes.size() - start.left();
    const std::size_t first = bytes.rfind(failed);
    const std::size_t second = bytes.rfind(all);
    const auto between = [&](std::size_t from, std::size_t to) {
        return bytes.substr(from, to - from);
    };
    return {between(0, times), between(times + 2 * time_size, first - before_text),
            between(first + failed.size(), second - before_text),
            bytes.substr(second + all.size())};
}

} // namespace detail

ORIZURU_INLINE void GroupThen::choose(const GroupJobOptions& options) {
    if (options.expires_after) {
        throw std::invalid_argument("the job that follows a group cannot expire");
    }
    detail::check_kind(options.kind);
    m_job.kind = options.kind;
    m_job.attributes = options.attributes;
    m_job.max_attempts = options.max_attempts;
}

ORIZURU_INLINE JobGroup::JobGroup(const Endpoint& endpoint, std::string queue,
                                  const JobGroupOptions& options)
    : m_producer(endpoint, std::move(queue),
                 {.max_payload = options.max_payload, .replicas = options.replicas}),
      m_id(detail::random_hex(32)),
      m_field(detail::group_field(m_producer.keys(), m_id)) {
    if (options.expires_after < std::chrono::seconds(1) ||
        options.expires_after > std::chrono::hours(24 * 3650)) {
        throw std::invalid_argument("a group's expires_after must be 1 s to 3650 days");
    }
    m_producer.read(m_clock);
    open(options);
}

ORIZURU_INLINE std::string JobGroup::key() const { return m_producer.keys().group(m_id); }

ORIZURU_INLINE void JobGroup::open(const JobGroupOptions& options) {
    std::vector<std::string> fields{"expires", std::to_string(options.expires_after.count()),
                                    "open",    "1",
                                    "left",    "1",
                                    "jobs",    "0",
                                    "failed",  "0",
                                    "on_dead", options.on_dead == OnDead::count ? "count" : "wait"};
    if (options.then) {
        const Keys target(options.then->m_queue);
        const Keys& own = m_producer.keys();
        const bool beside = detail::share_tag(own, target);
        Job<Raw> job = options.then->m_job;
        job.id = m_id;
        if (!beside) {
            detail::address_to(target, job);
        }
        const auto pieces = detail::cut_follower(std::move(job), options.max_payload);
        fields.insert(fields.end(),
                      {"to", (beside ? target : own).source(), "then", pieces[0], "then 2",
                       pieces[1], "then 3", pieces[2], "then 4", pieces[3]});
    }
    run(detail::open_group_script(), {key(), m_producer.keys().groups()}, fields);
}

ORIZURU_INLINE detail::ScriptPushes JobGroup::pushes_to(const std::string& queue) {
    if (m_committed) {
        throw std::logic_error("the group is committed: it takes no more jobs");
    }
    const Keys target(queue);
    if (!detail::share_tag(m_producer.keys(), target)) {
        throw std::invalid_argument(detail::joined(
            {"a job of the group goes to queue '", queue, "', which has not the hash tag of '",
             m_producer.keys().source(), "': the jobs of a group share one"}));
    }
    m_producer.read(m_clock);
    return {m_producer, detail::push_members_script(), {key(), target.source()}};
}

ORIZURU_INLINE void JobGroup::commit() {
    if (m_committed) {
        throw std::logic_error("the group is committed already");
    }
    const Reply reply = run(detail::commit_group_script(), {key()}, {});
    if (!detail::is_count(reply, -1) || reply.integer > 1) {
        throw ProtocolError("EVAL was answered by a reply of the wrong type");
    }
    if (reply.integer < 0) {
        throw ReplyError("CLOSED", detail::joined({key(), " was not committed in time"}));
    }
    m_committed = true; // where it was before, an attempt in doubt has done it
}

ORIZURU_INLINE GroupState JobGroup::state() {
    std::string command;
    detail::append_command(command, "HMGET", key(), "open", "left", "jobs", "failed");
    const Reply reply = m_producer.command("HMGET", command);
    if (!reply.is(Reply::Type::array) || reply.elements.size() != 4) {
        throw ProtocolError("HMGET was answered by a reply of the wrong type");
    }
    return detail::group_state(std::span<const Reply, 4>(reply.elements));
}

ORIZURU_INLINE Reply JobGroup::run(std::string_view script, const std::vector<std::string>& keys,
                                   const std::vector<std::string>& arguments) {
    std::string command;
    detail::append_command(command, "EVAL", script, keys.size(), keys, arguments);
    return m_producer.command("EVAL", command);
}

} // namespace orizuru
