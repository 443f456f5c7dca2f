// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads how often consumers have died while they held a message. Collectors keep that count.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/sha1.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace orizuru::detail {

/// For one thread at a time.
class Recoveries {
  public:
    /// Connects. Throws as Connection does.
    Recoveries(Endpoint endpoint, const Keys& keys)
        : m_key(keys.recoveries()), m_connection(std::move(endpoint)) {}

    /// Returns the count of the messages with this payload. Redis: HGET, O(1). Throws as Connection
    /// does.
    [[nodiscard]] int of(std::string_view payload) {
        const Sha1Hex field = sha1_hex(payload);
        const Reply reply = m_connection.command(m_key, "HGET", m_key,
                                                 std::string_view(field.data(), field.size()));
        if (reply.is(Reply::Type::nil)) {
            return 0;
        }
        int count = 0;
        const char* const end = reply.text.data() + reply.text.size();
        if (!reply.is(Reply::Type::string) ||
            std::from_chars(reply.text.data(), end, count).ec != std::errc{}) {
            m_connection.refuse("HGET");
        }
        return count;
    }

  private:
    std::string m_key;
    Connection m_connection;
};

} // namespace orizuru::detail
