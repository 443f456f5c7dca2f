// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of garbage_collector.hpp.

#include <orizuru/connection.hpp>
#include <orizuru/detail/collector/passes.hpp>
#include <orizuru/keys.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace orizuru {

ORIZURU_INLINE GarbageCollector::GarbageCollector(Endpoint endpoint, std::string queue,
                                                  GarbageCollectorOptions options) {
    Keys keys(std::move(queue)); // refuses a name before anything is sent
    m_passes = std::make_unique<detail::Passes>(
        std::move(keys), std::make_shared<Connection>(std::move(endpoint)), std::move(options));
}
ORIZURU_INLINE GarbageCollector::GarbageCollector(GarbageCollector&&) noexcept = default;
ORIZURU_INLINE GarbageCollector& GarbageCollector::operator=(GarbageCollector&&) noexcept = default;
ORIZURU_INLINE GarbageCollector::~GarbageCollector() = default;

ORIZURU_INLINE Collected GarbageCollector::collect() { return m_passes->collect(); }

ORIZURU_INLINE void GarbageCollector::run(std::stop_token token,
                                          std::chrono::milliseconds interval) {
    m_passes->run(token, interval);
}

} // namespace orizuru
