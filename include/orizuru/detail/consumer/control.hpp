// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps the connection of a link, the replies that it owes in order, and the pauses between
// attempts. Callers hold the link's lock. Any thread may send or end the connection. Only the
// thread that polls it closes it: a descriptor closed during a poll may already belong to another
// file.

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/consumer/link_member.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// Keeps why something failed.
[[gnu::cold]] inline void keep_failure(std::string& kept, std::string_view reason) noexcept {
    try {
        kept = reason;
    } catch (const std::bad_alloc&) {
        kept.clear(); // no reason is better than a wrong one
    }
}

class Control {
  public:
    using Purpose = LinkMember::Purpose;

    /// For a thread that waits for the reply to a command outside the members' requests. The
    /// thread owns it, and calls `forget` when it waits no longer.
    struct Answer {
        std::optional<Reply> reply;
        bool failed = false; ///< no reply will come
    };

    /// A reply that will come.
    struct Owed {
        LinkMember* member;        ///< null: not a member's, or it has left
        Purpose purpose;           ///< of a member's request
        std::uint64_t incarnation; ///< of the member when it sent the request
        Answer* answer;            ///< null: a member's, or forgotten
        TimePoint sent;
    };

    /// Connects until the deadline. Throws as Stream does, except when Redis is not ready yet.
    [[gnu::cold]] Control(Endpoint endpoint, TimePoint deadline) : Control(std::move(endpoint)) {
        try {
            use(Stream::make(m_endpoint, deadline));
        } catch (const ReplyError& error) {
            if (remedy_for(error) == Remedy::give_up || remedy_for(error) == Remedy::recover) {
                throw;
            }
            note_failure(error.what());
            delay_connecting();
        }
    }
    /// Does not connect yet.
    [[gnu::cold]] explicit Control(Endpoint endpoint) : m_endpoint(std::move(endpoint)) {}

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }
    [[nodiscard]] bool connected() const noexcept { return m_stream && !m_ended; }
    /// Connected and not held back.
    [[nodiscard]] bool ready() const noexcept { return connected() && m_hold.over(); }

    // Sending, while connected. The next `flush` sends what was composed. If `compose` throws,
    // nothing is sent or owed.

    void send(LinkMember& member, Purpose purpose, FunctionRef<void(std::string&)> compose) {
        owe({&member, purpose, member.incarnation(), nullptr, {}}, compose);
    }
    void ask(Answer& answer, FunctionRef<void(std::string&)> compose) {
        owe({nullptr, Purpose::chain, 0, &answer, {}}, compose);
    }
    /// Sends as much as the socket takes; true when nothing is left. Throws ConnectionError.
    bool flush() { return !connected() || m_stream->flushed() || m_stream->flush(); }

    /// How many replies to requests of this purpose are owed: to this member, or to all.
    [[nodiscard]] std::size_t owes(Purpose purpose, const LinkMember* member = nullptr) const {
        return static_cast<std::size_t>(
            std::count_if(m_owed.begin(), m_owed.end(), [&](const Owed& owed) {
                return owed.member != nullptr && owed.purpose == purpose &&
                       (member == nullptr || owed.member == member);
            }));
    }
    /// Owes the member nothing any more; its replies are discarded.
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

    // Reading, by the thread that polls.

    [[nodiscard]] Stream& stream() noexcept { return *m_stream; }
    [[nodiscard]] const Stream& stream() const noexcept { return *m_stream; }
    /// By when the oldest reply must come.
    [[nodiscard]] TimePoint reply_due() const noexcept {
        return m_owed.empty() ? TimePoint::max()
                              : m_owed.front().sent + m_endpoint.command_timeout();
    }
    /// Connected, with nothing to send and no reply owed.
    [[nodiscard]] bool idle() const noexcept {
        return connected() && m_owed.empty() && m_stream->flushed();
    }
    /// A reply has come on this connection.
    [[nodiscard]] bool proven() const noexcept { return m_proven; }
    /// Whose the new reply is; throws ProtocolError if none is owed.
    [[nodiscard]] Owed take_owed() {
        if (m_owed.empty()) {
            throw ProtocolError(joined({m_endpoint.address(), ": a reply that nothing asked for"}));
        }
        m_proven = true;
        return m_owed.pop_front();
    }

    // Ending and reconnecting.

    /// Shuts the connection down. No owed reply will come, so each Answer fails.
    [[gnu::cold]] void end(std::string_view reason) noexcept {
        if (connected()) {
            m_ended = true;
            note_failure(reason);
            m_stream->shutdown();
        }
        for (const Owed& owed : std::exchange(m_owed, {})) {
            if (owed.answer != nullptr) {
                owed.answer->failed = true;
            }
        }
    }
    /// Closes a connection that has ended. Only the thread that polls may call it.
    void close_ended() noexcept {
        if (std::exchange(m_ended, false)) {
            m_stream.reset();
        }
    }
    [[nodiscard]] bool closed() const noexcept { return !m_stream; }
    void use(std::unique_ptr<Stream> stream) noexcept {
        m_stream = std::move(stream);
        m_proven = false;
    }
    void close_after_fork() noexcept { Stream::close_after_fork(m_stream); }

    // Pauses, which grow until something succeeds. The first attempt to connect has none: another
    // server may have taken over already.

    void succeeded() noexcept {
        m_hold.succeeded();
        m_connecting.reset();
        m_at_once = true;
    }
    /// Nothing is composed before its end.
    [[nodiscard]] Hold& hold() noexcept { return m_hold; }
    [[nodiscard]] const Hold& hold() const noexcept { return m_hold; }
    /// Pauses connecting until `connect_at`.
    [[gnu::cold]] void delay_connecting() noexcept {
        constexpr std::chrono::seconds calm(10);
        const TimePoint now = Clock::now();
        if (now - m_connect_at > calm) {
            m_connecting.reset();
            m_at_once = true;
        }
        m_connect_at = std::exchange(m_at_once, false) ? now : now + m_connecting.next();
    }
    [[nodiscard]] TimePoint connect_at() const noexcept { return m_connect_at; }

    void note_failure(std::string_view reason) noexcept { keep_failure(m_last_failure, reason); }
    [[nodiscard]] const std::string& last_failure() const noexcept { return m_last_failure; }

  private:
    void owe(const Owed& owed, FunctionRef<void(std::string&)> compose) {
        m_owed.reserve(m_owed.size() + 1);
        m_stream->append(compose);
        m_owed.push_back(owed);
        m_owed.back().sent = Clock::now();
    }

    Endpoint m_endpoint;
    std::unique_ptr<Stream> m_stream;
    bool m_ended = false; ///< shut down; the thread that polls closes it
    bool m_proven = false;
    Fifo<Owed> m_owed;

    Hold m_hold;
    JitteredPauses m_connecting;
    bool m_at_once = true; ///< the next attempt to connect has no pause
    TimePoint m_connect_at{};
    std::string m_last_failure;
};

} // namespace orizuru::detail
