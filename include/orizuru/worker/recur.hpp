// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Worker::recur: a worker that pushes recurring jobs (jobs/recurring.hpp) besides.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/jobs/occurrences.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/recurring.hpp>
#include <orizuru/worker/worker.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

/// @cond
template <class... T>
inline constexpr bool detail::included<detail::Part::recur, T...> = true;
/// @endcond

template <class T, class>
Worker& Worker::recur(std::string queue, std::vector<Recurrence<Job<T>>> recurrences,
                      const RecurringOptions& options) {
    const auto occurrences = std::make_shared<detail::Occurrences>(
        std::move(queue), detail::encoded(std::move(recurrences), options.max_payload),
        detail::Occurrences::Options{.poll = options.poll, .max_payload = options.max_payload});
    add_chore({.what = "pushing what recurs",
               .queue = occurrences->keys().source(),
               .begin = [occurrences](std::shared_ptr<Connection> connection) {
                   const auto mine = std::make_shared<detail::Occurrences>(*occurrences);
                   mine->connect(std::move(connection));
                   return [mine] { return mine->step().next; };
               }});
    return *this;
}

template <class T, class>
Worker& Worker::recur(std::string queue, std::vector<Recurrence<Job<T>>> recurrences) {
    return recur<T>(std::move(queue), std::move(recurrences), RecurringOptions());
}

} // namespace orizuru
