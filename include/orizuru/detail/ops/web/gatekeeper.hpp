// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Who may ask a Dashboard for something.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/ops/web/host_name.hpp>
#include <orizuru/ops/dashboard_options.hpp>
#include <orizuru/ops/dashboard_request.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail::web {

/// Takes as long for a secret that is wrong in its first character as for any other.
[[nodiscard]] inline bool is_secret(std::string_view given, std::string_view secret) noexcept {
    std::size_t differences = given.size() ^ secret.size();
    for (std::size_t i = 0; i < given.size(); ++i) {
        differences |= static_cast<unsigned char>(given[i] ^ secret[i % secret.size()]);
    }
    return differences == 0;
}

/// Tells more than so many a second.
class RateLimit {
  public:
    explicit RateLimit(int most) : m_most(most) {}

    /// Counts one; false when it is too many.
    bool take() {
        const auto now = std::chrono::steady_clock::now();
        const std::lock_guard lock(m_mutex);
        if (now - m_since >= std::chrono::seconds(1)) {
            m_since = now;
            m_count = 0;
        }
        return ++m_count <= m_most;
    }

  private:
    int m_most;
    std::mutex m_mutex;
    std::chrono::steady_clock::time_point m_since;
    int m_count = 0;
};

/// The outcome of looking at a request's credentials.
enum class Entry { none, too_many, read, write };

class Gatekeeper {
  public:
    /// Throws std::invalid_argument for a token that cannot be.
    explicit Gatekeeper(const DashboardOptions& options)
        : m_token(options.token.empty() ? random_hex(32) : options.token),
          m_authorize(options.authorize),
          m_first_host(options.hosts.empty() ? "" : options.hosts.front()),
          m_hosts(options.hosts) {
        constexpr std::string_view plain =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
        if (m_token.size() < 16 || m_token.find_first_not_of(plain) != std::string::npos) {
            throw std::invalid_argument(
                "a dashboard's token must have at least 16 characters of A-Z a-z 0-9 _ . -");
        }
        for (std::string& host : m_hosts) {
            const std::string given = lower(host);
            if (host_name(given) != given) {
                throw std::invalid_argument(
                    joined({"DashboardOptions::hosts has '", host,
                            "': a name or an address goes there, without scheme and port"}));
            }
            host = given;
        }
        m_hosts.insert(m_hosts.end(), {"localhost", "127.0.0.1", "[::1]"});
    }

    [[nodiscard]] const std::string& token() const noexcept { return m_token; }

    /// True if the name by which the browser has come is one of ours.
    [[nodiscard]] bool is_ours(const DashboardRequest& request) const {
        const auto host = host_name(request.header("Host").value_or(""));
        const std::lock_guard lock(m_mutex);
        return host && std::ranges::find(m_hosts, *host) != m_hosts.end();
    }
    /// From now on it is a name of ours.
    void add_host(std::string_view host) {
        const std::lock_guard lock(m_mutex);
        m_hosts.push_back(lower(host));
    }
    /// The first of DashboardOptions::hosts, or nothing.
    [[nodiscard]] const std::string& first_host() const noexcept { return m_first_host; }

    /// A right token is let in whatever others try: 128 bits need no slowing down, and nobody can
    /// lock the owner out.
    [[nodiscard]] Entry entry_of(const DashboardRequest& request) {
        constexpr std::string_view scheme = "Bearer ";
        const std::string_view given = request.header("Authorization").value_or("");
        const bool tries = given.starts_with(scheme);
        if (tries && is_secret(given.substr(scheme.size()), m_token)) {
            return Entry::write;
        }
        switch (m_authorize ? m_authorize(request) : DashboardAccess::none) {
        case DashboardAccess::read:
            return Entry::read;
        case DashboardAccess::write:
            return Entry::write;
        case DashboardAccess::none:
            break;
        }
        return tries && !m_wrong_tokens.take() ? Entry::too_many : Entry::none;
    }

    /// True if a page of our own sends it. Browsers leave out Sec-Fetch-Site where a page came
    /// without TLS from another host; then its origin tells.
    [[nodiscard]] static bool is_own_page(const DashboardRequest& request) {
        if (!request.header("X-Orizuru")) {
            return false;
        }
        if (const auto site = request.header("Sec-Fetch-Site")) {
            return *site == "same-origin";
        }
        const std::string_view origin = request.header("Origin").value_or("");
        for (const std::string_view scheme : {"http://", "https://"}) {
            if (origin.starts_with(scheme)) {
                return origin.substr(scheme.size()) == request.header("Host");
            }
        }
        return false;
    }

  private:
    std::string m_token;
    std::function<DashboardAccess(const DashboardRequest&)> m_authorize;
    std::string m_first_host;
    mutable std::mutex m_mutex;
    std::vector<std::string> m_hosts; // under m_mutex
    RateLimit m_wrong_tokens{10};
};

} // namespace orizuru::detail::web
