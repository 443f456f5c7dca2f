// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Recognizes a list that Redis cannot send: it closes the connection of a client for whom more
// waits than client-output-buffer-limit, each time that the list is adopted. A person has to help,
// so the list is measured, to be told of, and adopted again more and more seldom.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace orizuru::detail {

class CutAdoptions {
  public:
    /// The connection ended while this adoption was the only one that it owed.
    void cut() noexcept {
        ++m_in_a_row;
        m_measured = false;
    }
    /// The list was adopted, or is gone.
    void ended() noexcept { m_in_a_row = 0; }
    /// True when the list is to be measured before it is adopted again.
    [[nodiscard]] bool must_measure() const noexcept { return m_in_a_row >= most && !m_measured; }
    /// Takes the reply to a measurement. Returns what to tell; nothing if the list is not why.
    [[nodiscard]] std::optional<std::string> measured(const Reply& reply) {
        m_measured = true;
        const auto& counts = reply.elements;
        const auto counted = [](const Reply& count) { return is_count(count); };
        if (!reply.is(Reply::Type::array) || counts.size() != 3 ||
            !std::ranges::all_of(counts, counted) || counts[1].integer < least_limit) {
            m_in_a_row = 0;
            return std::nullopt;
        }
        const Digits messages(counts[0].integer);
        const Digits bytes(counts[1].integer);
        const Digits largest(counts[2].integer);
        const std::string size =
            counts[0].integer == 1
                ? joined({"1 message of ", bytes, " bytes"})
                : joined({messages, " messages of ", bytes, " bytes, the largest of ", largest});
        return joined({"ERR the connection ends each time that Redis sends ", size,
                       ": see client-output-buffer-limit"});
    }
    /// Returns for how long to adopt nothing then: 1 s, twice as long each time, 64 s at most.
    [[nodiscard]] std::chrono::seconds pause() const noexcept {
        return std::chrono::seconds(std::int64_t{1} << std::clamp(m_in_a_row - most, 0, 6));
    }

  private:
    // Chance does not end a connection that often just then.
    static constexpr int most = 3;
    // Redis collects 16 KiB before it counts.
    static constexpr std::int64_t least_limit = 16 * 1024;

    int m_in_a_row = 0;
    bool m_measured = false;
};

} // namespace orizuru::detail
