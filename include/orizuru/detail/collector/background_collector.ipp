// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of background_collector.hpp.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/collector/collector_checks.hpp>
#include <orizuru/detail/collector/passes.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/keys.hpp>

#include <exception>
#include <stop_token>
#include <utility>

namespace orizuru {

class BackgroundCollector::Running {
  public:
    Running(Endpoint endpoint, const Keys& keys, std::chrono::milliseconds interval,
            GarbageCollectorOptions options)
        : m_thread(Work{m_stop.get_token(), m_cutoff.guard(std::move(endpoint)), keys, interval,
                        detail::EventQueue(keys.source(), options.on_event), std::move(options)}) {}
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
        if (!m_fork.forked()) { // else its descriptors are the parent's
            m_stop.request_stop();
            m_cutoff.signal();
        }
    }

  private:
    /// Runs on the thread. It has copies of all that it needs: on_event may destroy the owner.
    struct Work {
        std::stop_token token;
        Endpoint endpoint;
        Keys keys;
        std::chrono::milliseconds interval;
        detail::EventQueue events;
        GarbageCollectorOptions options;

        void operator()() const {
            detail::JitteredPauses outage;
            while (!token.stop_requested()) {
                try {
                    Connection connection(endpoint);
                    detail::Passes(keys, connection, options).run(token, interval);
                } catch (const ConnectionError&) {
                    detail::sleep_until(detail::deadline_in(outage.next()), token);
                } catch (const std::exception& error) {
                    events.tell({EventKind::collect_failed, keys.source(), "", error.what(), ""});
                    detail::sleep_until(detail::deadline_in(failure_pause), token);
                }
            }
        }
    };

    static constexpr std::chrono::milliseconds failure_pause{5000};

    detail::ForkMark m_fork;
    detail::Cutoff m_cutoff;
    std::stop_source m_stop;
    detail::OwnThread m_thread;
};

ORIZURU_INLINE BackgroundCollector::BackgroundCollector(Endpoint endpoint, std::string queue,
                                                        std::chrono::milliseconds interval,
                                                        GarbageCollectorOptions options) {
    const Keys keys(std::move(queue));
    detail::check_interval(interval);
    detail::validate(options);
    m_running = std::make_unique<Running>(detail::Route::to_key(std::move(endpoint), keys.source()),
                                          keys, interval, std::move(options));
}
ORIZURU_INLINE BackgroundCollector::BackgroundCollector(BackgroundCollector&&) noexcept = default;
ORIZURU_INLINE BackgroundCollector&
BackgroundCollector::operator=(BackgroundCollector&&) noexcept = default;
ORIZURU_INLINE BackgroundCollector::~BackgroundCollector() = default;

} // namespace orizuru
