// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Notes events while a lock is held; tells them to the user once it is not.

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/event.hpp>

#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class EventQueue {
  public:
    struct Noted {
        EventKind kind;
        std::string consumer;
        std::string detail;
        std::string payload;
    };
    using Batch = Fifo<Noted>;

    EventQueue(std::string queue, std::function<void(const Event&)> on_event)
        : m_queue(std::move(queue)), m_on_event(std::move(on_event)) {}

    [[gnu::cold]] void note(EventKind kind, std::string_view consumer, std::string_view detail,
                            std::string_view payload = {}) noexcept {
        if (!m_on_event) {
            return;
        }
        try {
            m_noted.push_back(
                {kind, std::string(consumer), std::string(detail), std::string(payload)});
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
            // Without memory for it, the event is dropped.
        }
    }

    [[nodiscard]] bool empty() const noexcept { return m_noted.empty(); }
    [[nodiscard]] Batch take() noexcept { return std::exchange(m_noted, {}); }

    /// Call it without a lock.
    [[gnu::cold]] void tell(const Batch& batch) const noexcept {
        for (const Noted& noted : batch) {
            tell({noted.kind, m_queue, noted.consumer, noted.detail, noted.payload});
        }
    }
    void tell(const Event& event) const noexcept {
        if (!m_on_event) {
            return;
        }
        try {
            m_on_event(event);
        } catch (...) { // NOLINT(bugprone-empty-catch)
            // A logger's failure must not become the queue's, as `on_event` documents.
        }
    }

  private:
    std::string m_queue;
    std::function<void(const Event&)> m_on_event;
    Batch m_noted;
};

} // namespace orizuru::detail
