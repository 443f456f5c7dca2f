// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Payloads for one LPUSH, kept so that they can go to another shard when one refuses them.

#include <orizuru/detail/producer/payload_source.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace orizuru::detail {

class EncodedBatch {
  public:
    /// Takes payloads until they fill an LPUSH or there are no more; false when there was none. If
    /// `payloads` throws, the batch is of no use.
    bool fill(PayloadSource payloads) {
        m_bytes.clear();
        m_ends.clear();
        while (m_ends.size() < PushChunk::most_messages &&
               m_bytes.size() + m_ends.size() * most_framing < PushChunk::most_bytes &&
               payloads(m_bytes)) {
            m_ends.push_back(m_bytes.size());
        }
        return !m_ends.empty();
    }

    [[nodiscard]] std::size_t size() const noexcept { return m_ends.size(); }

    /// Calls push(payloads) with all payloads.
    template <class Push>
    void read(Push push) const {
        std::size_t number = 0;
        std::size_t at = 0;
        push([&](std::string& out) {
            if (number == m_ends.size()) {
                return false;
            }
            out.append(m_bytes, at, m_ends[number] - at);
            at = m_ends[number++];
            return true;
        });
    }

  private:
    // Bytes that PushChunk writes around a payload: "$536870912\r\n" and "\r\n".
    static constexpr std::size_t most_framing = 14;

    std::string m_bytes;
    std::vector<std::size_t> m_ends; ///< the payloads', in m_bytes
};

} // namespace orizuru::detail
