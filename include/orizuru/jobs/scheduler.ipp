// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of scheduler.hpp.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/jobs/due_messages.hpp>
#include <orizuru/detail/jobs/wake_lists.hpp>
#include <orizuru/detail/redis/run_until_stopped.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

ORIZURU_INLINE void detail::check(const SchedulerOptions& options) {
    check_time("poll", options.poll, std::chrono::milliseconds(100));
}

ORIZURU_INLINE Scheduler::Scheduler(Endpoint endpoint, std::string queue,
                                    SchedulerOptions options) {
    detail::check(options);
    m_due = std::make_unique<detail::DueMessages>(std::make_shared<Connection>(endpoint), queue,
                                                  options.poll);
    m_wake =
        std::make_unique<detail::WakeLists>(std::move(endpoint), std::vector{std::move(queue)});
}
ORIZURU_INLINE Scheduler::Scheduler(Scheduler&&) noexcept = default;
ORIZURU_INLINE Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;
ORIZURU_INLINE Scheduler::~Scheduler() = default;

ORIZURU_INLINE std::uint64_t Scheduler::move_due() { return m_due->move(); }

ORIZURU_INLINE void Scheduler::run(const std::stop_token& token) {
    detail::run_until_stopped(token, [&] {
        const detail::TimePoint next = m_due->look();
        if (next > detail::Clock::now()) {
            m_wake->wait(next, token);
        }
        return detail::TimePoint(); // at once
    });
}

} // namespace orizuru
