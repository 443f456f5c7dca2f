// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of garbage_collector.hpp.

#include <orizuru/connection.hpp>
#include <orizuru/detail/collector/collector_checks.hpp>
#include <orizuru/detail/collector/passes.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/keys.hpp>

#include <utility>

namespace orizuru {

struct GarbageCollector::Parts {
    /// The options are checked.
    Parts(Keys keys, Endpoint endpoint, GarbageCollectorOptions options)
        : connection(detail::Route::to_key(std::move(endpoint), keys.source())),
          passes(std::move(keys), connection, std::move(options)) {}

    Connection connection;
    detail::Passes passes;
};

ORIZURU_INLINE GarbageCollector::GarbageCollector(Endpoint endpoint, std::string queue,
                                                  GarbageCollectorOptions options) {
    Keys keys(std::move(queue));
    detail::validate(options);
    m_parts = std::make_unique<Parts>(std::move(keys), std::move(endpoint), std::move(options));
}
ORIZURU_INLINE GarbageCollector::GarbageCollector(GarbageCollector&&) noexcept = default;
ORIZURU_INLINE GarbageCollector& GarbageCollector::operator=(GarbageCollector&&) noexcept = default;
ORIZURU_INLINE GarbageCollector::~GarbageCollector() = default;

ORIZURU_INLINE Collected GarbageCollector::collect() { return m_parts->passes.collect(); }

ORIZURU_INLINE void GarbageCollector::run(std::stop_token token,
                                          std::chrono::milliseconds interval) {
    m_parts->passes.run(token, interval);
}

} // namespace orizuru
