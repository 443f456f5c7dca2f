// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The job in a payload that lies in a list for people: it may be none.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/unique_options.hpp>
#include <orizuru/keys.hpp>

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Nothing when it is no job's envelope.
[[nodiscard]] inline std::optional<Job<Raw>> job_in(std::string_view payload) {
    try {
        Scratch scratch;
        return decode<Job<Raw>>(payload, scratch);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

/// A lock that the ack of a job in a payload would release.
struct OwnLock {
    std::string key;
    std::string value;
};
/// Nothing for what is no unique job. `here`: the queue whose list it is in.
[[nodiscard]] inline std::optional<OwnLock> own_lock(std::string_view payload, const Keys& here) {
    const std::optional<Job<Raw>> job = job_in(payload);
    if (!job || job->unique_id.empty()) {
        return std::nullopt;
    }
    return OwnLock{lock_key(job->unique_queue, job->unique_id, here),
                   lock_of(UniqueRelease::on_ack, job->id)};
}

} // namespace orizuru::detail
