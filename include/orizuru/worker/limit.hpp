// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Worker::limit: a queue whose handlers keep to a limit of all processes.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/limits/fleet_limit.hpp>
#include <orizuru/worker/worker.hpp>

#include <string>

namespace orizuru {

/// @cond
template <class... T>
inline constexpr bool detail::included<detail::Part::limit, T...> = true;
/// @endcond

template <class, class>
Worker& Worker::limit(const std::string& queue, const FleetLimit& limit) {
    set_limit(queue, limit);
    return *this;
}

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/worker/limit.ipp>
#endif
