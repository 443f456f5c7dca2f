// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Collects beside a consumer (ConsumerOptions::collect), on a thread and a connection of its own: a
// pass that takes long delays no beat.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/collector/passes.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/error.hpp>
#include <orizuru/garbage_collector_options.hpp>

#include <exception>
#include <stop_token>

namespace orizuru {

namespace detail {

class Collecting {
  public:
    /// Connects on its thread, as soon as Redis can be reached. Throws std::system_error when the
    /// process can have no more threads or descriptors.
    Collecting(const Endpoint& endpoint, const Keys& keys, std::chrono::milliseconds interval,
               const std::function<void(const Event&)>& on_event)
        : m_thread([token = m_stop.get_token(), endpoint = m_cutoff.guard(endpoint), interval,
                    events = EventQueue(keys.source(), on_event), keys,
                    options = GarbageCollectorOptions{.on_event = on_event}] {
              run(token, endpoint, keys, interval, options, events);
          }) {}
    Collecting(const Collecting&) = delete;
    Collecting& operator=(const Collecting&) = delete;
    /// Ends a pass that runs, wherever it waits.
    ~Collecting() {
        if (!m_fork.forked()) { // else its descriptors are the parent's
            m_stop.request_stop();
            m_cutoff.signal();
        }
    }

  private:
    static constexpr std::chrono::milliseconds failure_pause{5000};

    static void run(const std::stop_token& token, const Endpoint& endpoint, const Keys& keys,
                    std::chrono::milliseconds interval, const GarbageCollectorOptions& options,
                    const EventQueue& events) {
        JitteredPauses outage;
        while (!token.stop_requested()) {
            try {
                Connection connection(endpoint);
                Passes(keys, connection, options).run(token, interval);
            } catch (const ConnectionError&) {
                sleep_until(deadline_in(outage.next()), token);
            } catch (const std::exception& error) {
                events.tell({EventKind::collect_failed, keys.source(), "", error.what(), ""});
                sleep_until(deadline_in(failure_pause), token);
            }
        }
    }

    ForkMark m_fork;
    Cutoff m_cutoff;
    std::stop_source m_stop;
    OwnThread m_thread;
};

} // namespace detail

// Not by std::make_shared, for which the compiler looks at the whole collector even when it is not
// used: a function that deletes is no virtual one.
ORIZURU_INLINE std::shared_ptr<void> CollectInterval::start(const Endpoint& endpoint,
                                                            const Keys& keys,
                                                            std::chrono::milliseconds interval,
                                                            const OnEvent& on_event) {
    void (*const end)(void*) = [](void* running) {
        delete static_cast<detail::Collecting*>(running);
    };
    return {static_cast<void*>(new detail::Collecting(endpoint, keys, interval, on_event)), end};
}

} // namespace orizuru
