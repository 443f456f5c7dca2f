// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Notes the events of a lane under the link's lock, each trouble and its end once, and tells them
// to the user without it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/event.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// Which troubles were told of. Breaks of the link and of the waiter's connection that overlap are
/// one.
class ToldTroubles {
  public:
    /// A connection breaks. Returns false when a break was told of already.
    [[nodiscard]] bool begin_break() noexcept {
        return std::exchange(m_break, Break::told) == Break::none;
    }
    /// All is connected. Returns false when no break was told of.
    [[nodiscard]] bool end_break() noexcept {
        return std::exchange(m_break, Break::none) == Break::told;
    }

    /// Redis has refused because the queue's slot is on its way. Returns true once, when it has
    /// refused for 5 s. A refusal that comes later than attempts are apart may have been read late:
    /// alone it says nothing.
    [[nodiscard]] bool migrates_long(TimePoint now) noexcept {
        constexpr std::chrono::seconds long_enough(5);
        if (m_migrating_since == TimePoint()) {
            m_migrating_since = m_refused_at = now;
        }
        const bool late = now - std::exchange(m_refused_at, now) > long_enough;
        const bool alone = !std::exchange(m_late, late) && late;
        if (m_migrating_since == told || alone || now - m_migrating_since < long_enough) {
            return false;
        }
        m_migrating_since = told;
        return true;
    }
    /// It has not been on its way all the time.
    void forget_migration() noexcept {
        m_migrating_since = {};
        m_late = false;
    }

  private:
    enum class Break : std::uint8_t { none, told };
    static constexpr TimePoint told = TimePoint::max();

    Break m_break = Break::none;
    TimePoint m_migrating_since{};
    TimePoint m_refused_at{};
    bool m_late = false; ///< the last refusal was
};

/// The mirror outlives it. Callers hold the lock, except for `tell`.
class LaneEvents {
  public:
    LaneEvents(EventQueue&& events, const Mirror& mirror)
        : m_mirror(mirror), m_noted(std::move(events)) {}

    [[gnu::cold]] void note(EventKind kind, std::string_view detail,
                            std::string_view payload = {}) noexcept {
        m_noted.note(kind, m_mirror.identity().id, detail, payload);
    }
    /// Notes a break, of the link or of the waiter's connection, unless one is told of already.
    [[gnu::cold]] void note_break(std::string_view reason) noexcept {
        if (m_told.begin_break()) {
            note(EventKind::disconnected, reason);
        }
    }
    /// Notes that all is connected again, if a break was told of.
    [[gnu::cold]] void note_repair(std::string_view detail) noexcept {
        if (m_told.end_break()) {
            note(EventKind::reconnected, detail);
        }
    }
    /// Notes once that Redis has refused for long because the queue's slot is on its way.
    [[gnu::cold]] void note_migration(std::string_view refusal) noexcept {
        if (refusal.starts_with("TRYAGAIN") && m_told.migrates_long(Clock::now())) {
            note(EventKind::slot_migrating, refusal);
        }
    }
    /// The slot has not been on its way all the time.
    void forget_migration() noexcept { m_told.forget_migration(); }

    [[nodiscard]] bool empty() const noexcept { return m_noted.empty(); }
    [[nodiscard]] EventQueue& noted() noexcept { return m_noted; }
    void tell(const EventQueue::Batch& events) const noexcept { m_noted.tell(events); }
    /// Tells one event at once.
    void tell(const Event& event) const noexcept { m_noted.tell(event); }

  private:
    const Mirror& m_mirror;
    EventQueue m_noted;
    ToldTroubles m_told;
};

} // namespace orizuru::detail
