// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The job in a payload that lies in a list for people: it may be none.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/jobs/job.hpp>

#include <exception>
#include <new>
#include <optional>
#include <string_view>

namespace orizuru::detail {

/// Returns nothing when it is no job's envelope.
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

} // namespace orizuru::detail
