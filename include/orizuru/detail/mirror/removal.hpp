// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Which messages of a processing list a SETTLE removes, and how.

#include <orizuru/detail/base/fifo.hpp>

#include <cstddef>
#include <cstdint>

namespace orizuru::detail {

/// Told of the messages one by one, oldest first.
///
/// Messages behind an older one that stays are removed in one of two ways. Marking costs a command
/// for each of them. Rewriting pops the older ones that stay, trims those that go, and pushes back
/// what was popped: its costs grow with the number and bytes of those that stay.
class Removal {
  public:
    void clear() noexcept {
        m_runs.clear();
        m_oldest = m_kept = m_kept_bytes = m_staying = m_staying_bytes = m_behind = 0;
    }
    void remove() {
        if (m_kept + m_staying == 0) {
            ++m_oldest;
            return;
        }
        if (m_staying > 0 || m_runs.empty()) {
            m_runs.push_back({m_staying, 0});
            m_kept += m_staying;
            m_kept_bytes += m_staying_bytes;
            m_staying = m_staying_bytes = 0;
        }
        ++m_runs.back().removed;
        ++m_behind;
    }
    void keep(std::size_t bytes) noexcept {
        ++m_staying;
        m_staying_bytes += bytes;
    }

    /// Returns how many are removed from the oldest on.
    [[nodiscard]] std::size_t oldest() const noexcept { return m_oldest; }

    /// Returns how many arguments SETTLE gets for the others.
    [[nodiscard]] std::size_t arguments() const noexcept {
        return rewrites() ? 2 * m_runs.size() : m_behind;
    }
    /// Passes them to `take`, numbers. Marking: the index of each from the right, before anything
    /// is removed. Rewriting: by turns how many stay and how many go, behind the oldest.
    template <class Take>
    void arguments(Take take) const {
        std::size_t index = m_oldest;
        for (const Run& run : m_runs) {
            if (rewrites()) {
                take(run.kept);
                take(run.removed);
                continue;
            }
            index += run.kept;
            for (std::size_t i = 0; i < run.removed; ++i) {
                take(-static_cast<std::int64_t>(index++) - 2);
            }
        }
    }

  private:
    struct Run {
        std::size_t kept;
        std::size_t removed;
    };

    // In ns of Redis 7.0's CPU, measured with payloads of 10 to 10,000 bytes.
    static constexpr std::size_t a_mark = 2000;
    static constexpr std::size_t a_rewriting = 8000;
    static constexpr std::size_t a_run = 2500;
    static constexpr std::size_t a_kept_message = 500;
    static constexpr std::size_t a_kept_byte = 2;

    [[nodiscard]] bool rewrites() const noexcept {
        return a_rewriting + m_runs.size() * a_run + m_kept * a_kept_message +
                   m_kept_bytes * a_kept_byte <
               m_behind * a_mark;
    }

    Fifo<Run> m_runs;
    std::size_t m_oldest = 0;
    std::size_t m_kept = 0; ///< older than a removed one
    std::size_t m_kept_bytes = 0;
    std::size_t m_staying = 0; ///< since the last removed one
    std::size_t m_staying_bytes = 0;
    std::size_t m_behind = 0; ///< removed behind one that stays
};

} // namespace orizuru::detail
