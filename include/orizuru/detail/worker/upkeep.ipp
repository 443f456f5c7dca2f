// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of upkeep.hpp.

#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/worker/chores.hpp>
#include <orizuru/detail/worker/queue_upkeep.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>

namespace orizuru::detail {

ORIZURU_INLINE Upkeep::Upkeep(const Endpoint& endpoint, const ServedQueues& queues,
                              WorkerShared& shared, Dispatcher& dispatcher, ParkedTasks& parked)
    : m_shared(shared),
      m_parked(parked),
      m_queues(
          std::make_unique<QueueUpkeep>(m_cutoff.guard(endpoint), queues, shared, dispatcher)) {}

ORIZURU_INLINE Upkeep::~Upkeep() { end(Clock::now()); }

ORIZURU_INLINE void Upkeep::start() {
    start("upkeep", [this](const std::stop_token& token) { m_queues->run(token); });
    start("settling what was refused",
          [this](const std::stop_token& token) { m_parked.run(token); });
}

/// Starts a thread that repeats `action` until it is told to stop, also when the action throws.
template <class Action>
void Upkeep::start(std::string_view what, Action action) {
    const std::lock_guard lock(m_mutex); // a thread that ends waits for it
    m_threads.emplace_back([this, what, action](const std::stop_token& token) {
        while (!token.stop_requested()) {
            try {
                action(token);
            } catch (const std::exception& error) {
                if (!token.stop_requested()) {
                    m_shared.events.tell_failed(what, "", error.what(), Chores::failure_pause);
                    sleep_until(deadline_in(Chores::failure_pause), token);
                }
            }
        }
        const std::lock_guard leaving(m_mutex);
        --m_alive;
        m_ended.notify_all();
    });
    ++m_alive;
}

ORIZURU_INLINE void Upkeep::request_stop() noexcept {
    std::ranges::for_each(m_threads, [](std::jthread& thread) { thread.request_stop(); });
}

ORIZURU_INLINE void Upkeep::end(TimePoint deadline) noexcept {
    request_stop();
    {
        std::unique_lock lock(m_mutex);
        m_ended.wait_until(lock, deadline, [this] { return m_alive == 0; });
    }
    m_cutoff.signal();
    m_threads.clear();
}

} // namespace orizuru::detail
