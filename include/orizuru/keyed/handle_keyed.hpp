// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Worker::handle_keyed: a handler for the jobs of a queue with keys.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/keyed/burst_job.hpp>
#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/keyed/keyed_options.hpp>
#include <orizuru/worker/worker.hpp>

#include <string>
#include <utility>

namespace orizuru {

/// @cond
template <class... T>
inline constexpr bool detail::included<detail::Part::handle_keyed, T...> = true;
/// @endcond

template <class T, JobHandler<T> F, class>
Worker& Worker::handle_keyed(const std::string& queue, F handler, QueueOptions options,
                             const KeyedOptions& keyed) {
    detail::check_handler(handler, queue);
    detail::JobHandling handling = detail::handling_by<T>(std::move(handler));
    if (keyed.burst > 1 && handling.end == detail::JobHandling::End::by_return) {
        handling.make = &detail::make_leading_job<T>;
    }
    add_keyed(queue, std::move(options), keyed, std::move(handling));
    return *this;
}

template <class T, JobHandler<T> F, class>
Worker& Worker::handle_keyed(const std::string& queue, F handler, QueueOptions options) {
    return handle_keyed<T>(queue, std::move(handler), std::move(options), KeyedOptions());
}

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/keyed/handle_keyed.ipp>
#endif
