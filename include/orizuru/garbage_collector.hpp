// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Brings messages back: those of consumers that died, and those that were rejected. Any number of
// collectors may run at once, on any host; every step is atomic and can be repeated.
//
// Also bounds the harm of a message that kills whoever handles it: the messages that are blamed for
// a consumer's death are counted, and buried when they have been blamed once too often.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/garbage_collector_options.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

namespace orizuru {

namespace detail {
class Passes;
}

/// A collector for one queue: one connection, used by one thread at a time.
class GarbageCollector {
  public:
    /// Connects. Throws as Producer's constructor does.
    GarbageCollector(Endpoint endpoint, std::string queue, GarbageCollectorOptions options = {});
    GarbageCollector(const GarbageCollector&) = delete;
    GarbageCollector& operator=(const GarbageCollector&) = delete;
    GarbageCollector(GarbageCollector&&) noexcept;
    GarbageCollector& operator=(GarbageCollector&&) noexcept;
    ~GarbageCollector();

    /// One pass. First the consumers, then the unack list as long as it was at the start.
    /// Redis: INFO, SMEMBERS, an MGET for 1000 registered consumers, a script per dead one
    ///     (O(messages it held), and the bytes of those that are blamed), LLEN, a script per
    ///     `batch` rejected messages; in the first pass and every 10 minutes a SCAN. A user without
    ///     the right to INFO, MGET or SCAN collects all the same: without a word on evictions, with
    ///     a script per consumer, without the search for lists that nobody is registered for.
    /// Atomic: each consumer's whole list is moved and fenced in one step; so is each batch.
    /// Blocks: at most command_timeout per command.
    /// Throws: ConnectionError, ReplyError (WRONGTYPE names the key), ProtocolError; what was
    ///     moved stays moved, the next pass goes on.
    Collected collect();

    /// Makes passes until a stop is requested, together with all collectors of the queue that run:
    /// one of them makes a pass for all, every 10 minutes with a SCAN; the others ask Redis with a
    /// script, O(1), about once per `interval`. Passes begin 9/10 to 10/10 of the shortest
    /// `interval` apart, also when the process that made the last one has died; an interval longer
    /// than 24 hours counts as 24 hours. A collector that may not ask makes its own passes.
    ///
    /// Waits out outages of Redis. Throws ReplyError for what only a person can mend: the pass is
    /// then left to the next collector that asks, and this one, when it runs again, makes passes
    /// only if nobody else has begun one for 11/10 of `interval`, until it completes one. Throws
    /// std::invalid_argument for an interval that is not positive, std::system_error when the
    /// process can have no more descriptors.
    void run(std::stop_token token, std::chrono::milliseconds interval);

  private:
    std::unique_ptr<detail::Passes> m_passes;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/garbage_collector.ipp>
#endif
