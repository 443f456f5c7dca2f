// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The outcome of a run of a handler.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/jobs/retry_policy.hpp>

#include <exception>
#include <optional>
#include <string>

namespace orizuru::detail {

struct Handling {
    std::optional<std::string> thrown = {}; ///< the text of the exception, if any
    std::exception_ptr error = {};
    RetryDecision::Action action = RetryDecision::Action::by_policy; ///< by its type
    bool for_good = false;    ///< the exception forbids a retry
    bool interrupted = false; ///< it was thrown while the worker shuts down, and says no more
    TimePoint ended{};
};

} // namespace orizuru::detail
