// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of job_requeue.hpp.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>

#include <exception>
#include <string>
#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE Settlement JobRequeue::settlement(const GuardCore& guard) const {
    std::optional<JobAttributes> changed = m_run.changed_attributes();
    if (!changed) {
        return releasing_job(guard, m_run.ordered());
    }
    Scratch scratch;
    auto job = decode<Job<Raw>>(guard.payload(), scratch);
    job.attributes = std::move(*changed);
    std::string body;
    try {
        encode(job, body, guard.max_payload());
    } catch (const EncodeError&) { // too large
        body.clear();
    }
    return releasing_job(guard, m_run.ordered(), std::move(body));
}

ORIZURU_INLINE void JobRequeue::run(std::chrono::milliseconds patience) const noexcept {
    const bool requeued = reports().attempt([&] {
        const auto guard = m_run.guard_within(patience);
        if (!guard || guard->settled()) {
            return false;
        }
        guard.name_settler(SettledRun::By::requeuing);
        return guard->settle(settlement(*guard));
    });
    // Before a stop, a job is requeued only because no thread was free for it.
    if (requeued && m_queue.stop_token().stop_requested()) {
        reports().requeued();
    }
}

ORIZURU_INLINE std::optional<GuardCore::GivenUp> JobRequeue::begin(TimePoint until) const noexcept {
    std::optional<GuardCore::GivenUp> given;
    std::exception_ptr problem; // told with the guard unlocked
    static_cast<void>(reports().attempt([&] {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
        const auto guard = m_run.guard_within(left);
        if (guard && !guard->settled()) {
            guard.name_settler(SettledRun::By::requeuing);
            const bool begun = m_run.changed_attributes() && begin(*guard, problem);
            given = begun ? GuardCore::GivenUp() : guard->give_up();
        } else if (guard && guard.settler() == SettledRun::By::handler) {
            m_queue.counts().add(Outcome::settled);
        }
        return true;
    }));
    if (problem) {
        static_cast<void>(reports().attempt([&]() -> bool { std::rethrow_exception(problem); }));
    }
    if (given && given->session != nullptr) {
        reports().requeued();
    }
    return given;
}

/// Returns whether it has begun; else `problem` is why not.
ORIZURU_INLINE bool JobRequeue::begin(GuardCore& guard,
                                      std::exception_ptr& problem) const noexcept {
    try {
        guard.begin(settlement(guard));
        return true;
    } catch (...) {
        problem = std::current_exception();
    }
    return false;
}

ORIZURU_INLINE void JobRequeue::finish() const noexcept {
    const bool requeued = reports().attempt([this] {
        const auto guard = m_run.guard();
        try {
            return guard->finish("releasing");
        } catch (const ReplyError&) {
            GuardCore::put_back(guard->give_up());
            return true;
        }
    });
    if (requeued) {
        reports().requeued();
    }
}

} // namespace orizuru::detail
