// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The id of a job and when it was enqueued, from the first bytes of its envelope (job.hpp): the
// rest may be missing, of a newer version, or unreadable for every Codec.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/jobs/envelope_limits.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// An envelope's id, and enqueued_at, end within this many bytes.
inline constexpr std::size_t longest_envelope_start = 600;

/// Reads a msgpack value after the other.
class EnvelopeStart {
  public:
    explicit EnvelopeStart(std::string_view bytes) : m_rest(bytes) {}

    /// Returns how many bytes are left to read.
    [[nodiscard]] std::size_t left() const noexcept { return m_rest.size(); }
    /// True if an array begins here; passes to its first element.
    [[nodiscard]] bool enter_array() {
        const unsigned kind = next();
        return (kind & 0xf0U) == 0x90 || (kind == 0xdc && number(2)) || (kind == 0xdd && number(4));
    }
    [[nodiscard]] bool pass_unsigned() {
        const unsigned kind = next();
        return kind <= 0x7f || (kind >= 0xcc && kind <= 0xcf && number(1U << (kind - 0xcc)));
    }
    [[nodiscard]] std::optional<std::string_view> text() {
        const unsigned kind = next();
        std::optional<std::uint64_t> size;
        if ((kind & 0xe0U) == 0xa0) {
            size = kind & 0x1fU;
        } else if (kind >= 0xd9 && kind <= 0xdb) {
            size = number(1U << (kind - 0xd9));
        }
        if (!size || *size > m_rest.size()) {
            return std::nullopt;
        }
        const std::string_view found = m_rest.substr(0, narrow<std::size_t>(*size));
        m_rest.remove_prefix(found.size());
        return found;
    }
    /// Passes an integer or nil.
    [[nodiscard]] bool pass_optional_integer() {
        if (m_rest.starts_with('\xc0')) {
            m_rest.remove_prefix(1);
            return true;
        }
        return integer().has_value();
    }
    [[nodiscard]] std::optional<std::int64_t> integer() {
        const unsigned kind = next();
        if (kind <= 0x7f || (kind >= 0xe0 && kind <= 0xff)) {
            return static_cast<std::int8_t>(kind);
        }
        if (kind < 0xcc || kind > 0xd3) {
            return std::nullopt;
        }
        const unsigned width = 1U << ((kind - 0xcc) % 4);
        const auto value = number(width);
        if (!value || kind <= 0xcf) {
            const bool possible = value && std::in_range<std::int64_t>(*value);
            return possible ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
        }
        const unsigned unused = 64 - 8 * width; // the sign fills these
        return static_cast<std::int64_t>(*value << unused) >> unused;
    }

  private:
    static constexpr unsigned nothing = 0xc1; // what msgpack never uses

    unsigned next() {
        if (m_rest.empty()) {
            return nothing;
        }
        const auto byte = static_cast<unsigned char>(m_rest.front());
        m_rest.remove_prefix(1);
        return byte;
    }
    std::optional<std::uint64_t> number(std::size_t width) {
        if (m_rest.size() < width) {
            return std::nullopt;
        }
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < width; ++i) {
            value = value << 8U | next();
        }
        return value;
    }

    std::string_view m_rest;
};

/// None: it is no envelope, or its beginning ends before its id does.
[[nodiscard]] inline std::optional<std::string_view> envelope_id(std::string_view start) {
    EnvelopeStart reader(start);
    if (!reader.enter_array() || !reader.pass_unsigned()) {
        return std::nullopt;
    }
    const auto id = reader.text();
    return id && !id->empty() && id->size() <= longest_job_id ? id : std::nullopt;
}

/// Returns when the attempt was enqueued. None: it is no envelope, or has not begun with that.
[[nodiscard]] inline std::optional<JobTime> envelope_time(std::string_view start) {
    EnvelopeStart reader(start);
    if (!reader.enter_array() || !reader.pass_unsigned() || !reader.text() ||
        !reader.pass_unsigned() || !reader.integer()) {
        return std::nullopt;
    }
    const auto number = reader.integer();
    const JobTime time(std::chrono::milliseconds(number.value_or(0)));
    const bool possible = number && time >= earliest_job_time && time <= latest_job_time;
    return possible ? std::optional(time) : std::nullopt;
}

} // namespace orizuru::detail
