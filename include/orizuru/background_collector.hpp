// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Collects in the background: beside a consumer, one line brings back what was rejected and what
// dead consumers held.
//
//     orizuru::BackgroundCollector collecting("redis://localhost", "orders", 5s);

#include <orizuru/detail/base/config.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/garbage_collector_options.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace orizuru {

/// Makes passes for one queue, as GarbageCollector::run does, from its construction to its
/// destruction: one connection and one thread of its own.
///
/// It connects as soon as Redis can be reached, and waits out outages without an event. When a pass
/// fails for a reason that only a person can fix, `on_event` hears collect_failed; it connects
/// again and makes another pass after 5 s.
///
/// One thread at a time may move or destroy it; `on_event`, which it calls on its own thread, may
/// destroy it too. One that was moved from collects nothing.
class BackgroundCollector {
  public:
    /// Starts the thread; does not wait for Redis. `interval` as in GarbageCollector::run.
    /// Redis: as GarbageCollector::run; its connection has the name that the endpoint gives.
    /// Throws: std::invalid_argument for an invalid queue name or option, or an interval that is
    ///     not positive; std::system_error when the process has no descriptor or thread left.
    ///     Then nothing was started.
    BackgroundCollector(Endpoint endpoint, std::string queue, std::chrono::milliseconds interval,
                        GarbageCollectorOptions options = {});
    BackgroundCollector(const BackgroundCollector&) = delete;
    BackgroundCollector& operator=(const BackgroundCollector&) = delete;
    /// Takes over the thread and the connection, which go on meanwhile.
    BackgroundCollector(BackgroundCollector&&) noexcept;
    /// Ends its own passes first, as the destructor does.
    BackgroundCollector& operator=(BackgroundCollector&&) noexcept;
    /// Ends a pass wherever it waits for Redis (name resolution excluded), and waits for a call of
    /// `on_event` to return. Moved messages stay moved; another collector's next pass continues. In
    /// a forked child it leaves the parent's collector alone.
    ~BackgroundCollector();

  private:
    class Running;
    std::unique_ptr<Running> m_running;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/collector/background_collector.ipp>
#endif
