// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The consumer of a worker's queue, and those before it: a pause closes a consumer whose jobs are
// not settled yet.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/consumer/consumer_core.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Any thread may call it, unless a comment says which. Before and behind the thread that fetches,
/// who starts and ends that thread stands in for it.
class QueueConsumers {
  public:
    /// Null when the queue is closed. For the thread that fetches.
    [[nodiscard]] ConsumerCore* get() const noexcept { return m_consumer.get(); }
    /// Does the same, for any thread.
    [[nodiscard]] std::shared_ptr<ConsumerCore> share() {
        const std::lock_guard lock(m_mutex);
        return m_consumer;
    }
    /// For the thread that fetches.
    void open(std::shared_ptr<ConsumerCore> consumer) noexcept {
        const std::lock_guard lock(m_mutex);
        consumer->end_by(m_end_by);
        m_consumer = std::move(consumer);
    }
    /// Closes the consumer, which leaves the registry once its last job is settled. For the thread
    /// that fetches.
    void close() noexcept {
        const std::lock_guard lock(m_mutex);
        if (m_consumer) {
            keep(m_consumer->remainder());
            m_consumer.reset();
            end_former_by(m_end_by);
        }
    }
    /// No call of one waits for Redis beyond `deadline`, the later ones included.
    void end_by(TimePoint deadline) noexcept {
        const std::lock_guard lock(m_mutex);
        m_end_by = deadline;
        if (m_consumer) {
            m_consumer->end_by(deadline);
        }
        end_former_by(deadline);
    }
    /// Those that are opened from now on have no deadline.
    void forget_end() noexcept {
        const std::lock_guard lock(m_mutex);
        m_end_by = TimePoint::max();
    }
    /// Sends the acks of all that wait for a beat, as ConsumerCore::flush does. Returns how many
    /// were too late.
    std::size_t flush() {
        std::size_t late = 0;
        for (const ConsumerCore::Remainder& part : parts()) {
            late += part.flush();
        }
        return late;
    }

  private:
    [[nodiscard]] std::vector<ConsumerCore::Remainder> parts() {
        const std::lock_guard lock(m_mutex);
        std::vector<ConsumerCore::Remainder> all = m_former;
        if (m_consumer) {
            all.push_back(m_consumer->remainder());
        }
        return all;
    }
    void keep(ConsumerCore::Remainder former) noexcept {
        std::erase_if(m_former, [](const auto& other) { return other.gone(); });
        try {
            m_former.push_back(std::move(former));
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
            // Then its acks wait for its heartbeat, a third of the lease.
        }
    }
    void end_former_by(TimePoint deadline) const noexcept {
        for (const ConsumerCore::Remainder& former : m_former) {
            former.end_by(deadline);
        }
    }

    std::mutex m_mutex; ///< guards what follows; the thread that fetches reads without it
    TimePoint m_end_by = TimePoint::max();
    std::shared_ptr<ConsumerCore> m_consumer;
    std::vector<ConsumerCore::Remainder> m_former;
};

} // namespace orizuru::detail
