// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Brings back messages of dead consumers and rejected messages. Any number of collectors may run at
// once, on any host; every step is atomic and can be repeated.
//
// A collector also limits the harm of a message that kills its consumers: it counts how often a
// message is blamed for a consumer's death, and buries it when the count exceeds a limit.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/garbage_collector_options.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

namespace orizuru {

/// Brings back a queue's rejected messages and those of its dead consumers: one connection, for one
/// thread at a time. BackgroundCollector has a thread of its own.
class GarbageCollector {
  public:
    /// Connects. Throws as Producer's constructor does.
    GarbageCollector(Endpoint endpoint, std::string queue, GarbageCollectorOptions options = {});
    GarbageCollector(const GarbageCollector&) = delete;
    GarbageCollector& operator=(const GarbageCollector&) = delete;
    /// Takes over the connection; a call on the other one then throws std::logic_error.
    GarbageCollector(GarbageCollector&&) noexcept;
    /// Closes its own connection and takes over that of the other one, as the constructor does.
    GarbageCollector& operator=(GarbageCollector&&) noexcept;
    ~GarbageCollector();

    /// Makes one pass: first the consumers, then the unack list as long as it was at the start.
    /// Redis: SMEMBERS, an MGET per 1000 registered consumers, a script per dead one (O(messages it
    ///     held), plus the bytes of the blamed ones), LLEN, a script per `batch` rejected messages,
    ///     EXISTS; where consumers are dead and `blamed` is above 1, LRANGE of one element for each
    ///     of up to 32 living ones; where suspects wait that nobody asks for, a script per 1000;
    ///     INFO once a minute; in the first pass and every 10 minutes a SCAN; a script, O(1), that
    ///     tells of the pass, and a SET, by which consumers see that they are collected. Without
    ///     the right to INFO, MGET or SCAN it still collects: without eviction warnings, with a
    ///     script per consumer, without the search for lists that have no registered consumer.
    /// Atomic: one step moves and fences a consumer's whole list; one step moves each batch.
    /// Blocks: at most command_timeout per command. Where a consumer's absence does not count yet
    ///     (GarbageCollectorOptions::grace), it leaves a mark in Redis that the next call goes by.
    ///     That call waits for 2 s, and asks Redis twice a second, before it takes the consumer for
    ///     dead. It waits for up to 15 s where an absence will count by then. A consumer whose beat
    ///     waits longer than these 2 s, for a host that has fallen silent, may be taken for dead
    ///     although it lives: run() gives it its time.
    /// Throws: ConnectionError, ReplyError (WRONGTYPE names the key), ProtocolError. Moved messages
    ///     stay moved; the next pass continues.
    Collected collect();

    /// Makes passes until a stop is requested, together with all running collectors of the queue:
    /// one of them makes a pass for all, every 10 minutes with a SCAN; the others ask Redis with a
    /// script, O(1), about once per `interval`. Passes begin 9/10 to 10/10 of the shortest
    /// `interval` apart, even after the process that made the last one has died; an interval over
    /// 24 hours counts as 24 hours. A collector without the right to ask makes its own passes.
    ///
    /// Waits out outages of Redis. Throws ReplyError for errors that only a person can fix: the
    /// next collector that asks then takes over the pass. When the failed collector runs again, it
    /// makes passes only if no other has begun one for 11/10 of `interval`, until it completes one.
    /// Throws std::invalid_argument for an interval that is not positive, std::system_error when
    /// the process has no descriptor left.
    void run(std::stop_token token, std::chrono::milliseconds interval);

  private:
    struct Parts;
    detail::Owned<std::unique_ptr<Parts>, "garbage collector"> m_parts;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/collector/garbage_collector.ipp>
#endif
