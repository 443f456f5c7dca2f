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

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/consumer/adoption.hpp>
#include <orizuru/detail/consumer/delivery.hpp>
#include <orizuru/detail/consumer/delivery_pool.hpp>
#include <orizuru/detail/consumer/scripts.hpp>
#include <orizuru/detail/redis/reply_class.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/verdict.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
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
    std::size_t acked = 0;             ///< lost ones whose guards had acked them
    std::string refusal;               ///< what fetching fails with however often it recovers
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

    [[gnu::cold]] Window(Keys keys, std::chrono::milliseconds lease,
                         std::function<Identity()> make_identity)
        : m_keys(std::move(keys)), m_lease(lease), m_make_identity(std::move(make_identity)) {
        become(m_make_identity());
        m_requests.reserve(depth);
    }

    [[nodiscard]] State state() const noexcept { return m_state; }
    [[nodiscard]] const Identity& identity() const noexcept { return m_self; }
    [[nodiscard]] const Keys& keys() const noexcept { return m_keys; }
    /// What the list holds as far as is known, the oldest first.
    [[nodiscard]] const Fifo<DeliveryPtr>& messages() const noexcept { return m_messages; }
    [[nodiscard]] bool unanswered() const noexcept { return !m_requests.empty(); }
    /// A request to leave is among the unanswered: the fence may be its own.
    [[nodiscard]] bool leaving() const noexcept;
    /// True when the next request could settle all that is known and not in a request.
    [[nodiscard]] bool all_acked() const noexcept { return live() == m_acks; }
    [[nodiscard]] bool fetching() const noexcept;
    /// How many fetches by script have run.
    [[nodiscard]] std::uint64_t fetches() const noexcept { return m_fetches; }
    /// The last one that was answered brought all that it asked for: there are likely more.
    [[nodiscard]] bool more_to_fetch() const noexcept { return m_more_to_fetch; }
    [[nodiscard]] bool blocked() const noexcept { return m_blocked; }

    // Settling and handing out.

    /// Asks for a settlement of a held message; `move` null = ack.
    void want(const DeliveryPtr& message, std::unique_ptr<Move> move) noexcept;
    /// The same for an ack whose outcome nobody awaits.
    void want_deferred(const DeliveryPtr& message) noexcept;
    /// True when acks, or other settlements, are wanted that have not been sent.
    [[nodiscard]] bool has_acks() const noexcept { return m_acks > 0; }
    [[nodiscard]] bool has_moves() const noexcept { return !m_moves.empty(); }
    /// The next message for the user, or null. It is marked as handed out.
    [[nodiscard]] DeliveryPtr hand_out();
    [[nodiscard]] bool has_ready() const noexcept { return ready() > 0; }
    /// From the next one to the newest.
    [[nodiscard]] std::size_t ready() const noexcept { return m_messages.size() - m_next; }
    /// Puts messages that were handed out and will not be processed back in front.
    void take_back(const Fifo<DeliveryPtr>& messages) noexcept;
    void take_back(const DeliveryPtr& message) noexcept;

    // Acks that a guard gives without the lock.

    /// The guard of a message that was handed out may give one.
    void open_ack(Delivery& message) noexcept {
        message.deferred_ack.open();
        ++m_open;
    }
    /// Wants what was given since the last call; returns how many that were.
    std::size_t take_acks() noexcept;
    /// The same, and no more can be given.
    std::size_t close_acks() noexcept;

    // Requests: each appends one command to `out`. When one throws, for want of memory, the window
    // is as it was, and what it has appended must be cut off.

    [[nodiscard]] bool can_send() const noexcept {
        return m_state == State::running && !m_draining && m_requests.size() < depth;
    }
    [[gnu::cold]] void send_start(std::string& out) const;
    /// All acks that are wanted; fetches up to `fetch` messages when it is not 0.
    void send_settle(std::string& out, int fetch);
    /// The oldest wish that is not an ack.
    void send_move(std::string& out);
    /// Gives back what was not handed out; leaves the registry when nothing else is held. No fetch
    /// may be under way.
    [[gnu::cold]] void send_release(std::string& out);
    /// Waits in Redis for a message, on a connection of its own.
    void send_blocking_fetch(std::string& out, std::chrono::milliseconds block);
    [[gnu::cold]] void send_adopt(std::string& out);

    // Replies, in the order of the requests on the connection. Payloads are swapped out of them.

    [[gnu::cold]] Verdict on_start(const Reply& reply);
    Verdict on_reply(Reply&& reply);
    Verdict on_blocking_fetch(Reply&& reply);
    [[gnu::cold]] Verdict on_adopt(const Reply& reply);

    // Recovery.

    /// Everything unanswered is in doubt. Both connections must be closed; nothing that they may
    /// still answer counts.
    [[gnu::cold]] void begin_recovery() noexcept;

    /// The blocking fetch's connection is closed for good and no other will be sent: what it may
    /// still move lies behind the fence, or is given back by the last release.
    void forget_blocking_fetch() noexcept { m_blocked = false; }
    /// Nobody holds a guard any more: whatever is not wanted elsewhere may be given back.
    [[gnu::cold]] void forsake() noexcept;

    /// Result of the finished recovery; empty while one runs.
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
        int fetch = 0; ///< the most messages that it brings
        std::uint64_t version = 0;
        std::size_t messages = 0; ///< how many it still has to settle; each has the version, too
        bool with_body = false;   ///< of its script, not only the script's name
        std::string failure;      ///< an error of its own that says neither "ran" nor "did not"
    };

    using S = Delivery::State;

    // How often a move may be the first to be cut off before it is given up.
    static constexpr int most_cuts = 6;

    // Like an error of Redis, which it becomes for the user when it does not end.
    static constexpr const char* wrong_type = "ERR a reply of the wrong type";

    // A refusal that recovery does not cure is the user's to know.
    static constexpr int most_failed_fetches = 4;

    [[nodiscard]] std::size_t live() const noexcept { return m_messages.size() - m_sent; }
    /// `message` is one of those that `request`, a sent one, settles.
    [[nodiscard]] static bool settles(const Request& request, const DeliveryPtr& message) noexcept {
        return message->state == S::sent && message->version == request.version;
    }

    void become(Identity identity);
    void append_header(std::string& out, std::uint64_t version);
    void begin_request(std::string& out, Request& request, std::string_view sha1,
                       std::string_view source, std::size_t keys, std::size_t args);
    void chain_arguments(std::string& out);
    void mark_sent(Delivery& message, Request& request) const;
    void commit(Request request) noexcept;
    void compose(Request::Kind kind, FunctionRef<void(Request&)> compose);

    void expect(std::size_t messages);
    void append(std::string& payload) { m_messages.push_back(m_pool.make(payload)); }
    void answered() noexcept;
    void ran(Request& request) noexcept;
    void done(Request& request) noexcept;
    [[gnu::cold]] void put_back(const Request& request, const std::string& refusal);
    [[nodiscard]] static bool is_result(const Request& request, const Reply& reply) noexcept;
    [[gnu::cold]] Verdict on_error(Request& request, const Reply& reply);
    [[gnu::cold]] Verdict doubt(Request& request, const std::string& text);

    [[gnu::cold]] void conclude(const Adoption::Result& result);
    [[nodiscard]] [[gnu::cold]] std::string blame(const Request& request, bool first_not_run);
    [[gnu::cold]] void settle_doubts(std::optional<std::uint64_t> version);
    [[nodiscard]] [[gnu::cold]] Fifo<DeliveryPtr> match(const std::vector<std::string>& list,
                                                        Recovered& recovered);
    void recount() noexcept;
    void find_next() noexcept;

    Keys m_keys;
    std::chrono::milliseconds m_lease;
    std::function<Identity()> m_make_identity;
    Identity m_self;
    std::string m_processing; ///< its key
    std::string m_header;     ///< buffer for composing a header
    State m_state = State::unregistered;

    Fifo<DeliveryPtr> m_messages;
    std::size_t m_next = 0;    ///< position of the oldest that waits to be handed out
    Fifo<DeliveryPtr> m_moves; ///< wanted and not sent, acks apart
    DeliveryPool m_pool;
    std::vector<std::size_t> m_holes; ///< of the request that is being composed
    std::size_t m_open = 0;           ///< messages whose guards may give an ack, or have
    std::size_t m_acks = 0;           ///< acks wanted and not sent
    std::size_t m_sent = 0;           ///< messages in unanswered requests

    Fifo<Request> m_requests;
    std::uint64_t m_confirmed = 0; ///< version of the last request that is known to have run
    std::uint64_t m_last_sent = 0; ///< version of the last request sent
    bool m_draining = false;       ///< a request was refused; the rest of the chain must answer
    bool m_blocked = false;        ///< a blocking fetch is unanswered
    bool m_more_to_fetch = false;
    std::uint64_t m_fetches = 0;
    int m_failed_fetches = 0; ///< in a row, for a reason of their own
    std::string m_fetch_failure;
    std::set<std::string, std::less<>> m_cached; ///< names of the scripts that Redis has seen

    std::optional<Adoption> m_adoption; ///< while recovering
    std::optional<Recovered> m_recovered;
};

inline void Window::become(Identity identity) {
    m_processing = m_keys.processing(identity.id);
    m_self = std::move(identity);
}

inline bool Window::fetching() const noexcept {
    return std::any_of(m_requests.begin(), m_requests.end(),
                       [](const Request& request) { return request.fetch > 0; });
}

inline bool Window::leaving() const noexcept {
    return std::any_of(m_requests.begin(), m_requests.end(),
                       [](const Request& request) { return request.kind == Request::Kind::leave; });
}

} // namespace orizuru::detail
