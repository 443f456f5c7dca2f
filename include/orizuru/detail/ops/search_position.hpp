// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where a search through a place goes on that others change meanwhile. It goes from the end where
// messages come in to the other.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

/// Elements that were looked at and stay: the last ones, and some before these at a distance.
class KeptElements {
  public:
    /// The last one; empty: there is none.
    [[nodiscard]] std::string_view last() const noexcept {
        return m_all.empty() ? std::string_view() : m_all.back().element;
    }
    /// Where it was; -1 without any.
    [[nodiscard]] std::int64_t last_at() const noexcept {
        return m_all.empty() ? -1 : m_all.back().at;
    }
    void add(std::int64_t at, const std::string& element) {
        m_all.push_back({at, element});
        const std::size_t count = m_all.size();
        if (count > recent + 1U &&
            m_all[count - recent - 1].at - m_all[count - recent - 2].at < distance) {
            m_all.erase(m_all.end() - recent - 1);
        }
        if (m_all.size() > most) {
            m_all.erase(m_all.begin());
        }
    }
    void forget_last() {
        if (!m_all.empty()) {
            m_all.pop_back();
        }
    }
    void clear() noexcept { m_all.clear(); }

  private:
    // Consumers take some hundred elements between two looks, and payloads may be large.
    static constexpr std::ptrdiff_t recent = 4;
    static constexpr std::int64_t distance = 1000;
    static constexpr std::size_t most = 10;

    struct Element {
        std::int64_t at;
        std::string element;
    };

    std::vector<Element> m_all;
};

struct SearchPosition {
    std::int64_t at = 0;       ///< -1: with those that are served first
    std::string next;          ///< the element there, not looked at yet; empty: it is not known
    KeptElements kept;         ///< before `at`
    bool jumped = false;       ///< it has passed over those in the middle
    std::int64_t in_front = 0; ///< so many it has put before all others,
    std::string boundary;      ///< this one first

    /// Neither `next` nor the last one kept is there any more: goes back to the one before that, or
    /// begins again.
    void fall_back() {
        next.clear();
        kept.forget_last();
        at = kept.last().empty() && jumped ? -1 : kept.last_at() + 1;
    }
    /// Goes on with those that are served first.
    void skip_middle() {
        jumped = true;
        at = -1;
        next.clear();
        kept.clear();
    }
};

} // namespace orizuru::detail
