// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Worker::handle_shards: a handler for the jobs of a queue over many shards.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/shards/shards.hpp>
#include <orizuru/worker/worker.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace orizuru {

/// @cond
template <class... T>
inline constexpr bool detail::included<detail::Part::handle_shards, T...> = true;
/// @endcond

template <class T, JobHandler<T> F, class>
Worker& Worker::handle_shards(const std::string& queue, F handler, const QueueOptions& options) {
    detail::check_handler(handler, queue);
    detail::JobHandling handling = detail::handling_by<T>(std::move(handler));
    // One handler for all.
    handling.call = [shared = std::make_shared<detail::JobCall>(std::move(handling.call))](
                        JobRun& job, JobDone done) { (*shared)(job, std::move(done)); };
    add_shards(shards(m_endpoint, queue), options, handling);
    return *this;
}

} // namespace orizuru
