// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The way of the job that follows a group to a queue of another hash tag, which no script can write
// to. The last end pushes it to the group's own queue, addressed: `orz-then:` before its id, and in
// its field `group` before the name of the queue. A worker that fetches it there pushes it to that
// queue as it was, and then removes it.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/keys.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

inline constexpr std::string_view address_prefix = "orz-then:";

/// `job` has its id already.
inline void address_to(const Keys& queue, Job<Raw>& job) {
    job.id.insert(0, address_prefix);
    job.group = joined({address_prefix, queue.source()});
}

/// True for an addressed job. Looks at the first bytes of the envelope: an array of 17 fields, its
/// version, and an id of 32 to 255 bytes.
[[nodiscard]] inline bool is_addressed(std::string_view payload) noexcept {
    constexpr std::size_t before_id = 6;
    return payload.starts_with('\xdc') &&
           payload.substr(0, before_id + address_prefix.size()).ends_with(address_prefix);
}

/// A job for another queue.
struct ForwardedJob {
    Keys queue;
    std::string bytes;
};

/// Reads an addressed job. Throws std::invalid_argument when it names no queue, and what a Codec
/// throws.
[[nodiscard]] inline ForwardedJob forwarded(std::string_view payload, std::int64_t max_payload) {
    Scratch scratch;
    auto job = decode<Job<Raw>>(payload, scratch);
    if (!job.group.starts_with(address_prefix)) {
        throw std::invalid_argument("it is to be forwarded, and names no queue");
    }
    ForwardedJob forwarded{Keys(job.group.substr(address_prefix.size())), {}};
    job.id.erase(0, address_prefix.size());
    job.group.clear();
    encode(job, forwarded.bytes, max_payload);
    return forwarded;
}

} // namespace orizuru::detail
