// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of scheduler.hpp.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/jobs/due_messages.hpp>
#include <orizuru/detail/jobs/wake_lists.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/run_until_stopped.hpp>
#include <orizuru/keys.hpp>

#include <utility>

namespace orizuru {

ORIZURU_INLINE Scheduler::Scheduler(Endpoint endpoint, std::string queue,
                                    SchedulerOptions options) {
    detail::validate(options);
    const Keys keys(std::move(queue)); // refuses a name before anything is sent
    endpoint = detail::Route::to_key(std::move(endpoint), keys.source());
    m_due = std::make_unique<detail::DueMessages>(keys, std::make_shared<Connection>(endpoint),
                                                  options.poll);
    m_wake = std::make_unique<detail::WakeLists>(std::vector{keys}, std::move(endpoint));
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
