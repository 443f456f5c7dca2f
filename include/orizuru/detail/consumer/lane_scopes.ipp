// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a caller of a lane holds for a scope: its lock, a watch, the attendance.

namespace orizuru::detail {

/// Holds the link's lock. Its destructor unlocks, then delivers the noted events; the consumer may
/// then be gone.
class Lane::Lock : public Link::Lock {
  public:
    explicit Lock(Lane& lane) : Link::Lock(lane.m_link->mutex()), m_lane(lane) {}
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() {
        if (m_lane.has_news()) {
            m_lane.deliver(*this);
        }
    }

  private:
    Lane& m_lane;
};

/// While one exists, `wake` is signalled by the begin and the end of a recovery, by a refusal, and
/// by an event for the user that a thread of another queue has read.
class [[nodiscard]] Lane::Watch : public Linked {
  public:
    Watch(Lane& lane, const Wake& wake) : m_lane(lane), m_wake(wake) {
        const Link::Lock lock(m_lane.m_link->mutex());
        m_lane.m_watches.push_back(*this);
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
        const Link::Lock lock(m_lane.m_link->mutex());
        m_lane.m_watches.erase(*this);
    }
    void signal() const noexcept { m_wake.signal(); }

  private:
    Lane& m_lane;
    const Wake& m_wake;
};

/// While one exists, a thread that serves several lanes calls `advance` and `deliver` for this one,
/// as `drive` would: acks are hurried, and no Watch hears of events.
class [[nodiscard]] Lane::Attendance {
  public:
    explicit Attendance(Lane& lane) noexcept : m_lane(lane) {
        ++lane.m_drivers;
        ++lane.m_hurries;
    }
    Attendance(const Attendance&) = delete;
    Attendance& operator=(const Attendance&) = delete;
    ~Attendance() {
        --m_lane.m_drivers;
        --m_lane.m_hurries;
    }

  private:
    Lane& m_lane;
};

} // namespace orizuru::detail
