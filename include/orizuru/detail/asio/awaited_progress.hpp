// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The progress of a job, for a completion handler of Asio's.

#include <orizuru/detail/asio/awaited_call.hpp>
#include <orizuru/detail/jobs/progress_scripts.hpp>
#include <orizuru/worker/job_context.hpp>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

template <class Library, class Token>
auto async_progress(JobRun& job, double fraction, std::string_view note, Token& token) {
    check_progress(fraction, note);
    const auto start = [](auto handler, JobRun* of, double done, std::string text) {
        const auto call = AwaitedCall<Library, decltype(handler), bool>::begin(std::move(handler));
        try {
            of->progress(done, text,
                         [call](bool written) { call->end(nullptr, std::move(written)); });
        } catch (...) {
            call->fail(std::current_exception()); // an initiation must not throw
        }
    };
    return Library::template initiate<Token, void(std::exception_ptr, bool)>(
        start, token, &job, fraction, std::string(note));
}

} // namespace orizuru::detail
