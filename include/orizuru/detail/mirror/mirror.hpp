// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Mirrors a consumer's processing list without I/O: which messages it holds, which requests are
// unanswered, what to send next and, after a doubt, which requests ran. Appends bytes to send to a
// string and takes replies as values. The caller owns connections and threads.
//
// Every settlement names the header version that it expects and writes the next (scripts.hpp), so
// requests form a chain and Redis runs a prefix of it. After a refusal the mirror sends nothing
// until the rest of the chain is answered. After a doubt it adopts the list under a new identity;
// the list's header tells which requests ran. The caller sends requests in the order of the calls
// on one connection, which other mirrors may share, and passes on replies in that order.

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/adoption.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/late_requests.hpp>
#include <orizuru/detail/mirror/removal.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Result of a recovery.
struct Recovered {
    bool reaped = false;        ///< a collector had taken the whole list
    Fifo<DeliveryPtr> lost;     ///< no longer ours
    Fifo<DeliveryPtr> surfaced; ///< fetched by a request whose reply was lost
    std::size_t acked = 0;      ///< lost messages whose guards had acked them
    std::string refusal;        ///< error of a fetch that no recovery cured
};

class Mirror {
  public:
    enum class State {
        unregistered, ///< `send_start` is due
        running,
        recovering, ///< `send_adopt` is due
        left        ///< released everything and left the registry
    };

    /// The most requests that may be unanswered at a time, except moves. More are safe but gain
    /// nothing: one takes all acks that there are.
    static constexpr std::size_t depth = 2;
    /// The most moves. Each settles one message: where an answer takes 2 ms, this makes 8,000 a
    /// second of 1,000.
    static constexpr std::size_t most_moves = 16;

    [[gnu::cold]] Mirror(Keys keys, std::chrono::milliseconds lease,
                         std::function<Identity()> make_identity)
        : m_keys(std::move(keys)), m_lease(lease), m_make_identity(std::move(make_identity)) {
        become(m_make_identity());
        m_requests.reserve(depth + most_moves); // they must not fail once they are composed
    }

    [[nodiscard]] State state() const noexcept { return m_state; }
    [[nodiscard]] bool running() const noexcept { return m_state == State::running; }
    [[nodiscard]] const Identity& identity() const noexcept { return m_self; }
    /// Returns how many recoveries have begun. A reply counts only in the incarnation of its
    /// request.
    [[nodiscard]] std::uint64_t incarnation() const noexcept { return m_incarnation; }
    [[nodiscard]] const Keys& keys() const noexcept { return m_keys; }
    [[nodiscard]] std::chrono::milliseconds lease() const noexcept { return m_lease; }
    /// The messages known to be in the list, oldest first.
    [[nodiscard]] const Fifo<DeliveryPtr>& messages() const noexcept { return m_messages; }
    [[nodiscard]] bool unanswered() const noexcept { return !m_requests.empty(); }
    /// A request to leave is unanswered: a fence may be its own.
    [[nodiscard]] bool leaving() const noexcept {
        return std::ranges::find(m_requests, Request::Kind::leave, &Request::kind) !=
               m_requests.end();
    }
    /// True when the next request could settle every known message that is in no request.
    [[nodiscard]] bool all_acked() const noexcept { return live() == m_acks; }
    [[nodiscard]] bool fetching() const noexcept {
        return std::ranges::any_of(m_requests,
                                   [](const Request& request) { return request.fetch > 0; });
    }
    /// Returns how many fetches by script, and looks, have run.
    [[nodiscard]] std::uint64_t fetches() const noexcept { return m_fetches; }
    /// The last answered fetch was full: there are likely more messages.
    [[nodiscard]] bool more_to_fetch() const noexcept { return m_more_to_fetch; }
    /// Redis refused the last request that it answered.
    [[nodiscard]] bool last_refused() const noexcept { return m_refused; }
    /// A fetch on the waiter's connection is unanswered.
    [[nodiscard]] bool blocked() const noexcept { return m_by_waiter != ByWaiter::nothing; }
    /// The unanswered fetch on the waiter's connection is one that Redis answers at once.
    [[nodiscard]] bool looking() const noexcept { return m_by_waiter == ByWaiter::look; }

    // Settling and handing out.

    /// Asks for a settlement of a held message; `move` null = ack.
    void want(const DeliveryPtr& message, std::unique_ptr<Move> move) noexcept;
    /// Does the same for an ack whose outcome no thread awaits.
    void want_deferred(const DeliveryPtr& message) noexcept {
        message->deferred = true;
        want(message, nullptr);
    }
    /// Puts suspects that were not handed out back among the others that wait.
    [[gnu::cold]] void requeue_suspects();
    /// True once Redis has answered a question for suspects, while it refuses none.
    [[nodiscard]] bool asks_for_suspects() const noexcept { return m_asks_for_suspects; }
    /// True once after suspects have come or gone: another one may wait, and fit.
    [[nodiscard]] bool take_trial_news() noexcept { return std::exchange(m_trial_news, false); }
    /// True when acks (moves: other settlements) are wanted and not sent.
    [[nodiscard]] bool has_acks() const noexcept { return m_acks > 0; }
    [[nodiscard]] bool has_moves() const noexcept { return !m_moves.empty(); }
    /// Hands out the next message, or returns null.
    [[nodiscard]] DeliveryPtr hand_out();
    [[nodiscard]] bool has_ready() const noexcept { return ready() > 0; }
    /// Returns how many messages there are from the next one to the newest.
    [[nodiscard]] std::size_t ready() const noexcept { return m_messages.size() - m_next; }
    /// Puts messages that were handed out but not processed back in front.
    void put_back(const Fifo<DeliveryPtr>& messages) noexcept;
    void put_back(const DeliveryPtr& message) noexcept;

    // Acks that a guard gives without the lock.

    /// Lets the guard of a handed-out message give one.
    void open_ack(Delivery& message) noexcept {
        message.deferred_ack.open();
        ++m_open;
    }
    /// Takes over the acks given since the last call; returns how many.
    std::size_t take_acks() noexcept;
    /// Does the same, and accepts no more.
    std::size_t close_acks() noexcept;

    // Requests: each appends one command to `out`. If one runs out of memory, it throws and leaves
    // the mirror unchanged; the caller must cut off what it has appended.

    [[nodiscard]] bool can_send() const noexcept {
        return m_state == State::running && !m_draining && m_requests.size() - moves_sent() < depth;
    }
    /// Returns whether send_move() may be called, as far as has_moves() does not say it.
    [[nodiscard]] bool can_move() const noexcept;
    [[gnu::cold]] void send_start(std::string& out);
    /// Sends all wanted acks; fetches up to `fetch` messages if it is not 0.
    void send_settle(std::string& out, int fetch);
    /// Fetches a suspect, if one waits and fits beside those that the process holds. Counts as a
    /// fetch while it is unanswered.
    [[gnu::cold]] void send_try_suspect(std::string& out, std::shared_ptr<Trial> trial,
                                        const TrialLimits& limits);
    /// Sends the oldest wanted settlement that is not an ack.
    void send_move(std::string& out);
    /// Requeues messages not handed out; if no other is held, unregisters. Not during a fetch.
    [[gnu::cold]] void send_release(std::string& out);
    /// Waits in Redis for a message, on a connection of its own.
    void send_blocking_fetch(std::string& out, std::chrono::milliseconds block);
    /// Fetches one message on the same connection, if there is one.
    void send_look(std::string& out);
    [[gnu::cold]] void send_adopt(std::string& out);
    /// Asks how large the list is whose adoption was sent before.
    [[gnu::cold]] void send_measure(std::string& out) const {
        m_adoption->send_measure(out, m_keys, m_lease);
    }

    // Replies, in the order of the requests on the connection. Payloads are swapped out of them.

    [[gnu::cold]] Verdict on_start(const Reply& reply);
    Verdict on_reply(Reply&& reply);
    Verdict on_blocking_fetch(Reply&& reply);
    [[gnu::cold]] Verdict on_adopt(const Reply& reply);

    // Requests that the mirror does not compose, under the current identity.

    /// A beat goes out, and its reply comes, or it does not go out after all.
    void on_beat_sent() noexcept { m_late.sent(); }
    void on_beat_answered() noexcept { m_late.answered(); }

    // Recovery.

    /// Puts everything unanswered in doubt. The caller must close the blocking fetch's connection
    /// and drop the replies to what an earlier incarnation sent. The connection of the requests may
    /// stay: they have run before the request to adopt does, or the fence refuses them.
    [[gnu::cold]] void begin_recovery() noexcept;

    /// For when the blocking fetch's connection is closed and no other will be sent. If Redis runs
    /// the fetch later, the fence refuses it or the last release requeues its message.
    void forget_blocking_fetch() noexcept {
        if (std::exchange(m_by_waiter, ByWaiter::nothing) != ByWaiter::nothing) {
            m_late.gave_up_fetch();
        }
    }
    /// A blocking fetch was unanswered when the recovery began or it was forgotten: it may run.
    [[nodiscard]] bool has_late_fetch() const noexcept { return m_late.has_fetch(); }
    /// Redis has said that the connection of that fetch is gone.
    void on_lost_fetch() noexcept { m_late.lost_fetch(); }
    /// For when no guard is left: every message without a wanted settlement may be requeued.
    [[gnu::cold]] void forsake() noexcept;

    /// Result of the finished recovery; empty while one runs.
    [[nodiscard]] std::optional<Recovered> take_recovered() {
        return std::exchange(m_recovered, std::nullopt);
    }

  private:
    /// The fetches on the waiter's connection: BLMOVE and LMOVE.
    enum class ByWaiter : std::uint8_t { nothing, block, look };

    struct Request {
        enum class Kind : std::uint8_t {
            settle,
            move,
            suspect, ///< fetches one
            release, ///< requeues messages not handed out
            leave    ///< leaves the registry: a release with nothing held
        };
        Kind kind = Kind::settle;
        int fetch = 0; ///< the most messages that it may bring
        std::uint64_t version = 0;
        std::size_t messages = 0;     ///< those it still has to settle; each carries `version`
        std::size_t bytes = 0;        ///< a move's size
        bool with_body = false;       ///< carries its script's body, not only the name
        std::shared_ptr<Trial> trial; ///< trial of the suspect that it may bring
        std::string failure;          ///< an error of its own that does not tell whether it ran
    };

    using S = Delivery::State;

    // Those beyond two moves wait until what is sent takes less: a move may carry a payload.
    static constexpr std::size_t most_bytes_of_moves = 1 << 20;

    // A move is given up after it was the first cut off this many times.
    static constexpr int most_cuts = 6;

    // Worded like an error of Redis: the user gets it as one if it persists.
    static constexpr const char* wrong_type = "ERR a reply of the wrong type";

    // The user gets a refusal that recovery does not cure.
    static constexpr int most_failed_fetches = 4;

    /// The version of the last request sent, or of the last one that has run.
    [[nodiscard]] std::uint64_t last_sent() const noexcept {
        return m_requests.empty() ? m_confirmed : m_requests.back().version;
    }
    [[nodiscard]] std::size_t live() const noexcept { return m_messages.size() - m_sent; }
    [[nodiscard]] std::size_t moves_sent() const noexcept {
        return static_cast<std::size_t>(
            std::ranges::count(m_requests, Request::Kind::move, &Request::kind));
    }
    /// True if `request`, which was sent, settles `message`.
    [[nodiscard]] static bool settles(const Request& request, const DeliveryPtr& message) noexcept {
        return message->state == S::sent && message->version == request.version;
    }

    void become(Identity identity) {
        m_processing = m_keys.processing(identity.id);
        m_self = std::move(identity);
        m_late = {};
    }
    /// True when no request can come late for this list: each that was sent under the identity is
    /// answered, or Redis has said that the connection is gone on which it was sent. A fence in the
    /// list's place then has nothing to keep out. It only answers the request that leaves it, sent
    /// again because its reply was lost.
    [[nodiscard]] bool owes_nothing() const noexcept {
        return m_requests.empty() && !blocked() && !m_late.any();
    }
    /// For how long the list's place needs a fence.
    [[nodiscard]] std::chrono::milliseconds time_of_fence() const noexcept {
        return owes_nothing() ? short_fence_time : fence_time;
    }
    void begin_request(std::string& out, Request& request, std::string_view sha1,
                       std::string_view source, std::size_t keys, std::size_t args);
    // Every script of the chain begins with the header that it expects and the next header.
    void append_headers(std::string& out) {
        for (const std::uint64_t version : {last_sent(), last_sent() + 1}) {
            m_self.write_header(m_header, version);
            append_argument(out, m_header);
        }
    }
    void chain_arguments(std::string& out);
    void mark_sent(Delivery& message, Request& request) const {
        message.state = S::sent;
        message.version = request.version;
        ++request.messages;
    }
    void compose(Request::Kind kind, FunctionRef<void(Request&)> compose);

    // Reserves now, so that queuing a move of any held message never allocates.
    void expect(std::size_t messages) { m_moves.reserve(m_messages.size() + messages); }
    void queue_move(const DeliveryPtr& message) {
        message->queued = true;
        m_moves.push_back(message);
    }
    void append(std::string& payload) { m_messages.push_back(m_pool.make(payload)); }
    [[gnu::cold]] void on_suspect(Request& request, Reply& reply);
    void answered() noexcept;
    void ran(Request& request) noexcept;
    void done(Request& request) noexcept;
    void on_settled(Delivery& message) noexcept;
    [[gnu::cold]] void unsend(const Request& request, const std::string& refusal);
    [[nodiscard]] static bool is_result(const Request& request, const Reply& reply) noexcept;
    [[gnu::cold]] Verdict on_error(Request& request, const Reply& reply);
    // The request stays in the chain as the first whose outcome is unknown. If recovery finds that
    // a refusal of its own changed nothing, it is retried once, then its caller gets the error.
    [[gnu::cold]] static Verdict doubt(Request& request, Remedy remedy, const std::string& text) {
        if (!text.starts_with("STALE")) {
            request.failure = text;
        }
        return {remedy, text};
    }

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
    std::string m_processing; ///< the list's key
    std::string m_header;     ///< buffer for composing a header
    State m_state = State::unregistered;
    std::uint64_t m_incarnation = 0;
    LateRequests m_late; ///< the current identity's

    Fifo<DeliveryPtr> m_messages;
    std::size_t m_next = 0;    ///< position of the oldest that waits to be handed out
    Fifo<DeliveryPtr> m_moves; ///< wanted and not sent, except acks
    DeliveryPool m_pool;
    Removal m_removal;      ///< the composed request's
    std::size_t m_open = 0; ///< messages whose guards may give an ack or have
    std::size_t m_acks = 0; ///< acks wanted and not sent
    std::size_t m_sent = 0; ///< messages in unanswered requests

    Fifo<Request> m_requests;
    std::uint64_t m_confirmed = 0; ///< version of the last request that is known to have run
    bool m_draining = false;       ///< a request was refused; the rest of the chain must answer
    bool m_refused = false;        ///< the last answer was a refusal
    ByWaiter m_by_waiter = ByWaiter::nothing; ///< the waiter's unanswered fetch
    bool m_more_to_fetch = false;
    bool m_trial_news = false;
    bool m_asks_for_suspects = false;
    std::shared_ptr<Trial> m_surfacing; ///< a suspect's whose fetch ran and whose reply was lost
    std::uint64_t m_fetches = 0;
    int m_failed_fetches = 0; ///< in a row, each for a reason of its own
    std::string m_fetch_failure;
    Fifo<std::string> m_cached; ///< names of the scripts that Redis has seen: a few

    std::optional<Adoption> m_adoption; ///< while recovering
    std::optional<Recovered> m_recovered;
};

} // namespace orizuru::detail

#include <orizuru/detail/mirror/mirror_messages.inl>
#include <orizuru/detail/mirror/mirror_recovery.inl>
#include <orizuru/detail/mirror/mirror_replies.inl>
#include <orizuru/detail/mirror/mirror_requests.inl>
