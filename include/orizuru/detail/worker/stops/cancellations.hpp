// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The requests to cancel jobs of a queue, as Redis had them when this worker last looked.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// A request, as Redis has it: until when it holds, in milliseconds since 1970, a space, the
/// reason.
struct CancelRequest {
    std::string value;

    [[nodiscard]] std::string_view reason() const {
        return std::string_view(value).substr(value.find(' ') + 1);
    }
    /// Also true for what is none.
    [[nodiscard]] bool over(JobTime now) const {
        const auto until = whole_number(std::string_view(value).substr(0, value.find(' ')));
        return !until || std::cmp_less(*until, now.time_since_epoch().count());
    }
};

/// Any thread.
class Cancellations {
  public:
    /// By the ids of jobs.
    using Requests = std::map<std::string, CancelRequest, std::less<>>;

    void replace(Requests requests) {
        const std::lock_guard lock(m_mutex);
        for (const auto& [job_id, ended] : m_ended) { // since Redis was asked
            const auto found = requests.find(job_id);
            if (found != requests.end() && found->second.value == ended.value) {
                requests.erase(found);
            }
        }
        m_any.store(!requests.empty(), std::memory_order_release);
        m_requests.swap(requests);
    }
    /// Empty for a job that is not to be cancelled. Costs next to nothing while none is.
    [[nodiscard]] std::optional<std::string> reason_of(std::string_view job_id) const {
        if (!m_any.load(std::memory_order_acquire)) {
            return std::nullopt;
        }
        const std::lock_guard lock(m_mutex);
        const auto found = m_requests.find(job_id);
        return found == m_requests.end() ? std::nullopt
                                         : std::optional(std::string(found->second.reason()));
    }
    /// The job has ended, and a request with it.
    void end(std::string_view job_id) {
        if (!m_any.load(std::memory_order_acquire)) {
            return;
        }
        const std::lock_guard lock(m_mutex);
        if (const auto found = m_requests.find(job_id); found != m_requests.end()) {
            m_ended.insert_or_assign(found->first, std::move(found->second));
            m_requests.erase(found);
        }
    }
    /// The requests that have ended and that Redis may still have.
    [[nodiscard]] Requests ended() const {
        const std::lock_guard lock(m_mutex);
        return m_ended;
    }
    /// Redis has these no more.
    void forget(const Requests& ended) {
        const std::lock_guard lock(m_mutex);
        std::erase_if(m_ended, [&](const auto& request) {
            const auto found = ended.find(request.first);
            return found != ended.end() && found->second.value == request.second.value;
        });
    }

  private:
    std::atomic<bool> m_any{false};
    mutable std::mutex m_mutex; ///< guards what follows
    Requests m_requests;
    Requests m_ended;
};

} // namespace orizuru::detail
