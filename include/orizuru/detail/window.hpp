// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A consumer's mirror of its processing list, without I/O: which messages it holds, which requests
// are unanswered, what to send next, and after any doubt what has run. Bytes to send go into a
// string, replies come in as values; connections and threads are the caller's.
//
// Every settlement carries the header's version that it expects and writes the next (scripts.hpp):
// requests form a chain of which Redis runs a prefix. After a refusal nothing more is sent until
// the rest of the chain has answered; after a doubt the list is adopted under a new identity and
// its header tells which requests ran. The caller composes and sends in the order of the calls, all
// on one connection, and hands in replies in that order.

#include <orizuru/detail/adoption.hpp>
#include <orizuru/detail/delivery.hpp>
#include <orizuru/detail/identity.hpp>
#include <orizuru/detail/reply_class.hpp>
#include <orizuru/detail/scripts.hpp>
#include <orizuru/detail/verdict.hpp>
#include <orizuru/detail/wire.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// What a recovery found.
struct Recovered {
    bool reaped = false;               ///< a collector had taken the whole list
    std::vector<DeliveryPtr> lost;     ///< someone else's now
    std::vector<DeliveryPtr> surfaced; ///< fetched before, though the reply was lost
};

class Window {
  public:
    enum class State {
        unregistered, ///< `send_start` is due
        running,
        recovering, ///< `send_adopt` is due
        left        ///< released everything and left the registry
    };

    /// Requests that may be unanswered at a time. More are safe and gain nothing.
    static constexpr std::size_t depth = 2;

    Window(Keys keys, std::chrono::milliseconds lease, std::function<Identity()> make_identity)
        : m_keys(std::move(keys)),
          m_lease(lease),
          m_make_identity(std::move(make_identity)),
          m_self(m_make_identity()) {}

    [[nodiscard]] State state() const noexcept { return m_state; }
    [[nodiscard]] const Identity& identity() const noexcept { return m_self; }
    [[nodiscard]] const Keys& keys() const noexcept { return m_keys; }
    /// What the list holds as far as is known, the oldest first.
    [[nodiscard]] const std::deque<DeliveryPtr>& messages() const noexcept { return m_messages; }
    [[nodiscard]] bool unanswered() const noexcept { return !m_requests.empty(); }
    [[nodiscard]] bool fetching() const noexcept;
    /// How many fetches by script have run.
    [[nodiscard]] std::uint64_t fetches() const noexcept { return m_fetches; }
    [[nodiscard]] bool blocked() const noexcept { return m_blocked; }

    // Settling and handing out.

    /// Asks for a settlement of a held message; `move` null = ack.
    void want(const DeliveryPtr& message, std::unique_ptr<Move> move);
    /// True when acks, or other settlements, are wanted that have not been sent.
    [[nodiscard]] bool has_acks() const noexcept { return m_acks > 0; }
    [[nodiscard]] bool has_moves() const noexcept { return !m_moves.empty(); }
    /// The next message for the user, or null. It is marked as handed out.
    [[nodiscard]] DeliveryPtr hand_out();
    [[nodiscard]] bool has_ready() const noexcept { return !m_ready.empty(); }
    /// Puts a message that was handed out and cannot be processed back in front.
    void take_back(const DeliveryPtr& message);

    // Requests: each appends one command to `out`.

    [[nodiscard]] bool can_send() const noexcept {
        return m_state == State::running && !m_draining && m_requests.size() < depth;
    }
    void send_start(std::string& out) const;
    /// All acks that are wanted; fetches up to `fetch` messages when it is not 0.
    void send_settle(std::string& out, int fetch);
    /// The oldest wish that is not an ack.
    void send_move(std::string& out);
    /// Gives back what was not handed out; leaves the registry when nothing else is held. No fetch
    /// may be under way.
    void send_release(std::string& out);
    /// Waits in Redis for a message, on a connection of its own.
    void send_blocking_fetch(std::string& out, std::chrono::milliseconds block);
    void send_adopt(std::string& out);

    // Replies, in the order of the requests on the connection.

    Verdict on_start(const Reply& reply);
    Verdict on_reply(Reply reply);
    Verdict on_blocking_fetch(Reply reply);
    Verdict on_adopt(const Reply& reply);

    // Recovery.

    /// Everything unanswered is in doubt. Both connections must be closed; nothing that they may
    /// still answer counts.
    void begin_recovery();

    /// The blocking fetch's connection is closed for good and no other will be sent: what it may
    /// still move lies behind the fence, or is given back by the last release.
    void forget_blocking_fetch() noexcept { m_blocked = false; }
    /// Nobody holds a guard any more: whatever is not wanted elsewhere may be given back.
    void forsake();

    /// Of the recovery that `on_adopt` has just ended; none while it goes on.
    [[nodiscard]] std::optional<Recovered> take_recovered() {
        return std::exchange(m_recovered, std::nullopt);
    }

  private:
    struct Request {
        enum class Kind : std::uint8_t {
            settle,
            move,
            release, ///< gives back what was not handed out
            leave    ///< the same with nothing held: leaves the registry
        };
        Kind kind = Kind::settle;
        bool fetches = false;
        std::string failure; ///< an error of its own that says neither "ran" nor "did not run"
        std::uint64_t version = 0;
        std::vector<DeliveryPtr> messages;
    };

    using S = Delivery::State;

    // How often a move may be the first to be cut off before it is given up.
    static constexpr int most_cuts = 6;

    [[nodiscard]] std::size_t live() const noexcept { return m_messages.size() - m_sent; }
    void begin_request(std::string& out, std::string_view sha1, std::string_view source,
                       std::size_t keys, std::size_t args);
    void chain_arguments(std::string& out) const;
    void mark_sent(const DeliveryPtr& message, Request& request);
    void commit(Request request);

    void append(std::string payload);
    void done(Request& request);
    void put_back(const Request& request, const std::string& refusal);
    Verdict on_error(Request request, const Reply& reply);
    Verdict doubt(Request request, const std::string& text);

    void conclude(Adoption::Result result);
    [[nodiscard]] static std::string blame(const Request& request, bool first_not_run);
    void settle_doubts(std::optional<std::uint64_t> version);
    void match(std::vector<std::string> list);
    void lose_all();
    void recount();

    Keys m_keys;
    std::chrono::milliseconds m_lease;
    std::function<Identity()> m_make_identity;
    Identity m_self;
    State m_state = State::unregistered;

    std::deque<DeliveryPtr> m_messages;
    std::deque<DeliveryPtr> m_ready; ///< of these, what was not handed out
    std::deque<DeliveryPtr> m_moves; ///< wanted and not sent, acks apart
    std::size_t m_acks = 0;          ///< acks wanted and not sent
    std::size_t m_sent = 0;          ///< messages in unanswered requests

    std::deque<Request> m_requests;
    std::uint64_t m_confirmed = 0; ///< version of the last request that is known to have run
    std::uint64_t m_last_sent = 0; ///< version of the last request sent
    bool m_draining = false;       ///< a request was refused; the rest of the chain must answer
    bool m_blocked = false;        ///< a blocking fetch is unanswered
    std::uint64_t m_fetches = 0;
    std::set<std::string, std::less<>> m_cached; ///< names of the scripts that Redis has seen

    std::optional<Adoption> m_adoption; ///< while recovering
    std::optional<Recovered> m_recovered;
};

inline bool Window::fetching() const noexcept {
    return std::ranges::any_of(m_requests, [](const Request& request) { return request.fetches; });
}

inline void Window::want(const DeliveryPtr& message, std::unique_ptr<Move> move) {
    assert(message->state == S::held);
    message->refusal.clear();
    message->state = S::wanted;
    message->move = std::move(move);
    if (message->move == nullptr) {
        ++m_acks;
    } else {
        m_moves.push_back(message);
    }
}

inline DeliveryPtr Window::hand_out() {
    if (m_ready.empty()) {
        return nullptr;
    }
    DeliveryPtr message = std::move(m_ready.front());
    m_ready.pop_front();
    message->handed_out = true;
    return message;
}

inline void Window::forsake() {
    for (const DeliveryPtr& message : m_messages) {
        message->handed_out = message->handed_out && message->state != S::held;
    }
    recount();
}

inline void Window::take_back(const DeliveryPtr& message) {
    message->handed_out = false;
    message->unattended = false;
    message->refusal.clear();
    recount();
}

// A script's body is sent once; should Redis have lost it meanwhile, it says NOSCRIPT.
inline void Window::begin_request(std::string& out, std::string_view sha1, std::string_view source,
                                  std::size_t keys, std::size_t args) {
    const bool cached = m_cached.contains(sha1);
    begin_command(out, 3 + keys + args);
    append_argument(out, cached ? std::string_view("EVALSHA") : std::string_view("EVAL"));
    append_argument(out, cached ? sha1 : source);
    append_argument(out, keys);
    if (!cached) {
        m_cached.emplace(sha1);
    }
}

// Every script of the chain begins with the header that it expects, the next one, and how many
// messages the list holds at the least once the requests before it have run. A lower bound only: a
// blocking fetch may have added one that is not known here yet.
inline void Window::chain_arguments(std::string& out) const {
    append_argument(out, m_self.header(m_last_sent));
    append_argument(out, m_self.header(m_last_sent + 1));
    append_argument(out, live());
}

inline void Window::mark_sent(const DeliveryPtr& message, Request& request) {
    message->state = S::sent;
    request.messages.push_back(message);
}

inline void Window::commit(Request request) {
    m_sent += request.messages.size();
    request.version = ++m_last_sent;
    m_requests.push_back(std::move(request));
}

inline void Window::send_start(std::string& out) const {
    assert(m_state == State::unregistered);
    append_command(out, "EVAL", start_script, 6, m_keys.heartbeat(m_self.id),
                   m_keys.processing(m_self.id), m_keys.consumers(), m_keys.source(),
                   m_keys.unack(), m_keys.dead(), m_self.id, m_lease.count(), m_self.header(0));
}

inline void Window::send_settle(std::string& out, int fetch) {
    assert(can_send() && !(fetch > 0 && m_blocked));
    Request request;
    request.fetches = fetch > 0;
    std::size_t prefix = 0;
    std::vector<std::size_t> holes;
    std::size_t index = 0; // among the messages that are in no request
    std::size_t found = 0;
    for (const DeliveryPtr& message : m_messages) {
        if (found == m_acks) {
            break;
        }
        if (message->state == S::sent) {
            continue;
        }
        if (message->state == S::wanted && message->move == nullptr) {
            if (index == prefix) {
                ++prefix;
            } else {
                holes.push_back(index);
            }
            ++found;
            mark_sent(message, request);
        }
        ++index;
    }
    begin_request(out, cached_settle.sha1(), cached_settle.source, 2, 5 + holes.size());
    append_argument(out, m_keys.processing(m_self.id));
    append_argument(out, m_keys.source());
    chain_arguments(out);
    append_argument(out, prefix);
    append_argument(out, fetch);
    for (const std::size_t hole : holes) {
        append_argument(out, -static_cast<std::int64_t>(hole) - 2);
    }
    m_acks -= found;
    commit(std::move(request));
}

inline void Window::send_move(std::string& out) {
    assert(can_send() && !m_moves.empty());
    const DeliveryPtr message = std::move(m_moves.front());
    m_moves.pop_front();
    std::int64_t index = 0;
    for (const DeliveryPtr& other : m_messages) {
        if (other == message) {
            break;
        }
        index += other->state == S::sent ? 0 : 1;
    }
    const Move& move = *message->move;
    begin_request(out, move.script.sha1(), move.script.source(), 1 + move.keys.size(),
                  4 + move.args.size());
    append_argument(out, m_keys.processing(m_self.id));
    for (const std::string& key : move.keys) {
        append_argument(out, key);
    }
    chain_arguments(out);
    append_argument(out, -index - 2);
    for (const std::string& arg : move.args) {
        append_argument(out, arg);
    }
    Request request;
    request.kind = Request::Kind::move;
    mark_sent(message, request);
    commit(std::move(request));
}

inline void Window::send_release(std::string& out) {
    assert(can_send() && !m_blocked && !fetching());
    // Handed-out messages are the oldest, except after a match with an edited list: then what lies
    // between them stays until the last of them is settled.
    std::size_t held = 0;
    std::size_t index = 0;
    for (const DeliveryPtr& message : m_messages) {
        if (message->state != S::sent) {
            ++index;
            held = message->handed_out ? index : held;
        }
    }
    begin_request(out, cached_release.sha1(), cached_release.source, 4, 6);
    append_argument(out, m_keys.processing(m_self.id));
    append_argument(out, m_keys.source());
    append_argument(out, m_keys.heartbeat(m_self.id));
    append_argument(out, m_keys.consumers());
    chain_arguments(out);
    append_argument(out, held);
    append_argument(out, m_self.id);
    append_argument(out, fence_time.count());
    Request request;
    request.kind = held == 0 ? Request::Kind::leave : Request::Kind::release;
    index = 0;
    for (const DeliveryPtr& message : m_messages) {
        if (message->state != S::sent && index++ >= held) {
            mark_sent(message, request);
        }
    }
    commit(std::move(request));
    recount();
}

inline void Window::send_blocking_fetch(std::string& out, std::chrono::milliseconds block) {
    assert(m_state == State::running && !m_blocked && !fetching());
    const std::string seconds = std::to_string(block.count() / 1000) + "." +
                                std::to_string(1000 + block.count() % 1000).substr(1);
    append_command(out, "BLMOVE", m_keys.source(), m_keys.processing(m_self.id), "RIGHT", "LEFT",
                   seconds);
    m_blocked = true;
}

inline void Window::recount() {
    m_acks = m_sent = 0;
    m_ready.clear();
    std::erase_if(m_moves, [](const DeliveryPtr& message) { return message->state != S::wanted; });
    for (const DeliveryPtr& message : m_messages) {
        m_sent += message->state == S::sent ? 1U : 0U;
        if (message->state == S::wanted && message->move == nullptr) {
            ++m_acks;
        } else if (message->state == S::wanted &&
                   std::ranges::find(m_moves, message) == m_moves.end()) {
            m_moves.push_back(message);
        } else if (message->state == S::held && !message->handed_out) {
            m_ready.push_back(message);
        }
    }
}

} // namespace orizuru::detail

#include <orizuru/detail/window_recovery.hpp>
#include <orizuru/detail/window_replies.hpp>
