// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps the leases of claims, on a connection that no handler's call can block.

#include <orizuru/connection.hpp>
#include <orizuru/detail/once/once_scripts.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Any thread.
class ClaimRenewal {
  public:
    ClaimRenewal(Endpoint endpoint, std::chrono::milliseconds lease,
                 std::chrono::milliseconds remember)
        : m_endpoint(std::move(endpoint)), m_lease(lease), m_remember(remember) {}

    void add(const std::string& fence, const std::string& record) {
        const std::lock_guard lock(m_holding);
        m_held.emplace(fence, record);
    }
    void drop(const std::string& fence) {
        const std::lock_guard lock(m_holding);
        m_held.erase(fence);
    }

    /// Renews all claims that are held; drops those that Redis reports as over.
    void renew() noexcept {
        try {
            const std::lock_guard lock(m_renewing);
            const std::vector<Claim> held = this->held();
            for (std::span<const Claim> left = held; !left.empty();) {
                const std::size_t size = std::min(left.size(), most_at_once);
                renew(left.first(size));
                left = left.subspan(size);
            }
        } catch (...) { // NOLINT(bugprone-empty-catch)
            // The next beat tries again, until the lease is over.
        }
    }

  private:
    using Claim = std::pair<std::string, std::string>; ///< its token and its record's key

    // Redis does nothing else while it renews them.
    static constexpr std::size_t most_at_once = 100;

    [[nodiscard]] std::vector<Claim> held() const {
        const std::lock_guard lock(m_holding);
        return {m_held.begin(), m_held.end()};
    }

    void renew(std::span<const Claim> claims) {
        if (!m_connection) {
            m_connection.emplace(m_endpoint);
        }
        const Reply over = exchange(*m_connection, "", "EVAL", [&](std::string& out) {
            begin_command(out, 5 + 2 * claims.size());
            append_argument(out, std::string_view("EVAL"));
            append_argument(out, renew_claims_script);
            append_argument(out, claims.size());
            for (const auto& [fence, record] : claims) {
                append_argument(out, record);
            }
            append_argument(out, m_lease.count());
            append_argument(out, m_remember.count());
            for (const auto& [fence, record] : claims) {
                append_argument(out, fence);
            }
        });
        if (!is_strings(over)) {
            refuse(*m_connection, "EVAL");
        }
        for (const Reply& fence : over.elements) {
            drop(fence.text);
        }
    }

    const Endpoint m_endpoint;
    const std::chrono::milliseconds m_lease;
    const std::chrono::milliseconds m_remember;

    mutable std::mutex m_holding;              ///< guards what follows
    std::map<std::string, std::string> m_held; ///< tokens and records' keys

    std::mutex m_renewing;                  ///< guards what follows
    std::optional<Connection> m_connection; ///< since there was something to renew
};

} // namespace orizuru::detail
