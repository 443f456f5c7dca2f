// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The id of a job that a search looks for, the beginning of it, or the job's ticket (jobs/order);
// and where such a search ends.

#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/jobs/job_in.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

struct SoughtId {
    enum class Match { whole, prefix, ticket };

    std::string text;
    Match match = Match::whole;

    /// True if the envelope is that of such a job; for an id its beginning is enough.
    [[nodiscard]] bool is_of(std::string_view envelope) const {
        if (match == Match::ticket) {
            const auto job = job_in(envelope);
            return job && job->ticket == text;
        }
        const auto id = envelope_id(envelope);
        return id && (match == Match::whole ? *id == text : id->starts_with(text));
    }
};

/// A search ends with so many messages, or when they have so many bytes: there may be more then.
[[nodiscard]] inline bool is_enough(const std::vector<PlacedMessage>& found) {
    std::size_t bytes = 0;
    for (const PlacedMessage& message : found) {
        bytes += message.bytes.size();
    }
    return found.size() >= 200 || bytes >= 16 << 20;
}

} // namespace orizuru::detail
