// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A message handed out by a consumer: its content and its settlement.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/script.hpp>

#include <cassert>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace orizuru {

namespace detail {

struct GuardAccess;

/// True if push(queue, U) of a guard of T encodes the U itself; false if it is converted to T
/// first.
template <class U, class T>
inline constexpr bool is_kept_whole =
    !std::same_as<U, T> && (!std::convertible_to<const U&, T> || std::derived_from<U, T> ||
                            (std::is_arithmetic_v<U> && std::is_arithmetic_v<T>));

} // namespace detail

/// @cond
template <class T>
class Consumer;
/// @endcond

/// One delivery of a message, settled exactly once: by ack, reject, release, push, bury or settle,
/// or by the destructor, which rejects.
///
/// Every settlement
///   returns true when it is done, false when the lease was lost first: another consumer then has
///       the message or will get it;
///   is one atomic step in Redis: after a crash the message is either where it was or where it
///       goes;
///   blocks for a round trip; while Redis is unreachable, until `lease` has passed since the last
///       confirmed beat (at least command_timeout);
///   throws ConnectionError with in_doubt() when that time is over: the guard counts as settled,
///       the settlement stays queued and on_event gets its outcome;
///   throws ReplyError when Redis refuses it: nothing has happened, the guard is unsettled;
///   throws std::bad_alloc: settled() says whether the settlement continues or nothing happened;
///   throws std::logic_error when the guard is settled or was moved from.
///
/// Cost: O(1) for the oldest message held, O(position) for others; the payload's size counts only
/// where a settlement copies it. One thread at a time uses a guard; it may be any thread, also
/// while another one waits in `next`. A guard may outlive its Consumer.
template <class T>
class [[nodiscard]] MessageGuard {
    // Only consumers and workers make guards.
    struct Key {
        explicit Key() = default;
    };

  public:
    /// For consumers and workers: `decode` returns the message. There is nothing to settle yet.
    template <class Decode>
    MessageGuard(Key /*unused*/, Decode decode) : m_message(hold(decode)) {}
    /// Takes over the message and its settlement; the other guard has none then, and counts as
    /// settled.
    MessageGuard(MessageGuard&&) noexcept = default;
    /// Settles its own unsettled message as the destructor would, then takes over.
    MessageGuard& operator=(MessageGuard&& other) noexcept {
        if (this != &other) {
            m_core = std::move(other.m_core);
            m_message = std::move(other.m_message);
        }
        return *this;
    }
    MessageGuard(const MessageGuard&) = delete;
    MessageGuard& operator=(const MessageGuard&) = delete;
    /// Rejects an unsettled message. Never throws; waits at most command_timeout and does the rest
    /// in the background.
    ~MessageGuard() = default;

    /// The message. Valid as long as the guard, settled or not, until a move (debug builds assert).
    [[nodiscard]] const T& operator*() const noexcept {
        assert(!m_core.moved_from() && "the message guard was moved from");
        return message();
    }
    /// A pointer to the message, valid as operator*.
    [[nodiscard]] const T* operator->() const noexcept { return std::addressof(**this); }

    /// Moves the message out, for one that is large or cannot be copied. The guard is still to be
    /// settled. References of the message into payload() are valid as long as payload() is.
    [[nodiscard]] T take() requires std::move_constructible<T> {
        assert(!m_core.moved_from() && "the message guard was moved from");
        if constexpr (inside) {
            return std::move(m_message);
        } else {
            return std::move(*m_message);
        }
    }

    /// The message's bytes as in Redis. Valid as long as this guard or the one it was moved to.
    [[nodiscard]] std::string_view payload() const { return m_core.payload(); }

    /// The message is done: it leaves the processing list and is not redelivered.
    /// Redis: LTRIM for the oldest held, else LSET and LREM by position, in one script.
    /// With AckMode::deferred it returns at once; true means accepted.
    bool ack() { return m_core.ack(); }

    /// Moves the message to the unack list, from where a collector requeues it: for a message that
    /// may succeed elsewhere or later.
    /// Redis: LPUSH and the removal, in one script.
    bool reject() { return m_core.settle(m_core.rejecting()); }

    /// Requeues the message at the source's serving end, uncounted, as if it had never been
    /// fetched; one that waited apart (GarbageCollectorOptions::blamed) waits there again.
    /// Redis: RPUSH and the removal, in one script.
    bool release() { return m_core.settle(m_core.releasing()); }

    /// Moves the same bytes to another queue.
    /// Redis: LPUSH and the removal, in one script; ReplyError WRONGTYPE when `queue` is no list.
    /// Throws std::invalid_argument for an invalid queue name.
    bool push(std::string_view queue) { return m_core.settle(m_core.pushing(queue)); }

    /// Moves `replacement` to another queue instead. Throws EncodeError before anything is sent.
    bool push(std::string_view queue, const T& replacement) requires MessageEncodable<T> {
        return m_core.settle(m_core.pushing(queue, encoded(replacement)));
    }
    /// Does the same with a message of another type, such as a failure that holds this one. What
    /// converts to T becomes a T, as braces do, unless that would cut it: a type derived from T and
    /// a number of another type are written as what they are.
    template <MessageEncodable U>
    bool push(std::string_view queue, const U& other) requires(detail::is_kept_whole<U, T>) {
        return m_core.settle(m_core.pushing(queue, encoded(other)));
    }

    /// Moves the message to the dead list with a reason, as msgpack [2, payload, reason, unix_ms].
    /// Redis: LPUSH and the removal, in one script.
    bool bury(std::string_view reason = {}) { return m_core.settle(m_core.burying(reason)); }
    /// The reason, once bury() has returned true; else null. Valid as long as the guard.
    [[nodiscard]] const std::string* buried() const noexcept { return m_core.buried(); }

    /// Settles with a script of your own: the library's checks, its body and the removal are one
    /// atomic step. `keys` and `args` are KEYS and ARGV of the body; in a cluster the keys must lie
    /// in the source's slot. When the body returns an error before it writes, this throws
    /// ReplyError and the guard is unsettled.
    bool settle(const Script& script, std::vector<std::string> keys = {},
                std::vector<std::string> args = {}) {
        return m_core.settle(m_core.settling(script, std::move(keys), std::move(args)));
    }

    /// The keys of the queue that the message came from. Throws std::logic_error when settled.
    [[nodiscard]] const Keys& keys() const { return m_core.keys(); }
    /// The limit on a replacement's payload, in bytes. Throws std::logic_error when settled.
    [[nodiscard]] std::int64_t max_payload() const { return m_core.max_payload(); }

    /// True as long as no other consumer can have the message: it was not lost, and the lease that
    /// Redis confirmed holds, counted from when the last confirmed beat was requested. Time in
    /// which the host was suspended counts; time in which a hypervisor paused the virtual machine
    /// does not, as it cannot be seen. False when settled. No command, O(1).
    [[nodiscard]] bool held() const { return m_core.held(); }

    /// True when nothing is left to settle here; also for a guard that was moved from.
    [[nodiscard]] bool settled() const noexcept { return m_core.settled(); }

  private:
    template <class U>
    friend class Consumer;
    friend struct detail::GuardAccess;

    // A guard must move without throwing, whatever T does.
    static constexpr bool inside = std::is_nothrow_move_constructible_v<T>;
    using Holder = std::conditional_t<inside, T, std::unique_ptr<T>>;

    template <class Decode>
    static Holder hold(Decode& decode) {
        if constexpr (inside) {
            return decode();
        } else {
            return std::unique_ptr<T>(new T(decode())); // allocates first; moves nothing
        }
    }

    [[nodiscard]] const T& message() const noexcept {
        if constexpr (inside) {
            return m_message;
        } else {
            return *m_message;
        }
    }

    template <MessageEncodable U>
    [[nodiscard]] std::string encoded(const U& message) const {
        return detail::encoded(message, max_payload());
    }

    detail::GuardCore m_core; // destroyed after m_message, which may refer to the payload
    Holder m_message;
};

} // namespace orizuru
