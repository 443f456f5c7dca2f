// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Collects beside a consumer (ConsumerOptions::collect), on a thread and a connection of its own: a
// pass that takes long delays no beat.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/collector/passes.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector_options.hpp>
#include <orizuru/keys.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

namespace orizuru::detail {

class Collecting {
  public:
    /// Connects on its thread, as soon as Redis can be reached. Throws std::system_error when the
    /// process can have no more threads or descriptors.
    Collecting(const Endpoint& endpoint, Keys keys, std::chrono::milliseconds interval,
               std::function<void(const Event&)> on_event)
        : m_thread(std::make_unique<std::jthread>(
              [endpoint = m_cutoff.guard(endpoint), keys = std::move(keys), interval,
               on_event = std::move(on_event)](const std::stop_token& token) {
                  run(token, endpoint, keys, interval, on_event);
              })) {}
    Collecting(const Collecting&) = delete;
    Collecting& operator=(const Collecting&) = delete;
    /// Ends a pass that runs, wherever it waits.
    ~Collecting() {
        if (m_fork.forked()) {
            static_cast<void>(m_thread.release()); // it and its descriptors are the parent's
            return;
        }
        m_thread->request_stop();
        m_cutoff.signal();
        if (m_thread->get_id() == std::this_thread::get_id()) {
            m_thread->detach(); // on_event has destroyed the consumer
        }
    }

  private:
    static constexpr std::chrono::milliseconds failure_pause{5000};

    static void run(const std::stop_token& token, const Endpoint& endpoint, const Keys& keys,
                    std::chrono::milliseconds interval,
                    const std::function<void(const Event&)>& on_event) {
        JitteredPauses outage;
        while (!token.stop_requested()) {
            try {
                Passes(keys, std::make_shared<Connection>(endpoint), {.on_event = on_event})
                    .run(token, interval);
            } catch (const ConnectionError&) {
                sleep_until(deadline_in(outage.next()), token);
            } catch (const std::exception& error) {
                tell(on_event, keys, error.what());
                sleep_until(deadline_in(failure_pause), token);
            }
        }
    }
    static void tell(const std::function<void(const Event&)>& on_event, const Keys& keys,
                     std::string_view why) noexcept {
        try {
            if (on_event) {
                on_event({.kind = EventKind::collect_failed,
                          .queue = keys.source(),
                          .consumer = {},
                          .detail = why,
                          .payload = {}});
            }
        } catch (...) { // NOLINT(bugprone-empty-catch)
            // Exceptions are swallowed, as ConsumerOptions::on_event says.
        }
    }

    ForkMark m_fork;
    Cutoff m_cutoff;
    std::unique_ptr<std::jthread> m_thread;
};

} // namespace orizuru::detail
