// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of scheduler.hpp.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/jobs/due_messages.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace orizuru {

ORIZURU_INLINE void detail::check(const SchedulerOptions& options) {
    check_time("poll", options.poll, std::chrono::milliseconds(100));
}

ORIZURU_INLINE Scheduler::Scheduler(Endpoint endpoint, std::string queue, SchedulerOptions options)
    : m_due(std::make_unique<detail::DueMessages>(std::move(endpoint), std::move(queue),
                                                  options.poll)) {
    detail::check(options);
}
ORIZURU_INLINE Scheduler::Scheduler(Scheduler&&) noexcept = default;
ORIZURU_INLINE Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;
ORIZURU_INLINE Scheduler::~Scheduler() = default;

ORIZURU_INLINE std::uint64_t Scheduler::move_due() { return m_due->move(); }

ORIZURU_INLINE void Scheduler::run(const std::stop_token& token) { m_due->run(token); }

} // namespace orizuru
