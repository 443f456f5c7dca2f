// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Sends the acks of several jobs of a queue to Redis together, and says when to repeat what Redis
// has refused: one by one they would cost a round trip for each job.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/error.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// For one thread at a time.
class AcksTogether {
  public:
    explicit AcksTogether(ServedQueue& queue) : m_queue(queue) {}

    /// Calls `send`, which is Consumer::flush of whatever has accepted the acks. Returns whether
    /// they were in time, and tells when some were not; empty when Redis refuses.
    std::optional<bool> flush(FunctionRef<std::size_t()> send) noexcept;
    /// Returns when to repeat a flush that Redis has refused; empty when there is none to repeat.
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept { return m_retry_at; }
    void give_up() noexcept { m_retry_at.reset(); }

  private:
    void tell(WorkerEventKind kind, std::string_view detail,
              std::optional<std::chrono::milliseconds> retry_in = {}) const noexcept {
        m_queue.tell(WorkerEvent{.kind = kind, .detail = detail, .retry_in = retry_in});
    }
    [[nodiscard]] std::chrono::milliseconds next_pause() {
        if (!m_pauses) {
            m_pauses.emplace();
        }
        return m_pauses->next();
    }

    ServedQueue& m_queue;
    std::optional<TimePoint> m_retry_at;
    std::optional<JitteredPauses> m_pauses;
};

inline std::optional<bool> AcksTogether::flush(FunctionRef<std::size_t()> send) noexcept {
    m_retry_at.reset();
    try {
        const std::size_t late = send();
        if (late > 0) {
            tell(WorkerEventKind::lost,
                 std::to_string(late) + " of the acks that were sent together came too late");
        }
        return late == 0;
    } catch (const ReplyError& error) {
        const auto pause = next_pause();
        m_retry_at = deadline_in(pause);
        tell(WorkerEventKind::unsettled, error.what(), pause);
        return std::nullopt;
    } catch (...) {
        // The flush goes on in the background.
        tell_thrown([this](std::string_view what) { tell(WorkerEventKind::unsettled, what); });
        return false;
    }
}

} // namespace orizuru::detail
