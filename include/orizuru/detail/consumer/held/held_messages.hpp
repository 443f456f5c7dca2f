// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The messages that a lane's users hold. A delivery that was handed out keeps the consumer alive
// until it is let go, put back, lost from the run or accepted as a deferred ack.

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/consumer/attendance.hpp>
#include <orizuru/detail/consumer/held/awaits.hpp>
#include <orizuru/detail/consumer/held/keep_alive.hpp>
#include <orizuru/detail/consumer/held/unattended.hpp>
#include <orizuru/detail/consumer/lane_events.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/mirror.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace orizuru::detail {

/// The mirror, the events and the attendance outlive it. Callers hold the link's lock.
class HeldMessages {
  public:
    HeldMessages(Mirror& mirror, LaneEvents& events, Attendance& attendance)
        : m_mirror(mirror), m_events(events), m_attendance(attendance) {}

    /// Before the first fetch: from now on this is what they keep alive.
    void keep_alive(std::weak_ptr<void> object) noexcept { m_guards.watch(std::move(object)); }

    /// Moves messages to `run` until it has `most`.
    void hand_out(Fifo<DeliveryPtr>& run, std::size_t most) {
        const std::size_t before = run.size();
        run.reserve(most);
        while (m_mirror.has_ready() && run.size() < most) {
            run.push_back(m_mirror.hand_out());
        }
        m_guards.add(run.size() - before);
    }
    /// Removes from `run` what is no longer ours.
    void drop_lost(Fifo<DeliveryPtr>& run) noexcept {
        const std::size_t before = run.size();
        run.erase_if(
            [](const DeliveryPtr& message) { return message->state == Delivery::State::lost; });
        m_guards.drop(before - run.size());
    }
    void put_back(const Fifo<DeliveryPtr>& run) noexcept {
        m_guards.drop(run.size());
        m_mirror.put_back(run);
    }
    void put_back(const DeliveryPtr& message) noexcept {
        let_go();
        m_mirror.put_back(message);
    }
    void let_go() noexcept { m_guards.drop(1); }
    /// No thread awaits the message's settlement any more: on_event gets the outcome.
    void leave_unattended(const DeliveryPtr& message) noexcept {
        let_go();
        m_unattended.add(message);
        m_attendance.ask();
    }
    [[nodiscard]] bool any() const noexcept { return m_guards.in_use(); }

    /// Takes over the acks that guards have given without the lock.
    void take_acks() noexcept { m_guards.drop(m_mirror.take_acks()); }
    /// Takes them over, and accepts no more.
    void close_acks() noexcept { m_guards.drop(m_mirror.close_acks()); }
    /// Returns how many deferred acks came too late since the last call.
    [[nodiscard]] std::size_t take_late_acks() noexcept { return m_unattended.take_late_acks(); }

    /// Settlements whose callers are told of the end; null while there never was one.
    [[nodiscard]] std::unique_ptr<Awaits>& awaits() noexcept { return m_awaits; }
    [[nodiscard]] bool has_outcomes() const noexcept {
        return m_awaits && m_awaits->has_outcomes();
    }

    /// Asks again for refused settlements that no thread awaits.
    void retry_refused() { m_unattended.retry(m_mirror, m_events.noted()); }
    [[nodiscard]] bool all_attended() const noexcept {
        return m_unattended.empty() && (!m_awaits || m_awaits->empty());
    }
    /// Notes the outcomes that no thread awaits.
    void note_outcomes() noexcept { m_unattended.tell(m_events.noted(), m_mirror.identity().id); }
    /// A recovery has lost messages and found others settled.
    void on_recovered(const Recovered& recovered) noexcept {
        m_recoveries.fetch_add(1, std::memory_order_relaxed);
        m_unattended.on_lost(recovered.lost);
        m_guards.drop(recovered.acked);
    }
    /// Returns how many recoveries have ended. Without the lock, too.
    [[nodiscard]] std::uint64_t recoveries() const noexcept {
        return m_recoveries.load(std::memory_order_relaxed);
    }

    /// None is held any more, and the consumer is still kept alive.
    [[nodiscard]] bool has_ended() const noexcept { return m_guards.has_ended(); }
    /// Returns a pointer that may be the last to the consumer: it must outlive the lock.
    [[nodiscard]] std::shared_ptr<void> take_ended() noexcept { return m_guards.take_ended(); }
    /// The consumer, while it is not about to end.
    [[nodiscard]] std::shared_ptr<void> consumer() const noexcept { return m_guards.object(); }

  private:
    Mirror& m_mirror;
    LaneEvents& m_events;
    Attendance& m_attendance;
    KeepAlive m_guards; ///< counts the deliveries that were handed out
    Unattended m_unattended;
    std::unique_ptr<Awaits> m_awaits;
    std::atomic<std::uint64_t> m_recoveries{0};
};

} // namespace orizuru::detail
