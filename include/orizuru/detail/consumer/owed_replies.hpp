// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The replies that Redis owes on a connection, in the order of their requests.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/consumer/link_member.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace orizuru::detail {

class OwedReplies {
  public:
    using Purpose = LinkMember::Purpose;

    /// For a thread that waits for the reply to a command outside the members' requests. The
    /// thread owns it, and calls `forget` when it waits no longer.
    struct Answer {
        std::optional<Reply> reply;
        bool failed = false; ///< no reply will come
    };

    struct Owed {
        LinkMember* member;        ///< null: not a member's, or it has left
        Purpose purpose;           ///< why a member's request was sent
        std::uint64_t incarnation; ///< the member's when it sent the request
        Answer* answer;            ///< null: a member's, or forgotten
        TimePoint sent;
    };

    [[nodiscard]] static Owed to(LinkMember& member, Purpose purpose) noexcept {
        return {&member, purpose, member.incarnation(), nullptr, {}};
    }
    [[nodiscard]] static Owed to(Answer& answer) noexcept {
        return {nullptr, Purpose::none, 0, &answer, {}};
    }

    [[nodiscard]] bool empty() const noexcept { return m_owed.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return m_owed.size(); }
    /// Returns when the request of the oldest one was sent. There must be one.
    [[nodiscard]] TimePoint oldest() const noexcept { return m_owed.front().sent; }
    /// Returns how many are owed to requests of this purpose: to this member's, or to all.
    [[nodiscard]] std::size_t count(Purpose purpose, const LinkMember* member = nullptr) const {
        return static_cast<std::size_t>(
            std::count_if(m_owed.begin(), m_owed.end(), [&](const Owed& owed) {
                return owed.member != nullptr && owed.purpose == purpose &&
                       (member == nullptr || owed.member == member);
            }));
    }
    /// Returns the member whose request is the only one of this purpose; null if there is none, or
    /// more.
    [[nodiscard]] LinkMember* only(Purpose purpose) const noexcept {
        LinkMember* found = nullptr;
        for (const Owed& owed : m_owed) {
            if (owed.member != nullptr && owed.purpose == purpose) {
                if (found != nullptr) {
                    return nullptr;
                }
                found = owed.member;
            }
        }
        return found;
    }

    /// `send` sends the request; when it throws, nothing is owed.
    template <class Send>
    void add(Owed owed, Send send) {
        m_owed.reserve(m_owed.size() + 1);
        send();
        owed.sent = Clock::now();
        m_owed.push_back(owed);
    }
    /// Whose the next reply is. There must be one.
    [[nodiscard]] Owed take() noexcept { return m_owed.pop_front(); }

    /// Discards the member's replies.
    void forget(const LinkMember& member) noexcept {
        for (Owed& owed : m_owed) {
            owed.member = owed.member == &member ? nullptr : owed.member;
        }
    }
    void forget(const Answer& answer) noexcept {
        for (Owed& owed : m_owed) {
            owed.answer = owed.answer == &answer ? nullptr : owed.answer;
        }
    }
    /// None of them will come: each Answer fails.
    [[gnu::cold]] void fail() noexcept {
        for (const Owed& owed : std::exchange(m_owed, {})) {
            if (owed.answer != nullptr) {
                owed.answer->failed = true;
            }
        }
    }

  private:
    Fifo<Owed> m_owed;
};

} // namespace orizuru::detail
