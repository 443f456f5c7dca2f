// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One LPUSH of many messages, encoded directly into the bytes to be sent. A payload's length stands
// before its bytes but is known only after them: the chunk leaves as much room as for the previous.

#include <orizuru/detail/producer/payload_source.hpp>
#include <orizuru/detail/redis/wire.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace orizuru::detail {

class PushChunk {
  public:
    static constexpr std::size_t most_messages = 1000;
    static constexpr std::size_t most_bytes = std::size_t{1} << 20;

    explicit PushChunk(std::string_view key) : m_bytes(room, ' ') {
        m_bytes += "\r\n";
        append_argument(m_bytes, std::string_view("LPUSH"));
        append_argument(m_bytes, key);
        m_first = m_bytes.size();
    }

    /// Adds the next message of `payloads`; false if there is none. Adds nothing when it throws.
    bool add(PayloadSource payloads) {
        const std::size_t begin = m_bytes.size();
        try {
            m_bytes.append(m_header, ' ');
            if (!payloads(m_bytes)) {
                m_bytes.resize(begin);
                return false;
            }
            close(begin);
        } catch (...) {
            m_bytes.resize(begin);
            throw;
        }
        ++m_count;
        return true;
    }

    /// The number of messages.
    [[nodiscard]] std::size_t size() const noexcept { return m_count; }
    [[nodiscard]] bool empty() const noexcept { return m_count == 0; }
    [[nodiscard]] bool full(std::size_t most = most_messages) const noexcept {
        return m_count >= most || m_bytes.size() - m_first >= most_bytes;
    }

    /// The whole command; valid until the chunk changes.
    [[nodiscard]] std::string_view command() {
        std::array<char, room> text;
        char* const end = std::to_chars(text.data(), text.data() + text.size(), m_count + 2).ptr;
        // Directly before the rest: a length must not begin with zeros or blanks.
        char* const digits = std::copy_backward(text.data(), end, m_bytes.data() + room);
        digits[-1] = '*';
        return std::string_view(m_bytes).substr(
            static_cast<std::size_t>(digits - 1 - m_bytes.data()));
    }

    // Not when empty().

    /// The largest payload.
    [[nodiscard]] [[gnu::cold]] std::string largest() const {
        const Place place = find_largest();
        return m_bytes.substr(place.payload, place.size);
    }
    /// Takes its message out.
    [[gnu::cold]] void remove_largest() noexcept {
        const Place place = find_largest();
        m_bytes.erase(place.begin, place.end() - place.begin);
        --m_count;
    }
    /// Takes out all messages behind it, too.
    [[gnu::cold]] void cut_at_largest() noexcept {
        const Place place = find_largest();
        m_bytes.resize(place.begin);
        m_count = place.number;
    }

    /// Forgets the messages and keeps the memory.
    void clear() noexcept {
        cut_back(m_bytes, m_first);
        m_count = 0;
    }

  private:
    static constexpr std::size_t room = 21; // '*' and the longest number

    struct Place {
        std::size_t number; ///< count of messages before it
        std::size_t begin;
        std::size_t payload;
        std::size_t size;

        [[nodiscard]] std::size_t end() const noexcept { return payload + size + 2; }
    };
    [[nodiscard]] [[gnu::cold]] Place find_largest() const noexcept {
        Place largest{};
        std::size_t at = m_first;
        for (std::size_t number = 0; number < m_count; ++number) {
            Place place{number, at, m_bytes.find('\n', at) + 1, 0};
            std::from_chars(m_bytes.data() + at + 1, m_bytes.data() + place.payload, place.size);
            if (number == 0 || place.size > largest.size) {
                largest = place;
            }
            at = place.end();
        }
        return largest;
    }

    /// Writes a payload's header into the room before it. Resizes the room only when the length has
    /// another number of digits than the previous one.
    void close(std::size_t begin) {
        std::array<char, 24> header{'$'};
        const std::size_t size = m_bytes.size() - begin - m_header;
        char* end = std::to_chars(header.data() + 1, header.data() + header.size(), size).ptr;
        *end++ = '\r';
        *end++ = '\n';
        const auto width = static_cast<std::size_t>(end - header.data());
        m_bytes.replace(begin, m_header, header.data(), width);
        m_header = width;
        m_bytes += "\r\n";
    }

    std::string m_bytes;
    std::size_t m_first = 0;  ///< where the first message begins
    std::size_t m_header = 5; ///< the width of the last payload's header: "$17\r\n"
    std::size_t m_count = 0;
};

} // namespace orizuru::detail
