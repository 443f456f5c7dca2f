// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A message in the consumer's hands: what it says, and what is to become of it.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/script.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace orizuru {

template <MessageDecodable T>
class Consumer;

/// One delivery of a message, settled exactly once: by ack, reject, release, push, bury or settle,
/// or by the destructor, which rejects.
///
/// Every settlement
///   returns true when it is done, false when the lease was lost before: the message is with
///       another consumer then, or will be;
///   is one atomic step in Redis: a crash leaves the message either where it was or where it goes;
///   blocks for a round trip; while Redis cannot be reached, until `lease` has passed since the
///       last confirmed beat (at least command_timeout);
///   throws ConnectionError with in_doubt() when that time is over: the guard counts as settled,
///       the wish stays queued and its outcome goes to on_event;
///   throws ReplyError when Redis refuses it: nothing has happened, the guard is unsettled;
///   throws std::bad_alloc: settled() says whether the settlement continues or nothing happened;
///   throws std::logic_error when the guard is settled or was moved from.
///
/// Cost: O(1) for the oldest message held, O(position) for others; of the payload's size only what
/// is copied. A guard is used by one thread at a time, which may be any: also while another thread
/// waits in `next`. It may outlive its Consumer.
template <class T>
class [[nodiscard]] MessageGuard {
  public:
    MessageGuard(MessageGuard&&) noexcept = default;
    /// Settles an own unsettled message as the destructor would, then takes over.
    MessageGuard& operator=(MessageGuard&& other) noexcept {
        if (this != &other) {
            m_core = std::move(other.m_core);
            m_message = std::move(other.m_message);
        }
        return *this;
    }
    MessageGuard(const MessageGuard&) = delete;
    MessageGuard& operator=(const MessageGuard&) = delete;
    /// Rejects an unsettled message. Never throws; waits at most command_timeout, what is left to
    /// do then is done in the background.
    ~MessageGuard() = default;

    /// The message. Valid as long as the guard, settled or not; not after it was moved from.
    [[nodiscard]] const T& operator*() const noexcept { return *m_message; }
    [[nodiscard]] const T* operator->() const noexcept { return &*m_message; }

    /// The message's bytes as they lie in Redis. Valid as long as this guard or the one that it
    /// was moved to.
    [[nodiscard]] std::string_view payload() const { return m_core.payload(); }

    /// The message is done: it leaves the processing list and is not delivered again.
    /// Redis: LTRIM for the oldest held, else LSET and LREM by position, in one script.
    /// With AckMode::deferred it returns at once; true means accepted.
    bool ack() { return m_core.ack(); }

    /// To the unack list, from where a collector returns it to the source: for a message that may
    /// succeed elsewhere or later.
    /// Redis: LPUSH and the removal, in one script.
    bool reject() { return m_core.reject(); }

    /// Back to the source's serving end, as if it had never been fetched; counted nowhere.
    /// Redis: RPUSH and the removal, in one script.
    bool release() { return m_core.release(); }

    /// The same bytes to another queue.
    /// Redis: LPUSH and the removal, in one script; ReplyError WRONGTYPE when `queue` is no list.
    /// Throws std::invalid_argument for a name that no queue can have.
    bool push(std::string_view queue) { return m_core.push(queue); }

    /// Another message in its place to another queue. Throws EncodeError before anything is sent.
    bool push(std::string_view queue, const T& replacement) requires MessageEncodable<T> {
        std::string payload;
        detail::encode(replacement, payload, max_payload());
        return m_core.push(queue, std::move(payload));
    }

    /// To the dead list with a reason, as msgpack [1, payload, reason, unix_ms].
    /// Redis: LPUSH and the removal, in one script.
    bool bury(std::string_view reason = {}) { return m_core.bury(reason); }
    /// The reason, when bury() has returned true; else null. Valid as long as the guard.
    [[nodiscard]] const std::string* buried() const noexcept { return m_core.buried(); }

    /// Settles by a script of your own: our checks, its body and the removal are one atomic step.
    /// `keys` and `args` are KEYS and ARGV of the body; in a cluster the keys must lie in the
    /// source's slot. A body that returns an error before it writes refuses: ReplyError, the guard
    /// is unsettled.
    bool settle(const Script& script, std::vector<std::string> keys = {},
                std::vector<std::string> args = {}) {
        return m_core.settle(script, std::move(keys), std::move(args));
    }

    /// The keys of the queue that it came from; an unsettled guard's only.
    [[nodiscard]] const Keys& keys() const { return m_core.keys(); }
    /// What a replacement may have, in bytes; an unsettled guard's only.
    [[nodiscard]] std::int64_t max_payload() const { return m_core.max_payload(); }

    /// True as long as nobody else can have the message: it was not lost, and the lease that Redis
    /// confirmed holds, counted from when the last confirmed beat was asked for. False when
    /// settled. No command, O(1).
    [[nodiscard]] bool held() const { return m_core.held(); }

    /// True when there is nothing left to settle here; true for a guard that was moved from.
    [[nodiscard]] bool settled() const noexcept { return m_core.settled(); }

  private:
    template <MessageDecodable U>
    friend class Consumer;

    // A guard must move without throwing, whatever T does.
    using Holder = std::conditional_t<std::is_nothrow_move_constructible_v<T>, std::optional<T>,
                                      std::unique_ptr<T>>;

    MessageGuard(detail::GuardCore&& core, Holder&& message) noexcept
        : m_core(std::move(core)), m_message(std::move(message)) {}

    detail::GuardCore m_core; // destroyed after m_message, which may refer to the payload
    Holder m_message;
};

} // namespace orizuru
