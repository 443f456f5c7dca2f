// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// When a process of a storm did not run, although it would have: it was paused, or the machine was
// busy. What it has to do in time is late then.

#pragma once

#include "crash/support/journal.hpp"

#include <orizuru/event.hpp>

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

namespace orizuru::test {

/// Of CLOCK_MONOTONIC, in nanoseconds.
struct Span {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    /// How much of the other one is in this.
    [[nodiscard]] std::int64_t common(const Span& other) const noexcept {
        return std::min(end, other.end) - std::max(begin, other.begin);
    }
    [[nodiscard]] bool meets(const Span& other) const noexcept { return common(other) >= 0; }
};

struct alignas(32) LateTime {
    std::uint64_t serial = 0; ///< of the process; 0: of the one that has started them
    Span span;
    enum class Kind : std::uint8_t {
        late,
        broken, ///< it heard then that a consumer's connection had broken
        repaired,
        robbed ///< it heard then that a consumer had been taken for dead
    } kind = Kind::late;
};

/// Notes them in a file while it exists: a thread sleeps again and again.
class LateTimes {
  public:
    LateTimes(const std::string& path, std::uint64_t serial) : m_journal(path) {
        // A signal to the process is for another thread.
        sigset_t all;
        sigset_t before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        m_thread =
            std::jthread([this, serial](const std::stop_token& stop) { watch(stop, serial); });
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

  private:
    static constexpr std::chrono::milliseconds sleep{5};
    static constexpr std::chrono::milliseconds worth_noting{10};

    void watch(const std::stop_token& stop, std::uint64_t serial) {
        while (!stop.stop_requested()) {
            const std::int64_t due = monotonic_time() + std::chrono::nanoseconds(sleep).count();
            std::this_thread::sleep_for(sleep);
            const std::int64_t now = monotonic_time();
            if (now - due >= std::chrono::nanoseconds(worth_noting).count()) {
                m_journal.write({.serial = serial, .span = {due, now}});
            }
        }
    }

    JournalOf<LateTime> m_journal;
    std::jthread m_thread;
};

/// The events of a consumer, for the same file.
inline std::function<void(const Event&)> noting_events(const std::string& path,
                                                       std::uint64_t serial) {
    return [journal = std::make_shared<JournalOf<LateTime>>(path), serial](const Event& event) {
        const std::int64_t now = monotonic_time();
        if (event.kind == EventKind::disconnected) {
            journal->write({serial, {now, now}, LateTime::Kind::broken});
        } else if (event.kind == EventKind::reconnected) {
            journal->write({serial, {now, now}, LateTime::Kind::repaired});
        } else if (event.kind == EventKind::lease_lost) {
            journal->write({serial, {now, now}, LateTime::Kind::robbed});
        }
    };
}

} // namespace orizuru::test
