// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What the replies to a mirror should mean, told again in the plainest way.

#pragma once

#include "replies.hpp"

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

struct Request {
    enum class Kind { settle, move, release };
    Kind kind;
    std::size_t fetch;
    std::uint64_t version;
    std::vector<detail::DeliveryPtr> messages;

    /// The reply is exactly what the script returns when it has run.
    [[nodiscard]] bool confirmed_by(const Reply& reply) const {
        switch (kind) {
        case Kind::settle:
            return all_strings(reply) && reply.elements.size() <= fetch;
        case Kind::move:
            return is_number(reply, 1, 1);
        case Kind::release:
            return is_number(reply, 0);
        }
        return false;
    }
    /// Settled, but the source is no list.
    [[nodiscard]] bool half_confirmed_by(const Reply& reply) const {
        return kind == Kind::settle && reply.is(Reply::Type::error) && reply.code() == "SRC";
    }
};

/// The requests that are unanswered, of which Redis runs a prefix.
class Chain {
  public:
    void send(Request::Kind kind, std::size_t fetch, std::vector<detail::DeliveryPtr> messages) {
        m_requests.push_back({kind, fetch, ++m_last_sent, std::move(messages)});
    }
    [[nodiscard]] const std::deque<Request>& requests() const noexcept { return m_requests; }
    /// A request was refused; the rest must answer.
    [[nodiscard]] bool draining() const noexcept { return m_draining; }

    /// The oldest one was, by a reply that leaves no doubt.
    void answered(bool ran) {
        m_confirmed = ran ? m_requests.front().version : m_confirmed;
        m_requests.pop_front();
        m_draining = (m_draining || !ran) && !m_requests.empty();
        if (!ran && m_requests.empty()) {
            m_last_sent = m_confirmed;
        }
    }
    /// No reply counts any more.
    void cut() noexcept { m_draining = false; }
    /// Up to which version requests have run, by the header of their list; none when the header
    /// cannot be right.
    [[nodiscard]] std::optional<std::uint64_t> version_in(std::string_view header,
                                                          const detail::Identity& identity) const {
        const std::uint64_t newest = m_requests.empty() ? m_confirmed : m_requests.back().version;
        const auto version = identity.version(header);
        const bool known = version && m_confirmed <= *version && *version <= newest;
        return known ? version : std::nullopt;
    }

  private:
    std::deque<Request> m_requests;
    std::uint64_t m_confirmed = 0;
    std::uint64_t m_last_sent = 0;
    bool m_draining = false;
};

/// A list in doubt, and the ids under which it was tried to be adopted.
struct Doubt {
    std::vector<detail::DeliveryPtr> messages;
    detail::Identity identity;
    std::vector<std::string> tried = {};
    std::optional<std::string> first_header = {}; ///< of the fences met, that of the list

    /// The header of the list that the reply brings, or of the fence that ends the recovery. That
    /// of a fence that leads on is kept when it is the first.
    std::optional<std::string> header_in(const Reply& reply) {
        if (reply.is(Reply::Type::array)) {
            const auto& parts = reply.elements;
            const bool list =
                parts.size() == 2 && parts[0].is(Reply::Type::string) && all_strings(parts[1]);
            return list ? std::optional(parts[0].text) : std::nullopt;
        }
        if (!reply.is(Reply::Type::error) || reply.code() != "FENCED") {
            return std::nullopt;
        }
        std::string_view text = reply.behind_code();
        const auto cut_word = [&text] {
            const auto end = std::min(text.find(' '), text.size());
            const std::string word(text.substr(0, end));
            text.remove_prefix(std::min(end + 1, text.size()));
            return word;
        };
        if (cut_word() == "adopted" && std::ranges::count(tried, cut_word()) > 0) {
            first_header = first_header.value_or(std::string(text));
            return std::nullopt;
        }
        return std::string(text);
    }
};

} // namespace orizuru::test
