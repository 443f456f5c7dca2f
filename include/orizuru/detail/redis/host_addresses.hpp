// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The addresses of a host's name, to try one after the other: some may be those of hosts that are
// away, or that listen at their other address only.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// True for an IPv4 or IPv6 address in numbers: no resolver is asked for it.
[[nodiscard]] inline bool is_numeric(const std::string& host) noexcept {
    in6_addr number{};
    return ::inet_pton(AF_INET, host.c_str(), &number) == 1 ||
           ::inet_pton(AF_INET6, host.c_str(), &number) == 1;
}

class HostAddresses {
  public:
    HostAddresses() = default;
    /// Resolves the name, which nothing can end before the resolver does. Connecting to all of the
    /// addresses may take `time` from then on, but not beyond `limit`.
    [[gnu::cold]] HostAddresses(const std::string& host, Clock::duration time, TimePoint limit) {
        if (is_numeric(host)) {
            m_left.push_back(host);
        } else {
            resolve(host);
        }
        m_several = m_left.size() > 1;
        m_limit = std::min(limit, Clock::now() + time);
    }

    /// Returns the address to connect to next; nothing if none is left.
    [[nodiscard]] [[gnu::cold]] std::optional<std::string> take() {
        if (m_left.empty()) {
            return std::nullopt;
        }
        // One that does not answer leaves time for the others.
        constexpr std::size_t most = 3;
        const auto sharers = static_cast<int>(std::min(most, m_left.size()));
        const TimePoint now = Clock::now();
        m_until = m_left.size() == 1 ? m_limit : now + (m_limit - now) / sharers;
        m_taken = std::move(m_left.front());
        m_left.pop_front();
        return m_taken;
    }
    /// Returns when to go on to the next address; only where one is left.
    [[nodiscard]] std::optional<TimePoint> until() const noexcept {
        return m_left.empty() ? std::nullopt : std::optional(m_until);
    }
    /// Notes why the address that was taken last is none to connect to.
    [[gnu::cold]] void failed(std::string_view reason) {
        m_failures += joined({m_failures.empty() ? "" : "; ", m_several ? m_taken : "",
                              m_several ? ": " : "", reason});
    }
    /// Returns what `failed` was told, with the address where there are several.
    [[nodiscard]] const std::string& failures() const noexcept { return m_failures; }

  private:
    struct Free {
        void operator()(addrinfo* found) const noexcept { ::freeaddrinfo(found); }
    };

    void resolve(const std::string& host);

    TimePoint m_limit{};
    TimePoint m_until{};
    std::deque<std::string> m_left;
    std::string m_taken;
    bool m_several = false;
    std::string m_failures;
};

// In the order of RFC 8305, section 4: the resolver's, but the two families take turns.
[[gnu::cold]] inline void HostAddresses::resolve(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
    if (error != 0) {
        m_failures = error == EAI_SYSTEM ? std::generic_category().message(errno)
                                         : std::string(::gai_strerror(error));
        return;
    }
    const std::unique_ptr<addrinfo, Free> found(list);
    std::array<std::vector<std::string>, 2> families; // the first address's, and the other
    for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
        std::array<char, NI_MAXHOST> text{};
        if (::getnameinfo(each->ai_addr, each->ai_addrlen, text.data(), text.size(), nullptr, 0,
                          NI_NUMERICHOST) == 0) {
            auto& family = families[each->ai_family == list->ai_family ? 0 : 1];
            if (std::ranges::find(family, text.data()) == family.end()) {
                family.emplace_back(text.data());
            }
        }
    }
    for (std::size_t i = 0; i < std::max(families[0].size(), families[1].size()); ++i) {
        for (auto& family : families) {
            if (i < family.size()) {
                m_left.push_back(std::move(family[i]));
            }
        }
    }
}

} // namespace orizuru::detail
