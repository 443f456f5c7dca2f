// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The id of a job that a search looks for, or the beginning of it.

#include <orizuru/detail/jobs/envelope_id.hpp>

#include <string>
#include <string_view>

namespace orizuru::detail {

struct SoughtId {
    enum class Match { whole, prefix };

    std::string text;
    Match match = Match::whole;

    /// True if the envelope, or its beginning, is that of a job with such an id.
    [[nodiscard]] bool is_of(std::string_view envelope) const {
        const auto id = envelope_id(envelope);
        return id && (match == Match::whole ? *id == text : id->starts_with(text));
    }
};

} // namespace orizuru::detail
