// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps an object alive while any part of it is in use. The object's own lock guards the count, so
// that counting costs nothing.

#include <cstddef>
#include <memory>
#include <utility>

namespace orizuru::detail {

class KeepAlive {
  public:
    void watch(std::weak_ptr<void> object) noexcept { m_object = std::move(object); }

    void add(std::size_t count) {
        m_count += count;
        if (m_count > 0 && !m_alive) {
            m_alive = m_object.lock();
        }
    }
    void drop(std::size_t count) noexcept { m_count -= count; }
    /// True if nothing is in use any more, and the object is still kept alive.
    [[nodiscard]] bool has_ended() const noexcept { return m_count == 0 && m_alive; }
    /// Returns a pointer that may be the last to the object: it must outlive the lock.
    [[nodiscard]] std::shared_ptr<void> take_ended() noexcept {
        return has_ended() ? std::exchange(m_alive, nullptr) : nullptr;
    }
    /// The object, while it is not about to end.
    [[nodiscard]] std::shared_ptr<void> object() const noexcept { return m_object.lock(); }
    [[nodiscard]] bool in_use() const noexcept { return m_count > 0; }

  private:
    std::size_t m_count = 0;
    std::weak_ptr<void> m_object;
    std::shared_ptr<void> m_alive; ///< from the first use until taken after the last
};

} // namespace orizuru::detail
